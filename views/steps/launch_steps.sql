-- name: v1._launch_steps
-- version: 1
-- grain: one row per host launch, or op of a CPU device, that belongs to a step
-- summary: The step that each launch of device work belongs to.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   correlation_id BIGINT: joins device events; NULL for an op of a CPU device
--   device_event_id BIGINT: the op of a CPU device; NULL for a launch
--   step_num BIGINT: the step
--   found_rank INTEGER: 1 launched inside the step's mark on its thread, 2 on a thread that took over from
--     it, 3 while it was open by the host's clock; of several calls with one correlation id the first by
--     start is the launch, as in v1.launches

SELECT
    l.capture_id AS capture_id,
    l.correlation_id AS correlation_id,
    l.device_event_id AS device_event_id,
    l.step_num AS step_num,
    l.found_rank AS found_rank
FROM v1._launch_links AS l
LEFT JOIN v1._step_choices AS x
    ON x.capture_id = l.capture_id
WHERE (x.first_step IS NULL OR l.step_num >= x.first_step)
    AND (x.last_step IS NULL OR l.step_num <= x.last_step)
