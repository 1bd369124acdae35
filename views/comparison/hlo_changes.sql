-- name: v1.hlo_changes
-- version: 1
-- grain: one row per pair of modules and change of an instruction, equal changes together
-- summary: What the optimized program of one module does otherwise than that of another, matched by what instructions are
--   and not by their numbers.
-- evidence: compiler
-- columns:
--   base_module_id BIGINT: hlo_modules.module_id of the module to compare with
--   head_module_id BIGINT: hlo_modules.module_id of the module that is compared
--   change VARCHAR: added or removed; else the first of these that differs: opcode_changed (another opcode or library call
--     for the same op_name and results), replica_groups_changed, fusion_changed (other work is fused), shape_changed
--     (results, operands, or within the fusion; element types too), remat_changed (the same work now, or no longer, under
--     checkpoint or rematted_computation), executions_changed (runs another number of times), layout_changed,
--     fusion_changed again (the same opcodes with other constants, attributes or operands, told as hashes),
--     config_changed (fusion kind, tiles, algorithm and all else of backend_config; asynchronous or not)
--   opcode VARCHAR: HLO opcode, without -start; of two, the first in the alphabet
--   op_name VARCHAR: the JAX name stack, or one inferred in its place; of two, the first in the alphabet; NULL for none
--   base_instruction VARCHAR: name in base, to look it up; of several, the first in the alphabet; NULL where it was added
--   head_instruction VARCHAR: likewise in head; NULL where it was removed
--   base_value VARCHAR: what differs, as base has it; of a removed instruction, its results; NULL where it was added
--   head_value VARCHAR: likewise of head
--   base_count BIGINT (count): instructions of base that changed so; 0 where they were added
--   head_count BIGINT (count): likewise of head
--   base_executions BIGINT (count): executions of each in one run of base; NULL where it was added, or unknown
--   head_executions BIGINT (count): likewise of head
--   flops_change DOUBLE (count): FLOPs of one run of head less those of base, of all of them; NULL where unknown
--   bytes_change DOUBLE (bytes): likewise bytes accessed by XLA's rules
-- algorithm: v1._hlo_matches. What only passes data on is left out, as are loops and calls, whose contents count
--   themselves, and what waits for another instruction. Two compilations of one program differ in what the compiler
--   chooses by trying: config_changed. A filter on both modules reaches every scan; without one, all pairs are compared.

WITH _pairs AS (
    SELECT
        m.base_module_id AS base_module_id,
        m.head_module_id AS head_module_id,
        COALESCE(m.match_key, CAST(m.is_head AS VARCHAR) || ' ' || CAST(m.instruction_id AS VARCHAR)) AS pair_key,
        m.is_head AS is_head,
        m.instruction_id AS instruction_id
    FROM v1._hlo_matches AS m
),
_matched AS (
    SELECT
        p.base_module_id AS base_module_id,
        p.head_module_id AS head_module_id,
        MIN(CASE WHEN p.is_head = 0 THEN p.instruction_id END) AS base_instruction_id,
        MIN(CASE WHEN p.is_head = 1 THEN p.instruction_id END) AS head_instruction_id
    FROM _pairs AS p
    GROUP BY
        p.base_module_id,
        p.head_module_id,
        p.pair_key
),
_properties AS (
    SELECT
        m.base_module_id AS base_module_id,
        m.head_module_id AS head_module_id,
        m.base_instruction_id AS base_instruction_id,
        m.head_instruction_id AS head_instruction_id,
        CASE
            WHEN m.base_instruction_id IS NULL THEN 'added'
            WHEN m.head_instruction_id IS NULL THEN 'removed'
            ELSE p.change
        END AS change,
        p.property_rank AS property_rank,
        CASE p.property
            WHEN 'work' THEN b.opcode || COALESCE(' ' || NULLIF(b.call_target, ''), '')
            WHEN 'replica_groups' THEN b.replica_groups
            WHEN 'fused_opcodes' THEN b.fused_opcodes
            WHEN 'fused_ops' THEN b.fused_ops
            WHEN 'results' THEN b.results
            WHEN 'operands' THEN b.operands
            WHEN 'fused_shapes' THEN b.fused_shapes
            WHEN 'op_name' THEN b.op_name
            WHEN 'execution_text' THEN b.execution_text
            WHEN 'result_layouts' THEN b.result_layouts
            WHEN 'operand_layouts' THEN b.operand_layouts
            WHEN 'structure' THEN 'structure ' || b.structure
            WHEN 'way' THEN b.way
            WHEN 'tuning' THEN b.tuning
            WHEN 'config' THEN b.config
        END AS base_value,
        CASE p.property
            WHEN 'work' THEN h.opcode || COALESCE(' ' || NULLIF(h.call_target, ''), '')
            WHEN 'replica_groups' THEN h.replica_groups
            WHEN 'fused_opcodes' THEN h.fused_opcodes
            WHEN 'fused_ops' THEN h.fused_ops
            WHEN 'results' THEN h.results
            WHEN 'operands' THEN h.operands
            WHEN 'fused_shapes' THEN h.fused_shapes
            WHEN 'op_name' THEN h.op_name
            WHEN 'execution_text' THEN h.execution_text
            WHEN 'result_layouts' THEN h.result_layouts
            WHEN 'operand_layouts' THEN h.operand_layouts
            WHEN 'structure' THEN 'structure ' || h.structure
            WHEN 'way' THEN h.way
            WHEN 'tuning' THEN h.tuning
            WHEN 'config' THEN h.config
        END AS head_value,
        b.hlo_op AS base_op,
        h.hlo_op AS head_op,
        LEAST(COALESCE(b.opcode, h.opcode), COALESCE(h.opcode, b.opcode)) AS opcode,
        LEAST(COALESCE(b.op_name, h.op_name), COALESCE(h.op_name, b.op_name)) AS op_name,
        b.executions AS base_executions,
        h.executions AS head_executions,
        CASE WHEN m.base_instruction_id IS NULL THEN 0 ELSE CAST(b.flops AS DOUBLE) * b.executions END AS base_flops,
        CASE WHEN m.head_instruction_id IS NULL THEN 0 ELSE CAST(h.flops AS DOUBLE) * h.executions END AS head_flops,
        CASE WHEN m.base_instruction_id IS NULL THEN 0 ELSE CAST(b.bytes_accessed AS DOUBLE) * b.executions END
            AS base_bytes,
        CASE WHEN m.head_instruction_id IS NULL THEN 0 ELSE CAST(h.bytes_accessed AS DOUBLE) * h.executions END
            AS head_bytes
    FROM _matched AS m
    CROSS JOIN (
        VALUES
            (1, 'work', 'opcode_changed'),
            (2, 'replica_groups', 'replica_groups_changed'),
            (3, 'fused_opcodes', 'fusion_changed'),
            (4, 'fused_ops', 'fusion_changed'),
            (5, 'results', 'shape_changed'),
            (6, 'operands', 'shape_changed'),
            (7, 'fused_shapes', 'shape_changed'),
            (8, 'op_name', 'remat_changed'),
            (9, 'execution_text', 'executions_changed'),
            (10, 'result_layouts', 'layout_changed'),
            (11, 'operand_layouts', 'layout_changed'),
            (12, 'structure', 'fusion_changed'),
            (13, 'way', 'config_changed'),
            (14, 'tuning', 'config_changed'),
            (15, 'config', 'config_changed')
    ) AS p (property_rank, property, change)
    LEFT JOIN v1._hlo_signatures AS b
        ON b.module_id = m.base_module_id
        AND b.instruction_id = m.base_instruction_id
    LEFT JOIN v1._hlo_signatures AS h
        ON h.module_id = m.head_module_id
        AND h.instruction_id = m.head_instruction_id
    WHERE m.base_instruction_id IS NOT NULL AND m.head_instruction_id IS NOT NULL
        OR p.property = 'results'
),
_ranked AS (
    SELECT
        p.base_module_id AS base_module_id,
        p.head_module_id AS head_module_id,
        p.base_instruction_id AS base_instruction_id,
        p.head_instruction_id AS head_instruction_id,
        p.change AS change,
        p.opcode AS opcode,
        p.op_name AS op_name,
        p.base_op AS base_op,
        p.head_op AS head_op,
        p.base_value AS base_value,
        p.head_value AS head_value,
        p.base_executions AS base_executions,
        p.head_executions AS head_executions,
        p.head_flops - p.base_flops AS more_flops,
        p.head_bytes - p.base_bytes AS more_bytes,
        ROW_NUMBER() OVER (
            PARTITION BY p.base_module_id, p.head_module_id, p.base_instruction_id, p.head_instruction_id
            ORDER BY p.property_rank NULLS FIRST
        ) AS difference_number
    FROM _properties AS p
    WHERE p.base_value IS NULL
        OR p.head_value IS NULL
        OR p.base_value <> p.head_value
)
SELECT
    r.base_module_id AS base_module_id,
    r.head_module_id AS head_module_id,
    r.change AS change,
    r.opcode AS opcode,
    NULLIF(r.op_name, '') AS op_name,
    MIN(r.base_op) AS base_instruction,
    MIN(r.head_op) AS head_instruction,
    r.base_value AS base_value,
    r.head_value AS head_value,
    COUNT(r.base_instruction_id) AS base_count,
    COUNT(r.head_instruction_id) AS head_count,
    r.base_executions AS base_executions,
    r.head_executions AS head_executions,
    CASE WHEN COUNT(r.more_flops) = COUNT(*) THEN CAST(SUM(r.more_flops) AS DOUBLE) END AS flops_change,
    CASE WHEN COUNT(r.more_bytes) = COUNT(*) THEN CAST(SUM(r.more_bytes) AS DOUBLE) END AS bytes_change
FROM _ranked AS r
WHERE r.difference_number = 1
GROUP BY
    r.base_module_id,
    r.head_module_id,
    r.change,
    r.opcode,
    r.op_name,
    r.base_value,
    r.head_value,
    r.base_executions,
    r.head_executions
