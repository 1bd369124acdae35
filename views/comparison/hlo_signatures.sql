-- name: v1._hlo_signatures
-- version: 1
-- grain: one row per module and instruction that is executed and does work
-- summary: What an instruction is apart from its name and number: equal for the same work of two compilations.
-- evidence: compiler
-- columns:
--   module_id BIGINT: the module
--   instruction_id BIGINT: the instruction; no part of what it is, like the next two
--   hlo_op VARCHAR: its name
--   position BIGINT: place in its computation
--   opcode VARCHAR: HLO opcode, without -start
--   call_target VARCHAR: custom_call_target; '' for others than custom calls
--   op_name VARCHAR: the JAX name stack, or one inferred in its place; '' for none
--   plain_op_name VARCHAR: op_name without what tells that the work is done again (v1._hlo_op_names)
--   element_type VARCHAR: of an array; NULL for tuples
--   results VARCHAR: shapes of the arrays that it gives, without layouts
--   operands VARCHAR: shapes of those that it takes, without layouts, sorted
--   result_layouts VARCHAR: results with layouts
--   operand_layouts VARCHAR: operands with layouts
--   fused_opcodes VARCHAR: opcodes of what a fusion contains, or a reduction applies, sorted; '' for others
--   fused_ops VARCHAR: likewise opcodes with their op_names, without what tells that the work is done again
--   fused_shapes VARCHAR: likewise opcodes with their shapes
--   structure VARCHAR: hashes of what it fuses or applies, with operands, attributes, constants and layouts; of at most
--     two computations; '' for others
--   replica_groups VARCHAR: groups of devices of a collective; '' for others, and where they are unknown
--   tuning VARCHAR: what the compiler chose by trying: fusion kind, emitter, tiles, warps, algorithm; '' for none
--   way VARCHAR: asynchronous where it runs beside others, until one waits for it; else synchronous
--   config VARCHAR: tuning and backend_config without estimates of costs and numbers of streams
--   executions BIGINT (count): in one run of the program; NULL where unknown
--   execution_text VARCHAR: executions as text, or how many loops of unknown length are around it
--   flops BIGINT (count): of one execution; NULL where unknown
--   bytes_accessed BIGINT (bytes): likewise

WITH _lists AS (
    SELECT
        l.module_id AS module_id,
        l.owner_id AS owner_id,
        MAX(CASE WHEN l.list_kind = 'results' THEN l.list_text END) AS results,
        MAX(CASE WHEN l.list_kind = 'operands' THEN l.list_text END) AS operands,
        MAX(CASE WHEN l.list_kind = 'result_layouts' THEN l.list_text END) AS result_layouts,
        MAX(CASE WHEN l.list_kind = 'operand_layouts' THEN l.list_text END) AS operand_layouts,
        MAX(CASE WHEN l.list_kind = 'fused_opcodes' THEN l.list_text END) AS fused_opcodes,
        MAX(CASE WHEN l.list_kind = 'fused_ops' THEN l.list_text END) AS fused_ops,
        MAX(CASE WHEN l.list_kind = 'fused_shapes' THEN l.list_text END) AS fused_shapes
    FROM v1._hlo_lists AS l
    WHERE l.list_kind <> 'groups'
    GROUP BY
        l.module_id,
        l.owner_id
),
_structures AS (
    SELECT
        c.module_id AS module_id,
        c.instruction_id AS instruction_id,
        MAX(CASE WHEN c.call_index = 0 THEN k.structure_hash END)
            || COALESCE(' ' || MAX(CASE WHEN c.call_index = 1 THEN k.structure_hash END), '') AS structure
    FROM main.hlo_calls AS c
    INNER JOIN main.hlo_computations AS k
        ON k.module_id = c.module_id
        AND k.computation_id = c.computation_id
        AND k.computation_role IN ('fusion', 'reducer')
    GROUP BY
        c.module_id,
        c.instruction_id
),
_work AS (
    SELECT
        w.module_id AS module_id,
        w.instruction_id AS instruction_id,
        w.hlo_op AS hlo_op,
        w.position AS position,
        w.opcode AS opcode,
        COALESCE(w.custom_call_target, '') AS call_target,
        w.op_name_id AS op_name_id,
        w.element_type AS element_type,
        w.executions AS executions,
        COALESCE(
            CAST(w.executions AS VARCHAR),
            'unknown, in ' || CAST(w.loop_depth AS VARCHAR) || ' loops'
        ) AS execution_text,
        CASE WHEN w.is_asynchronous THEN 'asynchronous' ELSE 'synchronous' END AS way,
        COALESCE(w.fusion_kind, '')
            || COALESCE(' ' || NULLIF(REGEXP_EXTRACT(
                w.backend_config, '^.*"fusion_backend_config":[{]"kind":"([^"]*)".*$', 1
            ), ''), '')
            || COALESCE(', tiles ' || NULLIF(REGEXP_EXTRACT(
                w.backend_config, '^.*"output_tiles":.([{]"sizes":.["0-9,]*.[}](,[{]"sizes":.["0-9,]*.[}])*).*$', 1
            ), ''), '')
            || COALESCE(', warps ' || NULLIF(REGEXP_EXTRACT(
                w.backend_config, '^.*"num_warps":"?([0-9]+).*$', 1
            ), ''), '')
            || COALESCE(', stages ' || NULLIF(REGEXP_EXTRACT(
                w.backend_config, '^.*"num_stages":"?([0-9]+).*$', 1
            ), ''), '')
            || COALESCE(', tma ' || NULLIF(REGEXP_EXTRACT(
                w.backend_config, '^.*"is_tma_allowed":([a-z]+).*$', 1
            ), ''), '')
            || COALESCE('algorithm ' || NULLIF(REGEXP_EXTRACT(
                w.backend_config, '^.*"selected_algorithm":"?([0-9]+).*$', 1
            ), ''), '')
            || COALESCE('algorithm ' || NULLIF(REGEXP_EXTRACT(
                w.backend_config, '^.*"algo_id":"?([0-9]+).*$', 1
            ), ''), '') AS tuning,
        COALESCE(
            NULLIF(REGEXP_EXTRACT(w.backend_config, '^(.*)"reification_cost":.*$', 1), '')
                || NULLIF(REGEXP_EXTRACT(w.backend_config, '^.*"reification_cost":.[ -Z_-~]*.,?(.*)$', 1), ''),
            w.backend_config,
            ''
        ) AS costless_config
    FROM v1._hlo_work AS w
)
SELECT
    w.module_id AS module_id,
    w.instruction_id AS instruction_id,
    w.hlo_op AS hlo_op,
    w.position AS position,
    w.opcode AS opcode,
    w.call_target AS call_target,
    COALESCE(n.op_name, '') AS op_name,
    COALESCE(n.plain_op_name, '') AS plain_op_name,
    w.element_type AS element_type,
    COALESCE(l.results, '') AS results,
    COALESCE(l.operands, '') AS operands,
    COALESCE(l.result_layouts, '') AS result_layouts,
    COALESCE(l.operand_layouts, '') AS operand_layouts,
    COALESCE(l.fused_opcodes, '') AS fused_opcodes,
    COALESCE(l.fused_ops, '') AS fused_ops,
    COALESCE(l.fused_shapes, '') AS fused_shapes,
    COALESCE(t.structure, '') AS structure,
    COALESCE(g.list_text, '') AS replica_groups,
    w.tuning AS tuning,
    w.way AS way,
    w.tuning || CASE WHEN w.tuning = '' OR w.costless_config = '' THEN '' ELSE ' ' END || COALESCE(
        NULLIF(REGEXP_EXTRACT(w.costless_config, '^(.*)"operation_queue_id":"[0-9]*".*$', 1), '')
            || NULLIF(REGEXP_EXTRACT(w.costless_config, '^.*"operation_queue_id":"[0-9]*",?(.*)$', 1), ''),
        w.costless_config
    ) AS config,
    w.executions AS executions,
    w.execution_text AS execution_text,
    c.flops AS flops,
    c.bytes_accessed AS bytes_accessed
FROM _work AS w
LEFT JOIN _lists AS l
    ON l.module_id = w.module_id
    AND l.owner_id = w.instruction_id
LEFT JOIN _structures AS t
    ON t.module_id = w.module_id
    AND t.instruction_id = w.instruction_id
LEFT JOIN v1._hlo_op_names AS n
    ON n.module_id = w.module_id
    AND n.op_name_id = w.op_name_id
LEFT JOIN main.hlo_collectives AS s
    ON s.module_id = w.module_id
    AND s.instruction_id = w.instruction_id
LEFT JOIN v1._hlo_lists AS g
    ON g.module_id = w.module_id
    AND g.owner_id = s.group_set_id
    AND g.list_kind = 'groups'
LEFT JOIN main.hlo_costs AS c
    ON c.module_id = w.module_id
    AND c.instruction_id = w.instruction_id
