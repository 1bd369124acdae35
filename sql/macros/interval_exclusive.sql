-- name: v1.interval_exclusive
-- version: 1
-- grain: one row per capture, device and keys
-- summary: Time by rank, each picosecond once: a rank gets what no lower one covers, so that the exclusive
--   times sum to the union of all.
-- parameters:
--   p_intervals RELATION: table, view or CTE with capture_id, device_id, start_ps and end_ps; start_ps is at
--     most end_ps
--   p_rank EXPRESSION: over its columns; 1 to 5, where 1 comes before 2; all else, also NULL, comes last
--   p_key_1 EXPRESSION = NULL: over its columns; intervals with another value, of which NULL is one, form
--     another group; give texts before numbers, which is faster
--   p_key_2 EXPRESSION = NULL: likewise
--   p_key_3 EXPRESSION = NULL: likewise
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   key_1 ANY: value of p_key_1
--   key_2 ANY: value of p_key_2
--   key_3 ANY: value of p_key_3
--   interval_count BIGINT (count): intervals, also empty ones
--   start_ps BIGINT (ps): earliest start
--   end_ps BIGINT (ps): latest end
--   union_ps BIGINT (ps): length of the union of all
--   union_1_ps BIGINT (ps): length of the union of rank 1
--   union_2_ps BIGINT (ps): length of the union of rank 2
--   union_3_ps BIGINT (ps): length of the union of rank 3
--   union_4_ps BIGINT (ps): length of the union of rank 4
--   union_5_ps BIGINT (ps): length of the union of rank 5
--   union_last_ps BIGINT (ps): length of the union of the other ranks
--   exclusive_1_ps BIGINT (ps): rank 1, so union_1_ps
--   exclusive_2_ps BIGINT (ps): rank 2 without rank 1
--   exclusive_3_ps BIGINT (ps): rank 3 without ranks 1 and 2
--   exclusive_4_ps BIGINT (ps): rank 4 without ranks 1 to 3
--   exclusive_5_ps BIGINT (ps): rank 5 without ranks 1 to 4
--   exclusive_last_ps BIGINT (ps): the other ranks without ranks 1 to 5
-- example: SELECT e.exclusive_1_ps AS kernels_ps, e.exclusive_2_ps AS copies_alone_ps
--   FROM v1.interval_exclusive('device_events', CASE kind WHEN 'kernel' THEN 1 WHEN 'memcpy' THEN 2 END) AS e
-- algorithm: Between one start and the next, each rank lasts until the latest of its ends so far, and several
--   ranks together last as long as the longest of them.
--     rank 1   1111       111
--     rank 2      222222
--     rank 3   333333333333333333
--     charged  111122222331113333

WITH __ranked_rows AS (
    SELECT
        i.capture_id AS capture_id,
        i.device_id AS device_id,
        p_key_1 AS key_1,
        p_key_2 AS key_2,
        p_key_3 AS key_3,
        p_rank AS rank_number,
        i.start_ps AS start_ps,
        i.end_ps AS end_ps
    FROM query_table(p_intervals) AS i
),
__ranked_reach AS (
    SELECT
        r.capture_id AS capture_id,
        r.device_id AS device_id,
        r.key_1 AS key_1,
        r.key_2 AS key_2,
        r.key_3 AS key_3,
        r.start_ps AS start_ps,
        r.end_ps AS end_ps,
        MAX(CASE WHEN r.rank_number = 1 THEN r.end_ps END) OVER (
            PARTITION BY r.capture_id, r.device_id, r.key_3, r.key_2, r.key_1
            ORDER BY r.start_ps NULLS FIRST, r.end_ps NULLS FIRST, r.rank_number NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS reach_1_ps,
        MAX(CASE WHEN r.rank_number = 2 THEN r.end_ps END) OVER (
            PARTITION BY r.capture_id, r.device_id, r.key_3, r.key_2, r.key_1
            ORDER BY r.start_ps NULLS FIRST, r.end_ps NULLS FIRST, r.rank_number NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS reach_2_ps,
        MAX(CASE WHEN r.rank_number = 3 THEN r.end_ps END) OVER (
            PARTITION BY r.capture_id, r.device_id, r.key_3, r.key_2, r.key_1
            ORDER BY r.start_ps NULLS FIRST, r.end_ps NULLS FIRST, r.rank_number NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS reach_3_ps,
        MAX(CASE WHEN r.rank_number = 4 THEN r.end_ps END) OVER (
            PARTITION BY r.capture_id, r.device_id, r.key_3, r.key_2, r.key_1
            ORDER BY r.start_ps NULLS FIRST, r.end_ps NULLS FIRST, r.rank_number NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS reach_4_ps,
        MAX(CASE WHEN r.rank_number = 5 THEN r.end_ps END) OVER (
            PARTITION BY r.capture_id, r.device_id, r.key_3, r.key_2, r.key_1
            ORDER BY r.start_ps NULLS FIRST, r.end_ps NULLS FIRST, r.rank_number NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS reach_5_ps,
        MAX(CASE WHEN r.rank_number IN (1, 2, 3, 4, 5) THEN NULL ELSE r.end_ps END) OVER (
            PARTITION BY r.capture_id, r.device_id, r.key_3, r.key_2, r.key_1
            ORDER BY r.start_ps NULLS FIRST, r.end_ps NULLS FIRST, r.rank_number NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS reach_last_ps,
        LEAD(r.start_ps) OVER (
            PARTITION BY r.capture_id, r.device_id, r.key_3, r.key_2, r.key_1
            ORDER BY r.start_ps NULLS FIRST, r.end_ps NULLS FIRST, r.rank_number NULLS FIRST
        ) AS next_start_ps
    FROM __ranked_rows AS r
),
__ranked_lengths AS (
    SELECT
        r.capture_id AS capture_id,
        r.device_id AS device_id,
        r.key_1 AS key_1,
        r.key_2 AS key_2,
        r.key_3 AS key_3,
        r.start_ps AS from_ps,
        r.end_ps AS until_ps,
        CASE
            WHEN r.reach_1_ps IS NULL OR r.reach_1_ps < r.start_ps THEN 0
            WHEN r.next_start_ps < r.reach_1_ps THEN r.next_start_ps - r.start_ps
            ELSE r.reach_1_ps - r.start_ps
        END AS length_1_ps,
        CASE
            WHEN r.reach_2_ps IS NULL OR r.reach_2_ps < r.start_ps THEN 0
            WHEN r.next_start_ps < r.reach_2_ps THEN r.next_start_ps - r.start_ps
            ELSE r.reach_2_ps - r.start_ps
        END AS length_2_ps,
        CASE
            WHEN r.reach_3_ps IS NULL OR r.reach_3_ps < r.start_ps THEN 0
            WHEN r.next_start_ps < r.reach_3_ps THEN r.next_start_ps - r.start_ps
            ELSE r.reach_3_ps - r.start_ps
        END AS length_3_ps,
        CASE
            WHEN r.reach_4_ps IS NULL OR r.reach_4_ps < r.start_ps THEN 0
            WHEN r.next_start_ps < r.reach_4_ps THEN r.next_start_ps - r.start_ps
            ELSE r.reach_4_ps - r.start_ps
        END AS length_4_ps,
        CASE
            WHEN r.reach_5_ps IS NULL OR r.reach_5_ps < r.start_ps THEN 0
            WHEN r.next_start_ps < r.reach_5_ps THEN r.next_start_ps - r.start_ps
            ELSE r.reach_5_ps - r.start_ps
        END AS length_5_ps,
        CASE
            WHEN r.reach_last_ps IS NULL OR r.reach_last_ps < r.start_ps THEN 0
            WHEN r.next_start_ps < r.reach_last_ps THEN r.next_start_ps - r.start_ps
            ELSE r.reach_last_ps - r.start_ps
        END AS length_last_ps
    FROM __ranked_reach AS r
),
__ranked_covered AS (
    SELECT
        l.capture_id AS capture_id,
        l.device_id AS device_id,
        l.key_1 AS key_1,
        l.key_2 AS key_2,
        l.key_3 AS key_3,
        l.from_ps AS from_ps,
        l.until_ps AS until_ps,
        l.length_1_ps AS length_1_ps,
        l.length_2_ps AS length_2_ps,
        l.length_3_ps AS length_3_ps,
        l.length_4_ps AS length_4_ps,
        l.length_5_ps AS length_5_ps,
        l.length_last_ps AS length_last_ps,
        GREATEST(l.length_1_ps, l.length_2_ps)
            AS covered_2_ps,
        GREATEST(l.length_1_ps, l.length_2_ps, l.length_3_ps)
            AS covered_3_ps,
        GREATEST(l.length_1_ps, l.length_2_ps, l.length_3_ps, l.length_4_ps)
            AS covered_4_ps,
        GREATEST(l.length_1_ps, l.length_2_ps, l.length_3_ps, l.length_4_ps, l.length_5_ps)
            AS covered_5_ps,
        GREATEST(l.length_1_ps, l.length_2_ps, l.length_3_ps, l.length_4_ps, l.length_5_ps, l.length_last_ps)
            AS covered_last_ps
    FROM __ranked_lengths AS l
)
SELECT
    c.capture_id AS capture_id,
    c.device_id AS device_id,
    c.key_1 AS key_1,
    c.key_2 AS key_2,
    c.key_3 AS key_3,
    COUNT(*) AS interval_count,
    MIN(c.from_ps) AS start_ps,
    MAX(c.until_ps) AS end_ps,
    CAST(SUM(c.covered_last_ps) AS BIGINT) AS union_ps,
    CAST(SUM(c.length_1_ps) AS BIGINT) AS union_1_ps,
    CAST(SUM(c.length_2_ps) AS BIGINT) AS union_2_ps,
    CAST(SUM(c.length_3_ps) AS BIGINT) AS union_3_ps,
    CAST(SUM(c.length_4_ps) AS BIGINT) AS union_4_ps,
    CAST(SUM(c.length_5_ps) AS BIGINT) AS union_5_ps,
    CAST(SUM(c.length_last_ps) AS BIGINT) AS union_last_ps,
    CAST(SUM(c.length_1_ps) AS BIGINT) AS exclusive_1_ps,
    CAST(SUM(c.covered_2_ps - c.length_1_ps) AS BIGINT) AS exclusive_2_ps,
    CAST(SUM(c.covered_3_ps - c.covered_2_ps) AS BIGINT) AS exclusive_3_ps,
    CAST(SUM(c.covered_4_ps - c.covered_3_ps) AS BIGINT) AS exclusive_4_ps,
    CAST(SUM(c.covered_5_ps - c.covered_4_ps) AS BIGINT) AS exclusive_5_ps,
    CAST(SUM(c.covered_last_ps - c.covered_5_ps) AS BIGINT) AS exclusive_last_ps
FROM __ranked_covered AS c
GROUP BY
    c.capture_id,
    c.device_id,
    c.key_1,
    c.key_2,
    c.key_3
