-- name: v1._run_settings
-- version: 1
-- grain: one row per run, setting and value of it
-- summary: What a run was made with and on, under one name for each setting, without what it was called or measured.
-- evidence: measured, analytical or derived
-- columns:
--   run_id BIGINT: the run
--   setting_kind VARCHAR: config, environment, device, versions, or work: what defines the useful work of a step
--   setting VARCHAR: name of the setting
--   list_setting VARCHAR: of a word at its place in a list, the list's; NULL for all else
--   value VARCHAR: as its source has it; null for what the configuration leaves empty
--   value_key VARCHAR: equal for equal values: numbers as numbers, truth values in one spelling
--   effect VARCHAR: of a difference: not_comparable, candidate_cause or information
--   reason VARCHAR: why
--   known_by VARCHAR: source in v1._setting_sources without which it is unknown what a run without the setting has; NULL
--     where that is unknown in any case
-- algorithm: A list of words has one row per word, whatever their order, and, with list_setting, one more for each place.
--   Numbers in lists have their place only: their order matters. 1 and 0 of a flag are true and false. A path is no cause.

WITH _stated AS (
    SELECT
        w.run_id AS run_id,
        w.setting_kind AS setting_kind,
        w.setting AS setting,
        CAST(NULL AS VARCHAR) AS list_setting,
        w.value AS stated_value,
        w.effect AS stated_effect,
        w.reason AS stated_reason,
        w.known_by AS stated_by
    FROM v1._work_settings AS w
    UNION ALL
    SELECT
        d.run_id AS run_id,
        'device' AS setting_kind,
        'device_kind' AS setting,
        CAST(NULL AS VARCHAR) AS list_setting,
        d.device_kind AS stated_value,
        'not_comparable' AS stated_effect,
        'another kind of device' AS stated_reason,
        CAST(NULL AS VARCHAR) AS stated_by
    FROM v1._device_kinds AS d
    UNION ALL
    SELECT
        n.run_id AS run_id,
        n.setting_kind AS setting_kind,
        n.setting AS setting,
        n.list_setting AS list_setting,
        n.value AS stated_value,
        n.effect AS stated_effect,
        n.reason AS stated_reason,
        n.known_by AS stated_by
    FROM v1._named_settings AS n
),
_read AS (
    SELECT
        s.run_id AS run_id,
        s.setting_kind AS setting_kind,
        s.setting AS setting,
        s.list_setting AS list_setting,
        s.stated_value AS stated_value,
        s.stated_effect AS stated_effect,
        s.stated_reason AS stated_reason,
        s.stated_by AS stated_by,
        CASE
            WHEN s.stated_value IN ('true', 'True', 'TRUE') THEN 'true'
            WHEN s.stated_value IN ('false', 'False', 'FALSE') THEN 'false'
            WHEN s.stated_by = 'flags' AND s.stated_value = '1' THEN 'true'
            WHEN s.stated_by = 'flags' AND s.stated_value = '0' THEN 'false'
            WHEN s.stated_value IN ('null', 'None') THEN 'null'
        END AS constant,
        CAST(NULLIF(REGEXP_EXTRACT(
            s.stated_value,
            '^([-+]?[0-9]{1,15}([.][0-9]{0,20})?([eE][-+]?[0-9]{1,2})?)$', 1
        ), '') AS DOUBLE) AS number,
        s.stated_effect = 'candidate_cause'
            AND REGEXP_MATCHES(s.stated_value, '^([a-z0-9]{1,5}:/|[.]|[.][.])?/.*$') AS is_path
    FROM _stated AS s
),
_placed AS (
    SELECT
        r.run_id AS run_id,
        r.setting_kind AS setting_kind,
        CASE
            WHEN w.way = 'word' AND r.constant IS NULL AND r.number IS NULL THEN COALESCE(r.list_setting, r.setting)
            ELSE r.setting
        END AS setting,
        CASE WHEN w.way = 'place' THEN r.list_setting END AS list_setting,
        r.stated_value AS stated_value,
        COALESCE(r.constant, CAST(r.number AS VARCHAR), r.stated_value) AS value_key,
        CASE WHEN r.is_path THEN 'information' ELSE r.stated_effect END AS stated_effect,
        CASE
            WHEN r.is_path THEN 'where something lies'
            WHEN w.way = 'place' THEN 'the same words in another order, or another number of times'
            ELSE r.stated_reason
        END AS stated_reason,
        r.stated_by AS stated_by
    FROM _read AS r
    CROSS JOIN (
        VALUES
            ('word'),
            ('place')
    ) AS w (way)
    WHERE w.way = 'word'
        OR r.list_setting IS NOT NULL AND r.constant IS NULL AND r.number IS NULL
)
SELECT
    p.run_id AS run_id,
    p.setting_kind AS setting_kind,
    p.setting AS setting,
    p.list_setting AS list_setting,
    MIN(p.stated_value) AS value,
    p.value_key AS value_key,
    MIN(p.stated_effect) AS effect,
    MIN(p.stated_reason) AS reason,
    MIN(p.stated_by) AS known_by
FROM _placed AS p
GROUP BY
    p.run_id,
    p.setting_kind,
    p.setting,
    p.list_setting,
    p.value_key
