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
--   hlo_module_name_id BIGINT: names.name_id of the HLO module as the event names it; NULL where it does not
--   op_name_id BIGINT: names.name_id of the JAX name stack; NULL where none is known
--   op_name_source VARCHAR: own; root or inner of a computation that the op fuses or calls; operand or user, of what
--     it takes or gives data; event, where only the event has one; NULL without an op_name
--   neighbour_op_name_id BIGINT: of a collective, names.name_id of the op_name of what its data is for, or comes
--     from; NULL where none is known
--   opcode VARCHAR: HLO opcode; NULL where the instruction is not in a module at hand
--   event_class VARCHAR: collective, copy or compute
--   attribution_source VARCHAR: hlo_op, graph_name, graph_position, graph_order, order or none
--   launch_details_id BIGINT: joins main.launch_details within the capture; NULL where the event has none
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end
-- algorithm: The instruction is the one that the event's own hlo_op names within its program. An hlo_op that
--   is in no module at hand still counts where the event carries its op_name. Events of a command buffer
--   name the buffer instead of an instruction: main.graph_ops keeps which one each node of its graph is. The
--   kernel's name alone is no help there, since XLA runs one kernel for all fusions of equal code and names
--   it after the first. Where nodes have no numbers, or an event names nothing, main.aligned_events keeps what
--   the order of a program's kernels tells. On TPU tf_op is the op_name; on a GPU it is a constant.

WITH _ops AS (
    SELECT
        o.capture_id AS capture_id,
        o.op_id AS op_id,
        o.program_id AS program_id,
        COALESCE(n.name_id, o.hlo_op_name_id) AS hlo_op_name_id,
        o.hlo_module_name_id AS hlo_module_name_id,
        o.op_name_id AS own_op_name_id,
        o.tf_op_name_id AS tf_op_name_id,
        g.attribution_source AS graph_source
    FROM main.ops AS o
    LEFT JOIN main.graph_ops AS g
        ON g.capture_id = o.capture_id
        AND g.program_id = o.program_id
        AND g.buffer_name_id = o.hlo_op_name_id
        AND g.node_index = o.graph_node_index
        AND g.kernel_name_id = o.graph_kernel_name_id
    LEFT JOIN main.hlo_instructions AS n
        ON n.module_id = g.module_id
        AND n.instruction_id = g.instruction_id
),
_found AS (
    SELECT
        o.capture_id AS capture_id,
        o.op_id AS op_id,
        o.program_id AS program_id,
        o.hlo_op_name_id AS hlo_op_name_id,
        o.hlo_module_name_id AS hlo_module_name_id,
        COALESCE(i.op_name_id, o.own_op_name_id) AS op_name_id,
        o.tf_op_name_id AS tf_op_name_id,
        CASE
            WHEN i.op_name_id IS NOT NULL THEN i.op_name_source
            WHEN o.own_op_name_id IS NOT NULL THEN 'event'
        END AS op_name_source,
        i.neighbour_op_name_id AS neighbour_op_name_id,
        i.opcode AS opcode,
        i.is_collective AS is_collective,
        CASE
            WHEN o.graph_source IS NOT NULL THEN o.graph_source
            WHEN i.name_id IS NOT NULL THEN 'hlo_op'
            WHEN o.hlo_op_name_id IS NOT NULL AND o.own_op_name_id IS NOT NULL THEN 'hlo_op'
        END AS attribution_source
    FROM _ops AS o
    LEFT JOIN v1._instructions AS i
        ON i.capture_id = o.capture_id
        AND i.program_id = o.program_id
        AND i.name_id = o.hlo_op_name_id
),
_resolved AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_event_id AS device_event_id,
        e.device_id AS device_id,
        e.name_id AS name_id,
        e.kind AS kind,
        COALESCE(a.program_id, o.program_id) AS program_id,
        COALESCE(a.hlo_op_name_id, o.hlo_op_name_id) AS hlo_op_name_id,
        o.hlo_module_name_id AS hlo_module_name_id,
        COALESCE(a.op_name_id, o.op_name_id, CASE WHEN e.kind = 'op' THEN o.tf_op_name_id END) AS op_name_id,
        COALESCE(
            a.op_name_source,
            o.op_name_source,
            CASE WHEN e.kind = 'op' AND o.tf_op_name_id IS NOT NULL THEN 'event' END
        ) AS op_name_source,
        COALESCE(a.neighbour_op_name_id, o.neighbour_op_name_id) AS neighbour_op_name_id,
        COALESCE(a.opcode, o.opcode) AS opcode,
        COALESCE(a.is_collective, o.is_collective, FALSE) AS is_collective,
        CASE
            WHEN a.attribution_source IS NOT NULL THEN a.attribution_source
            WHEN o.attribution_source IS NOT NULL THEN o.attribution_source
            WHEN e.kind = 'op' AND o.tf_op_name_id IS NOT NULL THEN 'hlo_op'
            ELSE 'none'
        END AS attribution_source,
        e.launch_details_id AS launch_details_id,
        e.start_ps AS start_ps,
        e.end_ps AS end_ps
    FROM main.device_events AS e
    LEFT JOIN _found AS o
        ON o.capture_id = e.capture_id
        AND o.op_id = e.op_id
    LEFT JOIN main.aligned_events AS a
        ON a.capture_id = e.capture_id
        AND a.device_event_id = e.device_event_id
    WHERE e.role = 'work'
)
SELECT
    r.capture_id AS capture_id,
    r.device_event_id AS device_event_id,
    r.device_id AS device_id,
    r.name_id AS name_id,
    r.program_id AS program_id,
    r.hlo_op_name_id AS hlo_op_name_id,
    r.hlo_module_name_id AS hlo_module_name_id,
    r.op_name_id AS op_name_id,
    r.op_name_source AS op_name_source,
    r.neighbour_op_name_id AS neighbour_op_name_id,
    r.opcode AS opcode,
    CASE
        WHEN c.event_class = 'collective' OR r.is_collective THEN 'collective'
        WHEN r.kind IN ('memcpy', 'memset') OR c.event_class = 'copy' THEN 'copy'
        ELSE 'compute'
    END AS event_class,
    r.attribution_source AS attribution_source,
    r.launch_details_id AS launch_details_id,
    r.start_ps AS start_ps,
    r.end_ps AS end_ps
FROM _resolved AS r
INNER JOIN v1._kernel_name_classes AS c
    ON c.name_id = r.name_id
