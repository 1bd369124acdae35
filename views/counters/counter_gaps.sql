-- name: v1._counter_gaps
-- version: 1
-- grain: one row per device and derived name of flops, memory_read_bytes and memory_write_bytes
-- summary: What the run lacks for the first formula of these names.
-- evidence: measured
-- columns:
--   run_id BIGINT: the run
--   device_id BIGINT: the device
--   derived_name VARCHAR: what would be derived
--   reason VARCHAR: why it cannot be, and what to do; NULL where its counters were collected
-- algorithm: A counter is collected where any capture of the run has a value of it. The formula is that of the
--   architecture, or of any where it is unknown or has none for these names; of several the first by formula_id.

WITH _collected AS (
    SELECT DISTINCT
        p.run_id AS run_id,
        v.capture_id AS capture_id,
        v.counter_id AS counter_id
    FROM main.counter_values AS v
    INNER JOIN main.captures AS p
        ON p.capture_id = v.capture_id
    WHERE v.value IS NOT NULL
        AND v.device_event_id IS NOT NULL
        AND v.host_event_id IS NULL
),
_collected_names AS (
    SELECT DISTINCT
        v.run_id AS run_id,
        k.formula_counter_name AS counter_name
    FROM _collected AS v
    INNER JOIN main.counters AS c
        ON c.capture_id = v.capture_id
        AND c.counter_id = v.counter_id
    INNER JOIN v1._counter_kinds AS k
        ON k.counter_name = c.counter_name
),
_formulas AS (
    SELECT
        f.architecture AS architecture,
        f.derived_name AS derived_name,
        MIN(f.formula_id) AS first_formula_id
    FROM main.counter_formulas AS f
    WHERE f.derived_name IN ('flops', 'memory_read_bytes', 'memory_write_bytes')
    GROUP BY
        f.architecture,
        f.derived_name
),
_architectures AS (
    SELECT DISTINCT f.architecture AS architecture
    FROM _formulas AS f
),
_devices AS (
    SELECT
        d.run_id AS run_id,
        d.device_id AS device_id,
        a.architecture AS architecture,
        COALESCE(w.architecture, 'any') AS formula_architecture
    FROM main.devices AS d
    LEFT JOIN v1._counted_devices AS a
        ON a.device_id = d.device_id
    LEFT JOIN _architectures AS w
        ON w.architecture = a.architecture
),
_missing AS (
    SELECT
        d.run_id AS run_id,
        d.device_id AS device_id,
        f.derived_name AS derived_name,
        f.first_formula_id AS formula_id,
        MIN(CASE WHEN c.counter_name IS NULL THEN t.counter_name END) AS missing_counter,
        CAST(SUM(CASE WHEN c.counter_name IS NULL THEN 1 ELSE 0 END) AS BIGINT) AS missing_counters
    FROM _devices AS d
    INNER JOIN _formulas AS f
        ON f.architecture = d.formula_architecture
    INNER JOIN main.counter_formula_terms AS t
        ON t.formula_id = f.first_formula_id
    LEFT JOIN _collected_names AS c
        ON c.run_id = d.run_id
        AND c.counter_name = t.counter_name
    WHERE t.is_required
    GROUP BY
        d.run_id,
        d.device_id,
        f.derived_name,
        f.first_formula_id
),
_wanted AS (
    SELECT d.run_id AS run_id, d.device_id AS device_id, d.architecture AS architecture, 'flops' AS derived_name
    FROM _devices AS d
    UNION ALL
    SELECT d.run_id, d.device_id, d.architecture, 'memory_read_bytes'
    FROM _devices AS d
    UNION ALL
    SELECT d.run_id, d.device_id, d.architecture, 'memory_write_bytes'
    FROM _devices AS d
)
SELECT
    w.run_id AS run_id,
    w.device_id AS device_id,
    w.derived_name AS derived_name,
    CASE
        WHEN w.architecture IS NULL AND COALESCE(m.missing_counters, 1) > 0
        THEN 'architecture unknown: load agent_info.csv (rocprofv3) or sysinfo.csv (rocprof-compute) with the counters'
        WHEN m.missing_counters IS NULL THEN 'no formulas for ' || w.architecture
        WHEN m.missing_counters = 1 THEN 'counter missing: collect ' || m.missing_counter
        WHEN m.missing_counters > 1
        THEN 'counters missing: collect ' || m.missing_counter || ' and '
            || CAST(m.missing_counters - 1 AS VARCHAR) || ' more that formula ' || m.formula_id || ' lacks'
    END AS reason
FROM _wanted AS w
LEFT JOIN _missing AS m
    ON m.run_id = w.run_id
    AND m.device_id = w.device_id
    AND m.derived_name = w.derived_name
