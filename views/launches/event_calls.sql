-- name: v1._event_calls
-- version: 1
-- grain: one row per device event whose host call is known
-- summary: The call that launched each device event, and the last host function that its thread enqueued before.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   device_event_id BIGINT: the event
--   host_event_id BIGINT: the call, as in v1.launches
--   track_id BIGINT: its thread
--   start_ps BIGINT (ps): start of the call
--   end_ps BIGINT (ps): end of the call
--   host_function_start_ps BIGINT (ps): start of the last call before it, on the same thread, that enqueued a
--     function of the host; NULL for none

WITH _host_functions AS (
    SELECT n.name_id AS name_id
    FROM main.names AS n
    WHERE REGEXP_MATCHES(n.name, '^(cu|cuda|hip)(LaunchHostFunc|StreamAddCallback)(_.*)?$')
),
_calls AS (
    SELECT
        h.capture_id AS capture_id,
        h.host_event_id AS host_event_id,
        h.track_id AS track_id,
        h.start_ps AS start_ps,
        h.end_ps AS end_ps,
        MAX(CASE WHEN f.name_id IS NOT NULL THEN h.start_ps END) OVER (
            PARTITION BY h.capture_id, h.track_id
            ORDER BY h.start_ps NULLS FIRST, h.host_event_id NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS host_function_start_ps
    FROM main.host_events AS h
    LEFT JOIN _host_functions AS f
        ON f.name_id = h.name_id
    WHERE h.correlation_id IS NOT NULL
        OR f.name_id IS NOT NULL
)
SELECT
    l.capture_id AS capture_id,
    l.device_event_id AS device_event_id,
    l.host_event_id AS host_event_id,
    c.track_id AS track_id,
    c.start_ps AS start_ps,
    c.end_ps AS end_ps,
    c.host_function_start_ps AS host_function_start_ps
FROM v1.launches AS l
INNER JOIN _calls AS c
    ON c.capture_id = l.capture_id
    AND c.host_event_id = l.host_event_id
