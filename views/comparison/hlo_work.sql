-- name: v1._hlo_work
-- version: 1
-- grain: one row per module and instruction that is executed and does work
-- summary: The instructions that a program runs as ops, those that only pass data on left out.
-- evidence: compiler
-- columns:
--   module_id BIGINT: the module
--   instruction_id BIGINT: the instruction in the module
--   hlo_op VARCHAR: its name
--   position BIGINT: place in its computation
--   opcode VARCHAR: HLO opcode, without -start
--   custom_call_target VARCHAR: what a custom call calls; NULL for others
--   op_name_id BIGINT: names.name_id of the op_name, or of the one inferred in its place; NULL for none
--   shape VARCHAR: HLO text of the shape, with layouts
--   element_type VARCHAR: of an array; NULL for tuples
--   element_count BIGINT (count): elements, of tuples summed up
--   shape_bytes BIGINT (bytes): likewise; NULL where unknown
--   fusion_kind VARCHAR: of a fusion
--   backend_config VARCHAR: as the compiler has it
--   is_asynchronous BOOLEAN: it runs beside others, until another instruction waits for it
--   computation_role VARCHAR: entry, while_body, while_condition, branch, call or async
--   loop_depth BIGINT: loops around it
--   executions BIGINT (count): in one run of the program; NULL where unknown
-- algorithm: No work: parameter, constant, tuple, get-tuple-element, bitcast and the like; what waits (-done); what runs
--   a computation of instructions that count themselves (while, conditional, call, async-start). A fusion is one.

SELECT
    i.module_id AS module_id,
    i.instruction_id AS instruction_id,
    n.name AS hlo_op,
    i.position AS position,
    COALESCE(NULLIF(REGEXP_EXTRACT(i.opcode, '^(.*)-start$', 1), ''), i.opcode) AS opcode,
    i.custom_call_target AS custom_call_target,
    COALESCE(i.inferred_op_name_id, i.op_name_id) AS op_name_id,
    i.shape AS shape,
    i.element_type AS element_type,
    i.element_count AS element_count,
    i.shape_bytes AS shape_bytes,
    i.fusion_kind AS fusion_kind,
    i.backend_config AS backend_config,
    k.computation_role = 'async' OR i.opcode LIKE '%-start' AS is_asynchronous,
    k.computation_role AS computation_role,
    k.loop_depth AS loop_depth,
    k.executions AS executions
FROM main.hlo_instructions AS i
INNER JOIN main.hlo_computations AS k
    ON k.module_id = i.module_id
    AND k.computation_id = i.computation_id
    AND k.computation_role IN ('entry', 'while_body', 'while_condition', 'branch', 'call', 'async')
INNER JOIN main.names AS n
    ON n.name_id = i.name_id
WHERE i.opcode NOT IN (
        'parameter', 'constant', 'tuple', 'get-tuple-element', 'bitcast', 'after-all', 'add-dependency', 'domain',
        'opt-barrier', 'while', 'conditional', 'call', 'async-start', 'async-update'
    )
    AND i.opcode NOT LIKE '%-done'
