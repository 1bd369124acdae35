-- name: v1._step_programs
-- version: 1
-- grain: one row per capture without step marks and with device work of a known program
-- summary: The program whose executions are the steps: that with the most device time.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   name_id BIGINT: names.name_id of the program
--   program_name VARCHAR: its name
--   program_id BIGINT: its id where other programs of the capture have the same name; NULL where the name tells it
--   has_module_runs INTEGER: 1 where v1._module_runs has its executions
--   has_executions INTEGER: 1 where its device events name their execution
-- algorithm: Programs of one name are told apart by their ids, as far as the source has them: a function that is
--   called with arguments of other shapes is another program. Where a device line of modules is there, its times
--   and names count, with the fingerprints in them. Of equals, the first name seen, and the lower id.

WITH _ops AS (
    SELECT
        e.capture_id AS capture_id,
        e.op_id AS op_id,
        CAST(SUM(e.end_ps - e.start_ps) AS BIGINT) AS duration_ps,
        MAX(CASE WHEN e.execution_id IS NULL THEN 0 ELSE 1 END) AS has_execution
    FROM main.device_events AS e
    WHERE e.role = 'work'
    GROUP BY
        e.capture_id,
        e.op_id
),
_runs AS (
    SELECT
        u.capture_id AS capture_id,
        r.name_id AS name_id,
        CAST(NULL AS BIGINT) AS program_id,
        r.end_ps - r.start_ps AS duration_ps,
        1 AS is_module_run,
        0 AS has_execution
    FROM v1._unmarked_captures AS u
    INNER JOIN v1._module_runs AS r
        ON r.capture_id = u.capture_id
    UNION ALL
    SELECT
        u.capture_id AS capture_id,
        o.hlo_module_name_id AS name_id,
        o.program_id AS program_id,
        e.duration_ps AS duration_ps,
        0 AS is_module_run,
        e.has_execution AS has_execution
    FROM v1._unmarked_captures AS u
    INNER JOIN _ops AS e
        ON e.capture_id = u.capture_id
    INNER JOIN main.ops AS o
        ON o.capture_id = e.capture_id
        AND o.op_id = e.op_id
    WHERE o.hlo_module_name_id IS NOT NULL
),
_programs AS (
    SELECT
        r.capture_id AS capture_id,
        r.name_id AS name_id,
        r.program_id AS program_id,
        r.is_module_run AS is_module_run,
        MAX(r.has_execution) AS any_execution,
        CAST(SUM(r.duration_ps) AS BIGINT) AS total_ps
    FROM _runs AS r
    GROUP BY
        r.capture_id,
        r.name_id,
        r.program_id,
        r.is_module_run
),
_ranked AS (
    SELECT
        p.capture_id AS capture_id,
        p.name_id AS name_id,
        p.program_id AS program_id,
        p.is_module_run AS is_module_run,
        p.any_execution AS any_execution,
        COUNT(*) OVER (PARTITION BY p.capture_id, p.is_module_run, p.name_id) AS namesakes,
        ROW_NUMBER() OVER (
            PARTITION BY p.capture_id
            ORDER BY
                -p.is_module_run NULLS FIRST,
                -p.total_ps NULLS FIRST,
                p.name_id NULLS FIRST,
                p.program_id NULLS FIRST
        ) AS program_rank
    FROM _programs AS p
)
SELECT
    r.capture_id AS capture_id,
    r.name_id AS name_id,
    n.name AS program_name,
    CASE WHEN r.namesakes > 1 THEN r.program_id END AS program_id,
    r.is_module_run AS has_module_runs,
    r.any_execution AS has_executions
FROM _ranked AS r
INNER JOIN main.names AS n
    ON n.name_id = r.name_id
WHERE r.program_rank = 1
