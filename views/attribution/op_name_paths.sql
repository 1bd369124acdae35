-- name: v1._op_name_paths
-- version: 1
-- grain: one row per set of rules, op_name that it may be asked for, operation in it and segment
-- summary: The segments of each operation that an op_name stands for, from the outermost to the primitive.
-- evidence: compiler
-- columns:
--   rule_scope BIGINT: 0 for the rules of every run, else the run_id of a run with rules of its own
--   op_name_id BIGINT: names.name_id of the op_name
--   member BIGINT: the operation, from 1; 0 for what all operations of a joined name begin with
--   position BIGINT: 1 is the outermost segment
--   segment VARCHAR: as written
--   scope VARCHAR: without its transformations
--   is_last BOOLEAN: the primitive
-- algorithm: The rules of every run are asked for all op_names, those of one run for the op_names of its
--   modules and events.

WITH _used AS (
    SELECT
        c.rule_scope AS rule_scope,
        i.op_name_id AS op_name_id
    FROM v1._capture_rule_scopes AS c
    INNER JOIN main.hlo_programs AS p
        ON p.capture_id = c.capture_id
    INNER JOIN main.hlo_instructions AS i
        ON i.module_id = p.module_id
    UNION ALL
    SELECT
        c.rule_scope AS rule_scope,
        o.op_name_id AS op_name_id
    FROM v1._capture_rule_scopes AS c
    INNER JOIN main.ops AS o
        ON o.capture_id = c.capture_id
    UNION ALL
    SELECT
        c.rule_scope AS rule_scope,
        t.tf_op_name_id AS op_name_id
    FROM v1._capture_rule_scopes AS c
    INNER JOIN main.ops AS t
        ON t.capture_id = c.capture_id
),
_distinct_used AS (
    SELECT DISTINCT
        u.rule_scope AS rule_scope,
        u.op_name_id AS op_name_id
    FROM _used AS u
    WHERE u.op_name_id IS NOT NULL
),
_segments AS (
    SELECT
        CAST(0 AS BIGINT) AS rule_scope,
        s.name_id AS op_name_id,
        CAST(COALESCE(s.member, 1) AS BIGINT) AS member,
        CAST(s.position AS BIGINT) AS position,
        s.segment AS segment,
        s.scope AS scope,
        s.is_last AS is_last
    FROM main.op_name_scopes AS s
    UNION ALL
    SELECT
        u.rule_scope AS rule_scope,
        s.name_id AS op_name_id,
        CAST(COALESCE(s.member, 1) AS BIGINT) AS member,
        CAST(s.position AS BIGINT) AS position,
        s.segment AS segment,
        s.scope AS scope,
        s.is_last AS is_last
    FROM _distinct_used AS u
    INNER JOIN main.op_name_scopes AS s
        ON s.name_id = u.op_name_id
),
_members AS (
    SELECT DISTINCT
        s.name_id AS op_name_id,
        CAST(s.member AS BIGINT) AS member
    FROM main.op_name_scopes AS s
    WHERE s.member > 0
)
SELECT
    s.rule_scope AS rule_scope,
    s.op_name_id AS op_name_id,
    s.member AS member,
    s.position AS position,
    s.segment AS segment,
    s.scope AS scope,
    s.is_last AS is_last
FROM _segments AS s
UNION ALL
SELECT
    s.rule_scope AS rule_scope,
    s.op_name_id AS op_name_id,
    m.member AS member,
    s.position AS position,
    s.segment AS segment,
    s.scope AS scope,
    s.is_last AS is_last
FROM _segments AS s
INNER JOIN _members AS m
    ON m.op_name_id = s.op_name_id
WHERE s.member = 0
