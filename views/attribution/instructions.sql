-- name: v1._instructions
-- version: 1
-- grain: one row per capture, program and instruction name
-- summary: HLO instructions as device events refer to them, by name within a program.
-- evidence: compiler
-- columns:
--   capture_id BIGINT: the capture
--   program_id BIGINT: the program; instruction names repeat between programs
--   name_id BIGINT: names.name_id of the instruction's name
--   module_id BIGINT: module of the program
--   instruction_id BIGINT: the instruction in the module
--   opcode VARCHAR: HLO opcode
--   op_name_id BIGINT: names.name_id of the metadata op_name, or of the one inferred in its place; NULL for none
--   op_name_source VARCHAR: own for the metadata; root or inner of a computation that it fuses or calls; operand or
--     user, of what it takes or gives data; NULL for none
--   neighbour_op_name_id BIGINT: of a collective, names.name_id of the op_name of what its data is for, or
--     comes from; NULL where none is known
--   is_collective BOOLEAN: it communicates, or waits for what communicates

WITH _first AS (
    SELECT
        p.capture_id AS capture_id,
        p.program_id AS program_id,
        p.module_id AS module_id,
        i.name_id AS name_id,
        MIN(i.instruction_id) AS first_instruction_id
    FROM main.hlo_programs AS p
    INNER JOIN main.hlo_instructions AS i
        ON i.module_id = p.module_id
    GROUP BY
        p.capture_id,
        p.program_id,
        p.module_id,
        i.name_id
)
SELECT
    f.capture_id AS capture_id,
    f.program_id AS program_id,
    f.name_id AS name_id,
    f.module_id AS module_id,
    f.first_instruction_id AS instruction_id,
    i.opcode AS opcode,
    COALESCE(i.inferred_op_name_id, i.op_name_id) AS op_name_id,
    i.op_name_source AS op_name_source,
    i.neighbour_op_name_id AS neighbour_op_name_id,
    c.instruction_id IS NOT NULL AS is_collective
FROM _first AS f
INNER JOIN main.hlo_instructions AS i
    ON i.module_id = f.module_id
    AND i.instruction_id = f.first_instruction_id
LEFT JOIN main.hlo_collectives AS c
    ON c.module_id = f.module_id
    AND c.instruction_id = f.first_instruction_id
