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

WITH _work AS (
    SELECT
        s.capture_id AS capture_id,
        s.device_id AS device_id,
        s.step_num AS step_num,
        s.device_event_id AS device_event_id,
        s.start_ps AS start_ps,
        s.end_ps AS end_ps
    FROM v1._event_steps AS s
    UNION ALL
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        CAST(NULL AS BIGINT) AS step_num,
        e.device_event_id AS device_event_id,
        e.start_ps AS start_ps,
        e.end_ps AS end_ps
    FROM main.device_events AS e
    WHERE e.role = 'work'
),
_reach AS (
    SELECT
        w.capture_id AS capture_id,
        w.device_id AS device_id,
        w.step_num AS step_num,
        w.device_event_id AS device_event_id,
        w.start_ps AS start_ps,
        w.end_ps AS end_ps,
        MAX(w.end_ps) OVER (
            PARTITION BY w.capture_id, w.device_id, w.step_num
            ORDER BY w.start_ps NULLS FIRST, w.device_event_id NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS end_before
    FROM _work AS w
),
_launched AS (
    SELECT
        r.capture_id AS capture_id,
        r.device_id AS device_id,
        r.step_num AS step_num,
        r.device_event_id AS device_event_id,
        r.start_ps AS start_ps,
        r.end_before AS end_before,
        e.name_id AS name_id,
        e.track_id AS track_id,
        e.correlation_id AS correlation_id,
        CASE WHEN o.device_event_id IS NULL THEN 0 ELSE 1 END AS is_collective,
        c.track_id AS thread_id,
        c.start_ps AS call_start_ps,
        c.end_ps AS call_end_ps,
        c.host_function_start_ps AS host_function_start_ps
    FROM _reach AS r
    INNER JOIN main.device_events AS e
        ON e.capture_id = r.capture_id
        AND e.device_event_id = r.device_event_id
    LEFT JOIN v1._event_calls AS c
        ON c.capture_id = r.capture_id
        AND c.device_event_id = r.device_event_id
    LEFT JOIN v1._event_ops AS o
        ON o.capture_id = r.capture_id
        AND o.device_event_id = r.device_event_id
        AND o.event_class = 'collective'
    WHERE r.end_before IS NULL
        OR r.end_ps >= r.end_before
),
_pairs AS (
    SELECT
        l.capture_id AS capture_id,
        l.device_id AS device_id,
        l.step_num AS step_num,
        l.end_before AS gap_start_ps,
        l.start_ps AS gap_end_ps,
        l.device_event_id AS next_id,
        l.name_id AS next_name_id,
        l.track_id AS next_track_id,
        l.correlation_id AS next_correlation_id,
        l.thread_id AS next_thread_id,
        l.call_start_ps AS launch_start_ps,
        l.call_end_ps AS launch_end_ps,
        l.host_function_start_ps AS host_function_start_ps,
        LAG(l.device_event_id) OVER (
            PARTITION BY l.capture_id, l.device_id, l.step_num
            ORDER BY l.start_ps NULLS FIRST, l.device_event_id NULLS FIRST
        ) AS previous_id,
        LAG(l.name_id) OVER (
            PARTITION BY l.capture_id, l.device_id, l.step_num
            ORDER BY l.start_ps NULLS FIRST, l.device_event_id NULLS FIRST
        ) AS previous_name_id,
        LAG(l.track_id) OVER (
            PARTITION BY l.capture_id, l.device_id, l.step_num
            ORDER BY l.start_ps NULLS FIRST, l.device_event_id NULLS FIRST
        ) AS previous_track_id,
        LAG(l.correlation_id) OVER (
            PARTITION BY l.capture_id, l.device_id, l.step_num
            ORDER BY l.start_ps NULLS FIRST, l.device_event_id NULLS FIRST
        ) AS previous_correlation_id,
        LAG(l.is_collective) OVER (
            PARTITION BY l.capture_id, l.device_id, l.step_num
            ORDER BY l.start_ps NULLS FIRST, l.device_event_id NULLS FIRST
        ) AS is_previous_collective,
        LAG(l.thread_id) OVER (
            PARTITION BY l.capture_id, l.device_id, l.step_num
            ORDER BY l.start_ps NULLS FIRST, l.device_event_id NULLS FIRST
        ) AS previous_thread_id,
        LAG(l.call_start_ps) OVER (
            PARTITION BY l.capture_id, l.device_id, l.step_num
            ORDER BY l.start_ps NULLS FIRST, l.device_event_id NULLS FIRST
        ) AS previous_call_start_ps
    FROM _launched AS l
),
_gaps AS (
    SELECT
        p.capture_id AS capture_id,
        p.device_id AS device_id,
        p.step_num AS step_num,
        p.gap_start_ps AS gap_start_ps,
        p.gap_end_ps AS gap_end_ps,
        p.previous_id AS previous_id,
        p.previous_name_id AS previous_name_id,
        p.previous_track_id AS previous_track_id,
        p.next_id AS next_id,
        p.next_name_id AS next_name_id,
        p.next_track_id AS next_track_id,
        p.launch_start_ps AS launch_start_ps,
        p.launch_end_ps AS launch_end_ps,
        CASE
            WHEN p.next_thread_id = p.previous_thread_id
                AND p.host_function_start_ps >= p.previous_call_start_ps
            THEN p.host_function_start_ps
        END AS host_function_start_ps,
        COALESCE(p.next_correlation_id = p.previous_correlation_id, FALSE) AS is_one_call,
        p.is_previous_collective AS is_previous_collective
    FROM _pairs AS p
    WHERE p.gap_start_ps < p.gap_end_ps
)
SELECT
    g.capture_id AS capture_id,
    g.device_id AS device_id,
    d.device_ordinal AS device_ordinal,
    g.step_num AS step_num,
    g.gap_start_ps AS start_ps,
    g.gap_end_ps AS end_ps,
    g.gap_end_ps - g.gap_start_ps AS duration_ps,
    b.name AS previous_kernel,
    a.name AS next_kernel,
    CASE
        WHEN g.is_one_call THEN 'in_graph'
        WHEN g.launch_end_ps IS NULL THEN 'unknown'
        WHEN g.launch_end_ps > g.gap_start_ps THEN 'host_late'
        WHEN g.host_function_start_ps IS NOT NULL THEN 'host_callback'
        WHEN g.is_previous_collective = 1 THEN 'collective'
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
        WHEN g.launch_end_ps <= g.gap_start_ps THEN 0
        WHEN g.launch_end_ps < g.gap_end_ps THEN g.launch_end_ps - g.gap_start_ps
        WHEN g.launch_end_ps IS NOT NULL THEN g.gap_end_ps - g.gap_start_ps
    END AS host_late_ps,
    g.host_function_start_ps AS host_function_start_ps,
    CAST(g.gap_end_ps - g.gap_start_ps AS DOUBLE) / 1e6 AS duration_us
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
