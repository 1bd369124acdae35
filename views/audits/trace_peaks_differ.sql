-- name: trace_peaks_differ
-- severity: note
-- filter: capture_id
-- question: Are the peaks that the trace states those of the device?
-- meaning: The bandwidth or the FLOPs that the profiler wrote for a device differ from the specified peak by more than
--   a tenth. A roofline drawn with them, as XProf does, is wrong. ROCm's tracers state half of the bandwidth.
-- next: Use the peaks of main.device_peaks, and recompute efficiencies that came from the trace's own.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   device_kind VARCHAR: kind of the device
--   device_count BIGINT (count): devices of which the trace says so
--   attribute VARCHAR: what the trace calls it
--   stated DOUBLE: what the trace states, in the unit of the peak
--   specified DOUBLE: the peak
--   stated_over_specified_ratio DOUBLE (ratio): stated / specified
--   peak_source VARCHAR: what the peak comes from

WITH _stated AS (
    SELECT
        a.capture_id AS capture_id,
        d.device_kind AS device_kind,
        a.attribute AS attribute,
        COUNT(*) AS device_count,
        MIN(CASE
            WHEN REGEXP_MATCHES(a.value, '^[0-9]{1,17}([.][0-9]{1,9})?$') THEN CAST(a.value AS DOUBLE)
        END) AS stated_value
    FROM main.device_attributes AS a
    INNER JOIN main.devices AS d
        ON d.device_id = a.device_id
    WHERE a.attribute IN ('memory_bandwidth', 'peak_teraflops_per_second')
    GROUP BY
        a.capture_id,
        d.device_kind,
        a.attribute
),
_scaled AS (
    SELECT
        s.capture_id AS capture_id,
        s.device_kind AS device_kind,
        s.device_count AS device_count,
        s.attribute AS attribute,
        CASE s.attribute WHEN 'memory_bandwidth' THEN s.stated_value ELSE s.stated_value * 1e12 END AS stated
    FROM _stated AS s
    WHERE s.stated_value > 0
),
_compared AS (
    SELECT
        s.capture_id AS capture_id,
        s.device_kind AS device_kind,
        s.device_count AS device_count,
        s.attribute AS attribute,
        s.stated AS stated,
        p.value AS specified,
        p.source AS peak_source,
        s.stated / NULLIF(p.value, 0) AS stated_over_specified_ratio
    FROM _scaled AS s
    INNER JOIN main.device_peaks AS p
        ON s.device_kind LIKE p.device_pattern
        AND p.peak_kind = 'spec'
        AND (
            s.attribute = 'memory_bandwidth' AND p.quantity = 'bytes_per_s' AND p.memory_level = 'HBM'
            OR s.attribute <> 'memory_bandwidth' AND p.quantity = 'matrix_flops_per_s' AND p.dtype = 'bf16'
        )
)
SELECT
    r.run_name AS run_name,
    s.capture_id AS capture_id,
    s.device_kind AS device_kind,
    s.device_count AS device_count,
    s.attribute AS attribute,
    s.stated AS stated,
    s.specified AS specified,
    s.stated_over_specified_ratio AS stated_over_specified_ratio,
    s.peak_source AS peak_source
FROM _compared AS s
INNER JOIN main.captures AS c
    ON c.capture_id = s.capture_id
INNER JOIN main.runs AS r
    ON r.run_id = c.run_id
WHERE s.stated_over_specified_ratio NOT BETWEEN 9e-1 AND 11e-1
ORDER BY
    r.run_name,
    s.capture_id,
    s.device_kind,
    s.attribute
