-- name: v1._rules
-- version: 1
-- grain: one row per set of rules, kind and rule in it
-- summary: The rules in the order in which they are asked.
-- evidence: derived
-- columns:
--   rule_scope BIGINT: 0 for the rules of every run, else the run_id of a run with rules of its own
--   rule_kind VARCHAR: structure, phase or component
--   place BIGINT: 1 for the rule of its kind that is asked first
--   rule_id BIGINT: the rule
--   run_id BIGINT: the run that it is of; NULL for a rule of every run
--   vocabulary VARCHAR: whose names it knows: jax, flax, maxtext or user
--   priority BIGINT: as the rule's table has it
--   pattern VARCHAR: of a segment; of component rules, of a scope
--   inside_pattern VARCHAR: of a scope around it; NULL for anywhere
--   is_direct BOOLEAN: it says nothing of scopes below; NULL for other kinds than component
--   is_structural BOOLEAN: the segment is no scope; NULL for other kinds than structure
--   phase VARCHAR: phase that it gives; NULL for none
--   component_group VARCHAR: group that it gives; NULL for none
--   reason VARCHAR: why there is such a rule
-- algorithm: The rules of a run come before those of every run, then a lower priority before a higher one,
--   then a lower rule_id before a higher one.

WITH _all AS (
    SELECT
        'structure' AS rule_kind,
        s.rule_id AS rule_id,
        s.run_id AS run_id,
        s.vocabulary AS vocabulary,
        s.priority AS priority,
        s.pattern AS pattern,
        CAST(NULL AS VARCHAR) AS inside_pattern,
        CAST(NULL AS BOOLEAN) AS is_direct,
        s.is_structural AS is_structural,
        CAST(NULL AS VARCHAR) AS phase,
        CAST(NULL AS VARCHAR) AS component_group,
        s.reason AS reason
    FROM main.scope_rules AS s
    UNION ALL
    SELECT
        'phase' AS rule_kind,
        p.rule_id AS rule_id,
        p.run_id AS run_id,
        p.vocabulary AS vocabulary,
        p.priority AS priority,
        p.pattern AS pattern,
        CAST(NULL AS VARCHAR) AS inside_pattern,
        CAST(NULL AS BOOLEAN) AS is_direct,
        CAST(NULL AS BOOLEAN) AS is_structural,
        p.phase AS phase,
        CAST(NULL AS VARCHAR) AS component_group,
        p.reason AS reason
    FROM main.phase_rules AS p
    UNION ALL
    SELECT
        'component' AS rule_kind,
        c.rule_id AS rule_id,
        c.run_id AS run_id,
        c.vocabulary AS vocabulary,
        c.priority AS priority,
        c.pattern AS pattern,
        c.inside_pattern AS inside_pattern,
        c.is_direct AS is_direct,
        CAST(NULL AS BOOLEAN) AS is_structural,
        c.phase AS phase,
        c.component_group AS component_group,
        c.reason AS reason
    FROM main.component_rules AS c
)
SELECT
    s.rule_scope AS rule_scope,
    a.rule_kind AS rule_kind,
    ROW_NUMBER() OVER (
        PARTITION BY s.rule_scope, a.rule_kind
        ORDER BY
            CASE WHEN a.run_id IS NULL THEN 1 ELSE 0 END NULLS FIRST,
            a.priority NULLS FIRST,
            a.rule_id NULLS FIRST
    ) AS place,
    a.rule_id AS rule_id,
    a.run_id AS run_id,
    a.vocabulary AS vocabulary,
    CAST(a.priority AS BIGINT) AS priority,
    a.pattern AS pattern,
    a.inside_pattern AS inside_pattern,
    a.is_direct AS is_direct,
    a.is_structural AS is_structural,
    a.phase AS phase,
    a.component_group AS component_group,
    a.reason AS reason
FROM v1._rule_scopes AS s
INNER JOIN _all AS a
    ON COALESCE(a.run_id, s.rule_scope) = s.rule_scope
