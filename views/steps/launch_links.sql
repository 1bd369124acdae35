-- name: v1._launch_links
-- version: 1
-- grain: one row per host launch, or op of a CPU device, that belongs to a step
-- summary: The step that each launch of device work belongs to, whether or not the user left the step out.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   correlation_id BIGINT: joins device events; NULL for an op of a CPU device
--   device_event_id BIGINT: the op of a CPU device; NULL for a launch
--   step_num BIGINT: the step
--   found_rank INTEGER: 1 launched inside the step's mark on its thread, 2 on a thread that took over from
--     it, 3 while it was open by the host's clock; of several calls with one correlation id the first by
--     start is the launch, as in v1.launches
-- algorithm: A launch belongs to the range of its thread that is open: the last to begin, or where that has
--   ended, the last to end. Otherwise it belongs, by the same rule, to a mark of any thread.
--   Ranges, marks and launches are put into one order per thread, so that running maxima find the
--   range without comparing each with each.

WITH _calls AS (
    SELECT
        h.capture_id AS capture_id,
        h.track_id AS track_id,
        h.start_ps AS start_ps,
        h.correlation_id AS correlation_id,
        ROW_NUMBER() OVER (
            PARTITION BY h.capture_id, h.correlation_id
            ORDER BY h.start_ps NULLS FIRST, h.host_event_id NULLS FIRST
        ) AS call_rank
    FROM main.host_events AS h
    WHERE h.correlation_id IS NOT NULL
),
_points AS (
    SELECT
        c.capture_id AS capture_id,
        c.track_id AS track_id,
        c.start_ps AS start_ps,
        c.correlation_id AS correlation_id,
        CAST(NULL AS BIGINT) AS device_event_id
    FROM _calls AS c
    WHERE c.call_rank = 1
    UNION ALL
    SELECT
        e.capture_id AS capture_id,
        e.track_id AS track_id,
        e.start_ps AS start_ps,
        CAST(NULL AS BIGINT) AS correlation_id,
        e.device_event_id AS device_event_id
    FROM main.device_events AS e
    INNER JOIN main.tracks AS t
        ON t.capture_id = e.capture_id
        AND t.track_id = e.track_id
        AND t.track_kind = 'thread'
    WHERE e.role = 'work'
),
_marks AS (
    SELECT
        r.capture_id AS capture_id,
        r.track_id AS track_id,
        r.start_ps AS start_ps,
        0 AS is_point,
        r.start_rank AS range_start_rank,
        r.end_rank AS range_end_rank,
        CAST(NULL AS BIGINT) AS step_start_rank,
        CAST(NULL AS BIGINT) AS step_end_rank,
        CAST(NULL AS BIGINT) AS correlation_id,
        CAST(NULL AS BIGINT) AS device_event_id
    FROM v1._step_ranges AS r
    UNION ALL
    SELECT
        a.capture_id AS capture_id,
        t.track_id AS track_id,
        a.start_ps AS start_ps,
        0 AS is_point,
        CAST(NULL AS BIGINT) AS range_start_rank,
        CAST(NULL AS BIGINT) AS range_end_rank,
        a.start_rank AS step_start_rank,
        a.end_rank AS step_end_rank,
        CAST(NULL AS BIGINT) AS correlation_id,
        CAST(NULL AS BIGINT) AS device_event_id
    FROM v1._step_marks AS a
    INNER JOIN main.tracks AS t
        ON t.capture_id = a.capture_id
        AND t.track_kind = 'thread'
    UNION ALL
    SELECT
        p.capture_id AS capture_id,
        p.track_id AS track_id,
        p.start_ps AS start_ps,
        1 AS is_point,
        CAST(NULL AS BIGINT) AS range_start_rank,
        CAST(NULL AS BIGINT) AS range_end_rank,
        CAST(NULL AS BIGINT) AS step_start_rank,
        CAST(NULL AS BIGINT) AS step_end_rank,
        p.correlation_id AS correlation_id,
        p.device_event_id AS device_event_id
    FROM _points AS p
),
_open AS (
    SELECT
        m.capture_id AS capture_id,
        m.track_id AS track_id,
        m.start_ps AS start_ps,
        m.is_point AS is_point,
        m.correlation_id AS correlation_id,
        m.device_event_id AS device_event_id,
        MAX(m.range_start_rank) OVER (
            PARTITION BY m.capture_id, m.track_id
            ORDER BY m.start_ps NULLS FIRST, m.is_point NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS last_begun,
        MAX(m.range_end_rank) OVER (
            PARTITION BY m.capture_id, m.track_id
            ORDER BY m.start_ps NULLS FIRST, m.is_point NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS last_ended,
        MAX(m.step_start_rank) OVER (
            PARTITION BY m.capture_id, m.track_id
            ORDER BY m.start_ps NULLS FIRST, m.is_point NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS last_step_begun,
        MAX(m.step_end_rank) OVER (
            PARTITION BY m.capture_id, m.track_id
            ORDER BY m.start_ps NULLS FIRST, m.is_point NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS last_step_ended
    FROM _marks AS m
),
_found AS (
    SELECT
        o.capture_id AS capture_id,
        o.correlation_id AS correlation_id,
        o.device_event_id AS device_event_id,
        COALESCE(r.step_num, q.step_num, a.step_num, b.step_num) AS step_num,
        COALESCE(r.found_rank, q.found_rank, 3) AS found_rank
    FROM _open AS o
    LEFT JOIN v1._step_ranges AS r
        ON r.capture_id = o.capture_id
        AND r.track_id = o.track_id
        AND r.start_rank = o.last_begun
        AND r.end_ps > o.start_ps
    LEFT JOIN v1._step_ranges AS q
        ON q.capture_id = o.capture_id
        AND q.track_id = o.track_id
        AND q.end_rank = o.last_ended
        AND q.end_ps > o.start_ps
    LEFT JOIN v1._step_marks AS a
        ON a.capture_id = o.capture_id
        AND a.start_rank = o.last_step_begun
        AND a.end_ps > o.start_ps
    LEFT JOIN v1._step_marks AS b
        ON b.capture_id = o.capture_id
        AND b.end_rank = o.last_step_ended
        AND b.end_ps > o.start_ps
    WHERE o.is_point = 1
)
SELECT
    f.capture_id AS capture_id,
    f.correlation_id AS correlation_id,
    f.device_event_id AS device_event_id,
    f.step_num AS step_num,
    f.found_rank AS found_rank
FROM _found AS f
WHERE f.step_num IS NOT NULL
