-- name: v1.interval_intersection
-- version: 1
-- grain: one row per capture, device, keys and stretch of time with intervals of both sets all along
-- summary: Where intervals of two sets last at once, merged where the results overlap or touch.
-- parameters:
--   p_intervals RELATION: table, view or CTE with capture_id, device_id, start_ps and end_ps; start_ps is at
--     most end_ps
--   p_others RELATION: the other set, with the same columns
--   p_key_1 EXPRESSION = NULL: over columns of both; only intervals with the same value, of which NULL is
--     one, meet; give texts before numbers, which is faster
--   p_key_2 EXPRESSION = NULL: likewise
--   p_key_3 EXPRESSION = NULL: likewise
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   key_1 ANY: value of p_key_1
--   key_2 ANY: value of p_key_2
--   key_3 ANY: value of p_key_3
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end
-- example: WITH _kernels AS (SELECT * FROM device_events WHERE kind = 'kernel'),
--   _copies AS (SELECT * FROM device_events WHERE kind = 'memcpy')
--   SELECT i.start_ps, i.end_ps FROM v1.interval_intersection('_kernels', '_copies') AS i
-- algorithm: Of two intervals that meet, the one that begins later meets the other at its start. So with both
--   sets in order of start, each interval yields what of it lies before the latest end of the other set so
--   far. These pieces are merged as in v1.interval_islands.

WITH __both_rows AS (
    SELECT
        i.capture_id AS capture_id,
        i.device_id AS device_id,
        p_key_1 AS key_1,
        p_key_2 AS key_2,
        p_key_3 AS key_3,
        TRUE AS is_first_set,
        i.start_ps AS start_ps,
        i.end_ps AS end_ps
    FROM query_table(p_intervals) AS i
    WHERE i.start_ps < i.end_ps
    UNION ALL
    SELECT
        o.capture_id AS capture_id,
        o.device_id AS device_id,
        p_key_1 AS key_1,
        p_key_2 AS key_2,
        p_key_3 AS key_3,
        FALSE AS is_first_set,
        o.start_ps AS start_ps,
        o.end_ps AS end_ps
    FROM query_table(p_others) AS o
    WHERE o.start_ps < o.end_ps
),
__both_reach AS (
    SELECT
        r.capture_id AS capture_id,
        r.device_id AS device_id,
        r.key_1 AS key_1,
        r.key_2 AS key_2,
        r.key_3 AS key_3,
        r.is_first_set AS is_first_set,
        r.start_ps AS start_ps,
        r.end_ps AS end_ps,
        MAX(CASE WHEN r.is_first_set THEN r.end_ps END) OVER (
            PARTITION BY r.capture_id, r.device_id, r.key_3, r.key_2, r.key_1
            ORDER BY r.start_ps NULLS FIRST, r.is_first_set NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS first_reach_ps,
        MAX(CASE WHEN NOT r.is_first_set THEN r.end_ps END) OVER (
            PARTITION BY r.capture_id, r.device_id, r.key_3, r.key_2, r.key_1
            ORDER BY r.start_ps NULLS FIRST, r.is_first_set NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS second_reach_ps
    FROM __both_rows AS r
),
__both_bounds AS (
    SELECT
        r.capture_id AS capture_id,
        r.device_id AS device_id,
        r.key_1 AS key_1,
        r.key_2 AS key_2,
        r.key_3 AS key_3,
        r.start_ps AS start_ps,
        r.end_ps AS own_end_ps,
        CASE WHEN r.is_first_set THEN r.second_reach_ps ELSE r.first_reach_ps END AS other_end_ps
    FROM __both_reach AS r
),
__shared AS (
    SELECT
        b.capture_id AS capture_id,
        b.device_id AS device_id,
        b.key_1 AS key_1,
        b.key_2 AS key_2,
        b.key_3 AS key_3,
        b.start_ps AS start_ps,
        CASE WHEN b.other_end_ps < b.own_end_ps THEN b.other_end_ps ELSE b.own_end_ps END AS end_ps
    FROM __both_bounds AS b
    WHERE b.start_ps < b.other_end_ps
),
__shared_reach AS (
    SELECT
        s.capture_id AS capture_id,
        s.device_id AS device_id,
        s.key_1 AS key_1,
        s.key_2 AS key_2,
        s.key_3 AS key_3,
        s.start_ps AS start_ps,
        MAX(s.end_ps) OVER (
            PARTITION BY s.capture_id, s.device_id, s.key_3, s.key_2, s.key_1
            ORDER BY s.start_ps NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS end_before,
        MAX(s.end_ps) OVER (
            PARTITION BY s.capture_id, s.device_id, s.key_3, s.key_2, s.key_1
        ) AS last_end_ps
    FROM __shared AS s
)
SELECT
    r.capture_id AS capture_id,
    r.device_id AS device_id,
    r.key_1 AS key_1,
    r.key_2 AS key_2,
    r.key_3 AS key_3,
    r.start_ps AS start_ps,
    COALESCE(
        LEAD(r.end_before) OVER (
            PARTITION BY r.capture_id, r.device_id, r.key_3, r.key_2, r.key_1
            ORDER BY r.start_ps NULLS FIRST
        ),
        r.last_end_ps
    ) AS end_ps
FROM __shared_reach AS r
WHERE r.end_before IS NULL OR r.end_before < r.start_ps
