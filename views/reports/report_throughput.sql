-- name: v1._report_throughput
-- version: 1
-- grain: one row per run, section, and metric or component of the model
-- summary: Throughput and useful FLOPs
-- evidence: measured, analytical, compiler or derived
-- columns:
--   run_id BIGINT: the run
--   section_line INTEGER: order of the sections
--   section VARCHAR: title of the section
--   line BIGINT: order of the rows
--   metric VARCHAR: Metric
--   mean_ms DOUBLE (ms): Time
--   amount DOUBLE (count): Amount
--   unit VARCHAR: Unit
--   share_ratio DOUBLE (ratio): Share
--   basis VARCHAR: Of what
-- algorithm: Step times are medians after warm-up, without the profiler where the run has such; one sample is no median.
--   MFU has the useful FLOPs of the declared model, HFU those that its ops execute, by the compiler. v1.throughput has
--   spreads, quantiles and denominators, v1.model_flops the formulas.

WITH _metrics AS (
    SELECT
        v.metric AS metric,
        v.label AS label
    FROM (
        VALUES
            ('step_time', 'Step time'),
            ('profiled_step_time', 'Step time under the profiler'),
            ('tokens_per_s', 'Tokens'),
            ('tokens_per_s_per_device', 'Tokens of a device'),
            ('nonpadding_tokens_per_s', 'Tokens without padding'),
            ('nonpadding_tokens_per_s_per_device', 'Tokens of a device without padding'),
            ('expert_assignments_per_s', 'Expert assignments'),
            ('useful_flop_rate', 'Useful FLOPs'),
            ('mfu', 'MFU'),
            ('executed_flop_rate', 'Executed FLOPs'),
            ('hfu', 'HFU'),
            ('compile_time', 'Compilation'),
            ('lower_time', 'Lowering'),
            ('checkpoint_time', 'Checkpoints'),
            ('evaluation_time', 'Evaluation'),
            ('input_stall', 'Input stalls')
    ) AS v (metric, label)
)
SELECT
    t.run_id AS run_id,
    CASE WHEN t.line < 40 THEN 1 ELSE 2 END AS section_line,
    CASE WHEN t.line < 40 THEN 'Throughput' ELSE 'Apart from the step' END AS section,
    ROW_NUMBER() OVER (
        PARTITION BY t.run_id
        ORDER BY t.line NULLS FIRST, t.dtype NULLS FIRST, t.peak_kind NULLS FIRST
    ) AS line,
    m.label
        || CASE WHEN t.dtype IS NULL THEN '' ELSE ', ' || t.dtype || ' ' || t.peak_kind END
        || CASE
            WHEN t.metric NOT LIKE '%step_time' AND t.line < 40 THEN ''
            WHEN t.statistic = 'one sample' THEN ' (one sample)'
            ELSE ' (' || t.statistic || ' of ' || CAST(t.samples AS VARCHAR) || ')'
        END AS metric,
    CASE WHEN t.unit = 's' THEN 1e3 * t.value END AS mean_ms,
    CASE WHEN t.unit NOT IN ('s', 'ratio') THEN t.value END AS amount,
    CASE WHEN t.unit NOT IN ('s', 'ratio') THEN t.unit END AS unit,
    CASE WHEN t.unit = 'ratio' THEN t.value END AS share_ratio,
    t.denominator AS basis
FROM v1.throughput AS t
INNER JOIN _metrics AS m
    ON m.metric = t.metric
WHERE t.statistic IN ('median', 'one sample', 'total')
    OR t.statistic = 'mean' AND t.line >= 40
UNION ALL
SELECT
    f.run_id AS run_id,
    3 AS section_line,
    'Useful FLOPs of an update' AS section,
    f.line AS line,
    f.component AS metric,
    CAST(NULL AS DOUBLE) AS mean_ms,
    CASE
        WHEN MAX(f.useful_flops) OVER (PARTITION BY f.run_id) < 1e12 THEN f.useful_flops / 1e9
        ELSE f.useful_flops / 1e12
    END AS amount,
    CASE WHEN MAX(f.useful_flops) OVER (PARTITION BY f.run_id) < 1e12 THEN 'GFLOP' ELSE 'TFLOP' END AS unit,
    f.share_ratio AS share_ratio,
    COALESCE(f.formula, f.source) AS basis
FROM v1.model_flops AS f
