-- name: v1._marked_events
-- version: 1
-- grain: one row per host event that the user's marker selects
-- summary: The host events that mark steps by the user's word, with the number that each states.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   host_event_id BIGINT: the event
--   track_id BIGINT: its thread
--   name_id BIGINT: names.name_id of the text that matches: the marker's, else the event's name
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end
--   stated_num BIGINT: the first group of the pattern that is an integer, else the number of a step annotation,
--     else the integer that the text ends with, closing brackets and the like aside; NULL for none
--   is_certain INTEGER: 1 unless the number is that at the end of the text

WITH _events AS (
    SELECT
        h.capture_id AS capture_id,
        h.host_event_id AS host_event_id,
        h.track_id AS track_id,
        CASE WHEN m.name_id IS NOT NULL THEN m.name_id ELSE n.name_id END AS name_id,
        CASE WHEN m.name_id IS NOT NULL THEN m.stated_num ELSE n.stated_num END AS group_num,
        h.start_ps AS start_ps,
        h.end_ps AS end_ps
    FROM v1._step_choices AS x
    INNER JOIN main.host_events AS h
        ON h.capture_id = x.capture_id
    LEFT JOIN main.call_details AS d
        ON d.capture_id = h.capture_id
        AND d.call_details_id = h.call_details_id
    LEFT JOIN main.step_marker_texts AS m
        ON m.run_id = x.run_id
        AND m.name_id = d.message_name_id
    LEFT JOIN main.step_marker_texts AS n
        ON n.run_id = x.run_id
        AND n.name_id = h.name_id
    WHERE x.marker_pattern IS NOT NULL
        AND (m.name_id IS NOT NULL OR n.name_id IS NOT NULL)
),
_numbers AS (
    SELECT
        e.capture_id AS capture_id,
        e.host_event_id AS host_event_id,
        e.track_id AS track_id,
        e.name_id AS name_id,
        e.start_ps AS start_ps,
        e.end_ps AS end_ps,
        COALESCE(e.group_num, s.step_num) AS certain_num,
        NULLIF(REGEXP_EXTRACT(t.name, '[^0-9]([0-9]{1,18})[^0-9A-Za-z]*$', 1), '') AS last_text
    FROM _events AS e
    INNER JOIN main.names AS t
        ON t.name_id = e.name_id
    LEFT JOIN main.steps AS s
        ON s.capture_id = e.capture_id
        AND s.host_event_id = e.host_event_id
)
SELECT
    n.capture_id AS capture_id,
    n.host_event_id AS host_event_id,
    n.track_id AS track_id,
    n.name_id AS name_id,
    n.start_ps AS start_ps,
    n.end_ps AS end_ps,
    COALESCE(n.certain_num, CAST(n.last_text AS BIGINT)) AS stated_num,
    CASE WHEN n.certain_num IS NOT NULL THEN 1 ELSE 0 END AS is_certain
FROM _numbers AS n
