-- name: v1._kernel_instructions
-- version: 1
-- grain: one row per capture, program and kernel name that only one instruction of the program has
-- summary: The instruction that a kernel name stands for, where the name leaves no doubt.
-- evidence: compiler
-- columns:
--   capture_id BIGINT: the capture
--   program_id BIGINT: the program
--   kernel_name_id BIGINT: names.name_id of the kernel's name
--   name_id BIGINT: names.name_id of the instruction's name

SELECT
    i.capture_id AS capture_id,
    i.program_id AS program_id,
    i.kernel_name_id AS kernel_name_id,
    MIN(i.name_id) AS name_id
FROM v1._instructions AS i
WHERE NOT i.is_inside_fusion
GROUP BY
    i.capture_id,
    i.program_id,
    i.kernel_name_id
HAVING COUNT(*) = 1
