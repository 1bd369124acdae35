-- name: v1.launches
-- version: 1
-- grain: one row per device event that is work
-- summary: The host call that launched each device event, or why there is none.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   device_event_id BIGINT: the event
--   host_event_id BIGINT: the call; the first by start where several share the correlation id. Where an HSA
--     call carries the event's id, the HIP call around it, at most four calls up
--   api_name VARCHAR: name of the call; CUDA's tracer gives it the name of the kernel
--   thread_name VARCHAR: thread that made the call; without a call, the thread that the event names
--   launch_latency_ps BIGINT (ps): from the start of the call to the start of the event
--   queue_delay_ps BIGINT (ps): from the end of the call to the start of the event; 0 where the event began
--     before the call returned
--   link_status VARCHAR: linked; ambiguous (several calls share the id); on_host (an op of a CPU device, which
--     runs on the thread itself); api_not_traced (a capture of a ROCm profiler without any call but markers:
--     trace HIP with it); no_correlation_id (the profiler gave the event none, as it happens to kernels of
--     RCCL: v1.rccl_calls finds their calls otherwise); no_host_event (other calls are there, but none with
--     this id: it was made before the trace began, by an API that is not traced, or lost)
--   hsa_host_event_id BIGINT: the HSA call that carries the event's id, where host_event_id is around it
--   launch_latency_us DOUBLE (us): launch_latency_ps in microseconds
--   queue_delay_us DOUBLE (us): queue_delay_ps in microseconds

WITH _calls AS (
    SELECT
        h.capture_id AS capture_id,
        h.correlation_id AS correlation_id,
        h.host_event_id AS host_event_id,
        h.name_id AS name_id,
        h.track_id AS track_id,
        h.start_ps AS start_ps,
        h.end_ps AS end_ps,
        ROW_NUMBER() OVER (
            PARTITION BY h.capture_id, h.correlation_id
            ORDER BY h.start_ps NULLS FIRST, h.host_event_id NULLS FIRST
        ) AS call_rank,
        LEAD(h.host_event_id) OVER (
            PARTITION BY h.capture_id, h.correlation_id
            ORDER BY h.start_ps NULLS FIRST, h.host_event_id NULLS FIRST
        ) AS next_host_event_id
    FROM main.host_events AS h
    WHERE h.correlation_id IS NOT NULL
),
_threads AS (
    SELECT
        l.capture_id AS capture_id,
        l.launch_details_id AS launch_details_id,
        MIN(t.track_name) AS thread_name
    FROM main.launch_details AS l
    INNER JOIN main.tracks AS t
        ON t.capture_id = l.capture_id
        AND t.native_id = l.thread_id
        AND t.track_kind = 'thread'
    GROUP BY
        l.capture_id,
        l.launch_details_id
),
_linked AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_event_id AS device_event_id,
        c.host_event_id AS host_event_id,
        n.name AS api_name,
        COALESCE(t.track_name, d.thread_name) AS thread_name,
        e.start_ps - c.start_ps AS launch_latency_ps,
        CASE
            WHEN e.start_ps > c.end_ps THEN e.start_ps - c.end_ps
            WHEN c.host_event_id IS NOT NULL THEN 0
        END AS queue_delay_ps,
        CASE
            WHEN c.next_host_event_id IS NOT NULL THEN 'ambiguous'
            WHEN c.host_event_id IS NOT NULL THEN 'linked'
            WHEN o.track_kind = 'thread' THEN 'on_host'
            WHEN u.capture_id IS NOT NULL THEN 'api_not_traced'
            WHEN e.correlation_id IS NULL THEN 'no_correlation_id'
            ELSE 'no_host_event'
        END AS link_status,
        CASE WHEN c.host_event_id IS NOT NULL THEN k.hsa_host_event_id END AS hsa_host_event_id
    FROM main.device_events AS e
    INNER JOIN main.tracks AS o
        ON o.capture_id = e.capture_id
        AND o.track_id = e.track_id
    LEFT JOIN v1._untraced_captures AS u
        ON u.capture_id = e.capture_id
    LEFT JOIN v1._hip_callers AS k
        ON k.capture_id = e.capture_id
        AND k.correlation_id = e.correlation_id
    LEFT JOIN _calls AS c
        ON c.capture_id = e.capture_id
        AND c.correlation_id = COALESCE(k.hip_correlation_id, e.correlation_id)
        AND c.call_rank = 1
    LEFT JOIN main.names AS n
        ON n.name_id = c.name_id
    LEFT JOIN main.tracks AS t
        ON t.capture_id = c.capture_id
        AND t.track_id = c.track_id
    LEFT JOIN _threads AS d
        ON d.capture_id = e.capture_id
        AND d.launch_details_id = e.launch_details_id
    WHERE e.role = 'work'
)
SELECT
    l.capture_id AS capture_id,
    l.device_event_id AS device_event_id,
    l.host_event_id AS host_event_id,
    l.api_name AS api_name,
    l.thread_name AS thread_name,
    l.launch_latency_ps AS launch_latency_ps,
    l.queue_delay_ps AS queue_delay_ps,
    l.link_status AS link_status,
    l.hsa_host_event_id AS hsa_host_event_id,
    CAST(l.launch_latency_ps AS DOUBLE) / 1e6 AS launch_latency_us,
    CAST(l.queue_delay_ps AS DOUBLE) / 1e6 AS queue_delay_us
FROM _linked AS l
