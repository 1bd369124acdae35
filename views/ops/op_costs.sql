-- name: v1._op_costs
-- version: 1
-- grain: one row per module and instruction
-- summary: What one execution of an instruction costs as device events see it: an async-start as what it wraps.
-- evidence: compiler
-- columns:
--   module_id BIGINT: the module
--   instruction_id BIGINT: the instruction
--   costed_instruction_id BIGINT: the instruction whose cost it is: itself, or what it wraps
--   computation_role VARCHAR: role of the computation that it is in
--   executions_per_run BIGINT (count): how often it runs in one run of the program; NULL where unknown
--   flops BIGINT (count): floating-point operations; NULL where unknown
--   transcendentals BIGINT (count): exponentials and the like; NULL where unknown
--   bytes_accessed BIGINT (bytes): read and written; NULL where unknown
--   cost_evidence VARCHAR: compiler for XLA's own rules, analytical for a library's formula; NULL without cost
--   cost_rule VARCHAR: the rule or formula
--   cost_note VARCHAR: why a number is NULL, or in what way it is a bound

WITH _wrapped AS (
    SELECT
        c.module_id AS module_id,
        c.instruction_id AS instruction_id,
        MIN(k.root_instruction_id) AS wrapped_instruction_id
    FROM main.hlo_calls AS c
    INNER JOIN main.hlo_instructions AS i
        ON i.module_id = c.module_id
        AND i.instruction_id = c.instruction_id
        AND i.opcode = 'async-start'
    INNER JOIN main.hlo_computations AS k
        ON k.module_id = c.module_id
        AND k.computation_id = c.computation_id
    GROUP BY
        c.module_id,
        c.instruction_id
)
SELECT
    i.module_id AS module_id,
    i.instruction_id AS instruction_id,
    COALESCE(w.wrapped_instruction_id, i.instruction_id) AS costed_instruction_id,
    k.computation_role AS computation_role,
    k.executions AS executions_per_run,
    c.flops AS flops,
    c.transcendentals AS transcendentals,
    c.bytes_accessed AS bytes_accessed,
    c.cost_evidence AS cost_evidence,
    c.cost_rule AS cost_rule,
    c.cost_note AS cost_note
FROM main.hlo_instructions AS i
INNER JOIN main.hlo_computations AS k
    ON k.module_id = i.module_id
    AND k.computation_id = i.computation_id
LEFT JOIN _wrapped AS w
    ON w.module_id = i.module_id
    AND w.instruction_id = i.instruction_id
LEFT JOIN main.hlo_costs AS c
    ON c.module_id = i.module_id
    AND c.instruction_id = COALESCE(w.wrapped_instruction_id, i.instruction_id)
