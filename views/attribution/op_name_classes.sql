-- name: v1._op_name_classes
-- version: 1
-- grain: one row per set of rules and op_name that it may be asked for
-- summary: Phase and component of each op_name, by the rule tables.
-- evidence: derived
-- columns:
--   rule_scope BIGINT: 0 for the rules of every run, else the run_id of a run with rules of its own
--   op_name_id BIGINT: names.name_id of the op_name
--   phase VARCHAR: remat, backward, forward, update, or what a user's rule gives; NULL where no rule matches, or
--     operations that the op_name joins have different ones
--   component VARCHAR: deepest named scope; of joined operations, the deepest that all of them are in; NULL
--     where there is none
--   component_group VARCHAR: group of the component; NULL where there is no component
--   is_loop_scope BOOLEAN: the component is outside the innermost loop, and nothing below the loop names one
--   is_mixed BOOLEAN: the op_name joins operations of different phases or components
-- algorithm: A compiler pass that merges operations, as the combiner of collectives, joins their op_names. What
--   all of them agree on holds for the joined operation. Where components differ it is in the scope that they
--   share, as the gathers of query and key are in attention; where phases differ it has none.

WITH _joined AS (
    SELECT
        m.rule_scope AS rule_scope,
        m.op_name_id AS op_name_id,
        COUNT(*) AS members,
        COUNT(m.phase) AS phases,
        MIN(m.phase) AS first_phase,
        MAX(m.phase) AS last_phase,
        COUNT(m.component) AS components,
        MIN(m.component) AS first_component,
        MAX(m.component) AS last_component,
        MIN(m.component_group) AS first_group,
        MAX(m.component_group) AS last_group,
        MIN(CASE WHEN m.is_loop_scope THEN 1 ELSE 0 END) AS fewest_loop_scopes
    FROM v1._op_name_members AS m
    WHERE m.member > 0
    GROUP BY
        m.rule_scope,
        m.op_name_id
),
_agreed AS (
    SELECT
        j.rule_scope AS rule_scope,
        j.op_name_id AS op_name_id,
        CASE WHEN j.phases = j.members AND j.first_phase = j.last_phase THEN j.first_phase END AS phase,
        j.phases > 0 AND (j.phases < j.members OR j.first_phase <> j.last_phase) AS has_phases,
        j.components > 0 AND (j.components < j.members OR j.first_component <> j.last_component)
            AS has_components,
        j.first_component AS component,
        CASE
            WHEN j.components = j.members AND j.first_group = j.last_group THEN j.first_group
        END AS common_group,
        j.fewest_loop_scopes = 1 AS is_loop_scope
    FROM _joined AS j
)
SELECT
    a.rule_scope AS rule_scope,
    a.op_name_id AS op_name_id,
    a.phase AS phase,
    CASE WHEN a.has_components THEN s.component ELSE a.component END AS component,
    CASE
        WHEN NOT a.has_components THEN COALESCE(a.common_group, a.component)
        WHEN s.component IS NOT NULL THEN COALESCE(a.common_group, s.component_group)
    END AS component_group,
    CASE WHEN a.has_components THEN COALESCE(s.is_loop_scope, FALSE) ELSE a.is_loop_scope END AS is_loop_scope,
    a.has_phases OR a.has_components AS is_mixed
FROM _agreed AS a
LEFT JOIN v1._op_name_members AS s
    ON s.rule_scope = a.rule_scope
    AND s.op_name_id = a.op_name_id
    AND s.member = 0
