-- name: v1._setting_names
-- version: 1
-- grain: one row per source and name in it
-- summary: What a difference in each parameter, flag and attribute means, by the first rule that knows its name.
-- evidence: derived
-- columns:
--   source VARCHAR: param, flag, capture_attribute or device_attribute
--   name VARCHAR: as the source has it
--   setting VARCHAR: one name for what sources call differently
--   list_setting VARCHAR: that of the list whose element it is; NULL for no element of a list
--   role VARCHAR: setting_rules.role
--   effect VARCHAR: setting_rules.effect; NULL of what is left out
--   reason VARCHAR: setting_rules.reason
-- algorithm: Patterns are asked of each distinct name once. What tracewh.record notes of the environment has the names
--   that a configuration would give it. Two dashes begin the names of flags.

WITH _names AS (
    SELECT DISTINCT
        'param' AS source,
        p.param AS name
    FROM main.run_params AS p
    UNION ALL
    SELECT DISTINCT
        'flag' AS source,
        f.flag AS name
    FROM main.run_flags AS f
    UNION ALL
    SELECT DISTINCT
        'capture_attribute' AS source,
        a.attribute AS name
    FROM main.capture_attributes AS a
    UNION ALL
    SELECT DISTINCT
        'device_attribute' AS source,
        d.attribute AS name
    FROM main.device_attributes AS d
),
_plain AS (
    SELECT
        n.source AS source,
        n.name AS name,
        CASE
            WHEN n.source = 'flag' THEN '--' || n.name
            ELSE COALESCE(
                NULLIF(REGEXP_EXTRACT(n.name, '^record[.]environment[.](.*)$', 1), ''),
                NULLIF(REGEXP_EXTRACT(n.name, '^timing[.]environment[.](.*)$', 1), ''),
                n.name
            )
        END AS plain_name,
        NULLIF(REGEXP_EXTRACT(n.name, '^(.*)[^0-9A-Za-z_][0-9]{1,9}]$', 1), '') AS list_name
    FROM _names AS n
),
_ranked AS (
    SELECT
        p.source AS source,
        p.name AS name,
        p.plain_name AS plain_name,
        p.list_name AS list_name,
        r.setting AS setting,
        r.role AS role,
        r.effect AS effect,
        r.reason AS reason,
        ROW_NUMBER() OVER (
            PARTITION BY p.source, p.name
            ORDER BY r.priority NULLS FIRST
        ) AS choice
    FROM _plain AS p
    INNER JOIN main.setting_rules AS r
        ON r.source = p.source
        AND '.' || COALESCE(p.list_name, p.name) LIKE r.pattern
)
SELECT
    r.source AS source,
    r.name AS name,
    COALESCE(r.setting, r.plain_name) AS setting,
    CASE
        WHEN r.list_name IS NULL THEN NULL
        ELSE COALESCE(r.setting, NULLIF(REGEXP_EXTRACT(r.plain_name, '^(.*)[^0-9A-Za-z_][0-9]{1,9}]$', 1), ''))
    END AS list_setting,
    r.role AS role,
    r.effect AS effect,
    r.reason AS reason
FROM _ranked AS r
WHERE r.choice = 1
