-- name: v1._group_names
-- version: 1
-- grain: one row per group of runs
-- summary: What groups of runs there are.
-- evidence: measured
-- columns:
--   group_name VARCHAR: as in v1.run_groups

SELECT DISTINCT g.group_name AS group_name
FROM v1.run_groups AS g
