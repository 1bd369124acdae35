-- name: v1._report_timeline
-- version: 1
-- grain: one row per run and part of the window
-- summary: The timeline of the step
-- evidence: derived
-- columns:
--   run_id BIGINT: the run
--   line INTEGER: order of the rows
--   part VARCHAR: Part of the window
--   mean_ms DOUBLE (ms): Mean time
--   share_ratio DOUBLE (ratio): Share of the window
-- algorithm: Unions of intervals, a step of a device. Compute, exposed communication, exposed copies and idle time add
--   up to the window.

WITH _parts AS (
    SELECT
        t.run_id AS run_id,
        v.line AS line,
        v.part AS part,
        CASE v.line
            WHEN 1 THEN t.compute_ps
            WHEN 2 THEN t.exposed_communication_ps
            WHEN 3 THEN t.exposed_copy_ps
            WHEN 4 THEN t.idle_ps
            WHEN 5 THEN t.window_ps
            WHEN 6 THEN t.busy_ps
            WHEN 7 THEN t.communication_ps
            ELSE t.overlap_ps
        END AS part_ps,
        t.window_ps AS window_ps
    FROM v1.run_time AS t
    CROSS JOIN (
        VALUES
            (1, 'Compute'),
            (2, 'Exposed communication'),
            (3, 'Exposed copies'),
            (4, 'Idle'),
            (5, 'Window'),
            (6, 'Busy (any work)'),
            (7, 'Communication'),
            (8, 'Communication hidden by compute')
    ) AS v (line, part)
)
SELECT
    p.run_id AS run_id,
    p.line AS line,
    p.part AS part,
    p.part_ps / 1e9 AS mean_ms,
    p.part_ps / NULLIF(p.window_ps, 0) AS share_ratio
FROM _parts AS p
