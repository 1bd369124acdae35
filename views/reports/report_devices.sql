-- name: v1._report_devices
-- version: 1
-- grain: one row per run, process and device
-- summary: Devices
-- evidence: derived
-- columns:
--   run_id BIGINT: the run
--   line BIGINT: order of the rows
--   device VARCHAR: Device
--   steps BIGINT (count): Steps
--   window_ms DOUBLE (ms): Window
--   compute_ms DOUBLE (ms): Compute
--   communication_ms DOUBLE (ms): Comm.
--   exposed_ms DOUBLE (ms): Exposed comm.
--   idle_ms DOUBLE (ms): Idle
--   behind_ratio DOUBLE (ratio): Behind the mean
-- algorithm: The longest window first. The device that the others wait for in collectives computes longest and has the
--   least exposed communication; the whole of its communication does not tell, for that counts what compute hides.

WITH _devices AS (
    SELECT
        s.run_id AS run_id,
        s.capture_id AS capture_id,
        s.device_id AS device_id,
        COUNT(*) AS device_steps,
        CAST(SUM(t.window_ps) AS DOUBLE) AS total_window_ps,
        CAST(SUM(t.compute_ps) AS DOUBLE) AS total_compute_ps,
        CAST(SUM(t.communication_ps) AS DOUBLE) AS total_communication_ps,
        CAST(SUM(t.exposed_communication_ps) AS DOUBLE) AS exposed_ps,
        CAST(SUM(t.idle_ps) AS DOUBLE) AS total_idle_ps
    FROM v1._run_steps AS s
    INNER JOIN v1.device_time AS t
        ON t.capture_id = s.capture_id
        AND t.device_id = s.device_id
        AND COALESCE(t.step_num, -1) = COALESCE(s.step_num, -1)
        AND (t.step_num IS NULL) = (s.step_num IS NULL)
    GROUP BY
        s.run_id,
        s.capture_id,
        s.device_id
),
_processes AS (
    SELECT
        d.run_id AS run_id,
        MIN(c.process_index) AS first_process,
        MAX(c.process_index) AS last_process
    FROM _devices AS d
    INNER JOIN main.captures AS c
        ON c.capture_id = d.capture_id
    GROUP BY d.run_id
)
SELECT
    d.run_id AS run_id,
    ROW_NUMBER() OVER (
        PARTITION BY d.run_id
        ORDER BY
            -d.total_window_ps / NULLIF(d.device_steps, 0) NULLS FIRST,
            d.capture_id NULLS FIRST,
            d.device_id NULLS FIRST
    ) AS line,
    v.device_type || ' ' || CAST(v.device_ordinal AS VARCHAR)
        || CASE
            WHEN p.first_process < p.last_process THEN COALESCE(' of process ' || CAST(c.process_index AS VARCHAR), '')
            ELSE ''
        END AS device,
    d.device_steps AS steps,
    d.total_window_ps / NULLIF(d.device_steps, 0) / 1e9 AS window_ms,
    d.total_compute_ps / NULLIF(d.device_steps, 0) / 1e9 AS compute_ms,
    d.total_communication_ps / NULLIF(d.device_steps, 0) / 1e9 AS communication_ms,
    d.exposed_ps / NULLIF(d.device_steps, 0) / 1e9 AS exposed_ms,
    d.total_idle_ps / NULLIF(d.device_steps, 0) / 1e9 AS idle_ms,
    (d.total_window_ps / NULLIF(d.device_steps, 0) - t.window_ps) / NULLIF(t.window_ps, 0) AS behind_ratio
FROM _devices AS d
INNER JOIN main.captures AS c
    ON c.capture_id = d.capture_id
INNER JOIN _processes AS p
    ON p.run_id = d.run_id
INNER JOIN main.devices AS v
    ON v.device_id = d.device_id
INNER JOIN v1.run_time AS t
    ON t.run_id = d.run_id
