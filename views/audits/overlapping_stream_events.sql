-- name: overlapping_stream_events
-- severity: warning
-- filter: capture_id
-- question: Does one stream run one thing at a time?
-- meaning: Events of one stream overlap by more than 1 % of its time, although a stream runs them one after the other.
--   Durations are nested or too long: every sum counts that time twice. Unions stay right.
-- next: Use union_ps, not sum_ps, for this capture. Look at the longest events of the stream: a duration that reaches
--   over the next event's start is the profiler's fault.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   device_ordinal BIGINT: ordinal of the device on its host
--   track_name VARCHAR: stream or queue
--   stream_id BIGINT: stream of the launches; NULL where the source does not say
--   overlapping_events BIGINT (count): events that begin before an earlier one of the stream has ended
--   event_count BIGINT (count): events of the stream
--   overlap_ms DOUBLE (ms): time that a sum counts twice
--   overlap_ratio DOUBLE (ratio): overlap_ms in the summed time of the stream
-- algorithm: Kernels of a CUDA or HIP graph may run side by side in the stream that launched it: left out.

WITH _events AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        e.track_id AS track_id,
        d.stream_id AS stream_id,
        e.start_ps AS start_ps,
        e.end_ps AS end_ps,
        MAX(e.end_ps) OVER (
            PARTITION BY e.capture_id, e.device_id, e.track_id, d.stream_id
            ORDER BY e.start_ps NULLS FIRST, e.device_event_id NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS latest_end_ps
    FROM main.device_events AS e
    LEFT JOIN main.launch_details AS d
        ON d.capture_id = e.capture_id
        AND d.launch_details_id = e.launch_details_id
    WHERE e.role = 'work'
        AND d.graph_id IS NULL
        AND e.graph_node_id IS NULL
),
_streams AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        e.track_id AS track_id,
        e.stream_id AS stream_id,
        COUNT(CASE WHEN e.latest_end_ps > e.start_ps THEN 1 END) AS overlapping_events,
        COUNT(*) AS event_count,
        CAST(SUM(CASE
            WHEN e.latest_end_ps > e.start_ps THEN LEAST(e.latest_end_ps, e.end_ps) - e.start_ps ELSE 0
        END) AS BIGINT) AS overlap_ps,
        CAST(SUM(e.end_ps - e.start_ps) AS BIGINT) AS sum_ps
    FROM _events AS e
    GROUP BY
        e.capture_id,
        e.device_id,
        e.track_id,
        e.stream_id
)
SELECT
    r.run_name AS run_name,
    s.capture_id AS capture_id,
    d.device_ordinal AS device_ordinal,
    t.track_name AS track_name,
    s.stream_id AS stream_id,
    s.overlapping_events AS overlapping_events,
    s.event_count AS event_count,
    CAST(s.overlap_ps AS DOUBLE) / 1e9 AS overlap_ms,
    CAST(s.overlap_ps AS DOUBLE) / NULLIF(CAST(s.sum_ps AS DOUBLE), 0) AS overlap_ratio
FROM _streams AS s
INNER JOIN main.tracks AS t
    ON t.capture_id = s.capture_id
    AND t.track_id = s.track_id
INNER JOIN main.devices AS d
    ON d.device_id = s.device_id
INNER JOIN main.captures AS c
    ON c.capture_id = s.capture_id
INNER JOIN main.runs AS r
    ON r.run_id = c.run_id
WHERE t.track_kind IN ('stream', 'queue', 'device_line')
    -- What is under way there lasts from its start to its end, whatever else is.
    AND t.track_name <> 'Async XLA Ops'
    AND s.overlap_ps * 100 > s.sum_ps
ORDER BY
    overlap_ratio DESC,
    r.run_name,
    s.capture_id,
    d.device_ordinal,
    t.track_name,
    s.stream_id
