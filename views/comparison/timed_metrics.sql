-- name: v1._timed_metrics
-- version: 1
-- grain: one row per run and metric of its device steps
-- summary: Medians of the times of a run's device steps, of all devices together.
-- evidence: measured
-- columns:
--   run_id BIGINT: the run
--   metric VARCHAR: as in v1.metrics
--   scope VARCHAR: likewise
--   value DOUBLE: likewise
--   unit VARCHAR: likewise
--   polarity VARCHAR: likewise
--   evidence VARCHAR: likewise
--   timing VARCHAR: likewise
--   statistic VARCHAR: likewise
--   samples BIGINT (count): likewise

WITH _ranked AS (
    SELECT
        s.run_id AS run_id,
        s.metric AS metric,
        s.value AS step_ms,
        2 * (ROW_NUMBER() OVER (PARTITION BY s.run_id, s.metric ORDER BY s.value NULLS FIRST) - 1) AS twofold_rank,
        COUNT(*) OVER (PARTITION BY s.run_id, s.metric) - 1 AS last_rank
    FROM v1._metric_samples AS s
    WHERE s.metric <> 'step_time'
)
SELECT
    r.run_id AS run_id,
    r.metric AS metric,
    '' AS scope,
    -- The middle value, or half of each of the two.
    CAST(SUM(r.step_ms * CAST(GREATEST(2 - ABS(r.twofold_rank - r.last_rank), 0) AS DOUBLE) / 2) AS DOUBLE) AS value,
    'ms' AS unit,
    CASE WHEN r.metric = 'overlap' THEN 'none' ELSE 'lower' END AS polarity,
    'measured' AS evidence,
    'profiled' AS timing,
    CASE WHEN COUNT(*) = 1 THEN 'one sample' ELSE 'median' END AS statistic,
    COUNT(*) AS samples
FROM _ranked AS r
GROUP BY
    r.run_id,
    r.metric
