-- name: v1.attribution
-- version: 1
-- grain: one row per device event that is work
-- summary: HLO op, name stack, phase and component of each device event, and how it was found.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   device_event_id BIGINT: the event
--   device_id BIGINT: its device
--   device_ordinal BIGINT: ordinal of the device on its host
--   step_num BIGINT: the step whose work it is; NULL outside the steps
--   kernel_name VARCHAR: name of the kernel, copy or op
--   event_class VARCHAR: collective, copy or compute
--   program_id BIGINT: program that ran it; NULL outside a program
--   hlo_op VARCHAR: HLO instruction; for an unresolved event of a command buffer, the buffer's name
--   op_name VARCHAR: JAX name stack; NULL where none is known
--   opcode VARCHAR: HLO opcode; NULL where the instruction is not in a module at hand
--   phase VARCHAR: communication for collectives, else launch_phase
--   launch_phase VARCHAR: remat, backward, forward, update or unattributed, by the op_name
--   component VARCHAR: deepest named scope of the op_name, or unattributed
--   attribution_source VARCHAR: hlo_op where the event names its instruction, else none
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end

SELECT
    e.capture_id AS capture_id,
    e.device_event_id AS device_event_id,
    e.device_id AS device_id,
    d.device_ordinal AS device_ordinal,
    s.step_num AS step_num,
    k.name AS kernel_name,
    e.event_class AS event_class,
    e.program_id AS program_id,
    h.name AS hlo_op,
    o.name AS op_name,
    e.opcode AS opcode,
    CASE
        WHEN e.event_class = 'collective' THEN 'communication'
        ELSE COALESCE(c.phase, 'unattributed')
    END AS phase,
    COALESCE(c.phase, 'unattributed') AS launch_phase,
    COALESCE(c.component, 'unattributed') AS component,
    e.attribution_source AS attribution_source,
    e.start_ps AS start_ps,
    e.end_ps AS end_ps
FROM v1._event_ops AS e
INNER JOIN main.devices AS d
    ON d.device_id = e.device_id
INNER JOIN main.names AS k
    ON k.name_id = e.name_id
LEFT JOIN main.names AS h
    ON h.name_id = e.hlo_op_name_id
LEFT JOIN main.names AS o
    ON o.name_id = e.op_name_id
LEFT JOIN v1._op_name_classes AS c
    ON c.op_name_id = e.op_name_id
LEFT JOIN v1._event_steps AS s
    ON s.capture_id = e.capture_id
    AND s.device_event_id = e.device_event_id
