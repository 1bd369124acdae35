-- name: launches_not_traced
-- severity: note
-- filter: capture_id
-- question: Does the capture show what launched the device work?
-- meaning: The capture has device work and no call that launched any of it. Steps cannot be found from launches, there
--   is no launch latency, and idle time has no cause but unknown.
-- next: Trace the runtime API too: rocprofv3 --runtime-trace, host_tracer_level 1 or more of JAX's ProfileOptions.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   source_kind VARCHAR: format that it was read from
--   device_event_count BIGINT (count): device events that are work
-- algorithm: Ops of TPUs and of CPU devices are launched by no call of a runtime: captures with nothing else are left out.

WITH _work AS (
    SELECT
        e.capture_id AS capture_id,
        COUNT(*) AS device_event_count,
        COUNT(CASE WHEN e.kind <> 'op' THEN 1 END) AS launched_count
    FROM main.device_events AS e
    WHERE e.role = 'work'
    GROUP BY e.capture_id
),
_called AS (
    SELECT DISTINCT h.capture_id AS capture_id
    FROM main.host_events AS h
    WHERE h.correlation_id IS NOT NULL
)
SELECT
    r.run_name AS run_name,
    w.capture_id AS capture_id,
    c.source_kind AS source_kind,
    w.device_event_count AS device_event_count
FROM _work AS w
INNER JOIN main.captures AS c
    ON c.capture_id = w.capture_id
INNER JOIN main.runs AS r
    ON r.run_id = c.run_id
LEFT JOIN _called AS x
    ON x.capture_id = w.capture_id
WHERE x.capture_id IS NULL
    AND w.launched_count > 0
ORDER BY
    r.run_name,
    w.capture_id
