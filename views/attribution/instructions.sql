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
--   is_collective BOOLEAN: the opcode is that of a collective, for an async wrapper that of what it wraps

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
),
_wrapped AS (
    SELECT
        c.capture_id AS capture_id,
        c.program_id AS program_id,
        c.instruction_id AS instruction_id,
        MIN(w.opcode) AS wrapped_opcode
    FROM main.hlo_calls AS c
    INNER JOIN main.hlo_computations AS k
        ON k.capture_id = c.capture_id
        AND k.program_id = c.program_id
        AND k.computation_id = c.computation_id
    INNER JOIN main.hlo_instructions AS w
        ON w.capture_id = k.capture_id
        AND w.program_id = k.program_id
        AND w.instruction_id = k.root_instruction_id
    GROUP BY
        c.capture_id,
        c.program_id,
        c.instruction_id
)
SELECT
    f.capture_id AS capture_id,
    f.program_id AS program_id,
    f.name_id AS name_id,
    i.opcode AS opcode,
    i.op_name_id AS op_name_id,
    REGEXP_MATCHES(
        CASE WHEN i.opcode LIKE 'async-%' THEN COALESCE(w.wrapped_opcode, i.opcode) ELSE i.opcode END,
        '^(all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute|collective-broadcast|send|recv)(-start|-done)?$'
    ) AS is_collective
FROM _first AS f
INNER JOIN main.hlo_instructions AS i
    ON i.capture_id = f.capture_id
    AND i.program_id = f.program_id
    AND i.instruction_id = f.first_instruction_id
LEFT JOIN _wrapped AS w
    ON w.capture_id = i.capture_id
    AND w.program_id = i.program_id
    AND w.instruction_id = i.instruction_id
