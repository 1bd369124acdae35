-- name: v1._rule_scopes
-- version: 1
-- grain: one row per set of rules that applies to some capture
-- summary: The rules of every run, and those of each run that has rules of its own.
-- evidence: derived
-- columns:
--   rule_scope BIGINT: 0 for the rules of every run, else the run_id of a run with rules of its own

SELECT CAST(0 AS BIGINT) AS rule_scope
UNION ALL
SELECT DISTINCT c.rule_scope AS rule_scope
FROM v1._capture_rule_scopes AS c
