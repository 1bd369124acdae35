-- name: v1._op_name_classes
-- version: 1
-- grain: one row per op_name in the warehouse
-- summary: Phase and component of each op_name, by the rule tables.
-- evidence: derived
-- columns:
--   op_name_id BIGINT: names.name_id of the op_name
--   phase VARCHAR: remat, backward, forward or update; NULL where no rule matches
--   component VARCHAR: deepest named scope; NULL where there is none
-- algorithm: The phase is that of the first rule that any segment matches. The component is the deepest
--   segment that is no structure, has a name under its transformations, and is not the last one, which is
--   the primitive.

WITH _segments AS (
    SELECT
        s.name_id AS op_name_id,
        s.position AS position,
        s.scope AS scope,
        r.phase_priority AS phase_priority,
        CASE
            WHEN NOT s.is_last AND NOT r.is_structural AND s.scope <> '' THEN s.position
        END AS component_position
    FROM main.op_name_scopes AS s
    INNER JOIN v1._segment_rules AS r
        ON r.segment = s.segment
),
_op_names AS (
    SELECT
        s.op_name_id AS op_name_id,
        MIN(s.phase_priority) AS first_priority,
        MAX(s.component_position) AS deepest_position
    FROM _segments AS s
    GROUP BY s.op_name_id
)
SELECT
    o.op_name_id AS op_name_id,
    p.phase AS phase,
    s.scope AS component
FROM _op_names AS o
LEFT JOIN main.phase_rules AS p
    ON p.priority = o.first_priority
LEFT JOIN _segments AS s
    ON s.op_name_id = o.op_name_id
    AND s.position = o.deepest_position
