-- name: v1.comparability
-- version: 1
-- grain: one row per pair of groups
-- summary: Whether two groups of runs can be compared at all.
-- evidence: measured, analytical or derived
-- columns:
--   base_group VARCHAR: group of v1.run_groups that is compared with
--   head_group VARCHAR: group that is compared
--   is_comparable BOOLEAN: nothing is known that keeps them from it
--   reason_count BIGINT (count): rows that v1.comparability_reasons has of them
-- algorithm: A filter on both groups reads their runs alone. What is unknown of a side keeps nobody from comparing:
--   v1.setting_changes tells it as information.

WITH _pairs AS (
    SELECT DISTINCT
        c.base_group AS base_group,
        c.head_group AS head_group
    FROM v1._compared_runs AS c
),
_reasons AS (
    SELECT
        r.base_group AS base_group,
        r.head_group AS head_group,
        COUNT(*) AS reason_count
    FROM v1.comparability_reasons AS r
    GROUP BY
        r.base_group,
        r.head_group
)
SELECT
    p.base_group AS base_group,
    p.head_group AS head_group,
    r.reason_count IS NULL AS is_comparable,
    COALESCE(r.reason_count, 0) AS reason_count
FROM _pairs AS p
LEFT JOIN _reasons AS r
    ON r.base_group = p.base_group
    AND r.head_group = p.head_group
