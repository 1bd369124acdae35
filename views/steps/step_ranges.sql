-- name: v1._step_ranges
-- version: 1
-- grain: one row per range of a host thread that works for one step
-- summary: Step annotations, and the ranges of other threads that took work over from inside one.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   track_id BIGINT: the thread
--   start_rank BIGINT: position of the range on its thread, by start
--   end_rank BIGINT: position of the range on its thread, by end
--   step_num BIGINT: the step
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end
--   found_rank INTEGER: 1 for the annotation itself, 2 for a range that took over from it
-- algorithm: An event inside the annotation that hands work over carries a producer type and id; the event
--   of another thread that takes it up carries the same pair as consumer. A range inside another of the
--   same step adds nothing and is left out.

WITH _producers AS (
    SELECT DISTINCT
        f.capture_id AS capture_id,
        f.producer_type AS producer_type,
        f.producer_id AS producer_id,
        s.step_num AS step_num
    FROM main.host_flows AS f
    INNER JOIN main.host_events AS p
        ON p.capture_id = f.capture_id
        AND p.host_event_id = f.host_event_id
    INNER JOIN v1._step_annotations AS s
        ON s.capture_id = p.capture_id
        AND s.track_id = p.track_id
        AND p.start_ps >= s.start_ps
        AND p.start_ps < s.end_ps
    WHERE f.producer_id IS NOT NULL
),
_ranges AS (
    SELECT
        s.capture_id AS capture_id,
        s.track_id AS track_id,
        s.step_num AS step_num,
        s.start_ps AS start_ps,
        s.end_ps AS end_ps,
        1 AS found_rank
    FROM v1._step_annotations AS s
    UNION ALL
    SELECT
        c.capture_id AS capture_id,
        c.track_id AS track_id,
        p.step_num AS step_num,
        c.start_ps AS start_ps,
        c.end_ps AS end_ps,
        2 AS found_rank
    FROM main.host_flows AS f
    INNER JOIN _producers AS p
        ON p.capture_id = f.capture_id
        AND p.producer_type = f.consumer_type
        AND p.producer_id = f.consumer_id
    INNER JOIN main.host_events AS c
        ON c.capture_id = f.capture_id
        AND c.host_event_id = f.host_event_id
),
_nested AS (
    SELECT
        r.capture_id AS capture_id,
        r.track_id AS track_id,
        r.step_num AS step_num,
        r.start_ps AS start_ps,
        r.end_ps AS end_ps,
        r.found_rank AS found_rank,
        MAX(r.end_ps) OVER (
            PARTITION BY r.capture_id, r.track_id, r.step_num
            ORDER BY r.start_ps NULLS FIRST, r.end_ps NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS end_before
    FROM _ranges AS r
)
SELECT
    r.capture_id AS capture_id,
    r.track_id AS track_id,
    ROW_NUMBER() OVER (
        PARTITION BY r.capture_id, r.track_id
        ORDER BY r.start_ps NULLS FIRST, r.end_ps NULLS FIRST, r.step_num NULLS FIRST
    ) AS start_rank,
    ROW_NUMBER() OVER (
        PARTITION BY r.capture_id, r.track_id
        ORDER BY r.end_ps NULLS FIRST, r.start_ps NULLS FIRST, r.step_num NULLS FIRST
    ) AS end_rank,
    r.step_num AS step_num,
    r.start_ps AS start_ps,
    r.end_ps AS end_ps,
    r.found_rank AS found_rank
FROM _nested AS r
WHERE r.end_before IS NULL
    OR r.end_ps > r.end_before
