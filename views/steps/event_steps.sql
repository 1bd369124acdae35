-- name: v1._event_steps
-- version: 1
-- grain: one row per device event that belongs to a step
-- summary: The step of each device event.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   device_event_id BIGINT: the event
--   device_id BIGINT: its device
--   step_num BIGINT: the step
--   found_rank INTEGER: 1 to 4 as in v1._event_links
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end, at most the end of the step's window for rank 4

SELECT
    e.capture_id AS capture_id,
    e.device_event_id AS device_event_id,
    e.device_id AS device_id,
    e.step_num AS step_num,
    e.found_rank AS found_rank,
    e.start_ps AS start_ps,
    e.end_ps AS end_ps
FROM main.event_links AS e
LEFT JOIN v1._step_choices AS x
    ON x.capture_id = e.capture_id
WHERE (x.first_step IS NULL OR e.step_num >= x.first_step)
    AND (x.last_step IS NULL OR e.step_num <= x.last_step)
