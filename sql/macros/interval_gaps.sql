-- name: v1.interval_gaps
-- version: 1
-- grain: one row per capture, device, keys and stretch of time between intervals
-- summary: Where no interval of a group lasts, from its first one to its last.
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
--   start_ps BIGINT (ps): end of what came before
--   end_ps BIGINT (ps): start of what came after
-- example: SELECT g.start_ps, g.end_ps FROM v1.interval_gaps('device_events') AS g WHERE g.capture_id = 1
-- algorithm: In order of start, a gap lies between the latest end so far and the next start. Empty intervals
--   are left out: they neither cut a gap nor extend it to where they are. For gaps in windows with bounds of
--   their own, see v1.interval_subtraction (where) and v1.interval_coverage (how long).

WITH __gap_rows AS (
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
__gap_reach AS (
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
        ) AS end_before
    FROM __gap_rows AS r
)
SELECT
    r.capture_id AS capture_id,
    r.device_id AS device_id,
    r.key_1 AS key_1,
    r.key_2 AS key_2,
    r.key_3 AS key_3,
    r.end_before AS start_ps,
    r.start_ps AS end_ps
FROM __gap_reach AS r
WHERE r.end_before < r.start_ps
