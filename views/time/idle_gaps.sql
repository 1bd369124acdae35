-- name: v1.idle_gaps
-- version: 1
-- grain: one row per capture, device, step and gap between device work, and the same for the whole capture with
--   step_num NULL
-- summary: When a device had nothing to do, what came before and after, and what it waited for.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   device_ordinal BIGINT: ordinal of the device on its host
--   step_num BIGINT: the step, of whose work there was none; NULL for the whole capture
--   start_ps BIGINT (ps): end of what came before
--   end_ps BIGINT (ps): start of what came after
--   duration_ps BIGINT (ps): end_ps - start_ps
--   previous_kernel VARCHAR: name of what ended last; of several, of the one that began last
--   next_kernel VARCHAR: name of what began first; of several that began together, of the one with the lowest id
--   cause VARCHAR: in_graph (one call launched both, as a graph launch does); unknown (no call is known that
--     launched what came after: TPU, ops on CPU devices, an API that was not traced); host_late (that call had
--     not returned when the gap began); and of what was launched in time: host_callback (between the calls that
--     launched the two, their thread enqueued a function of the host), collective (what came before is one),
--     other_stream (what came before was on another stream), same_stream
--   previous_device_event_id BIGINT: the event behind previous_kernel
--   next_device_event_id BIGINT: the event behind next_kernel
--   previous_stream VARCHAR: track of what came before
--   next_stream VARCHAR: track of what came after
--   launch_start_ps BIGINT (ps): start of the call that launched what came after; NULL where unknown
--   launch_end_ps BIGINT (ps): end of that call; NULL where unknown
--   host_late_ps BIGINT (ps): part of the gap before the call had returned; NULL where unknown
--   host_function_start_ps BIGINT (ps): start of the last call before it that enqueued a function of the host,
--     where that is after the call of what came before and on the same thread; else NULL
--   duration_us DOUBLE (us): duration_ps in microseconds
-- algorithm: In order of start, each event that ends no earlier than all before it may be what a gap comes
--   after; where it ends before the next such event begins, the gap is between the two. The gaps of a step are
--   where no work of that step runs, so they sum to idle_ps of v1.device_time, as those of the capture do.
--   The first cause that holds is given. It is what the times tell, not what the program declared: work
--   launched in time waits for what its stream waits for, be it an event of another stream, another device or
--   the host, of which the trace shows at most which work ended last. So a long gap with same_stream is a wait
--   that left no trace, and a short one the cost of starting a kernel. Of host functions the trace does not
--   tell the stream. Host and device times come from two clocks that the profiler aligned, to about a
--   microsecond at best: where host_late_ps is near that, host_late is uncertain.

WITH _events AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_event_id AS device_event_id,
        e.name_id AS name_id,
        e.track_id AS track_id,
        e.correlation_id AS correlation_id,
        c.track_id AS thread_id,
        c.start_ps AS call_start_ps,
        c.end_ps AS call_end_ps,
        c.host_function_start_ps AS host_function_start_ps
    FROM main.device_events AS e
    LEFT JOIN v1._event_calls AS c
        ON c.capture_id = e.capture_id
        AND c.device_event_id = e.device_event_id
    WHERE e.role = 'work'
),
_gaps AS (
    SELECT
        s.capture_id AS capture_id,
        s.device_id AS device_id,
        s.step_num AS step_num,
        s.start_ps AS start_ps,
        s.end_ps AS end_ps,
        s.previous_id AS previous_id,
        b.name_id AS previous_name_id,
        b.track_id AS previous_track_id,
        s.next_id AS next_id,
        a.name_id AS next_name_id,
        a.track_id AS next_track_id,
        a.call_start_ps AS launch_start_ps,
        a.call_end_ps AS launch_end_ps,
        CASE
            WHEN a.thread_id = b.thread_id AND a.host_function_start_ps >= b.call_start_ps
            THEN a.host_function_start_ps
        END AS host_function_start_ps,
        COALESCE(a.correlation_id = b.correlation_id, FALSE) AS is_one_call,
        o.device_event_id IS NOT NULL AS is_previous_collective
    FROM v1._idle_spans AS s
    INNER JOIN _events AS b
        ON b.capture_id = s.capture_id
        AND b.device_event_id = s.previous_id
    INNER JOIN _events AS a
        ON a.capture_id = s.capture_id
        AND a.device_event_id = s.next_id
    LEFT JOIN v1._event_ops AS o
        ON o.capture_id = s.capture_id
        AND o.device_event_id = s.previous_id
        AND o.event_class = 'collective'
)
SELECT
    g.capture_id AS capture_id,
    g.device_id AS device_id,
    d.device_ordinal AS device_ordinal,
    g.step_num AS step_num,
    g.start_ps AS start_ps,
    g.end_ps AS end_ps,
    g.end_ps - g.start_ps AS duration_ps,
    b.name AS previous_kernel,
    a.name AS next_kernel,
    CASE
        WHEN g.is_one_call THEN 'in_graph'
        WHEN g.launch_end_ps IS NULL THEN 'unknown'
        WHEN g.launch_end_ps > g.start_ps THEN 'host_late'
        WHEN g.host_function_start_ps IS NOT NULL THEN 'host_callback'
        WHEN g.is_previous_collective THEN 'collective'
        WHEN g.next_track_id = g.previous_track_id THEN 'same_stream'
        ELSE 'other_stream'
    END AS cause,
    g.previous_id AS previous_device_event_id,
    g.next_id AS next_device_event_id,
    s.track_name AS previous_stream,
    t.track_name AS next_stream,
    g.launch_start_ps AS launch_start_ps,
    g.launch_end_ps AS launch_end_ps,
    CASE
        WHEN g.launch_end_ps <= g.start_ps THEN 0
        WHEN g.launch_end_ps < g.end_ps THEN g.launch_end_ps - g.start_ps
        WHEN g.launch_end_ps IS NOT NULL THEN g.end_ps - g.start_ps
    END AS host_late_ps,
    g.host_function_start_ps AS host_function_start_ps,
    CAST(g.end_ps - g.start_ps AS DOUBLE) / 1e6 AS duration_us
FROM _gaps AS g
INNER JOIN main.devices AS d
    ON d.device_id = g.device_id
INNER JOIN main.names AS b
    ON b.name_id = g.previous_name_id
INNER JOIN main.names AS a
    ON a.name_id = g.next_name_id
LEFT JOIN main.tracks AS s
    ON s.capture_id = g.capture_id
    AND s.track_id = g.previous_track_id
LEFT JOIN main.tracks AS t
    ON t.capture_id = g.capture_id
    AND t.track_id = g.next_track_id
