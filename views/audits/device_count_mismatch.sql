-- name: device_count_mismatch
-- severity: warning
-- filter: run_name
-- question: Does the run hold what every process and device did?
-- meaning: The configuration names more devices or processes than the captures show. Sums and means over devices leave
--   some out, and the worst device may be among them.
-- next: Ingest the captures of the other processes into this run; each process writes its own. Where one capture is
--   meant to stand for all, speak of one device, not of the job.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: NULL: the whole run
--   counted VARCHAR: devices or processes
--   configured BIGINT (count): how many the configuration names
--   found BIGINT (count): devices with work, or processes, in the captures
--   param VARCHAR: the parameter that says so

WITH _names AS (
    SELECT
        v.param AS param,
        v.counted AS counted
    FROM (
        VALUES
            ('devices', 'devices'),
            ('device_count', 'devices'),
            ('num_devices', 'devices'),
            ('global_device_count', 'devices'),
            ('process_count', 'processes'),
            ('num_processes', 'processes'),
            ('jax_num_processes', 'processes')
    ) AS v (param, counted)
),
_configured AS (
    SELECT
        p.run_id AS run_id,
        n.counted AS counted,
        p.param AS param,
        MAX(CASE WHEN REGEXP_MATCHES(p.value, '^[0-9]{1,9}$') THEN CAST(p.value AS BIGINT) END) AS configured
    FROM main.run_params AS p
    INNER JOIN _names AS n
        ON n.param = p.param
    GROUP BY
        p.run_id,
        n.counted,
        p.param
),
_working AS (
    SELECT DISTINCT
        e.capture_id AS capture_id,
        e.device_id AS device_id
    FROM main.device_events AS e
    WHERE e.role IN ('work', 'serialized')
),
_found AS (
    SELECT
        c.run_id AS run_id,
        'devices' AS counted,
        COUNT(DISTINCT w.device_id) AS found
    FROM _working AS w
    INNER JOIN main.captures AS c
        ON c.capture_id = w.capture_id
    GROUP BY c.run_id
    UNION ALL
    SELECT
        c.run_id AS run_id,
        'processes' AS counted,
        COUNT(DISTINCT c.process_index) AS found
    FROM main.captures AS c
    WHERE c.source_kind <> 'hlo'
    GROUP BY c.run_id
)
SELECT
    r.run_name AS run_name,
    CAST(NULL AS BIGINT) AS capture_id,
    n.counted AS counted,
    n.configured AS configured,
    f.found AS found,
    n.param AS param
FROM _configured AS n
INNER JOIN _found AS f
    ON f.run_id = n.run_id
    AND f.counted = n.counted
INNER JOIN main.runs AS r
    ON r.run_id = n.run_id
WHERE f.found < n.configured
ORDER BY
    r.run_name,
    n.counted,
    n.param
