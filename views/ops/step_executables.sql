-- name: v1._step_executables
-- version: 1
-- grain: one row per capture and program with device work
-- summary: Which programs are the training step: the one with the most device time in the steps, and those
--   called the same that have some in them.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   program_id BIGINT: the program
--   is_step_program BOOLEAN: it is the step, be it compiled once more; else some other executable
--   program_rank BIGINT: place among the programs of the capture, by device time in its steps
-- algorithm: Where a capture has no steps, all of its device time counts. Of equals, the lowest id.

WITH _programs AS (
    SELECT
        e.capture_id AS capture_id,
        o.program_id AS program_id,
        MIN(o.hlo_module_name_id) AS module_name_id,
        CAST(SUM(CASE WHEN s.step_num IS NULL THEN 0 ELSE e.end_ps - e.start_ps END) AS BIGINT) AS step_ps,
        CAST(SUM(e.end_ps - e.start_ps) AS BIGINT) AS total_ps
    FROM main.device_events AS e
    INNER JOIN main.ops AS o
        ON o.capture_id = e.capture_id
        AND o.op_id = e.op_id
    LEFT JOIN v1._event_steps AS s
        ON s.capture_id = e.capture_id
        AND s.device_event_id = e.device_event_id
    WHERE e.role = 'work'
        AND o.program_id IS NOT NULL
    GROUP BY
        e.capture_id,
        o.program_id
),
_ranked AS (
    SELECT
        p.capture_id AS capture_id,
        p.program_id AS program_id,
        p.module_name_id AS module_name_id,
        p.step_ps AS step_ps,
        MAX(p.step_ps) OVER (PARTITION BY p.capture_id) AS most_step_ps,
        ROW_NUMBER() OVER (
            PARTITION BY p.capture_id
            ORDER BY -p.step_ps NULLS FIRST, -p.total_ps NULLS FIRST, p.program_id NULLS FIRST
        ) AS program_rank
    FROM _programs AS p
),
_named AS (
    SELECT
        r.capture_id AS capture_id,
        r.program_id AS program_id,
        r.program_rank AS program_rank,
        r.step_ps > 0 OR r.most_step_ps = 0 AS is_in_steps,
        MIN(r.program_rank) OVER (PARTITION BY r.capture_id, r.module_name_id) AS best_rank,
        r.module_name_id AS module_name_id
    FROM _ranked AS r
)
SELECT
    n.capture_id AS capture_id,
    n.program_id AS program_id,
    n.program_rank = 1 OR n.best_rank = 1 AND n.module_name_id IS NOT NULL AND n.is_in_steps AS is_step_program,
    n.program_rank AS program_rank
FROM _named AS n
