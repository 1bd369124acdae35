-- name: sum_is_not_union
-- severity: note
-- filter: capture_id
-- question: Would a sum of durations be mistaken for time?
-- meaning: The durations of a device add up to more than the window they lie in, because streams overlap. A sum, and
--   every share of it, is not a share of the step's wall time.
-- next: Use union_ps where time is meant: of v1.phase_time and v1.component_time, and the columns of v1.device_time,
--   which add up to the window exactly. Never add up devices.
-- evidence: derived
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   device_ordinal BIGINT: ordinal of the device on its host
--   step_num BIGINT: the step in which the sum exceeds the window most; NULL for the work outside of steps
--   sum_ms DOUBLE (ms): sum of all durations in it
--   window_ms DOUBLE (ms): from the start of its first event to the end of its last
--   sum_over_window_ratio DOUBLE (ratio): sum_ms / window_ms
--   steps_exceeded BIGINT (count): steps of the device with a sum above their window

WITH _windows AS (
    SELECT
        a.capture_id AS capture_id,
        a.device_id AS device_id,
        a.device_ordinal AS device_ordinal,
        a.step_num AS step_num,
        CAST(SUM(a.end_ps - a.start_ps) AS BIGINT) AS sum_ps,
        MAX(a.end_ps) - MIN(a.start_ps) AS window_ps
    FROM v1.attribution AS a
    GROUP BY
        a.capture_id,
        a.device_id,
        a.device_ordinal,
        a.step_num
),
_exceeding AS (
    SELECT
        w.capture_id AS capture_id,
        w.device_id AS device_id,
        w.device_ordinal AS device_ordinal,
        w.step_num AS step_num,
        w.sum_ps AS sum_ps,
        w.window_ps AS window_ps,
        CAST(w.sum_ps AS DOUBLE) / NULLIF(CAST(w.window_ps AS DOUBLE), 0) AS sum_over_window_ratio
    FROM _windows AS w
    WHERE w.sum_ps > w.window_ps
),
_ranked AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_ordinal AS device_ordinal,
        e.step_num AS step_num,
        e.sum_ps AS sum_ps,
        e.window_ps AS window_ps,
        e.sum_over_window_ratio AS sum_over_window_ratio,
        COUNT(e.step_num) OVER (PARTITION BY e.capture_id, e.device_id) AS steps_exceeded,
        ROW_NUMBER() OVER (
            PARTITION BY e.capture_id, e.device_id
            ORDER BY e.sum_over_window_ratio DESC NULLS FIRST, e.step_num NULLS FIRST
        ) AS excess_rank
    FROM _exceeding AS e
)
SELECT
    r.run_name AS run_name,
    e.capture_id AS capture_id,
    e.device_ordinal AS device_ordinal,
    e.step_num AS step_num,
    CAST(e.sum_ps AS DOUBLE) / 1e9 AS sum_ms,
    CAST(e.window_ps AS DOUBLE) / 1e9 AS window_ms,
    e.sum_over_window_ratio AS sum_over_window_ratio,
    e.steps_exceeded AS steps_exceeded
FROM _ranked AS e
INNER JOIN main.captures AS c
    ON c.capture_id = e.capture_id
INNER JOIN main.runs AS r
    ON r.run_id = c.run_id
WHERE e.excess_rank = 1
ORDER BY
    r.run_name,
    e.capture_id,
    e.device_ordinal
