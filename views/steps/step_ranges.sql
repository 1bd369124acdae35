-- name: v1._step_ranges
-- version: 1
-- grain: one row per range of a host thread that works for one step
-- summary: Marks of steps, and the ranges of threads that took work over from inside one.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   track_id BIGINT: the thread
--   start_rank BIGINT: position of the range on its thread, by start
--   end_rank BIGINT: position of the range on its thread, by end
--   step_num BIGINT: the step
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end
--   found_rank INTEGER: 1 for the mark itself, 2 for a range that took over from it
-- algorithm: A thread that took work over may hand it on, as main.flow_chains has it. It goes from hop to hop as
--   long as the thread works for another, and up to the mark of a step that it took the work up before; the last
--   hop inside a mark tells the step. The marks and ranges that are open are found as in v1._flow_producers. A
--   range inside another of the same step adds nothing and is left out.

WITH _points AS (
    SELECT
        m.capture_id AS capture_id,
        m.track_id AS track_id,
        m.start_ps AS start_ps,
        m.end_ps AS end_ps,
        m.start_rank AS start_rank,
        m.end_rank AS end_rank,
        m.step_num AS step_num,
        0 AS is_point,
        CAST(NULL AS BIGINT) AS taker_id,
        CAST(NULL AS BIGINT) AS taker_track_id,
        CAST(NULL AS BIGINT) AS taker_start_ps,
        CAST(NULL AS BIGINT) AS taker_end_ps,
        CAST(NULL AS BIGINT) AS handed_ps,
        CAST(NULL AS BIGINT) AS hop,
        CAST(NULL AS BIGINT) AS carrier_start_ps
    FROM v1._step_marks AS m
    WHERE m.track_id IS NOT NULL
    UNION ALL
    SELECT
        f.capture_id AS capture_id,
        f.from_track_id AS track_id,
        f.from_ps AS start_ps,
        CAST(NULL AS BIGINT) AS end_ps,
        CAST(NULL AS BIGINT) AS start_rank,
        CAST(NULL AS BIGINT) AS end_rank,
        CAST(NULL AS BIGINT) AS step_num,
        1 AS is_point,
        f.host_event_id AS taker_id,
        f.track_id AS taker_track_id,
        f.start_ps AS taker_start_ps,
        f.end_ps AS taker_end_ps,
        f.handed_ps AS handed_ps,
        f.hop AS hop,
        f.carrier_start_ps AS carrier_start_ps
    FROM main.flow_chains AS f
),
_open AS (
    SELECT
        p.capture_id AS capture_id,
        p.track_id AS track_id,
        p.start_ps AS start_ps,
        p.end_ps AS end_ps,
        p.start_rank AS start_rank,
        p.end_rank AS end_rank,
        p.step_num AS step_num,
        p.is_point AS is_point,
        p.taker_id AS taker_id,
        p.taker_track_id AS taker_track_id,
        p.taker_start_ps AS taker_start_ps,
        p.taker_end_ps AS taker_end_ps,
        p.handed_ps AS handed_ps,
        p.hop AS hop,
        p.carrier_start_ps AS carrier_start_ps,
        MAX(p.start_rank) OVER (
            PARTITION BY p.capture_id, p.track_id
            ORDER BY p.start_ps NULLS FIRST, p.is_point NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS last_begun,
        MAX(p.end_rank) OVER (
            PARTITION BY p.capture_id, p.track_id
            ORDER BY p.start_ps NULLS FIRST, p.is_point NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS last_ended
    FROM _points AS p
),
_marked AS (
    SELECT
        o.capture_id AS capture_id,
        o.start_ps AS start_ps,
        o.is_point AS is_point,
        o.taker_id AS taker_id,
        o.taker_track_id AS taker_track_id,
        o.taker_start_ps AS taker_start_ps,
        o.taker_end_ps AS taker_end_ps,
        o.handed_ps AS handed_ps,
        o.hop AS hop,
        o.carrier_start_ps AS carrier_start_ps,
        MAX(CASE WHEN o.start_rank = o.last_begun THEN o.end_ps END)
            OVER (PARTITION BY o.capture_id, o.track_id, o.last_begun) AS begun_end_ps,
        MAX(CASE WHEN o.start_rank = o.last_begun THEN o.start_ps END)
            OVER (PARTITION BY o.capture_id, o.track_id, o.last_begun) AS begun_start_ps,
        MAX(CASE WHEN o.start_rank = o.last_begun THEN o.step_num END)
            OVER (PARTITION BY o.capture_id, o.track_id, o.last_begun) AS begun_step,
        MAX(CASE WHEN o.end_rank = o.last_ended THEN o.end_ps END)
            OVER (PARTITION BY o.capture_id, o.track_id, o.last_ended) AS ended_end_ps,
        MAX(CASE WHEN o.end_rank = o.last_ended THEN o.start_ps END)
            OVER (PARTITION BY o.capture_id, o.track_id, o.last_ended) AS ended_start_ps,
        MAX(CASE WHEN o.end_rank = o.last_ended THEN o.step_num END)
            OVER (PARTITION BY o.capture_id, o.track_id, o.last_ended) AS ended_step
    FROM _open AS o
),
_placed AS (
    SELECT
        m.capture_id AS capture_id,
        m.taker_id AS taker_id,
        m.taker_track_id AS taker_track_id,
        m.taker_start_ps AS taker_start_ps,
        m.taker_end_ps AS taker_end_ps,
        m.handed_ps AS handed_ps,
        m.hop AS hop,
        m.carrier_start_ps AS carrier_start_ps,
        CASE WHEN m.begun_end_ps > m.start_ps THEN m.begun_start_ps ELSE m.ended_start_ps END AS mark_start_ps,
        CASE
            WHEN m.begun_end_ps > m.start_ps THEN m.begun_step
            WHEN m.ended_end_ps > m.start_ps THEN m.ended_step
        END AS step_num
    FROM _marked AS m
    WHERE m.is_point = 1
),
_stopped AS (
    SELECT
        p.capture_id AS capture_id,
        p.taker_id AS taker_id,
        p.taker_track_id AS taker_track_id,
        p.taker_start_ps AS taker_start_ps,
        p.taker_end_ps AS taker_end_ps,
        p.handed_ps AS handed_ps,
        p.hop AS hop,
        p.step_num AS step_num,
        MIN(CASE
            WHEN p.step_num IS NOT NULL AND p.carrier_start_ps < p.mark_start_ps THEN p.hop
        END) OVER (PARTITION BY p.capture_id, p.taker_id, p.handed_ps) AS stop_hop
    FROM _placed AS p
),
_deepest AS (
    SELECT
        s.capture_id AS capture_id,
        s.taker_track_id AS taker_track_id,
        s.taker_start_ps AS taker_start_ps,
        s.taker_end_ps AS taker_end_ps,
        s.handed_ps AS handed_ps,
        s.hop AS hop,
        s.step_num AS step_num,
        MAX(CASE WHEN s.hop > s.stop_hop THEN 0 ELSE s.hop END)
            OVER (PARTITION BY s.capture_id, s.taker_id, s.handed_ps) AS step_hop
    FROM _stopped AS s
    WHERE s.step_num IS NOT NULL
),
_ranges AS (
    SELECT
        m.capture_id AS capture_id,
        m.track_id AS track_id,
        m.step_num AS step_num,
        m.start_ps AS start_ps,
        m.end_ps AS end_ps,
        1 AS found_rank
    FROM v1._step_marks AS m
    WHERE m.track_id IS NOT NULL
    UNION ALL
    SELECT DISTINCT
        c.capture_id AS capture_id,
        c.taker_track_id AS track_id,
        c.step_num AS step_num,
        c.taker_start_ps AS start_ps,
        c.taker_end_ps AS end_ps,
        2 AS found_rank
    FROM _deepest AS c
    WHERE c.hop = c.step_hop
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
            ORDER BY r.start_ps NULLS FIRST, r.end_ps NULLS FIRST, r.found_rank NULLS FIRST
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
