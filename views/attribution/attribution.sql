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
--   launch_phase VARCHAR: remat, backward, forward, update, what a user's rule gives, or unattributed, by the
--     op_name
--   component VARCHAR: deepest named scope of the op_name, or unattributed
--   component_group VARCHAR: what the rules make of the component: Attention, Expert MLP, ...; or unattributed
--   component_source VARCHAR: own; neighbour, for a collective whose own op_name names no component below a loop:
--     that of what its data is for, or comes from; NULL where unattributed
--   op_name_source VARCHAR: own; root or inner of a computation that the op fuses or calls; operand or user, of what
--     it takes or gives data; event, where only the event has one; NULL without an op_name
--   is_mixed BOOLEAN: the op_name joins operations of different phases or components. Where they do not agree
--     the phase is unattributed, and the component the deepest scope that they share
--   attribution_source VARCHAR: how the HLO instruction is known. hlo_op: the event names it. graph_name,
--     graph_position: its node in a CUDA graph is that of the instruction, and the kernel is called after it, or
--     only the position tells. graph_order, order: the order of kernels alone tells, in a graph whose nodes have
--     no numbers, or outside of one. none: not known
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end

WITH _classes AS (
    SELECT
        o.rule_scope AS rule_scope,
        o.op_name_id AS op_name_id,
        o.phase AS phase,
        o.component AS component,
        o.component_group AS component_group,
        o.is_loop_scope AS is_loop_scope,
        o.is_mixed AS is_mixed
    FROM main.op_name_classes AS o
)
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
    COALESCE(n.component, c.component, 'unattributed') AS component,
    COALESCE(n.component_group, c.component_group, 'unattributed') AS component_group,
    CASE
        WHEN n.component IS NOT NULL THEN 'neighbour'
        WHEN c.component IS NOT NULL THEN 'own'
    END AS component_source,
    e.op_name_source AS op_name_source,
    COALESCE(c.is_mixed, FALSE) AS is_mixed,
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
LEFT JOIN v1._capture_rule_scopes AS r
    ON r.capture_id = e.capture_id
LEFT JOIN _classes AS c
    ON c.rule_scope = COALESCE(r.rule_scope, 0)
    AND c.op_name_id = e.op_name_id
LEFT JOIN _classes AS n
    ON n.rule_scope = COALESCE(r.rule_scope, 0)
    AND n.op_name_id = CASE WHEN c.component IS NULL OR c.is_loop_scope THEN e.neighbour_op_name_id END
LEFT JOIN v1._event_steps AS s
    ON s.capture_id = e.capture_id
    AND s.device_event_id = e.device_event_id
