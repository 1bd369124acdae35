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

SELECT
    i.capture_id AS capture_id,
    i.program_id AS program_id,
    i.name_id AS name_id,
    MIN(i.opcode) AS opcode,
    MIN(i.op_name_id) AS op_name_id,
    MAX(CASE
        WHEN REGEXP_MATCHES(
            i.opcode,
            '^(all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute|collective-broadcast|send|recv)(-start|-done)?$'
        ) THEN 1
        ELSE 0
    END) = 1 AS is_collective
FROM main.hlo_instructions AS i
GROUP BY
    i.capture_id,
    i.program_id,
    i.name_id
