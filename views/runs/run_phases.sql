-- name: v1.run_phases
-- version: 1
-- grain: one row per run and phase
-- summary: Device time of each phase in the mean device step of a run.
-- evidence: derived
-- columns:
--   run_id BIGINT: the run
--   run_name VARCHAR: its name
--   phase VARCHAR: communication, remat, backward, forward, update or unattributed
--   sum_ps DOUBLE (ps): summed durations, a step of a device: mean over all of v1.run_time
--   share_ratio DOUBLE (ratio): over the summed durations of all phases
--   sum_ms DOUBLE (ms): sum_ps in milliseconds
-- algorithm: As sum_ps of v1.phase_time. A step without the phase counts as 0.

WITH _counts AS (
    SELECT
        s.run_id AS run_id,
        COUNT(*) AS device_steps
    FROM v1._run_steps AS s
    GROUP BY s.run_id
),
_phases AS (
    SELECT
        s.run_id AS run_id,
        e.phase AS phase,
        CAST(SUM(e.end_ps - e.start_ps) AS BIGINT) AS phase_ps
    FROM v1._run_steps AS s
    INNER JOIN v1._phased_events AS e
        ON e.capture_id = s.capture_id
        AND e.device_id = s.device_id
        AND COALESCE(e.step_num, -1) = COALESCE(s.step_num, -1)
        AND (e.step_num IS NULL) = (s.step_num IS NULL)
    GROUP BY
        s.run_id,
        e.phase
),
_totals AS (
    SELECT
        p.run_id AS run_id,
        p.phase AS phase,
        p.phase_ps AS phase_ps,
        CAST(SUM(p.phase_ps) OVER (PARTITION BY p.run_id) AS BIGINT) AS total_ps
    FROM _phases AS p
)
SELECT
    t.run_id AS run_id,
    r.run_name AS run_name,
    t.phase AS phase,
    CAST(t.phase_ps AS DOUBLE) / NULLIF(c.device_steps, 0) AS sum_ps,
    CAST(t.phase_ps AS DOUBLE) / NULLIF(CAST(t.total_ps AS DOUBLE), 0) AS share_ratio,
    CAST(t.phase_ps AS DOUBLE) / NULLIF(c.device_steps, 0) / 1e9 AS sum_ms
FROM _totals AS t
INNER JOIN _counts AS c
    ON c.run_id = t.run_id
INNER JOIN main.runs AS r
    ON r.run_id = t.run_id
