-- name: counters_used_for_timing
-- severity: warning
-- filter: run_name
-- question: Is there device time from a run that did not count?
-- meaning: The only device work of the run is from counter passes, which run kernels one by one. Its durations are
--   those of no real schedule: they tell nothing of step time, overlap or idle time.
-- next: Trace the same program without counters (rocprofv3 --runtime-trace, or the JAX profiler) and load it into this
--   run. Counters are then joined to it by kernel.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: NULL: the whole run
--   serialized_captures BIGINT (count): captures of counter passes
--   serialized_events BIGINT (count): their dispatches and copies
--   serialized_ms DOUBLE (ms): sum of the durations that must not be used

WITH _captures AS (
    SELECT
        e.capture_id AS capture_id,
        COUNT(CASE WHEN e.role = 'work' THEN 1 END) AS work_events,
        COUNT(CASE WHEN e.role = 'serialized' THEN 1 END) AS serialized_events,
        CAST(SUM(CASE WHEN e.role = 'serialized' THEN e.end_ps - e.start_ps ELSE 0 END) AS BIGINT)
            AS serialized_ps
    FROM main.device_events AS e
    GROUP BY e.capture_id
),
_runs AS (
    SELECT
        c.run_id AS run_id,
        CAST(SUM(e.work_events) AS BIGINT) AS work_count,
        COUNT(CASE WHEN e.serialized_events > 0 THEN 1 END) AS serialized_captures,
        CAST(SUM(e.serialized_events) AS BIGINT) AS serialized_count,
        CAST(SUM(e.serialized_ps) AS BIGINT) AS run_ps
    FROM _captures AS e
    INNER JOIN main.captures AS c
        ON c.capture_id = e.capture_id
    GROUP BY c.run_id
)
SELECT
    r.run_name AS run_name,
    CAST(NULL AS BIGINT) AS capture_id,
    u.serialized_captures AS serialized_captures,
    u.serialized_count AS serialized_events,
    CAST(u.run_ps AS DOUBLE) / 1e9 AS serialized_ms
FROM _runs AS u
INNER JOIN main.runs AS r
    ON r.run_id = u.run_id
WHERE u.serialized_count > 0
    AND u.work_count = 0
ORDER BY r.run_name
