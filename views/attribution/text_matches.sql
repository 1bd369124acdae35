-- name: v1._text_matches
-- version: 1
-- grain: one row per text of the op_names and pattern of the rules that it matches
-- summary: Which patterns match which segments and scopes.
-- evidence: derived
-- columns:
--   text VARCHAR: segment of an op_name as written, or its scope
--   pattern VARCHAR: of a rule
-- algorithm: A pattern is asked of each distinct text once, whichever rules have it. The answer is that of
--   main.pattern_matches where it has one: to compile a pattern anew for each text takes most of the time.

WITH _texts AS (
    SELECT s.segment AS text
    FROM main.op_name_scopes AS s
    GROUP BY s.segment
    UNION ALL
    SELECT s.scope AS text
    FROM main.op_name_scopes AS s
    WHERE s.scope <> s.segment
    GROUP BY s.scope
),
_distinct_texts AS (
    SELECT DISTINCT t.text AS text
    FROM _texts AS t
),
_patterns AS (
    SELECT s.pattern AS pattern
    FROM main.scope_rules AS s
    UNION ALL
    SELECT p.pattern AS pattern
    FROM main.phase_rules AS p
    UNION ALL
    SELECT c.pattern AS pattern
    FROM main.component_rules AS c
    UNION ALL
    SELECT i.inside_pattern AS pattern
    FROM main.component_rules AS i
    WHERE i.inside_pattern IS NOT NULL
),
_distinct_patterns AS (
    SELECT DISTINCT p.pattern AS pattern
    FROM _patterns AS p
),
_answers AS (
    SELECT
        t.text AS text,
        p.pattern AS pattern,
        CASE
            WHEN m.is_match IS NOT NULL THEN m.is_match
            ELSE REGEXP_MATCHES(t.text, p.pattern)
        END AS is_match
    FROM _distinct_texts AS t
    CROSS JOIN _distinct_patterns AS p
    LEFT JOIN main.pattern_matches AS m
        ON m.text = t.text
        AND m.pattern = p.pattern
)
SELECT
    a.text AS text,
    a.pattern AS pattern
FROM _answers AS a
WHERE a.is_match
