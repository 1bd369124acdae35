-- name: v1.run_time
-- version: 1
-- grain: one row per run with device work
-- summary: Where the mean device step of a run went, and how far its devices are apart.
-- evidence: derived
-- columns:
--   run_id BIGINT: the run
--   run_name VARCHAR: its name
--   device_step_count BIGINT (count): steps of devices that the means are of
--   is_whole_capture BOOLEAN: the run has no complete step: means are of whole captures
--   device_count BIGINT (count): devices of the run with these steps
--   window_ps DOUBLE (ps): mean of v1.device_time's window_ps, from the first event of a step to its last
--   busy_ps DOUBLE (ps): mean union of all events
--   idle_ps DOUBLE (ps): mean of what is left of the window
--   compute_ps DOUBLE (ps): mean union of compute
--   communication_ps DOUBLE (ps): mean union of collectives
--   copy_ps DOUBLE (ps): mean union of copies
--   overlap_ps DOUBLE (ps): mean time with compute and a collective at once
--   exposed_communication_ps DOUBLE (ps): mean time with a collective and no compute
--   exposed_copy_ps DOUBLE (ps): mean time with nothing but copies
--   hidden_ratio DOUBLE (ratio): overlap over communication; NULL without communication
--   shortest_window_ps BIGINT (ps): of any device and step
--   longest_window_ps BIGINT (ps): of any device and step
--   spread_ratio DOUBLE (ratio): longest less shortest window, over the mean
--   window_ms DOUBLE (ms): window_ps in milliseconds
--   compute_ms DOUBLE (ms): compute_ps in milliseconds
--   communication_ms DOUBLE (ms): communication_ps in milliseconds
--   overlap_ms DOUBLE (ms): overlap_ps in milliseconds
--   exposed_communication_ms DOUBLE (ms): exposed_communication_ps in milliseconds
--   exposed_copy_ms DOUBLE (ms): exposed_copy_ps in milliseconds
--   busy_ms DOUBLE (ms): busy_ps in milliseconds
--   idle_ms DOUBLE (ms): idle_ps in milliseconds
-- algorithm: Sums are of integers and divided once. Every device step counts the same.

WITH _sums AS (
    SELECT
        s.run_id AS run_id,
        COUNT(*) AS device_steps,
        COUNT(s.step_num) AS numbered_steps,
        COUNT(DISTINCT s.device_id) AS devices,
        CAST(SUM(t.window_ps) AS BIGINT) AS total_window_ps,
        CAST(SUM(t.busy_ps) AS BIGINT) AS total_busy_ps,
        CAST(SUM(t.idle_ps) AS BIGINT) AS total_idle_ps,
        CAST(SUM(t.compute_ps) AS BIGINT) AS total_compute_ps,
        CAST(SUM(t.communication_ps) AS BIGINT) AS total_communication_ps,
        CAST(SUM(t.copy_ps) AS BIGINT) AS total_copy_ps,
        CAST(SUM(t.overlap_ps) AS BIGINT) AS total_overlap_ps,
        CAST(SUM(t.exposed_communication_ps) AS BIGINT) AS total_exposed_communication_ps,
        CAST(SUM(t.exposed_copy_ps) AS BIGINT) AS total_exposed_copy_ps,
        MIN(t.window_ps) AS shortest_ps,
        MAX(t.window_ps) AS longest_ps
    FROM v1._run_steps AS s
    INNER JOIN v1.device_time AS t
        ON t.capture_id = s.capture_id
        AND t.device_id = s.device_id
        AND COALESCE(t.step_num, -1) = COALESCE(s.step_num, -1)
        AND (t.step_num IS NULL) = (s.step_num IS NULL)
    GROUP BY s.run_id
),
_means AS (
    SELECT
        u.run_id AS run_id,
        u.device_steps AS device_steps,
        u.numbered_steps AS numbered_steps,
        u.devices AS devices,
        CAST(u.total_window_ps AS DOUBLE) / NULLIF(u.device_steps, 0) AS window_ps,
        CAST(u.total_busy_ps AS DOUBLE) / NULLIF(u.device_steps, 0) AS busy_ps,
        CAST(u.total_idle_ps AS DOUBLE) / NULLIF(u.device_steps, 0) AS idle_ps,
        CAST(u.total_compute_ps AS DOUBLE) / NULLIF(u.device_steps, 0) AS compute_ps,
        CAST(u.total_communication_ps AS DOUBLE) / NULLIF(u.device_steps, 0) AS communication_ps,
        CAST(u.total_copy_ps AS DOUBLE) / NULLIF(u.device_steps, 0) AS copy_ps,
        CAST(u.total_overlap_ps AS DOUBLE) / NULLIF(u.device_steps, 0) AS overlap_ps,
        CAST(u.total_exposed_communication_ps AS DOUBLE) / NULLIF(u.device_steps, 0)
            AS exposed_communication_ps,
        CAST(u.total_exposed_copy_ps AS DOUBLE) / NULLIF(u.device_steps, 0) AS exposed_copy_ps,
        CAST(u.total_overlap_ps AS DOUBLE) / NULLIF(CAST(u.total_communication_ps AS DOUBLE), 0)
            AS hidden_ratio,
        u.shortest_ps AS shortest_ps,
        u.longest_ps AS longest_ps
    FROM _sums AS u
)
SELECT
    m.run_id AS run_id,
    r.run_name AS run_name,
    m.device_steps AS device_step_count,
    m.numbered_steps = 0 AS is_whole_capture,
    m.devices AS device_count,
    m.window_ps AS window_ps,
    m.busy_ps AS busy_ps,
    m.idle_ps AS idle_ps,
    m.compute_ps AS compute_ps,
    m.communication_ps AS communication_ps,
    m.copy_ps AS copy_ps,
    m.overlap_ps AS overlap_ps,
    m.exposed_communication_ps AS exposed_communication_ps,
    m.exposed_copy_ps AS exposed_copy_ps,
    m.hidden_ratio AS hidden_ratio,
    m.shortest_ps AS shortest_window_ps,
    m.longest_ps AS longest_window_ps,
    CAST(m.longest_ps - m.shortest_ps AS DOUBLE) / NULLIF(m.window_ps, 0) AS spread_ratio,
    m.window_ps / 1e9 AS window_ms,
    m.compute_ps / 1e9 AS compute_ms,
    m.communication_ps / 1e9 AS communication_ms,
    m.overlap_ps / 1e9 AS overlap_ms,
    m.exposed_communication_ps / 1e9 AS exposed_communication_ms,
    m.exposed_copy_ps / 1e9 AS exposed_copy_ms,
    m.busy_ps / 1e9 AS busy_ms,
    m.idle_ps / 1e9 AS idle_ms
FROM _means AS m
INNER JOIN main.runs AS r
    ON r.run_id = m.run_id
