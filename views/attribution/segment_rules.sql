-- name: v1._segment_rules
-- version: 1
-- grain: one row per distinct segment of the op_names in the warehouse
-- summary: What the rule tables say of a segment: the phase it implies, and whether it is structure.
-- evidence: derived
-- columns:
--   segment VARCHAR: segment of an op_name as written
--   phase_priority INTEGER: priority of the first phase rule that matches; NULL for none
--   is_structural BOOLEAN: a scope rule matches, so the segment is no component

WITH _segments AS (
    SELECT DISTINCT s.segment AS segment
    FROM main.op_name_scopes AS s
),
_phases AS (
    SELECT
        s.segment AS segment,
        MIN(r.priority) AS phase_priority
    FROM _segments AS s
    INNER JOIN main.phase_rules AS r
        ON REGEXP_MATCHES(s.segment, r.pattern)
    GROUP BY s.segment
),
_structure AS (
    SELECT DISTINCT s.segment AS segment
    FROM _segments AS s
    INNER JOIN main.scope_rules AS r
        ON REGEXP_MATCHES(s.segment, r.pattern)
)
SELECT
    s.segment AS segment,
    p.phase_priority AS phase_priority,
    t.segment IS NOT NULL AS is_structural
FROM _segments AS s
LEFT JOIN _phases AS p
    ON p.segment = s.segment
LEFT JOIN _structure AS t
    ON t.segment = s.segment
