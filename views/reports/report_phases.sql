-- name: v1._report_phases
-- version: 1
-- grain: one row per run and phase, and one for their total
-- summary: Phases of the step
-- evidence: derived
-- columns:
--   run_id BIGINT: the run
--   line BIGINT: order of the rows
--   bucket VARCHAR: Exclusive phase bucket
--   mean_ms DOUBLE (ms): Mean device time
--   share_ratio DOUBLE (ratio): Share of summed device time
-- algorithm: Summed durations of device events, each charged once, a step of a device. They exceed the window where
--   streams overlap.

WITH _labels AS (
    SELECT
        v.line AS line,
        v.phase AS phase,
        v.bucket AS bucket
    FROM (
        VALUES
            (1, 'forward', 'Forward model compute'),
            (2, 'backward', 'Backward gradient compute'),
            (3, 'remat', 'Rematerialized forward replay'),
            (4, 'update', 'Loss, gradient accumulation and optimizer'),
            (6, 'communication', 'Communication'),
            (7, 'unattributed', 'Unattributed work')
    ) AS v (line, phase, bucket)
)
SELECT
    p.run_id AS run_id,
    ROW_NUMBER() OVER (
        PARTITION BY p.run_id
        ORDER BY COALESCE(l.line, 5) NULLS FIRST, p.phase NULLS FIRST
    ) AS line,
    COALESCE(l.bucket, p.phase) AS bucket,
    p.sum_ms AS mean_ms,
    p.share_ratio AS share_ratio
FROM v1.run_phases AS p
LEFT JOIN _labels AS l
    ON l.phase = p.phase
UNION ALL
SELECT
    p.run_id AS run_id,
    1000000 AS line,
    'Total summed device time' AS bucket,
    CAST(SUM(p.sum_ms) AS DOUBLE) AS mean_ms,
    CASE WHEN MAX(p.sum_ps) > 0 THEN 1e0 END AS share_ratio
FROM v1.run_phases AS p
GROUP BY p.run_id
