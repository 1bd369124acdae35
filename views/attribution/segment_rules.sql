-- name: v1._segment_rules
-- version: 1
-- grain: one row per set of rules and distinct segment of the op_names that a rule of it matches
-- summary: What the rule tables say of a segment: the phase it implies, and whether it is structure.
-- evidence: derived
-- columns:
--   rule_scope BIGINT: 0 for the rules of every run, else the run_id of a run with rules of its own
--   segment VARCHAR: segment of an op_name as written
--   phase_place BIGINT: place in v1._rules of the first phase rule that matches; NULL for none
--   structure_place BIGINT: place in v1._rules of the first structure rule that matches; NULL for none
--   is_structural BOOLEAN: that rule says that the segment is no scope

WITH _first AS (
    SELECT
        r.rule_scope AS rule_scope,
        m.text AS segment,
        MIN(CASE WHEN r.rule_kind = 'phase' THEN r.place END) AS phase_place,
        MIN(CASE WHEN r.rule_kind = 'structure' THEN r.place END) AS structure_place
    FROM v1._rules AS r
    INNER JOIN v1._text_matches AS m
        ON m.pattern = r.pattern
    WHERE r.rule_kind <> 'component'
    GROUP BY
        r.rule_scope,
        m.text
)
SELECT
    f.rule_scope AS rule_scope,
    f.segment AS segment,
    f.phase_place AS phase_place,
    f.structure_place AS structure_place,
    COALESCE(r.is_structural, FALSE) AS is_structural
FROM _first AS f
LEFT JOIN v1._rules AS r
    ON r.rule_scope = f.rule_scope
    AND r.rule_kind = 'structure'
    AND r.place = f.structure_place
