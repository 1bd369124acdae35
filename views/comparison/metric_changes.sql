-- name: v1.metric_changes
-- version: 1
-- grain: one row per pair of groups of runs, metric, scope, timing and evidence that either has
-- summary: How much each metric differs between two groups of runs.
-- evidence: derived
-- columns:
--   base_group VARCHAR: group of v1.run_groups to compare with
--   head_group VARCHAR: group that is compared
--   metric VARCHAR: as in v1.metrics
--   scope VARCHAR: likewise
--   timing VARCHAR: likewise, '' for none
--   evidence VARCHAR: likewise
--   unit VARCHAR: likewise
--   polarity VARCHAR: likewise
--   base_runs BIGINT (count): runs of base with the metric
--   head_runs BIGINT (count): runs of head with the metric
--   base_value DOUBLE: median over them; NULL for none
--   head_value DOUBLE: median over them; NULL for none
--   change DOUBLE: head_value - base_value; NULL where either has none
--   change_ratio DOUBLE (ratio): change over base_value
-- algorithm: Ask for one pair with WHERE base_group = ... AND head_group = ...: all pairs are many. Whether a change is one
--   beyond chance is for `tracewh diff` to say.

WITH _sides AS (
    SELECT
        m.group_name AS base_group,
        n.group_name AS head_group,
        m.metric AS metric,
        m.scope AS scope,
        m.timing AS timing,
        m.evidence AS evidence,
        m.unit AS unit,
        m.polarity AS polarity,
        m.run_count AS base_count,
        CAST(NULL AS BIGINT) AS head_count,
        m.median_value AS base_median,
        CAST(NULL AS DOUBLE) AS head_median
    FROM v1._group_metrics AS m
    CROSS JOIN v1._group_names AS n
    UNION ALL
    SELECT
        n.group_name AS base_group,
        m.group_name AS head_group,
        m.metric AS metric,
        m.scope AS scope,
        m.timing AS timing,
        m.evidence AS evidence,
        m.unit AS unit,
        m.polarity AS polarity,
        CAST(NULL AS BIGINT) AS base_count,
        m.run_count AS head_count,
        CAST(NULL AS DOUBLE) AS base_median,
        m.median_value AS head_median
    FROM v1._group_metrics AS m
    CROSS JOIN v1._group_names AS n
),
_pairs AS (
    SELECT
        s.base_group AS base_group,
        s.head_group AS head_group,
        s.metric AS metric,
        s.scope AS scope,
        s.timing AS timing,
        s.evidence AS evidence,
        MIN(s.unit) AS pair_unit,
        MIN(s.polarity) AS pair_polarity,
        COALESCE(MAX(s.base_count), 0) AS base_runs,
        COALESCE(MAX(s.head_count), 0) AS head_runs,
        MAX(s.base_median) AS base_value,
        MAX(s.head_median) AS head_value
    FROM _sides AS s
    GROUP BY
        s.base_group,
        s.head_group,
        s.metric,
        s.scope,
        s.timing,
        s.evidence
)
SELECT
    p.base_group AS base_group,
    p.head_group AS head_group,
    p.metric AS metric,
    p.scope AS scope,
    p.timing AS timing,
    p.evidence AS evidence,
    p.pair_unit AS unit,
    p.pair_polarity AS polarity,
    p.base_runs AS base_runs,
    p.head_runs AS head_runs,
    p.base_value AS base_value,
    p.head_value AS head_value,
    p.head_value - p.base_value AS change,
    (p.head_value - p.base_value) / NULLIF(p.base_value, 0) AS change_ratio
FROM _pairs AS p
