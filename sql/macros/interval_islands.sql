-- name: v1.interval_islands
-- version: 1
-- grain: one row per capture, device, keys and stretch of time with an interval all along
-- summary: The intervals of a group merged where they overlap or touch; empty ones are left out.
-- parameters:
--   p_intervals RELATION: table, view or CTE with capture_id, device_id, start_ps and end_ps; start_ps is at
--     most end_ps
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
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end
-- example: SELECT i.start_ps, i.end_ps FROM v1.interval_islands('device_events') AS i WHERE i.capture_id = 1
-- algorithm: In order of start, an interval that begins after the latest end before it begins an island. What
--   that latest end was at the next island is where this one ends; the last one ends last of all.

WITH __island_rows AS (
    SELECT
        i.capture_id AS capture_id,
        i.device_id AS device_id,
        p_key_1 AS key_1,
        p_key_2 AS key_2,
        p_key_3 AS key_3,
        i.start_ps AS start_ps,
        i.end_ps AS end_ps
    FROM query_table(p_intervals) AS i
    WHERE i.start_ps < i.end_ps
),
__island_reach AS (
    SELECT
        r.capture_id AS capture_id,
        r.device_id AS device_id,
        r.key_1 AS key_1,
        r.key_2 AS key_2,
        r.key_3 AS key_3,
        r.start_ps AS start_ps,
        MAX(r.end_ps) OVER (
            PARTITION BY r.capture_id, r.device_id, r.key_3, r.key_2, r.key_1
            ORDER BY r.start_ps NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS end_before,
        MAX(r.end_ps) OVER (
            PARTITION BY r.capture_id, r.device_id, r.key_3, r.key_2, r.key_1
        ) AS last_end_ps
    FROM __island_rows AS r
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
FROM __island_reach AS r
WHERE r.end_before IS NULL OR r.end_before < r.start_ps
