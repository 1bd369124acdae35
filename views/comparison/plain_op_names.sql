-- name: v1._plain_op_names
-- version: 1
-- grain: one row per interned string
-- summary: op_names that stay when a program is compiled again, or when more or less of it is done again in the backward
--   pass.
-- evidence: derived
-- columns:
--   name_id BIGINT: names.name_id
--   op_name VARCHAR: the name; without its number where the compiler made it up (broadcast.97)
--   plain_op_name VARCHAR: likewise, without segments checkpoint and rematted_computation, of each the last two
-- algorithm: Meant to be joined by name_id: op_names are few among the names, and their segments are not asked for again.

WITH _names AS (
    SELECT
        n.name_id AS name_id,
        CASE
            WHEN n.name LIKE '%/%' THEN n.name
            ELSE COALESCE(NULLIF(REGEXP_EXTRACT(n.name, '^(.*)[.][0-9]+$', 1), ''), n.name)
        END AS op_name
    FROM main.names AS n
),
_outer AS (
    SELECT
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
    m.name_id AS name_id,
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
