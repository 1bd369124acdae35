-- name: v1.interval_coverage
-- version: 1
-- grain: one row per window
-- summary: How much of each window intervals cover. Windows may overlap or nest: each counts for itself.
-- parameters:
--   p_windows RELATION: table, view or CTE with capture_id, device_id, start_ps and end_ps; start_ps is at
--     most end_ps
--   p_intervals RELATION: what may cover them, with the same columns; those of the same capture and device
--     count
--   p_label_1 EXPRESSION = NULL: over columns of the windows, to tell them apart; any interval covers any
--     label
--   p_label_2 EXPRESSION = NULL: likewise
--   p_label_3 EXPRESSION = NULL: likewise
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   label_1 ANY: value of p_label_1
--   label_2 ANY: value of p_label_2
--   label_3 ANY: value of p_label_3
--   start_ps BIGINT (ps): start of the window
--   end_ps BIGINT (ps): end of the window
--   covered_ps BIGINT (ps): part of the window with at least one interval
--   uncovered_ps BIGINT (ps): the rest of the window
-- example: WITH _copies AS (SELECT * FROM device_events WHERE kind = 'memcpy'),
--   _kernels AS (SELECT * FROM device_events WHERE kind = 'kernel')
--   SELECT c.label_1 AS device_event_id, c.uncovered_ps AS exposed_ps
--   FROM v1.interval_coverage('_copies', '_kernels', device_event_id) AS c
-- algorithm: An interval adds what of it lies beyond the latest end before it, in order of start. The time
--   covered before a moment is what all intervals that began by then add, less what of that lies after the
--   moment, up to the latest of their ends. A window is covered for the difference between its two bounds:
--   once the windows stand at their starts among the starts of the intervals, once at their ends.

WITH __coverage_reach AS (
    SELECT
        i.capture_id AS capture_id,
        i.device_id AS device_id,
        i.start_ps AS start_ps,
        i.end_ps AS end_ps,
        MAX(i.end_ps) OVER (
            PARTITION BY i.capture_id, i.device_id
            ORDER BY i.start_ps NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS end_before
    FROM query_table(p_intervals) AS i
),
__coverage_rows AS (
    SELECT
        r.capture_id AS capture_id,
        r.device_id AS device_id,
        NULL AS label_1,
        NULL AS label_2,
        NULL AS label_3,
        FALSE AS is_window,
        r.start_ps AS start_ps,
        r.start_ps AS end_ps,
        r.end_ps AS reach_ps,
        CASE
            WHEN r.end_before IS NULL OR r.end_before <= r.start_ps THEN r.end_ps - r.start_ps
            WHEN r.end_before < r.end_ps THEN r.end_ps - r.end_before
            ELSE 0
        END AS added_ps
    FROM __coverage_reach AS r
    UNION ALL
    SELECT
        w.capture_id AS capture_id,
        w.device_id AS device_id,
        p_label_1 AS label_1,
        p_label_2 AS label_2,
        p_label_3 AS label_3,
        TRUE AS is_window,
        w.start_ps AS start_ps,
        w.end_ps AS end_ps,
        CAST(NULL AS BIGINT) AS reach_ps,
        CAST(0 AS BIGINT) AS added_ps
    FROM query_table(p_windows) AS w
),
__coverage_begun AS (
    SELECT
        r.capture_id AS capture_id,
        r.device_id AS device_id,
        r.label_1 AS label_1,
        r.label_2 AS label_2,
        r.label_3 AS label_3,
        r.is_window AS is_window,
        r.start_ps AS start_ps,
        r.end_ps AS end_ps,
        CAST(SUM(r.added_ps) OVER (
            PARTITION BY r.capture_id, r.device_id
            ORDER BY r.start_ps NULLS FIRST, r.is_window NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT) AS added_by_start_ps,
        MAX(r.reach_ps) OVER (
            PARTITION BY r.capture_id, r.device_id
            ORDER BY r.start_ps NULLS FIRST, r.is_window NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS reach_by_start_ps,
        CAST(SUM(r.added_ps) OVER (
            PARTITION BY r.capture_id, r.device_id
            ORDER BY r.end_ps NULLS FIRST, r.is_window NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT) AS added_by_end_ps,
        MAX(r.reach_ps) OVER (
            PARTITION BY r.capture_id, r.device_id
            ORDER BY r.end_ps NULLS FIRST, r.is_window NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS reach_by_end_ps
    FROM __coverage_rows AS r
),
__coverage AS (
    SELECT
        b.capture_id AS capture_id,
        b.device_id AS device_id,
        b.label_1 AS label_1,
        b.label_2 AS label_2,
        b.label_3 AS label_3,
        b.start_ps AS start_ps,
        b.end_ps AS end_ps,
        b.added_by_end_ps
        - CASE WHEN b.reach_by_end_ps > b.end_ps THEN b.reach_by_end_ps - b.end_ps ELSE 0 END
        - b.added_by_start_ps
        + CASE WHEN b.reach_by_start_ps > b.start_ps THEN b.reach_by_start_ps - b.start_ps ELSE 0 END
            AS covered_ps
    FROM __coverage_begun AS b
    WHERE b.is_window
)
SELECT
    c.capture_id AS capture_id,
    c.device_id AS device_id,
    c.label_1 AS label_1,
    c.label_2 AS label_2,
    c.label_3 AS label_3,
    c.start_ps AS start_ps,
    c.end_ps AS end_ps,
    c.covered_ps AS covered_ps,
    c.end_ps - c.start_ps - c.covered_ps AS uncovered_ps
FROM __coverage AS c
