-- name: v1._report_buckets
-- version: 1
-- grain: one row per run and bucket outside the map of the model
-- summary: Cross-cutting and unresolved buckets
-- evidence: derived
-- columns:
--   run_id BIGINT: the run
--   line INTEGER: order of the rows
--   bucket VARCHAR: Bucket
--   mean_ms DOUBLE (ms): Mean device time
--   share_ratio DOUBLE (ratio): Share of summed device time
--   meaning VARCHAR: Interpretation
-- algorithm: Collectives go by the phase of the name stack that launched them.

WITH _labels AS (
    SELECT
        v.line AS line,
        v.bucket AS bucket,
        v.meaning AS meaning
    FROM (
        VALUES
            (1, 'Forward collectives', 'communication launched from forward name stacks'),
            (2, 'Backward collectives', 'communication of gradient work'),
            (3, 'Rematerialized collectives', 'communication replayed inside the checkpointed region'),
            (4, 'Optimizer or unscoped collectives', 'communication whose metadata kept no phase of the model'),
            (5, 'Gradient accumulation, clipping and optimizer', 'named work after the gradients'),
            (6, 'Loss and metrics', 'outside the VJP of the model'),
            (7, 'Other unattributed work', 'kept visible, and forced into no component')
    ) AS v (line, bucket, meaning)
),
_placed AS (
    SELECT
        c.run_id AS run_id,
        CASE
            WHEN c.phase = 'communication' AND c.launch_phase = 'forward' THEN 1
            WHEN c.phase = 'communication' AND c.launch_phase = 'backward' THEN 2
            WHEN c.phase = 'communication' AND c.launch_phase = 'remat' THEN 3
            WHEN c.phase = 'communication' THEN 4
            WHEN c.phase = 'update' AND c.component_group = 'Loss' THEN 6
            WHEN c.phase = 'update' THEN 5
            WHEN c.phase = 'unattributed' THEN 7
        END AS line,
        c.sum_ps AS sum_ps,
        CAST(SUM(c.sum_ps) OVER (PARTITION BY c.run_id) AS DOUBLE) AS total_ps
    FROM v1.run_components AS c
),
_sums AS (
    SELECT
        p.run_id AS run_id,
        p.line AS line,
        CAST(SUM(p.sum_ps) AS DOUBLE) AS bucket_ps,
        MIN(p.total_ps) AS run_ps
    FROM _placed AS p
    WHERE p.line IS NOT NULL
    GROUP BY
        p.run_id,
        p.line
)
SELECT
    s.run_id AS run_id,
    s.line AS line,
    l.bucket AS bucket,
    s.bucket_ps / 1e9 AS mean_ms,
    s.bucket_ps / NULLIF(s.run_ps, 0) AS share_ratio,
    l.meaning AS meaning
FROM _sums AS s
INNER JOIN _labels AS l
    ON l.line = s.line
