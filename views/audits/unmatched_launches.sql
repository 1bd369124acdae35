-- name: unmatched_launches
-- severity: warning
-- filter: capture_id
-- question: Does every launch have its device work?
-- meaning: Calls launched work of which the capture has no event, although it goes on after them. The profiler lost
--   events, so that device time is too short and steps are incomplete.
-- next: Profile fewer steps, or raise the profiler's event limits: XLA's tracers drop what is over their max_events,
--   rocprofv3 what does not fit its buffers. The program's log says so.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   api_name VARCHAR: name of the call; CUDA's tracer gives it the name of the kernel
--   call_count BIGINT (count): such calls without device work
--   first_start_ms DOUBLE (ms): start of the first of them, from the capture's origin
--   last_start_ms DOUBLE (ms): start of the last

SELECT
    r.run_name AS run_name,
    u.capture_id AS capture_id,
    u.api_name AS api_name,
    COUNT(*) AS call_count,
    CAST(MIN(u.start_ps) AS DOUBLE) / 1e9 AS first_start_ms,
    CAST(MAX(u.start_ps) AS DOUBLE) / 1e9 AS last_start_ms
FROM v1.unmatched_calls AS u
INNER JOIN main.captures AS c
    ON c.capture_id = u.capture_id
INNER JOIN main.runs AS r
    ON r.run_id = c.run_id
WHERE u.cause = 'event_missing'
GROUP BY
    r.run_name,
    u.capture_id,
    u.api_name
ORDER BY
    r.run_name,
    u.capture_id,
    call_count DESC,
    u.api_name
