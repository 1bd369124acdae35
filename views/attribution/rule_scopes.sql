-- name: v1._rule_scopes
-- version: 1
-- grain: one row per set of rules
-- summary: The rules of every run, and those of each run that has rules of its own.
-- evidence: derived
-- columns:
--   rule_scope BIGINT: 0 for the rules of every run, else the run_id of a run with rules of its own

WITH _owners AS (
    SELECT p.run_id AS run_id
    FROM main.phase_rules AS p
    WHERE p.run_id IS NOT NULL
    UNION ALL
    SELECT s.run_id AS run_id
    FROM main.scope_rules AS s
    WHERE s.run_id IS NOT NULL
    UNION ALL
    SELECT c.run_id AS run_id
    FROM main.component_rules AS c
    WHERE c.run_id IS NOT NULL
)
SELECT CAST(0 AS BIGINT) AS rule_scope
UNION ALL
SELECT DISTINCT o.run_id AS rule_scope
FROM _owners AS o
