-- name: v1._throughput_metrics
-- version: 1
-- grain: one row per run, metric, scope and timing
-- summary: What v1.throughput says of a run: medians, and means of what is no step.
-- evidence: measured, analytical, compiler or derived
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
-- algorithm: Of MFU and HFU, those of the peaks by specification; the dtype of the peak is the scope.

SELECT
    t.run_id AS run_id,
    t.metric AS metric,
    COALESCE(t.dtype, '') AS scope,
    CASE WHEN t.unit = 's' THEN t.value * 1000 ELSE t.value END AS value,
    CASE WHEN t.unit = 's' THEN 'ms' ELSE t.unit END AS unit,
    CASE
        WHEN t.unit = 's' OR t.metric = 'executed_over_useful' THEN 'lower'
        WHEN t.metric IN ('executed_flop_rate', 'hfu', 'profiled_over_unprofiled') THEN 'none'
        ELSE 'higher'
    END AS polarity,
    t.evidence AS evidence,
    t.timing AS timing,
    t.statistic AS statistic,
    t.samples AS samples
FROM v1.throughput AS t
WHERE (t.statistic IN ('median', 'one sample') OR t.statistic = 'mean' AND t.timing IS NULL)
    AND (t.peak_kind IS NULL OR t.peak_kind = 'spec')
