-- name: v1.interval_subtraction
-- version: 1
-- grain: one row per capture, device, keys and stretch of time with an interval of the first set all along
--   and none of the other
-- summary: What of the intervals of one set no interval of another covers, merged where the results touch.
-- parameters:
--   p_intervals RELATION: table, view or CTE with capture_id, device_id, start_ps and end_ps; start_ps is at
--     most end_ps
--   p_others RELATION: what is taken away, with the same columns
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
-- example: WITH _spans AS (SELECT u.* FROM v1.interval_union('device_events') AS u)
--   SELECT i.start_ps AS idle_from_ps, i.end_ps AS idle_until_ps
--   FROM v1.interval_subtraction('_spans', 'device_events') AS i
-- algorithm: Between one start of either set and the next, each set lasts until the latest of its ends so
--   far. So the first set is alone from the latest end of the other to its own, within the two starts. These
--   pieces are merged as in v1.interval_islands.

WITH __either_rows AS (
    SELECT
        i.capture_id AS capture_id,
        i.device_id AS device_id,
        p_key_1 AS key_1,
        p_key_2 AS key_2,
        p_key_3 AS key_3,
        FALSE AS is_taken,
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
        TRUE AS is_taken,
        o.start_ps AS start_ps,
        o.end_ps AS end_ps
    FROM query_table(p_others) AS o
    WHERE o.start_ps < o.end_ps
),
__either_reach AS (
    SELECT
        r.capture_id AS capture_id,
        r.device_id AS device_id,
        r.key_1 AS key_1,
        r.key_2 AS key_2,
        r.key_3 AS key_3,
        r.start_ps AS start_ps,
        MAX(CASE WHEN NOT r.is_taken THEN r.end_ps END) OVER (
            PARTITION BY r.capture_id, r.device_id, r.key_3, r.key_2, r.key_1
            ORDER BY r.start_ps NULLS FIRST, r.end_ps NULLS FIRST, r.is_taken NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS reach_ps,
        MAX(CASE WHEN r.is_taken THEN r.end_ps END) OVER (
            PARTITION BY r.capture_id, r.device_id, r.key_3, r.key_2, r.key_1
            ORDER BY r.start_ps NULLS FIRST, r.end_ps NULLS FIRST, r.is_taken NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS taken_until_ps,
        LEAD(r.start_ps) OVER (
            PARTITION BY r.capture_id, r.device_id, r.key_3, r.key_2, r.key_1
            ORDER BY r.start_ps NULLS FIRST, r.end_ps NULLS FIRST, r.is_taken NULLS FIRST
        ) AS next_start_ps
    FROM __either_rows AS r
),
__left AS (
    SELECT
        r.capture_id AS capture_id,
        r.device_id AS device_id,
        r.key_1 AS key_1,
        r.key_2 AS key_2,
        r.key_3 AS key_3,
        CASE WHEN r.taken_until_ps > r.start_ps THEN r.taken_until_ps ELSE r.start_ps END AS start_ps,
        CASE WHEN r.next_start_ps < r.reach_ps THEN r.next_start_ps ELSE r.reach_ps END AS end_ps
    FROM __either_reach AS r
),
__left_reach AS (
    SELECT
        l.capture_id AS capture_id,
        l.device_id AS device_id,
        l.key_1 AS key_1,
        l.key_2 AS key_2,
        l.key_3 AS key_3,
        l.start_ps AS start_ps,
        MAX(l.end_ps) OVER (
            PARTITION BY l.capture_id, l.device_id, l.key_3, l.key_2, l.key_1
            ORDER BY l.start_ps NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS end_before,
        MAX(l.end_ps) OVER (
            PARTITION BY l.capture_id, l.device_id, l.key_3, l.key_2, l.key_1
        ) AS last_end_ps
    FROM __left AS l
    WHERE l.start_ps < l.end_ps
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
FROM __left_reach AS r
WHERE r.end_before IS NULL OR r.end_before < r.start_ps
