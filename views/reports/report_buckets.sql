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
            (4, 'Optimizer or unscoped collectives', 'communication of other phases, or whose metadata kept none'),
            (5, 'Collectives combined from several phases', 'made one by the compiler, without a phase in common'),
            (6, 'Gradient accumulation, clipping and optimizer', 'named work after the gradients'),
            (7, 'Loss and metrics', 'outside the VJP of the model'),
            (8, 'Other unattributed work', 'kept visible, and forced into no component')
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
            WHEN c.phase = 'update' AND c.component_group = 'Loss' THEN 7
            WHEN c.phase = 'update' THEN 6
            WHEN c.phase = 'unattributed' THEN 8
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
),
_combined AS (
    SELECT
        s.run_id AS run_id,
        CAST(SUM(a.end_ps - a.start_ps) AS BIGINT) AS combined_ps
    FROM v1.attribution AS a
    INNER JOIN main.captures AS c
        ON c.capture_id = a.capture_id
    INNER JOIN v1._run_steps AS s
        ON s.capture_id = a.capture_id
        AND s.device_id = a.device_id
        AND s.run_id = c.run_id
    WHERE a.event_class = 'collective'
        AND a.is_mixed
        AND a.launch_phase = 'unattributed'
        AND (s.step_num IS NULL OR s.step_num = a.step_num)
    GROUP BY s.run_id
),
_means AS (
    SELECT
        b.run_id AS run_id,
        CAST(b.combined_ps AS DOUBLE) / NULLIF(t.device_step_count, 0) AS mean_ps
    FROM _combined AS b
    INNER JOIN v1.run_time AS t
        ON t.run_id = b.run_id
),
_split AS (
    SELECT
        s.run_id AS run_id,
        CASE WHEN v.is_combined = 1 THEN 5 ELSE s.line END AS line,
        CASE
            WHEN v.is_combined = 1 THEN m.mean_ps
            WHEN s.line = 4 THEN s.bucket_ps - COALESCE(m.mean_ps, 0)
            ELSE s.bucket_ps
        END AS bucket_ps,
        s.run_ps AS run_ps
    FROM _sums AS s
    LEFT JOIN _means AS m
        ON m.run_id = s.run_id
    CROSS JOIN (VALUES (0), (1)) AS v (is_combined)
    WHERE (v.is_combined = 1 AND s.line = 4 AND m.mean_ps IS NOT NULL)
        -- Less than a picosecond is what rounding leaves of none.
        OR (v.is_combined = 0 AND (s.line <> 4 OR s.bucket_ps - COALESCE(m.mean_ps, 0) >= 1))
)
SELECT
    s.run_id AS run_id,
    s.line AS line,
    l.bucket AS bucket,
    s.bucket_ps / 1e9 AS mean_ms,
    s.bucket_ps / NULLIF(s.run_ps, 0) AS share_ratio,
    l.meaning AS meaning
FROM _split AS s
INNER JOIN _labels AS l
    ON l.line = s.line
