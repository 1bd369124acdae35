-- name: v1.verdicts
-- version: 1
-- grain: one row per comparison that was kept, metric, scope, timing and evidence
-- summary: What `tracewh diff --save NAME` found: how each metric changed, and how sure that is.
-- evidence: derived
-- columns:
--   comparison VARCHAR: its name
--   base VARCHAR: what the base was, in words
--   head VARCHAR: what the head was, in words
--   metric VARCHAR: as in v1.metrics
--   scope VARCHAR: likewise
--   timing VARCHAR: likewise, '' for none
--   evidence VARCHAR: likewise
--   unit VARCHAR: likewise
--   base_runs BIGINT (count): runs of base with the metric
--   head_runs BIGINT (count): runs of head with the metric
--   base_value DOUBLE: median over them; NULL for none
--   head_value DOUBLE: median over them; NULL for none
--   change_ratio DOUBLE (ratio): head_value over base_value, less 1; NULL where base is 0 or a side has none
--   low_ratio DOUBLE (ratio): lower end of the 95 % interval of it; NULL where nothing varies
--   high_ratio DOUBLE (ratio): upper end
--   p DOUBLE: how often ranks differ so by chance; of a metric with many scopes, adjusted for them; NULL of what is exact
--   verdict VARCHAR: regressed, improved, changed, unchanged, too_few_runs, only_base or only_head
--   reason VARCHAR: why, in a sentence
--   is_headline BOOLEAN: the verdict of the comparison is that of this metric
--   is_comparable BOOLEAN: nothing was known that keeps the sides from being compared

SELECT
    v.comparison AS comparison,
    c.base AS base,
    c.head AS head,
    v.metric AS metric,
    v.scope AS scope,
    v.timing AS timing,
    v.evidence AS evidence,
    v.unit AS unit,
    v.base_runs AS base_runs,
    v.head_runs AS head_runs,
    v.base_value AS base_value,
    v.head_value AS head_value,
    v.ratio - 1 AS change_ratio,
    v.low_ratio - 1 AS low_ratio,
    v.high_ratio - 1 AS high_ratio,
    v.p AS p,
    v.verdict AS verdict,
    v.reason AS reason,
    COALESCE(v.metric = c.headline_metric AND v.scope = '', FALSE) AS is_headline,
    c.verdict <> 'not_comparable' AS is_comparable
FROM main.comparison_verdicts AS v
INNER JOIN main.comparisons AS c
    ON c.comparison = v.comparison
