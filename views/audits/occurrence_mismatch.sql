-- name: occurrence_mismatch
-- severity: warning
-- filter: capture_id
-- question: Did each op of the step run as often as the compiler's loops say?
-- meaning: Kernels of an op of the training step are missing, or there are more than its loops ask for. A sum over its
--   component leaves out a path of the model, or takes in another program.
-- next: See v1.occurrences for the op. All ops one short means that a step is cut; ops of one component alone, that a
--   filter or a command buffer hides them; extra ones, that another executable shares their names.
-- evidence: derived
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   module_name VARCHAR: the program
--   hlo_op VARCHAR: HLO instruction
--   opcode VARCHAR: HLO opcode
--   component VARCHAR: deepest named scope of the op
--   expected BIGINT (count): executions that runs and loops let expect
--   actual BIGINT (count): executions that kernels show
--   status VARCHAR: missing or extra
-- algorithm: Of programs with at least 5 % of the capture's device time: the training step, not what prepares it.

WITH _programs AS (
    SELECT
        e.capture_id AS capture_id,
        o.program_id AS program_id,
        CAST(SUM(e.end_ps - e.start_ps) AS BIGINT) AS sum_ps
    FROM main.device_events AS e
    INNER JOIN main.ops AS o
        ON o.capture_id = e.capture_id
        AND o.op_id = e.op_id
    WHERE e.role = 'work'
        AND o.program_id IS NOT NULL
    GROUP BY
        e.capture_id,
        o.program_id
),
_shares AS (
    SELECT
        p.capture_id AS capture_id,
        p.program_id AS program_id,
        p.sum_ps AS sum_ps,
        CAST(SUM(p.sum_ps) OVER (PARTITION BY p.capture_id) AS DOUBLE) AS total_ps
    FROM _programs AS p
)
SELECT
    r.run_name AS run_name,
    o.capture_id AS capture_id,
    m.module_name AS module_name,
    o.hlo_op AS hlo_op,
    o.opcode AS opcode,
    o.component AS component,
    o.expected AS expected,
    o.actual AS actual,
    o.status AS status
FROM v1.occurrences AS o
INNER JOIN _shares AS s
    ON s.capture_id = o.capture_id
    AND s.program_id = o.program_id
    AND s.sum_ps >= 5e-2 * s.total_ps
INNER JOIN main.captures AS c
    ON c.capture_id = o.capture_id
INNER JOIN main.runs AS r
    ON r.run_id = c.run_id
LEFT JOIN main.hlo_programs AS p
    ON p.capture_id = o.capture_id
    AND p.program_id = o.program_id
LEFT JOIN main.hlo_modules AS m
    ON m.module_id = p.module_id
WHERE o.status IN ('missing', 'extra')
ORDER BY
    ABS(o.actual - o.expected) DESC,
    r.run_name,
    o.capture_id,
    o.hlo_op
