-- name: v1._group_metrics
-- version: 1
-- grain: one row per group of runs, metric, scope, timing and evidence
-- summary: The median of each metric over the runs of a group.
-- evidence: derived
-- columns:
--   group_name VARCHAR: as in v1.run_groups
--   metric VARCHAR: as in v1.metrics
--   scope VARCHAR: likewise
--   timing VARCHAR: likewise, '' for none
--   evidence VARCHAR: likewise
--   unit VARCHAR: likewise
--   polarity VARCHAR: likewise
--   run_count BIGINT (count): runs of the group that have the metric
--   median_value DOUBLE: median over them
--   min_value DOUBLE: least
--   max_value DOUBLE: greatest

WITH _ranked AS (
    SELECT
        g.group_name AS group_name,
        m.metric AS metric,
        m.scope AS scope,
        COALESCE(m.timing, '') AS timing,
        m.evidence AS evidence,
        m.unit AS metric_unit,
        m.polarity AS metric_polarity,
        m.value AS run_value,
        2 * (ROW_NUMBER() OVER (
            PARTITION BY g.group_name, m.metric, m.scope, m.timing, m.evidence
            ORDER BY m.value NULLS FIRST
        ) - 1) AS twofold_rank,
        COUNT(*) OVER (PARTITION BY g.group_name, m.metric, m.scope, m.timing, m.evidence) - 1 AS last_rank
    FROM v1.run_groups AS g
    INNER JOIN main.run_metrics AS m
        ON m.run_id = g.run_id
)
SELECT
    r.group_name AS group_name,
    r.metric AS metric,
    r.scope AS scope,
    r.timing AS timing,
    r.evidence AS evidence,
    MIN(r.metric_unit) AS unit,
    MIN(r.metric_polarity) AS polarity,
    COUNT(*) AS run_count,
    -- The middle value, or half of each of the two.
    CAST(SUM(r.run_value * CAST(GREATEST(2 - ABS(r.twofold_rank - r.last_rank), 0) AS DOUBLE) / 2) AS DOUBLE)
        AS median_value,
    MIN(r.run_value) AS min_value,
    MAX(r.run_value) AS max_value
FROM _ranked AS r
GROUP BY
    r.group_name,
    r.metric,
    r.scope,
    r.timing,
    r.evidence
