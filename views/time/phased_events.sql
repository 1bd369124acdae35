-- name: v1._phased_events
-- version: 1
-- grain: one row per device event and scope: its step, and its whole capture (step_num NULL)
-- summary: Phase and component of device events, once for their step and once for the capture.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   step_num BIGINT: the step; NULL for the whole capture
--   device_event_id BIGINT: the event
--   phase VARCHAR: communication, remat, backward, forward, update or unattributed
--   component VARCHAR: deepest named scope, or unattributed
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end

SELECT
    e.capture_id AS capture_id,
    e.device_id AS device_id,
    e.step_num AS step_num,
    e.device_event_id AS device_event_id,
    CASE
        WHEN e.event_class = 'collective' THEN 'communication'
        ELSE COALESCE(c.phase, 'unattributed')
    END AS phase,
    COALESCE(c.component, 'unattributed') AS component,
    e.start_ps AS start_ps,
    e.end_ps AS end_ps
FROM v1._scoped_events AS e
LEFT JOIN v1._op_name_classes AS c
    ON c.op_name_id = e.op_name_id
