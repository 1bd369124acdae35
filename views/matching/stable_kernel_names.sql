-- name: v1._stable_kernel_names
-- version: 1
-- grain: one row per name in the warehouse
-- summary: What stays of a kernel's name, whichever tool wrote it.
-- evidence: derived
-- columns:
--   name_id BIGINT: names.name_id
--   plain_name VARCHAR: without what names the code object's symbol: .kd, [clone .kd]
--   stable_name VARCHAR: the function's own name, without return type, namespaces, template arguments and
--     parameters, and without the suffixes of a compiler's copies
-- algorithm: A name ends where its first template argument or parameter begins; (anonymous namespace) is
--   neither. What a demangler leaves mangled stays as it is.

WITH _bare AS (
    SELECT
        n.name_id AS name_id,
        n.name AS name,
        CASE
            WHEN n.name LIKE '%[clone %]'
            THEN NULLIF(REGEXP_EXTRACT(n.name, '^(.*[^ ]) *.clone [^ ]*$', 1), '')
        END AS without_clone
    FROM main.names AS n
),
_plain AS (
    SELECT
        b.name_id AS name_id,
        CASE
            WHEN COALESCE(b.without_clone, b.name) LIKE '%_.kd'
            THEN NULLIF(REGEXP_EXTRACT(COALESCE(b.without_clone, b.name), '^(.*)[.]kd$', 1), '')
            ELSE COALESCE(b.without_clone, b.name)
        END AS plain_name
    FROM _bare AS b
),
_heads AS (
    SELECT
        p.name_id AS name_id,
        p.plain_name AS plain_name,
        NULLIF(REGEXP_EXTRACT(p.plain_name, '^(([^(<]|[(]anonymous namespace[)])+)', 1), '') AS head
    FROM _plain AS p
),
_functions AS (
    SELECT
        h.name_id AS name_id,
        h.plain_name AS plain_name,
        COALESCE(NULLIF(REGEXP_EXTRACT(h.head, '([^ :]+) *$', 1), ''), h.plain_name) AS function_name
    FROM _heads AS h
)
SELECT
    f.name_id AS name_id,
    f.plain_name AS plain_name,
    COALESCE(
        NULLIF(REGEXP_EXTRACT(
            f.function_name, '^(.+)[.](llvm|__uniq|clone|cold|part|isra|constprop)([.][A-Za-z0-9_.]*)?$', 1
        ), ''),
        f.function_name
    ) AS stable_name
FROM _functions AS f
