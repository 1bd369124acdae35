-- name: v1.comparability_reasons
-- version: 1
-- grain: one row per pair of groups and difference that keeps them from being compared
-- summary: Why two groups of runs are not comparable.
-- evidence: measured, analytical or derived
-- columns:
--   base_group VARCHAR: group of v1.run_groups that is compared with
--   head_group VARCHAR: group that is compared
--   reason_kind VARCHAR: device, versions or work, as in v1.setting_changes; metrics: of those that are compared
--   setting VARCHAR: the setting; of metrics view_version, is_current or is_kept
--   base_value VARCHAR: what runs of the base have; NULL where the row has none of them
--   head_value VARCHAR: what runs of the head have; NULL likewise
--   reason VARCHAR: what the difference means
-- algorithm: Metrics are compared only if the same views computed them, from the rules and choices of steps as they are;
--   else `tracewh diff` computes them anew.

WITH _metrics AS (
    SELECT
        c.base_group AS base_group,
        c.head_group AS head_group,
        MIN(CASE WHEN c.side = 'base' THEN k.view_version END) AS base_version,
        MAX(CASE WHEN c.side = 'head' THEN k.view_version END) AS head_version,
        COUNT(DISTINCT k.view_version) AS versions,
        COUNT(CASE WHEN c.side = 'base' AND NOT k.is_current THEN 1 END) AS base_outdated,
        COUNT(CASE WHEN c.side = 'head' AND NOT k.is_current THEN 1 END) AS head_outdated,
        COUNT(CASE WHEN c.side = 'base' AND k.run_id IS NULL THEN 1 END) AS base_missing,
        COUNT(CASE WHEN c.side = 'head' AND k.run_id IS NULL THEN 1 END) AS head_missing
    FROM v1._compared_runs AS c
    LEFT JOIN main.kept_metrics AS k
        ON k.run_id = c.run_id
    GROUP BY
        c.base_group,
        c.head_group
)
SELECT
    s.base_group AS base_group,
    s.head_group AS head_group,
    s.setting_kind AS reason_kind,
    s.setting AS setting,
    s.base_value AS base_value,
    s.head_value AS head_value,
    s.reason AS reason
FROM v1.setting_changes AS s
WHERE s.effect = 'not_comparable'
UNION ALL
SELECT
    m.base_group AS base_group,
    m.head_group AS head_group,
    'metrics' AS reason_kind,
    f.setting AS setting,
    CASE
        WHEN f.setting = 'view_version' THEN m.base_version
        WHEN f.setting = 'is_current' AND m.base_outdated > 0 THEN 'false'
        WHEN f.setting = 'is_kept' AND m.base_missing > 0 THEN 'false'
        ELSE 'true'
    END AS base_value,
    CASE
        WHEN f.setting = 'view_version' THEN m.head_version
        WHEN f.setting = 'is_current' AND m.head_outdated > 0 THEN 'false'
        WHEN f.setting = 'is_kept' AND m.head_missing > 0 THEN 'false'
        ELSE 'true'
    END AS head_value,
    f.reason AS reason
FROM _metrics AS m
CROSS JOIN (
    VALUES
        ('view_version', 'metrics that other versions of the views computed'),
        ('is_current', 'metrics that are out of date'),
        ('is_kept', 'runs without metrics')
) AS f (setting, reason)
WHERE f.setting = 'view_version' AND m.versions > 1
    OR f.setting = 'is_current' AND m.base_outdated + m.head_outdated > 0
    OR f.setting = 'is_kept' AND m.base_missing + m.head_missing > 0
