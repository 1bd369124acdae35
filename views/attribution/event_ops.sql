-- name: v1._event_ops
-- version: 1
-- grain: one row per device event that is work
-- summary: The HLO instruction, op_name and class of each device event, in ids.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   device_event_id BIGINT: the event
--   device_id BIGINT: its device
--   name_id BIGINT: names.name_id of the kernel, copy or op
--   program_id BIGINT: program that ran it; NULL outside a program
--   hlo_op_name_id BIGINT: names.name_id of the HLO instruction; NULL where none is known
--   op_name_id BIGINT: names.name_id of the JAX name stack; NULL where none is known
--   opcode VARCHAR: HLO opcode; NULL where the instruction is not in a module at hand
--   event_class VARCHAR: collective, copy or compute
--   attribution_source VARCHAR: hlo_op, kernel_name or none
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end
-- algorithm: First the instruction that the event's own hlo_op names. Events of a command buffer name the
--   buffer instead; they get the one instruction of their program whose kernel has their name. An hlo_op
--   that is in no module at hand still counts where the event carries its op_name.

WITH _work AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_event_id AS device_event_id,
        e.device_id AS device_id,
        e.name_id AS name_id,
        e.kind AS kind,
        e.program_id AS program_id,
        e.hlo_op_name_id AS hlo_op_name_id,
        COALESCE(e.op_name_id, e.tf_op_name_id) AS event_op_name_id,
        e.op_name_id IS NOT NULL AS has_op_name,
        e.start_ps AS start_ps,
        e.end_ps AS end_ps
    FROM main.device_events AS e
    WHERE e.role = 'work'
),
_named AS (
    SELECT
        w.capture_id AS capture_id,
        w.device_event_id AS device_event_id,
        w.device_id AS device_id,
        w.name_id AS name_id,
        w.kind AS kind,
        w.program_id AS program_id,
        w.hlo_op_name_id AS hlo_op_name_id,
        w.event_op_name_id AS event_op_name_id,
        w.has_op_name AS has_op_name,
        w.start_ps AS start_ps,
        w.end_ps AS end_ps,
        i.name_id AS instruction_name_id,
        i.opcode AS opcode,
        i.op_name_id AS op_name_id,
        i.is_collective AS is_collective,
        k.name_id AS kernel_instruction_name_id
    FROM _work AS w
    LEFT JOIN v1._instructions AS i
        ON i.capture_id = w.capture_id
        AND i.program_id = w.program_id
        AND i.name_id = w.hlo_op_name_id
    LEFT JOIN v1._kernel_instructions AS k
        ON k.capture_id = w.capture_id
        AND k.program_id = w.program_id
        AND k.kernel_name_id = w.name_id
),
_resolved AS (
    SELECT
        n.capture_id AS capture_id,
        n.device_event_id AS device_event_id,
        n.device_id AS device_id,
        n.name_id AS name_id,
        n.kind AS kind,
        n.program_id AS program_id,
        CASE
            WHEN n.instruction_name_id IS NOT NULL THEN n.instruction_name_id
            WHEN n.kernel_instruction_name_id IS NOT NULL THEN n.kernel_instruction_name_id
            ELSE n.hlo_op_name_id
        END AS hlo_op_name_id,
        CASE
            WHEN n.instruction_name_id IS NOT NULL THEN COALESCE(n.op_name_id, n.event_op_name_id)
            WHEN k.name_id IS NOT NULL THEN k.op_name_id
            ELSE n.event_op_name_id
        END AS op_name_id,
        COALESCE(n.opcode, k.opcode) AS opcode,
        COALESCE(n.is_collective, k.is_collective) AS is_collective,
        CASE
            WHEN n.instruction_name_id IS NOT NULL THEN 'hlo_op'
            WHEN k.name_id IS NOT NULL THEN 'kernel_name'
            WHEN n.hlo_op_name_id IS NOT NULL AND n.has_op_name THEN 'hlo_op'
            ELSE 'none'
        END AS attribution_source,
        n.start_ps AS start_ps,
        n.end_ps AS end_ps
    FROM _named AS n
    LEFT JOIN v1._instructions AS k
        ON k.capture_id = n.capture_id
        AND k.program_id = n.program_id
        AND k.name_id = n.kernel_instruction_name_id
        AND n.instruction_name_id IS NULL
)
SELECT
    r.capture_id AS capture_id,
    r.device_event_id AS device_event_id,
    r.device_id AS device_id,
    r.name_id AS name_id,
    r.program_id AS program_id,
    r.hlo_op_name_id AS hlo_op_name_id,
    r.op_name_id AS op_name_id,
    r.opcode AS opcode,
    CASE
        WHEN c.event_class = 'collective' OR r.is_collective THEN 'collective'
        WHEN r.kind IN ('memcpy', 'memset') OR c.event_class = 'copy' THEN 'copy'
        ELSE 'compute'
    END AS event_class,
    r.attribution_source AS attribution_source,
    r.start_ps AS start_ps,
    r.end_ps AS end_ps
FROM _resolved AS r
INNER JOIN v1._kernel_name_classes AS c
    ON c.name_id = r.name_id
