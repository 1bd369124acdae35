-- name: v1._scoped_events
-- version: 1
-- grain: one row per device event and scope: its step, and its whole capture (step_num NULL)
-- summary: Class and op_name of device events, once for their step and once for the capture.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   step_num BIGINT: the step; NULL for the whole capture
--   device_event_id BIGINT: the event
--   event_class VARCHAR: collective, copy or compute
--   op_name_id BIGINT: names.name_id of the op_name; NULL where none is known
--   neighbour_op_name_id BIGINT: as in v1._event_ops
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end; inside the step's window for the row of the step

SELECT
    e.capture_id AS capture_id,
    e.device_id AS device_id,
    s.step_num AS step_num,
    e.device_event_id AS device_event_id,
    e.event_class AS event_class,
    e.op_name_id AS op_name_id,
    e.neighbour_op_name_id AS neighbour_op_name_id,
    s.start_ps AS start_ps,
    s.end_ps AS end_ps
FROM v1._event_ops AS e
INNER JOIN v1._event_steps AS s
    ON s.capture_id = e.capture_id
    AND s.device_event_id = e.device_event_id
UNION ALL
SELECT
    e.capture_id AS capture_id,
    e.device_id AS device_id,
    CAST(NULL AS BIGINT) AS step_num,
    e.device_event_id AS device_event_id,
    e.event_class AS event_class,
    e.op_name_id AS op_name_id,
    e.neighbour_op_name_id AS neighbour_op_name_id,
    e.start_ps AS start_ps,
    e.end_ps AS end_ps
FROM v1._event_ops AS e
