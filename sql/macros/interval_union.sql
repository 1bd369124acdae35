-- name: v1.interval_union
-- version: 1
-- grain: one row per capture, device and keys
-- summary: How long at least one interval of a group lasts, and the sum of them all.
-- parameters:
--   p_intervals RELATION: table, view or CTE with capture_id, device_id, start_ps and end_ps; start_ps is at
--     most end_ps
--   p_key_1 EXPRESSION = NULL: over its columns; intervals with another value, of which NULL is one, form
--     another group; give texts before numbers, which is faster
--   p_key_2 EXPRESSION = NULL: likewise
--   p_key_3 EXPRESSION = NULL: likewise
--   p_key_4 EXPRESSION = NULL: likewise
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   key_1 ANY: value of p_key_1
--   key_2 ANY: value of p_key_2
--   key_3 ANY: value of p_key_3
--   key_4 ANY: value of p_key_4
--   interval_count BIGINT (count): intervals, also empty ones
--   start_ps BIGINT (ps): earliest start
--   end_ps BIGINT (ps): latest end
--   sum_ps BIGINT (ps): sum of the lengths; counts overlapping intervals each
--   union_ps BIGINT (ps): length of the union
-- example: SELECT u.key_1 AS role, u.sum_ps, u.union_ps FROM v1.interval_union('device_events', role) AS u
-- algorithm: An interval adds what of it lies beyond the latest end before it, in order of start.
--     before  |------|
--     next       |-------|
--     adds           |---|

WITH __union_rows AS (
    SELECT
        i.capture_id AS capture_id,
        i.device_id AS device_id,
        p_key_1 AS key_1,
        p_key_2 AS key_2,
        p_key_3 AS key_3,
        p_key_4 AS key_4,
        i.start_ps AS from_ps,
        i.end_ps AS until_ps
    FROM query_table(p_intervals) AS i
),
__union_reach AS (
    SELECT
        r.capture_id AS capture_id,
        r.device_id AS device_id,
        r.key_1 AS key_1,
        r.key_2 AS key_2,
        r.key_3 AS key_3,
        r.key_4 AS key_4,
        r.from_ps AS from_ps,
        r.until_ps AS until_ps,
        MAX(r.until_ps) OVER (
            PARTITION BY r.capture_id, r.device_id, r.key_4, r.key_3, r.key_2, r.key_1
            ORDER BY r.from_ps NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS end_before
    FROM __union_rows AS r
)
SELECT
    r.capture_id AS capture_id,
    r.device_id AS device_id,
    r.key_1 AS key_1,
    r.key_2 AS key_2,
    r.key_3 AS key_3,
    r.key_4 AS key_4,
    COUNT(*) AS interval_count,
    MIN(r.from_ps) AS start_ps,
    MAX(r.until_ps) AS end_ps,
    CAST(SUM(r.until_ps - r.from_ps) AS BIGINT) AS sum_ps,
    CAST(SUM(CASE
        WHEN r.end_before IS NULL OR r.end_before <= r.from_ps THEN r.until_ps - r.from_ps
        WHEN r.end_before < r.until_ps THEN r.until_ps - r.end_before
        ELSE 0
    END) AS BIGINT) AS union_ps
FROM __union_reach AS r
GROUP BY
    r.capture_id,
    r.device_id,
    r.key_1,
    r.key_2,
    r.key_3,
    r.key_4
