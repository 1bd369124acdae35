-- name: v1.unmatched_calls
-- version: 1
-- grain: one row per host call that launches device work of which the capture has none
-- summary: Launches without a device event, and why.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   host_event_id BIGINT: the call
--   correlation_id BIGINT: its id
--   api_name VARCHAR: name of the call; CUDA's tracer gives it the name of the kernel
--   thread_name VARCHAR: thread that made the call
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end
--   cause VARCHAR: device_not_traced (the capture has no device event at all); stream_capture (the call was made
--     while its thread recorded a graph: nothing was to run); collective_without_id (made inside a call of RCCL,
--     in a capture whose kernels of RCCL carry no id: v1.rccl_calls finds them otherwise); trace_ended (made
--     after the last device event of the capture was over); event_missing (lost, or not recorded by the profiler)
-- algorithm: Of a ROCm profiler's calls, those that launch kernels or graphs; of an XSpace, all that have an id, but
--   for those that build graphs. A copy is no launch here: the runtime makes short ones on the host. A thread
--   records while it has begun more recordings than it has ended; the end of one that began before the trace
--   counts for nothing. It also records in XLA's ranges in which a command buffer is made or updated.

WITH _launches AS (
    SELECT
        h.capture_id AS capture_id,
        h.host_event_id AS host_event_id,
        h.correlation_id AS correlation_id,
        n.name AS api_name,
        h.track_id AS track_id,
        h.start_ps AS start_ps,
        h.end_ps AS end_ps,
        0 AS recording
    FROM main.host_events AS h
    INNER JOIN main.names AS n
        ON n.name_id = h.name_id
    INNER JOIN main.captures AS c
        ON c.capture_id = h.capture_id
    LEFT JOIN v1._launched_ids AS i
        ON i.capture_id = h.capture_id
        AND i.correlation_id = h.correlation_id
    WHERE h.correlation_id IS NOT NULL
        AND i.correlation_id IS NULL
        AND (
            c.source_kind = 'xspace'
            AND NOT REGEXP_MATCHES(n.name, '^(cu|cuda|hip)Graph[A-KM-Z].*$')
            OR REGEXP_MATCHES(
                n.name, '^hip[A-Za-z]*(Launch[A-Za-z]*Kernel|LaunchByPtr|GraphLaunch)[A-Za-z_]*$'
            )
        )
    UNION ALL
    SELECT
        h.capture_id AS capture_id,
        h.host_event_id AS host_event_id,
        CAST(NULL AS BIGINT) AS correlation_id,
        n.name AS api_name,
        h.track_id AS track_id,
        h.start_ps AS start_ps,
        h.end_ps AS end_ps,
        CASE WHEN n.name LIKE '%Begin%' THEN 1 ELSE -1 END AS recording
    FROM main.host_events AS h
    INNER JOIN main.names AS n
        ON n.name_id = h.name_id
    WHERE REGEXP_MATCHES(n.name, '^(hip|cuda|cu)Stream(Begin|End)Capture[A-Za-z0-9_]*$')
    UNION ALL
    SELECT
        h.capture_id AS capture_id,
        h.host_event_id AS host_event_id,
        CAST(NULL AS BIGINT) AS correlation_id,
        n.name AS api_name,
        h.track_id AS track_id,
        CASE WHEN v.recording = 1 THEN h.start_ps ELSE h.end_ps END AS start_ps,
        h.end_ps AS end_ps,
        v.recording AS recording
    FROM main.host_events AS h
    INNER JOIN main.names AS n
        ON n.name_id = h.name_id
    CROSS JOIN (VALUES (1), (-1)) AS v (recording)
    WHERE REGEXP_MATCHES(n.name, '^command_buffer::(initialize|create|record|update)$')
),
_begun AS (
    SELECT
        l.capture_id AS capture_id,
        l.host_event_id AS host_event_id,
        l.correlation_id AS correlation_id,
        l.api_name AS api_name,
        l.track_id AS track_id,
        l.start_ps AS start_ps,
        l.end_ps AS end_ps,
        l.recording AS recording,
        CAST(SUM(l.recording) OVER (
            PARTITION BY l.capture_id, l.track_id
            ORDER BY l.start_ps NULLS FIRST, l.host_event_id NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT) AS begun
    FROM _launches AS l
),
_floored AS (
    SELECT
        b.capture_id AS capture_id,
        b.host_event_id AS host_event_id,
        b.correlation_id AS correlation_id,
        b.api_name AS api_name,
        b.track_id AS track_id,
        b.start_ps AS start_ps,
        b.end_ps AS end_ps,
        b.recording AS recording,
        b.begun AS begun,
        MIN(b.begun) OVER (
            PARTITION BY b.capture_id, b.track_id
            ORDER BY b.start_ps NULLS FIRST, b.host_event_id NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS lowest
    FROM _begun AS b
),
_ends AS (
    SELECT
        e.capture_id AS capture_id,
        MAX(e.end_ps) AS last_end_ps
    FROM main.device_events AS e
    WHERE e.role IN ('work', 'serialized', 'marker')
    GROUP BY e.capture_id
),
_idless AS (
    SELECT DISTINCT
        e.capture_id AS capture_id
    FROM main.device_events AS e
    INNER JOIN v1._kernel_name_classes AS k
        ON k.name_id = e.name_id
        AND k.event_class = 'collective'
    WHERE e.correlation_id IS NULL
        AND e.role IN ('work', 'serialized')
),
_inside_rccl AS (
    SELECT DISTINCT
        p.capture_id AS capture_id,
        p.correlation_id AS correlation_id
    FROM main.call_parents AS p
    INNER JOIN _idless AS i
        ON i.capture_id = p.capture_id
    INNER JOIN main.host_events AS h
        ON h.capture_id = p.capture_id
        AND h.correlation_id = p.parent_correlation_id
    INNER JOIN main.call_details AS d
        ON d.capture_id = h.capture_id
        AND d.call_details_id = h.call_details_id
    WHERE REGEXP_MATCHES(d.category, '^([rR][oO][cC][mM]_)?[rR][cC][cC][lL].*$')
)
SELECT
    f.capture_id AS capture_id,
    f.host_event_id AS host_event_id,
    f.correlation_id AS correlation_id,
    f.api_name AS api_name,
    t.track_name AS thread_name,
    f.start_ps AS start_ps,
    f.end_ps AS end_ps,
    CASE
        WHEN e.last_end_ps IS NULL THEN 'device_not_traced'
        WHEN f.begun > LEAST(f.lowest, 0) THEN 'stream_capture'
        WHEN r.correlation_id IS NOT NULL THEN 'collective_without_id'
        WHEN f.start_ps >= e.last_end_ps THEN 'trace_ended'
        ELSE 'event_missing'
    END AS cause
FROM _floored AS f
LEFT JOIN _ends AS e
    ON e.capture_id = f.capture_id
LEFT JOIN _inside_rccl AS r
    ON r.capture_id = f.capture_id
    AND r.correlation_id = f.correlation_id
LEFT JOIN main.tracks AS t
    ON t.capture_id = f.capture_id
    AND t.track_id = f.track_id
WHERE f.recording = 0
