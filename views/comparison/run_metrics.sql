-- name: v1._run_metrics
-- version: 1
-- grain: one row per run, metric, scope, timing and evidence
-- summary: What comparisons read of a run: the definition of v1.metrics.
-- evidence: measured, compiler, analytical or derived
-- columns:
--   run_id BIGINT: the run
--   capture_id BIGINT: as in v1.metrics
--   metric VARCHAR: likewise
--   scope VARCHAR: likewise
--   value DOUBLE: likewise
--   unit VARCHAR: likewise
--   polarity VARCHAR: likewise
--   evidence VARCHAR: likewise
--   timing VARCHAR: likewise
--   statistic VARCHAR: likewise
--   samples BIGINT (count): likewise
-- algorithm: The union of v1._timed_metrics, v1._part_metrics, v1._throughput_metrics, v1._program_metrics,
--   v1._memory_metrics and v1._launch_metrics.

WITH _timed_captures AS (
    SELECT
        s.run_id AS run_id,
        MIN(s.capture_id) AS first_capture_id,
        MAX(s.capture_id) AS last_capture_id
    FROM v1._run_steps AS s
    GROUP BY s.run_id
),
_metrics AS (
    SELECT
        m.run_id AS run_id,
        m.metric AS metric,
        m.scope AS scope,
        m.value AS value,
        m.unit AS unit,
        m.polarity AS polarity,
        m.evidence AS evidence,
        m.timing AS timing,
        m.statistic AS statistic,
        m.samples AS samples
    FROM v1._timed_metrics AS m
    UNION ALL
    SELECT
        m.run_id AS run_id,
        m.metric AS metric,
        m.scope AS scope,
        m.value AS value,
        m.unit AS unit,
        m.polarity AS polarity,
        m.evidence AS evidence,
        m.timing AS timing,
        m.statistic AS statistic,
        m.samples AS samples
    FROM v1._part_metrics AS m
    UNION ALL
    SELECT
        m.run_id AS run_id,
        m.metric AS metric,
        m.scope AS scope,
        m.value AS value,
        m.unit AS unit,
        m.polarity AS polarity,
        m.evidence AS evidence,
        m.timing AS timing,
        m.statistic AS statistic,
        m.samples AS samples
    FROM v1._throughput_metrics AS m
    UNION ALL
    SELECT
        m.run_id AS run_id,
        m.metric AS metric,
        m.scope AS scope,
        m.value AS value,
        m.unit AS unit,
        m.polarity AS polarity,
        m.evidence AS evidence,
        m.timing AS timing,
        m.statistic AS statistic,
        m.samples AS samples
    FROM v1._program_metrics AS m
    UNION ALL
    SELECT
        m.run_id AS run_id,
        m.metric AS metric,
        m.scope AS scope,
        m.value AS value,
        m.unit AS unit,
        m.polarity AS polarity,
        m.evidence AS evidence,
        m.timing AS timing,
        m.statistic AS statistic,
        m.samples AS samples
    FROM v1._memory_metrics AS m
    UNION ALL
    SELECT
        m.run_id AS run_id,
        m.metric AS metric,
        m.scope AS scope,
        m.value AS value,
        m.unit AS unit,
        m.polarity AS polarity,
        m.evidence AS evidence,
        m.timing AS timing,
        m.statistic AS statistic,
        m.samples AS samples
    FROM v1._launch_metrics AS m
)
SELECT
    m.run_id AS run_id,
    CASE WHEN m.timing = 'profiled' AND c.first_capture_id = c.last_capture_id THEN c.first_capture_id END AS capture_id,
    m.metric AS metric,
    m.scope AS scope,
    m.value AS value,
    m.unit AS unit,
    m.polarity AS polarity,
    m.evidence AS evidence,
    m.timing AS timing,
    m.statistic AS statistic,
    m.samples AS samples
FROM _metrics AS m
LEFT JOIN _timed_captures AS c
    ON c.run_id = m.run_id
