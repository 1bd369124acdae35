-- name: v1._capture_rule_scopes
-- version: 1
-- grain: one row per capture of a run that has rules of its own
-- summary: Which captures do not go by the rules of every run.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   rule_scope BIGINT: its set of rules in v1._op_name_classes; of captures that are not here it is 0

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
),
_runs AS (
    SELECT DISTINCT o.run_id AS run_id
    FROM _owners AS o
)
SELECT
    c.capture_id AS capture_id,
    r.run_id AS rule_scope
FROM _runs AS r
INNER JOIN main.captures AS c
    ON c.run_id = r.run_id
