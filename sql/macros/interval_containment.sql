-- name: v1.interval_containment
-- version: 1
-- grain: one row per event
-- summary: The window that holds the start of each event. Of several the one that ends last wins: the
--   outermost of nested windows, the newer one of two that overlap.
-- parameters:
--   p_events RELATION: table, view or CTE with capture_id, device_id and start_ps
--   p_event EXPRESSION: over its columns; identifies the event
--   p_windows RELATION: table, view or CTE with capture_id, device_id, start_ps and end_ps; start_ps is at
--     most end_ps
--   p_window EXPRESSION: over its columns; identifies the window; BIGINT, not NULL
--   p_key EXPRESSION = NULL: over columns of both; a window holds only events with the same value, of which
--     NULL is one
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   key ANY: value of p_key
--   event_id ANY: value of p_event
--   start_ps BIGINT (ps): start of the event
--   window_id BIGINT: value of p_window; NULL where no window holds the event
-- example: SELECT c.event_id AS device_event_id, c.window_id AS step_num
--   FROM v1.interval_containment('device_events', device_event_id, 'v1.steps', step_num) AS c
-- algorithm: A window holds its start, not its end. Where another one begins no later and ends no earlier,
--   that one wins (of equal windows the one with the smallest id), so only the others are kept. These end in
--   the order in which they begin: the last one to begin is the only one that can win. Its id is a running
--   sum of the differences between one id and the next.
--     kept     |------|
--     left out   |--|
--     kept         |------|
--     wins     111122222222

WITH __holder_reach AS (
    SELECT
        w.capture_id AS capture_id,
        w.device_id AS device_id,
        p_key AS key,
        p_window AS window_id,
        w.start_ps AS start_ps,
        w.end_ps AS end_ps,
        MAX(w.end_ps) OVER (
            PARTITION BY w.capture_id, w.device_id, p_key
            ORDER BY w.start_ps NULLS FIRST, w.end_ps NULLS FIRST, p_window NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS end_before
    FROM query_table(p_windows) AS w
    WHERE w.start_ps < w.end_ps
),
__holders AS (
    SELECT
        h.capture_id AS capture_id,
        h.device_id AS device_id,
        h.key AS key,
        h.start_ps AS start_ps,
        h.end_ps AS end_ps,
        h.window_id - COALESCE(
            LAG(h.window_id) OVER (
                PARTITION BY h.capture_id, h.device_id, h.key
                ORDER BY h.end_ps NULLS FIRST
            ),
            0
        ) AS id_change
    FROM __holder_reach AS h
    WHERE h.end_before IS NULL OR h.end_before < h.end_ps
),
__held_moments AS (
    SELECT
        h.capture_id AS capture_id,
        h.device_id AS device_id,
        h.key AS key,
        NULL AS event_id,
        FALSE AS is_event,
        h.start_ps AS start_ps,
        h.end_ps AS end_ps,
        h.id_change AS id_change
    FROM __holders AS h
    UNION ALL
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        p_key AS key,
        p_event AS event_id,
        TRUE AS is_event,
        e.start_ps AS start_ps,
        CAST(NULL AS BIGINT) AS end_ps,
        0 AS id_change
    FROM query_table(p_events) AS e
),
__held AS (
    SELECT
        m.capture_id AS capture_id,
        m.device_id AS device_id,
        m.key AS key,
        m.event_id AS event_id,
        m.is_event AS is_event,
        m.start_ps AS start_ps,
        MAX(m.end_ps) OVER (
            PARTITION BY m.capture_id, m.device_id, m.key
            ORDER BY m.start_ps NULLS FIRST, m.is_event NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS holds_until_ps,
        CAST(SUM(m.id_change) OVER (
            PARTITION BY m.capture_id, m.device_id, m.key
            ORDER BY m.start_ps NULLS FIRST, m.is_event NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT) AS window_id
    FROM __held_moments AS m
)
SELECT
    h.capture_id AS capture_id,
    h.device_id AS device_id,
    h.key AS key,
    h.event_id AS event_id,
    h.start_ps AS start_ps,
    CASE WHEN h.start_ps < h.holds_until_ps THEN h.window_id END AS window_id
FROM __held AS h
WHERE h.is_event
