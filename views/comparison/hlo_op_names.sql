-- name: v1._hlo_op_names
-- version: 1
-- grain: one row per module and op_name of instructions in it
-- summary: op_names that stay when a program is compiled again, or when more or less of it is done again in the backward
--   pass.
-- evidence: derived
-- columns:
--   module_id BIGINT: the module
--   op_name_id BIGINT: names.name_id of the op_name, own or inferred
--   op_name VARCHAR: the name; without its number where the compiler made it up (broadcast.97)
--   plain_op_name VARCHAR: likewise, without segments checkpoint and rematted_computation, of each the last two

WITH _used AS (
    SELECT DISTINCT
        i.module_id AS module_id,
        CASE s.source WHEN 'own' THEN i.op_name_id ELSE i.inferred_op_name_id END AS name_id
    FROM main.hlo_instructions AS i
    CROSS JOIN (
        VALUES
            ('own'),
            ('inferred')
    ) AS s (source)
),
_names AS (
    SELECT
        u.module_id AS module_id,
        u.name_id AS name_id,
        CASE
            WHEN n.name LIKE '%/%' THEN n.name
            ELSE COALESCE(NULLIF(REGEXP_EXTRACT(n.name, '^(.*)[.][0-9]+$', 1), ''), n.name)
        END AS op_name
    FROM _used AS u
    INNER JOIN main.names AS n
        ON n.name_id = u.name_id
),
_outer AS (
    SELECT
        n.module_id AS module_id,
        n.name_id AS name_id,
        n.op_name AS op_name,
        CASE
            WHEN n.op_name LIKE '%/rematted_computation/%'
                THEN NULLIF(REGEXP_EXTRACT(n.op_name, '^(.*/)rematted_computation/.*$', 1), '')
                    || NULLIF(REGEXP_EXTRACT(n.op_name, '^.*/rematted_computation/(.*)$', 1), '')
            ELSE n.op_name
        END AS plain_name
    FROM _names AS n
),
_repeated AS (
    SELECT
        o.module_id AS module_id,
        o.name_id AS name_id,
        o.op_name AS op_name,
        CASE
            WHEN o.plain_name LIKE '%/rematted_computation/%'
                THEN NULLIF(REGEXP_EXTRACT(o.plain_name, '^(.*/)rematted_computation/.*$', 1), '')
                    || NULLIF(REGEXP_EXTRACT(o.plain_name, '^.*/rematted_computation/(.*)$', 1), '')
            ELSE o.plain_name
        END AS plain_name
    FROM _outer AS o
),
_marked AS (
    SELECT
        r.module_id AS module_id,
        r.name_id AS name_id,
        r.op_name AS op_name,
        CASE
            WHEN r.plain_name LIKE '%/checkpoint/%'
                THEN NULLIF(REGEXP_EXTRACT(r.plain_name, '^(.*/)checkpoint/.*$', 1), '')
                    || NULLIF(REGEXP_EXTRACT(r.plain_name, '^.*/checkpoint/(.*)$', 1), '')
            ELSE r.plain_name
        END AS plain_name
    FROM _repeated AS r
)
SELECT
    m.module_id AS module_id,
    m.name_id AS op_name_id,
    m.op_name AS op_name,
    COALESCE(
        CASE
            WHEN m.plain_name LIKE '%/checkpoint/%'
                THEN NULLIF(REGEXP_EXTRACT(m.plain_name, '^(.*/)checkpoint/.*$', 1), '')
                    || NULLIF(REGEXP_EXTRACT(m.plain_name, '^.*/checkpoint/(.*)$', 1), '')
            ELSE m.plain_name
        END,
        m.op_name
    ) AS plain_op_name
FROM _marked AS m
