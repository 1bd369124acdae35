-- name: v1._instructions
-- version: 1
-- grain: one row per capture, program and instruction name
-- summary: HLO instructions as device events refer to them, by name within a program.
-- evidence: compiler
-- columns:
--   capture_id BIGINT: the capture
--   program_id BIGINT: the program; instruction names repeat between programs
--   name_id BIGINT: names.name_id of the instruction's name
--   opcode VARCHAR: HLO opcode
--   op_name_id BIGINT: names.name_id of the metadata op_name; NULL without metadata
--   is_collective BOOLEAN: the opcode is that of a collective

WITH _first AS (
    SELECT
        i.capture_id AS capture_id,
        i.program_id AS program_id,
        i.name_id AS name_id,
        MIN(i.instruction_id) AS first_instruction_id
    FROM main.hlo_instructions AS i
    GROUP BY
        i.capture_id,
        i.program_id,
        i.name_id
)
SELECT
    f.capture_id AS capture_id,
    f.program_id AS program_id,
    f.name_id AS name_id,
    i.opcode AS opcode,
    i.op_name_id AS op_name_id,
    REGEXP_MATCHES(
        i.opcode,
        '^(all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute|collective-broadcast|send|recv)(-start|-done)?$'
    ) AS is_collective
FROM _first AS f
INNER JOIN main.hlo_instructions AS i
    ON i.capture_id = f.capture_id
    AND i.program_id = f.program_id
    AND i.instruction_id = f.first_instruction_id
