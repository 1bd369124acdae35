-- name: v1._collective_events
-- version: 1
-- grain: one row per device event that is a collective
-- summary: The collectives of each device, with the HLO ops that they are of.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   device_event_id BIGINT: the event
--   program_id BIGINT: its program; NULL where unknown
--   hlo_op_name_id BIGINT: names.name_id of its HLO op; NULL where unknown
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end

SELECT
    o.capture_id AS capture_id,
    o.device_id AS device_id,
    o.device_event_id AS device_event_id,
    o.program_id AS program_id,
    o.hlo_op_name_id AS hlo_op_name_id,
    o.start_ps AS start_ps,
    o.end_ps AS end_ps
FROM v1._event_ops AS o
WHERE o.event_class = 'collective'
