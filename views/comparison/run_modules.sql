-- name: v1._run_modules
-- version: 1
-- grain: one row per run and name of a module that is a step program of it
-- summary: Which modules to compare where two runs are: those of the programs that are the training step.
-- evidence: measured
-- columns:
--   run_id BIGINT: the run
--   module_name VARCHAR: name of the module
--   module_id BIGINT: the module
--   capture_id BIGINT: the capture that it is of
--   program_id BIGINT: the program that ran it
-- algorithm: v1._step_executables tells the programs. Of several of one name, the one with the most device time in the
--   steps of the first process. A run without steps has its program with the most device time.

WITH _programs AS (
    SELECT
        c.run_id AS run_id,
        m.module_name AS module_name,
        p.module_id AS module_id,
        p.capture_id AS capture_id,
        p.program_id AS program_id,
        ROW_NUMBER() OVER (
            PARTITION BY c.run_id, m.module_name
            ORDER BY
                c.process_index NULLS FIRST,
                x.capture_id NULLS FIRST,
                x.program_rank NULLS FIRST,
                p.module_id NULLS FIRST
        ) AS place
    FROM main.captures AS c
    INNER JOIN v1._step_executables AS x
        ON x.capture_id = c.capture_id
        AND x.is_step_program
    INNER JOIN main.hlo_programs AS p
        ON p.capture_id = x.capture_id
        AND p.program_id = x.program_id
    INNER JOIN main.hlo_modules AS m
        ON m.module_id = p.module_id
)
SELECT
    p.run_id AS run_id,
    p.module_name AS module_name,
    p.module_id AS module_id,
    p.capture_id AS capture_id,
    p.program_id AS program_id
FROM _programs AS p
WHERE p.place = 1
