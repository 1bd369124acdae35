-- name: v1._report_occurrences
-- version: 1
-- grain: one row per run, component, executions and status of its ops
-- summary: Occurrences
-- evidence: derived
-- columns:
--   run_id BIGINT: the run
--   line BIGINT: order of the rows
--   component VARCHAR: Component
--   ops BIGINT (count): HLO ops
--   expected BIGINT (count): Expected a run of the program
--   counted DOUBLE (count): Counted a run
--   status VARCHAR: Status
-- algorithm: How often each op should run by the compiler's loops, and did, on a device. What is missing or extra is work
--   that a filter left out, or another executable. v1.occurrences has each op.

WITH _ops AS (
    SELECT
        c.run_id AS run_id,
        o.component AS component,
        o.executions_per_run AS executions_per_run,
        o.status AS status,
        COUNT(*) AS ops,
        CAST(SUM(CASE WHEN o.program_runs IS NOT NULL THEN o.actual END) AS DOUBLE)
            / NULLIF(CAST(SUM(o.program_runs) AS DOUBLE), 0) AS counted
    FROM v1.occurrences AS o
    INNER JOIN main.captures AS c
        ON c.capture_id = o.capture_id
    WHERE o.status <> 'other_executable'
    GROUP BY
        c.run_id,
        o.component,
        o.executions_per_run,
        o.status
)
SELECT
    o.run_id AS run_id,
    ROW_NUMBER() OVER (
        PARTITION BY o.run_id
        ORDER BY
            CASE WHEN o.status = 'complete' THEN 1 ELSE 0 END NULLS FIRST,
            o.component NULLS FIRST,
            o.executions_per_run NULLS FIRST,
            o.status NULLS FIRST
    ) AS line,
    o.component AS component,
    o.ops AS ops,
    o.executions_per_run AS expected,
    o.counted AS counted,
    o.status AS status
FROM _ops AS o
