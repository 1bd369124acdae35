-- name: v1._capture_rule_scopes
-- version: 1
-- grain: one row per capture of a run that has rules of its own
-- summary: Which captures do not go by the rules of every run.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   rule_scope BIGINT: its set of rules in v1._op_name_classes; of captures that are not here it is 0

SELECT
    c.capture_id AS capture_id,
    r.rule_scope AS rule_scope
FROM v1._rule_scopes AS r
INNER JOIN main.captures AS c
    ON c.run_id = r.rule_scope
WHERE r.rule_scope > 0
