-- name: v1.metrics
-- version: 1
-- grain: one row per run, metric, scope, timing and evidence
-- summary: What is known of each run as single numbers, in one long form: the input of every comparison.
-- evidence: measured, compiler, analytical or derived
-- columns:
--   run_id BIGINT: the run
--   run_name VARCHAR: its name
--   commit_sha VARCHAR: its commit; NULL where unknown
--   capture_id BIGINT: the capture that was timed; NULL where the value is of several captures, or of none
--   metric VARCHAR: what is measured
--   scope VARCHAR: phase, component, kernel, ... that it is of; '' for the whole run
--   value DOUBLE: value in its unit
--   unit VARCHAR: ms, ratio, tokens/s, tokens/s/device, TFLOP/s/device, count, bytes
--   polarity VARCHAR: which values are better: lower or higher; none where neither is
--   evidence VARCHAR: measured, compiler, analytical or derived; numbers of two kinds are never compared
--   timing VARCHAR: unprofiled, profiled, or unknown where no source says whether a profiler ran; NULL of what is
--     no time. Times of two kinds are never compared
--   statistic VARCHAR: what value is of its samples: median, mean, maximum, total, one sample
--   samples BIGINT (count): steps, device steps or events that the value is of
--   view_version VARCHAR: version and fingerprint of the definition, with all views that it reads
--   is_current BOOLEAN: no rule, choice of steps or view has changed since the value was computed; else the next
--     `tracewh diff` computes it anew
-- algorithm: Values are computed when a command first compares runs, or by `tracewh metrics`, and kept: until then a run
--   has no rows. v1._run_metrics is the definition.

SELECT
    m.run_id AS run_id,
    r.run_name AS run_name,
    r.commit_sha AS commit_sha,
    m.capture_id AS capture_id,
    m.metric AS metric,
    m.scope AS scope,
    m.value AS value,
    m.unit AS unit,
    m.polarity AS polarity,
    m.evidence AS evidence,
    m.timing AS timing,
    m.statistic AS statistic,
    m.samples AS samples,
    k.view_version AS view_version,
    k.is_current AND v.view_name IS NOT NULL AS is_current
FROM main.run_metrics AS m
INNER JOIN main.runs AS r
    ON r.run_id = m.run_id
INNER JOIN main.kept_metrics AS k
    ON k.run_id = m.run_id
LEFT JOIN main.view_versions AS v
    ON v.view_name = 'v1._run_metrics'
    AND k.view_version = CAST(v.version AS VARCHAR) || ':' || v.fingerprint
