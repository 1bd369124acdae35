-- name: v1._hlo_keys
-- version: 1
-- grain: one row per module and instruction that is executed and does work
-- summary: Signatures of instructions as texts, from all that they say to little of it.
-- evidence: compiler
-- columns:
--   module_id BIGINT: the module
--   instruction_id BIGINT: the instruction
--   place BIGINT: place in the module, by the signature; that of equal ones by position
--   whole_key VARCHAR: all of the signature
--   work_key VARCHAR: opcode, op_name, shapes, contents and executions
--   plain_key VARCHAR: opcode, op_name but for rematerialization, shapes and contents
--   contents_key VARCHAR: of a fusion with an op_name, opcode, op_name and contents; NULL for others
--   results_key VARCHAR: opcode, op_name and shapes of the results
--   name_key VARCHAR: opcode and op_name; NULL without an op_name
--   other_key VARCHAR: op_name and shapes of the results; NULL without an op_name

WITH _texts AS (
    SELECT
        s.module_id AS module_id,
        s.instruction_id AS instruction_id,
        s.position AS position,
        s.opcode || ' ' || s.call_target AS what,
        s.op_name AS op_name,
        s.plain_op_name AS plain_op_name,
        s.results AS results,
        s.fused_ops AS fused_ops,
        s.results || ' | ' || s.operands || ' | ' || s.fused_ops || ' | ' || s.fused_shapes AS shapes,
        s.execution_text AS execution_text,
        s.replica_groups || ' | ' || s.result_layouts || ' | ' || s.operand_layouts || ' | ' || s.structure || ' | '
            || s.way || ' | ' || s.config AS form
    FROM v1._hlo_signatures AS s
)
SELECT
    t.module_id AS module_id,
    t.instruction_id AS instruction_id,
    ROW_NUMBER() OVER (
        PARTITION BY t.module_id
        ORDER BY
            t.op_name NULLS FIRST,
            t.what NULLS FIRST,
            t.execution_text NULLS FIRST,
            t.shapes NULLS FIRST,
            t.form NULLS FIRST,
            t.position NULLS FIRST,
            t.instruction_id NULLS FIRST
    ) AS place,
    t.what || ' | ' || t.op_name || ' | ' || t.shapes || ' | ' || t.execution_text || ' | ' || t.form AS whole_key,
    t.what || ' | ' || t.op_name || ' | ' || t.shapes || ' | ' || t.execution_text AS work_key,
    t.what || ' | ' || t.plain_op_name || ' | ' || t.shapes AS plain_key,
    CASE WHEN t.fused_ops <> '' AND t.op_name <> '' THEN t.what || ' | ' || t.op_name || ' | ' || t.fused_ops END
        AS contents_key,
    t.what || ' | ' || t.op_name || ' | ' || t.results AS results_key,
    CASE WHEN t.op_name <> '' THEN t.what || ' | ' || t.op_name END AS name_key,
    CASE WHEN t.op_name <> '' THEN t.op_name || ' | ' || t.results END AS other_key
FROM _texts AS t
