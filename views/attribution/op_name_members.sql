-- name: v1._op_name_members
-- version: 1
-- grain: one row per set of rules, op_name and operation that it stands for
-- summary: Phase and component of each operation of an op_name, by the rule tables.
-- evidence: derived
-- columns:
--   rule_scope BIGINT: 0 for the rules of every run, else the run_id of a run with rules of its own
--   op_name_id BIGINT: names.name_id of the op_name
--   member BIGINT: the operation, from 1; 0 for what all operations of a joined name begin with
--   phase VARCHAR: remat, backward, forward, update, or what a user's rule gives; NULL where no rule matches
--   component VARCHAR: deepest named scope; NULL where there is none
--   component_group VARCHAR: group of the component; NULL where there is no component
--   is_loop_scope BOOLEAN: the component is outside the innermost loop, and nothing below the loop names one
--   phase_rule_id BIGINT: the rule that gives the phase; NULL for none
--   component_rule_id BIGINT: the rule that gives the group; NULL where the component names itself
-- algorithm: The phase is that of the first phase rule that any segment matches. The component is the deepest
--   segment that is no structure, has a name under its transformations, and is not the last one, which is
--   the primitive. Its group is that of the deepest scope that a component rule knows, and of the rules that
--   know it the first; without one the component itself, less the number of an instance and the method of a
--   module. A rule without a phase takes none away: the phase is that of the first rule, in the same order, which
--   has one. Forward holds where no phase rule matches, and for scopes below; any other always, and for the scope
--   of the group alone. What joined operations share is work of the parts of a scope, so that no direct rule is
--   asked for it.

WITH _segments AS (
    SELECT
        p.rule_scope AS rule_scope,
        p.op_name_id AS op_name_id,
        p.member AS member,
        p.position AS position,
        p.scope AS scope,
        r.phase_place AS phase_place,
        CASE WHEN p.scope = 'while' THEN p.position END AS loop_position,
        CASE
            WHEN NOT p.is_last AND p.scope <> '' AND NOT COALESCE(r.is_structural, FALSE) THEN p.position
        END AS component_position
    FROM v1._op_name_paths AS p
    LEFT JOIN v1._segment_rules AS r
        ON r.rule_scope = p.rule_scope
        AND r.segment = p.segment
),
_operations AS (
    SELECT
        s.rule_scope AS rule_scope,
        s.op_name_id AS op_name_id,
        s.member AS member,
        MIN(s.phase_place) AS first_phase_place,
        MAX(s.component_position) AS deepest_position,
        MAX(s.loop_position) AS innermost_loop_position
    FROM _segments AS s
    GROUP BY
        s.rule_scope,
        s.op_name_id,
        s.member
),
_inside AS (
    SELECT DISTINCT c.inside_pattern AS inside_pattern
    FROM main.component_rules AS c
),
_enclosed AS (
    SELECT
        s.rule_scope AS rule_scope,
        s.op_name_id AS op_name_id,
        s.member AS member,
        m.pattern AS inside_pattern,
        MIN(s.position) AS outermost_position
    FROM _segments AS s
    INNER JOIN v1._text_matches AS m
        ON m.text = s.scope
    INNER JOIN _inside AS i
        ON i.inside_pattern = m.pattern
    GROUP BY
        s.rule_scope,
        s.op_name_id,
        s.member,
        m.pattern
),
_known AS (
    SELECT
        s.rule_scope AS rule_scope,
        s.op_name_id AS op_name_id,
        s.member AS member,
        s.component_position AS component_position,
        r.place AS rule_place,
        r.rule_id AS rule_id,
        r.component_group AS component_group,
        CASE
            WHEN r.phase = 'forward' OR s.component_position = MAX(s.component_position) OVER (
                PARTITION BY s.rule_scope, s.op_name_id, s.member
            )
                THEN r.phase
        END AS phase
    FROM _segments AS s
    INNER JOIN v1._text_matches AS m
        ON m.text = s.scope
    INNER JOIN v1._rules AS r
        ON r.rule_scope = s.rule_scope
        AND r.pattern = m.pattern
        AND r.rule_kind = 'component'
    INNER JOIN _operations AS o
        ON o.rule_scope = s.rule_scope
        AND o.op_name_id = s.op_name_id
        AND o.member = s.member
    LEFT JOIN _enclosed AS e
        ON e.rule_scope = s.rule_scope
        AND e.op_name_id = s.op_name_id
        AND e.member = s.member
        AND e.inside_pattern = r.inside_pattern
    WHERE s.component_position IS NOT NULL
        AND (NOT r.is_direct OR (s.position = o.deepest_position AND s.member > 0))
        AND (r.inside_pattern IS NULL OR e.outermost_position < s.position)
),
_candidates AS (
    SELECT
        k.rule_scope AS rule_scope,
        k.op_name_id AS op_name_id,
        k.member AS member,
        k.rule_id AS rule_id,
        k.component_group AS component_group,
        k.phase AS phase,
        ROW_NUMBER() OVER (
            PARTITION BY k.rule_scope, k.op_name_id, k.member
            ORDER BY k.component_position DESC NULLS FIRST, k.rule_place NULLS FIRST
        ) AS group_place,
        ROW_NUMBER() OVER (
            PARTITION BY k.rule_scope, k.op_name_id, k.member
            ORDER BY
                CASE WHEN k.phase IS NULL THEN 1 ELSE 0 END NULLS FIRST,
                k.component_position DESC NULLS FIRST,
                k.rule_place NULLS FIRST
        ) AS phase_place
    FROM _known AS k
)
SELECT
    o.rule_scope AS rule_scope,
    o.op_name_id AS op_name_id,
    o.member AS member,
    CASE WHEN f.phase <> 'forward' THEN f.phase ELSE COALESCE(p.phase, f.phase) END AS phase,
    d.scope AS component,
    COALESCE(
        c.component_group,
        NULLIF(REGEXP_EXTRACT(d.scope, '^([^.]*[^.0-9_])(_[0-9]+)?([.][A-Za-z_][A-Za-z0-9_]*)?$', 1), ''),
        d.scope
    ) AS component_group,
    COALESCE(o.deepest_position < o.innermost_loop_position, FALSE) AS is_loop_scope,
    CASE
        WHEN f.phase <> 'forward' THEN f.rule_id
        WHEN p.phase IS NOT NULL THEN p.rule_id
        WHEN f.phase IS NOT NULL THEN f.rule_id
    END AS phase_rule_id,
    c.rule_id AS component_rule_id
FROM _operations AS o
LEFT JOIN _segments AS d
    ON d.rule_scope = o.rule_scope
    AND d.op_name_id = o.op_name_id
    AND d.member = o.member
    AND d.position = o.deepest_position
LEFT JOIN v1._rules AS p
    ON p.rule_scope = o.rule_scope
    AND p.rule_kind = 'phase'
    AND p.place = o.first_phase_place
LEFT JOIN _candidates AS c
    ON c.rule_scope = o.rule_scope
    AND c.op_name_id = o.op_name_id
    AND c.member = o.member
    AND c.group_place = 1
LEFT JOIN _candidates AS f
    ON f.rule_scope = o.rule_scope
    AND f.op_name_id = o.op_name_id
    AND f.member = o.member
    AND f.phase_place = 1
