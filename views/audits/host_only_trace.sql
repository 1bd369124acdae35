-- name: host_only_trace
-- severity: error
-- filter: capture_id
-- question: Did the profiler see the devices?
-- meaning: The capture has host events and no device event. It cannot support any statement about kernels, device
--   time or a roofline.
-- next: Profile again with device tracing on, and read the program's log for what stopped it: no permission for
--   counters, another profiler attached, a tracer library that was not found. Of ROCm's profilers, give
--   --runtime-trace.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   process_index INTEGER: position of the process in the run
--   source_kind VARCHAR: format that it was read from
--   platform VARCHAR: cuda, rocm, tpu or cpu; NULL where unknown
--   host_event_count BIGINT (count): host events
--   call_count BIGINT (count): host events with a correlation id: calls of a device's runtime
-- algorithm: A process of a ROCm profiler that calls the runtime and launches nothing may be one that starts
--   others: it is left out.

WITH _launching AS (
    SELECT DISTINCT u.capture_id AS capture_id
    FROM v1.unmatched_calls AS u
    WHERE u.cause = 'device_not_traced'
),
_calls AS (
    SELECT
        h.capture_id AS capture_id,
        COUNT(h.correlation_id) AS call_count
    FROM main.host_events AS h
    GROUP BY h.capture_id
)
SELECT
    c.run_name AS run_name,
    c.capture_id AS capture_id,
    c.process_index AS process_index,
    c.source_kind AS source_kind,
    c.platform AS platform,
    c.host_event_count AS host_event_count,
    h.call_count AS call_count
FROM v1.captures AS c
INNER JOIN _calls AS h
    ON h.capture_id = c.capture_id
LEFT JOIN _launching AS l
    ON l.capture_id = c.capture_id
WHERE c.device_event_count + c.serialized_event_count = 0
    AND (c.source_kind = 'xspace' OR h.call_count = 0 OR l.capture_id IS NOT NULL)
ORDER BY
    c.run_name,
    c.capture_id
