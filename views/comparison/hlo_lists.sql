-- name: v1._hlo_lists
-- version: 1
-- grain: one row per module, owner and kind of list
-- summary: The parts of v1._hlo_parts as one text, equal for equal lists.
-- evidence: compiler
-- columns:
--   module_id BIGINT: the module
--   owner_id BIGINT: as in v1._hlo_parts
--   list_kind VARCHAR: as in v1._hlo_parts
--   list_text VARCHAR: the parts in their order, else sorted, equal ones once with their number; of more than 4096 the first,
--     and how many there are
-- algorithm: No function that joins texts in order is common to the engines: 16 parts make a text, 16 of these another,
--   and 16 of these the list.

WITH _counted AS (
    SELECT
        p.module_id AS module_id,
        p.owner_id AS owner_id,
        p.list_kind AS list_kind,
        p.part_order AS part_order,
        p.part AS part,
        COUNT(*) AS occurrences
    FROM v1._hlo_parts AS p
    GROUP BY
        p.module_id,
        p.owner_id,
        p.list_kind,
        p.part_order,
        p.part
),
_placed AS (
    SELECT
        c.module_id AS module_id,
        c.owner_id AS owner_id,
        c.list_kind AS list_kind,
        c.part AS part,
        c.occurrences AS occurrences,
        ROW_NUMBER() OVER (
            PARTITION BY c.module_id, c.owner_id, c.list_kind
            ORDER BY c.part_order NULLS FIRST, c.part NULLS FIRST
        ) - 1 AS place
    FROM _counted AS c
),
_parts AS (
    SELECT
        p.module_id AS module_id,
        p.owner_id AS owner_id,
        p.list_kind AS list_kind,
        p.place AS place,
        MOD(p.place, 16) AS place_in_16,
        p.place - MOD(p.place, 16) AS first_of_16,
        p.place - MOD(p.place, 256) AS first_of_256,
        CASE WHEN p.place = 0 OR p.list_kind = 'groups' THEN '' ELSE ', ' END
            || CASE WHEN p.occurrences > 1 THEN CAST(p.occurrences AS VARCHAR) || ' ' ELSE '' END
            || p.part AS part
    FROM _placed AS p
),
_of_16 AS (
    SELECT
        p.module_id AS module_id,
        p.owner_id AS owner_id,
        p.list_kind AS list_kind,
        p.first_of_16 - p.first_of_256 AS place_in_256,
        p.first_of_256 AS first_of_256,
        MAX(p.place) AS last_place,
        MAX(CASE WHEN p.place_in_16 = 0 THEN p.part END)
            || COALESCE(MAX(CASE WHEN p.place_in_16 = 1 THEN p.part END), '')
            || COALESCE(MAX(CASE WHEN p.place_in_16 = 2 THEN p.part END), '')
            || COALESCE(MAX(CASE WHEN p.place_in_16 = 3 THEN p.part END), '')
            || COALESCE(MAX(CASE WHEN p.place_in_16 = 4 THEN p.part END), '')
            || COALESCE(MAX(CASE WHEN p.place_in_16 = 5 THEN p.part END), '')
            || COALESCE(MAX(CASE WHEN p.place_in_16 = 6 THEN p.part END), '')
            || COALESCE(MAX(CASE WHEN p.place_in_16 = 7 THEN p.part END), '')
            || COALESCE(MAX(CASE WHEN p.place_in_16 = 8 THEN p.part END), '')
            || COALESCE(MAX(CASE WHEN p.place_in_16 = 9 THEN p.part END), '')
            || COALESCE(MAX(CASE WHEN p.place_in_16 = 10 THEN p.part END), '')
            || COALESCE(MAX(CASE WHEN p.place_in_16 = 11 THEN p.part END), '')
            || COALESCE(MAX(CASE WHEN p.place_in_16 = 12 THEN p.part END), '')
            || COALESCE(MAX(CASE WHEN p.place_in_16 = 13 THEN p.part END), '')
            || COALESCE(MAX(CASE WHEN p.place_in_16 = 14 THEN p.part END), '')
            || COALESCE(MAX(CASE WHEN p.place_in_16 = 15 THEN p.part END), '') AS joined
    FROM _parts AS p
    GROUP BY
        p.module_id,
        p.owner_id,
        p.list_kind,
        p.first_of_16,
        p.first_of_256
),
_of_256 AS (
    SELECT
        t.module_id AS module_id,
        t.owner_id AS owner_id,
        t.list_kind AS list_kind,
        t.first_of_256 AS first_of_256,
        MAX(t.last_place) AS last_of_all,
        MAX(CASE WHEN t.place_in_256 = 0 THEN t.joined END)
            || COALESCE(MAX(CASE WHEN t.place_in_256 = 16 THEN t.joined END), '')
            || COALESCE(MAX(CASE WHEN t.place_in_256 = 32 THEN t.joined END), '')
            || COALESCE(MAX(CASE WHEN t.place_in_256 = 48 THEN t.joined END), '')
            || COALESCE(MAX(CASE WHEN t.place_in_256 = 64 THEN t.joined END), '')
            || COALESCE(MAX(CASE WHEN t.place_in_256 = 80 THEN t.joined END), '')
            || COALESCE(MAX(CASE WHEN t.place_in_256 = 96 THEN t.joined END), '')
            || COALESCE(MAX(CASE WHEN t.place_in_256 = 112 THEN t.joined END), '')
            || COALESCE(MAX(CASE WHEN t.place_in_256 = 128 THEN t.joined END), '')
            || COALESCE(MAX(CASE WHEN t.place_in_256 = 144 THEN t.joined END), '')
            || COALESCE(MAX(CASE WHEN t.place_in_256 = 160 THEN t.joined END), '')
            || COALESCE(MAX(CASE WHEN t.place_in_256 = 176 THEN t.joined END), '')
            || COALESCE(MAX(CASE WHEN t.place_in_256 = 192 THEN t.joined END), '')
            || COALESCE(MAX(CASE WHEN t.place_in_256 = 208 THEN t.joined END), '')
            || COALESCE(MAX(CASE WHEN t.place_in_256 = 224 THEN t.joined END), '')
            || COALESCE(MAX(CASE WHEN t.place_in_256 = 240 THEN t.joined END), '') AS joined_again
    FROM _of_16 AS t
    GROUP BY
        t.module_id,
        t.owner_id,
        t.list_kind,
        t.first_of_256
)
SELECT
    t.module_id AS module_id,
    t.owner_id AS owner_id,
    t.list_kind AS list_kind,
    MAX(CASE WHEN t.first_of_256 = 0 THEN t.joined_again END)
        || COALESCE(MAX(CASE WHEN t.first_of_256 = 256 THEN t.joined_again END), '')
        || COALESCE(MAX(CASE WHEN t.first_of_256 = 512 THEN t.joined_again END), '')
        || COALESCE(MAX(CASE WHEN t.first_of_256 = 768 THEN t.joined_again END), '')
        || COALESCE(MAX(CASE WHEN t.first_of_256 = 1024 THEN t.joined_again END), '')
        || COALESCE(MAX(CASE WHEN t.first_of_256 = 1280 THEN t.joined_again END), '')
        || COALESCE(MAX(CASE WHEN t.first_of_256 = 1536 THEN t.joined_again END), '')
        || COALESCE(MAX(CASE WHEN t.first_of_256 = 1792 THEN t.joined_again END), '')
        || COALESCE(MAX(CASE WHEN t.first_of_256 = 2048 THEN t.joined_again END), '')
        || COALESCE(MAX(CASE WHEN t.first_of_256 = 2304 THEN t.joined_again END), '')
        || COALESCE(MAX(CASE WHEN t.first_of_256 = 2560 THEN t.joined_again END), '')
        || COALESCE(MAX(CASE WHEN t.first_of_256 = 2816 THEN t.joined_again END), '')
        || COALESCE(MAX(CASE WHEN t.first_of_256 = 3072 THEN t.joined_again END), '')
        || COALESCE(MAX(CASE WHEN t.first_of_256 = 3328 THEN t.joined_again END), '')
        || COALESCE(MAX(CASE WHEN t.first_of_256 = 3584 THEN t.joined_again END), '')
        || COALESCE(MAX(CASE WHEN t.first_of_256 = 3840 THEN t.joined_again END), '')
        || CASE
            WHEN MAX(t.last_of_all) >= 4096 THEN ', ... of ' || CAST(MAX(t.last_of_all) + 1 AS VARCHAR)
            ELSE ''
        END AS list_text
FROM _of_256 AS t
GROUP BY
    t.module_id,
    t.owner_id,
    t.list_kind
