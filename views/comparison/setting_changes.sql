-- name: v1.setting_changes
-- version: 1
-- grain: one row per pair of groups, setting that not all of their runs have alike, and value or pair of values of it
-- summary: What two groups of runs were made with and on that differs, and what that means for a comparison.
-- evidence: measured, analytical or derived
-- columns:
--   base_group VARCHAR: group of v1.run_groups that is compared with
--   head_group VARCHAR: group that is compared
--   setting_kind VARCHAR: config, environment, device, versions, or work: what defines the useful work of a step
--   setting VARCHAR: the setting
--   base_value VARCHAR: a value that runs of the base have; NULL where the row has none of them
--   head_value VARCHAR: a value that runs of the head have; NULL likewise
--   base_runs BIGINT (count): runs of the base with base_value
--   head_runs BIGINT (count): runs of the head with head_value
--   base_known_runs BIGINT (count): runs of the base of which the setting is known, be it that they leave it out
--   head_known_runs BIGINT (count): likewise of the head
--   effect VARCHAR: not_comparable; candidate_cause; information, of what is unknown of one side too
--   reason VARCHAR: what the difference means
-- algorithm: A value that every run of both sides has is no difference. Else a value that both sides have is a row, and
--   the others are put side by side in their order. A configuration, or flags, that a run tells are complete: what they
--   leave out has its default. That words of a list are in another order is told only where they are the same.

WITH _telling AS (
    SELECT
        c.base_group AS base_group,
        c.head_group AS head_group,
        s.source AS source,
        COUNT(CASE WHEN c.side = 'base' THEN 1 END) AS base_runs,
        COUNT(CASE WHEN c.side = 'head' THEN 1 END) AS head_runs
    FROM v1._compared_runs AS c
    INNER JOIN v1._setting_sources AS s
        ON s.run_id = c.run_id
    GROUP BY
        c.base_group,
        c.head_group,
        s.source
),
_stated AS (
    SELECT
        c.base_group AS base_group,
        c.head_group AS head_group,
        c.side AS side,
        s.setting_kind AS setting_kind,
        s.setting AS setting,
        s.list_setting AS list_setting,
        s.value AS value,
        s.value_key AS value_key,
        CASE s.effect WHEN 'not_comparable' THEN 1 WHEN 'candidate_cause' THEN 2 ELSE 3 END AS effect_rank,
        s.reason AS reason,
        s.known_by AS known_by,
        ROW_NUMBER() OVER (
            PARTITION BY c.base_group, c.head_group, c.side, c.run_id, s.setting_kind, s.setting
            ORDER BY s.value_key NULLS FIRST
        ) AS nth_value
    FROM v1._compared_runs AS c
    INNER JOIN v1._run_settings AS s
        ON s.run_id = c.run_id
),
_values AS (
    SELECT
        s.base_group AS base_group,
        s.head_group AS head_group,
        s.setting_kind AS setting_kind,
        s.setting AS setting,
        s.list_setting AS list_setting,
        s.value_key AS value_key,
        MIN(CASE WHEN s.side = 'base' THEN s.value END) AS base_value,
        MIN(CASE WHEN s.side = 'head' THEN s.value END) AS head_value,
        COUNT(CASE WHEN s.side = 'base' THEN 1 END) AS base_runs,
        COUNT(CASE WHEN s.side = 'head' THEN 1 END) AS head_runs,
        COUNT(CASE WHEN s.side = 'base' AND s.nth_value = 1 THEN 1 END) AS base_first_values,
        COUNT(CASE WHEN s.side = 'head' AND s.nth_value = 1 THEN 1 END) AS head_first_values,
        MIN(s.effect_rank) AS value_rank,
        MIN(s.reason) AS value_reason,
        MIN(s.known_by) AS value_known_by
    FROM _stated AS s
    GROUP BY
        s.base_group,
        s.head_group,
        s.setting_kind,
        s.setting,
        s.list_setting,
        s.value_key
),
_settings AS (
    SELECT
        v.base_group AS base_group,
        v.head_group AS head_group,
        v.setting_kind AS setting_kind,
        v.setting AS setting,
        v.list_setting AS list_setting,
        v.value_key AS value_key,
        v.base_value AS base_value,
        v.head_value AS head_value,
        v.base_runs AS base_runs,
        v.head_runs AS head_runs,
        CAST(SUM(v.base_first_values) OVER (
            PARTITION BY v.base_group, v.head_group, v.setting_kind, v.setting
        ) AS BIGINT) AS base_stating_runs,
        CAST(SUM(v.head_first_values) OVER (
            PARTITION BY v.base_group, v.head_group, v.setting_kind, v.setting
        ) AS BIGINT) AS head_stating_runs,
        MIN(v.value_rank) OVER (
            PARTITION BY v.base_group, v.head_group, v.setting_kind, v.setting
        ) AS effect_rank,
        MIN(v.value_reason) OVER (
            PARTITION BY v.base_group, v.head_group, v.setting_kind, v.setting
        ) AS reason,
        MIN(v.value_known_by) OVER (
            PARTITION BY v.base_group, v.head_group, v.setting_kind, v.setting
        ) AS known_by
    FROM _values AS v
),
_known AS (
    SELECT
        s.base_group AS base_group,
        s.head_group AS head_group,
        s.setting_kind AS setting_kind,
        s.setting AS setting,
        s.list_setting AS list_setting,
        s.value_key AS value_key,
        s.base_value AS base_value,
        s.head_value AS head_value,
        s.base_runs AS base_runs,
        s.head_runs AS head_runs,
        GREATEST(s.base_stating_runs, COALESCE(t.base_runs, 0)) AS base_known_runs,
        GREATEST(s.head_stating_runs, COALESCE(t.head_runs, 0)) AS head_known_runs,
        s.effect_rank AS effect_rank,
        s.reason AS reason
    FROM _settings AS s
    LEFT JOIN _telling AS t
        ON t.base_group = s.base_group
        AND t.head_group = s.head_group
        AND t.source = s.known_by
),
_differing AS (
    SELECT
        k.base_group AS base_group,
        k.head_group AS head_group,
        k.setting_kind AS setting_kind,
        k.setting AS setting,
        k.list_setting AS list_setting,
        k.value_key AS value_key,
        k.base_value AS base_text,
        k.head_value AS head_text,
        k.base_runs AS base_count,
        k.head_runs AS head_count,
        k.base_known_runs AS base_known_count,
        k.head_known_runs AS head_known_count,
        k.effect_rank AS effect_rank,
        k.reason AS known_reason,
        CASE
            WHEN k.base_runs > 0 AND k.head_runs > 0 THEN 'both'
            ELSE 'one'
        END AS sides,
        COUNT(CASE WHEN k.list_setting IS NULL THEN 1 END) OVER (
            PARTITION BY k.base_group, k.head_group, k.setting_kind, COALESCE(k.list_setting, k.setting)
        ) AS differing_words,
        ROW_NUMBER() OVER (
            PARTITION BY k.base_group, k.head_group, k.setting_kind, k.setting, k.base_runs > 0, k.head_runs > 0
            ORDER BY k.value_key NULLS FIRST
        ) AS nth_value
    FROM _known AS k
    WHERE k.base_runs < k.base_known_runs
        OR k.head_runs < k.head_known_runs
        OR k.base_known_runs = 0
        OR k.head_known_runs = 0
)
SELECT
    d.base_group AS base_group,
    d.head_group AS head_group,
    d.setting_kind AS setting_kind,
    d.setting AS setting,
    MIN(d.base_text) AS base_value,
    MIN(d.head_text) AS head_value,
    MAX(d.base_count) AS base_runs,
    MAX(d.head_count) AS head_runs,
    MIN(d.base_known_count) AS base_known_runs,
    MIN(d.head_known_count) AS head_known_runs,
    CASE
        WHEN MIN(d.base_known_count) = 0 OR MIN(d.head_known_count) = 0 THEN 'information'
        WHEN MIN(d.effect_rank) = 1 THEN 'not_comparable'
        WHEN MIN(d.effect_rank) = 2 THEN 'candidate_cause'
        ELSE 'information'
    END AS effect,
    CASE
        WHEN MIN(d.base_known_count) = 0 THEN 'unknown of the base'
        WHEN MIN(d.head_known_count) = 0 THEN 'unknown of the head'
        ELSE MIN(d.known_reason)
    END AS reason
FROM _differing AS d
WHERE d.list_setting IS NULL
    OR d.differing_words = 0
GROUP BY
    d.base_group,
    d.head_group,
    d.setting_kind,
    d.setting,
    d.sides,
    d.nth_value
