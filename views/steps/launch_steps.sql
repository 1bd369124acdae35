-- name: v1._launch_steps
-- version: 1
-- grain: one row per host launch, or op of a CPU device, that belongs to a step; one per call where several
--   calls share a correlation id
-- summary: The step that each launch of device work belongs to.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   correlation_id BIGINT: joins device events; NULL for an op of a CPU device
--   device_event_id BIGINT: the op of a CPU device; NULL for a launch
--   step_num BIGINT: the step
--   found_rank INTEGER: 1 launched inside the annotation on its thread, 2 on a thread that took over from
--     it, 3 while it was open by the host's clock
-- algorithm: A launch belongs to the last range of its thread that began before it, if that has not ended.
--   Otherwise it belongs to the step annotation of any thread that was open at the time. Ranges and launches
--   are put into one order, so that a running maximum finds the range without comparing each with each.

WITH _points AS (
    SELECT
        h.capture_id AS capture_id,
        h.track_id AS track_id,
        h.start_ps AS start_ps,
        h.correlation_id AS correlation_id,
        CAST(NULL AS BIGINT) AS device_event_id
    FROM main.host_events AS h
    WHERE h.correlation_id IS NOT NULL
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
        r.range_rank AS range_rank,
        CAST(NULL AS BIGINT) AS correlation_id,
        CAST(NULL AS BIGINT) AS device_event_id
    FROM v1._step_ranges AS r
    UNION ALL
    SELECT
        p.capture_id AS capture_id,
        p.track_id AS track_id,
        p.start_ps AS start_ps,
        1 AS is_point,
        CAST(NULL AS BIGINT) AS range_rank,
        p.correlation_id AS correlation_id,
        p.device_event_id AS device_event_id
    FROM _points AS p
),
_on_thread AS (
    SELECT
        m.capture_id AS capture_id,
        m.track_id AS track_id,
        m.start_ps AS start_ps,
        m.is_point AS is_point,
        m.correlation_id AS correlation_id,
        m.device_event_id AS device_event_id,
        MAX(m.range_rank) OVER (
            PARTITION BY m.capture_id, m.track_id
            ORDER BY m.start_ps NULLS FIRST, m.is_point NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS last_rank
    FROM _marks AS m
),
_annotations AS (
    SELECT
        s.capture_id AS capture_id,
        ROW_NUMBER() OVER (
            PARTITION BY s.capture_id
            ORDER BY s.start_ps NULLS FIRST, s.end_ps NULLS FIRST, s.step_id NULLS FIRST
        ) AS step_rank,
        s.step_num AS step_num,
        s.start_ps AS start_ps,
        s.end_ps AS end_ps
    FROM main.steps AS s
),
_placed AS (
    SELECT
        o.capture_id AS capture_id,
        o.start_ps AS start_ps,
        1 AS is_point,
        CAST(NULL AS BIGINT) AS step_rank,
        o.correlation_id AS correlation_id,
        o.device_event_id AS device_event_id,
        r.step_num AS step_num,
        r.found_rank AS found_rank
    FROM _on_thread AS o
    LEFT JOIN v1._step_ranges AS r
        ON r.capture_id = o.capture_id
        AND r.track_id = o.track_id
        AND r.range_rank = o.last_rank
        AND o.start_ps < r.end_ps
    WHERE o.is_point = 1
),
_timeline AS (
    SELECT
        p.capture_id AS capture_id,
        p.start_ps AS start_ps,
        p.is_point AS is_point,
        p.step_rank AS step_rank,
        p.correlation_id AS correlation_id,
        p.device_event_id AS device_event_id
    FROM _placed AS p
    WHERE p.step_num IS NULL
    UNION ALL
    SELECT
        a.capture_id AS capture_id,
        a.start_ps AS start_ps,
        0 AS is_point,
        a.step_rank AS step_rank,
        CAST(NULL AS BIGINT) AS correlation_id,
        CAST(NULL AS BIGINT) AS device_event_id
    FROM _annotations AS a
),
_by_time AS (
    SELECT
        t.capture_id AS capture_id,
        t.start_ps AS start_ps,
        t.is_point AS is_point,
        t.correlation_id AS correlation_id,
        t.device_event_id AS device_event_id,
        MAX(t.step_rank) OVER (
            PARTITION BY t.capture_id
            ORDER BY t.start_ps NULLS FIRST, t.is_point NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS last_rank
    FROM _timeline AS t
)
SELECT
    p.capture_id AS capture_id,
    p.correlation_id AS correlation_id,
    p.device_event_id AS device_event_id,
    p.step_num AS step_num,
    p.found_rank AS found_rank
FROM _placed AS p
WHERE p.step_num IS NOT NULL
UNION ALL
SELECT
    b.capture_id AS capture_id,
    b.correlation_id AS correlation_id,
    b.device_event_id AS device_event_id,
    a.step_num AS step_num,
    3 AS found_rank
FROM _by_time AS b
INNER JOIN _annotations AS a
    ON a.capture_id = b.capture_id
    AND a.step_rank = b.last_rank
    AND b.start_ps < a.end_ps
WHERE b.is_point = 1
