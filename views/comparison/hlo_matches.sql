-- name: v1._hlo_matches
-- version: 1
-- grain: one row per pair of modules and instruction of either that the other has no equal of
-- summary: Which instructions of two modules are the same work, done differently.
-- evidence: derived
-- columns:
--   base_module_id BIGINT: module that is compared with
--   head_module_id BIGINT: module that is compared
--   is_head INTEGER: 1 for an instruction of head, 0 for one of base
--   instruction_id BIGINT: the instruction
--   match_key VARCHAR: the same for the two instructions of a match, one of each module; NULL without a match
-- algorithm: Equal instructions are paired first, one with one, and left out: five and six of a kind leave one. Of the
--   others, the most alike are paired: by each key of v1._hlo_keys those that no key before it paired, in the order of
--   what they are, as many as both modules have.

WITH _sides AS (
    SELECT
        b.module_id AS base_module_id,
        h.module_id AS head_module_id,
        0 AS is_head,
        k.instruction_id AS instruction_id,
        k.place AS place,
        k.whole_key AS whole_key,
        k.work_key AS work_key,
        k.plain_key AS plain_key,
        k.contents_key AS contents_key,
        k.results_key AS results_key,
        k.name_key AS name_key,
        k.other_key AS other_key
    FROM main.hlo_modules AS b
    CROSS JOIN main.hlo_modules AS h
    INNER JOIN v1._hlo_keys AS k
        ON k.module_id = b.module_id
    UNION ALL
    SELECT
        b.module_id AS base_module_id,
        h.module_id AS head_module_id,
        1 AS is_head,
        k.instruction_id AS instruction_id,
        k.place AS place,
        k.whole_key AS whole_key,
        k.work_key AS work_key,
        k.plain_key AS plain_key,
        k.contents_key AS contents_key,
        k.results_key AS results_key,
        k.name_key AS name_key,
        k.other_key AS other_key
    FROM main.hlo_modules AS b
    CROSS JOIN main.hlo_modules AS h
    INNER JOIN v1._hlo_keys AS k
        ON k.module_id = h.module_id
),
_numbered AS (
    SELECT
        s.base_module_id AS base_module_id,
        s.head_module_id AS head_module_id,
        s.is_head AS is_head,
        s.instruction_id AS instruction_id,
        s.place AS place,
        s.work_key AS work_key,
        s.plain_key AS plain_key,
        s.contents_key AS contents_key,
        s.results_key AS results_key,
        s.name_key AS name_key,
        s.other_key AS other_key,
        ROW_NUMBER() OVER (
            PARTITION BY s.base_module_id, s.head_module_id, s.is_head, s.whole_key
            ORDER BY s.place NULLS FIRST
        ) AS equal_number,
        COUNT(CASE WHEN s.is_head = 0 THEN 1 END) OVER (
            PARTITION BY s.base_module_id, s.head_module_id, s.whole_key
        ) AS base_equals,
        COUNT(CASE WHEN s.is_head = 1 THEN 1 END) OVER (
            PARTITION BY s.base_module_id, s.head_module_id, s.whole_key
        ) AS head_equals
    FROM _sides AS s
),
_different AS (
    SELECT
        n.base_module_id AS base_module_id,
        n.head_module_id AS head_module_id,
        n.is_head AS is_head,
        n.instruction_id AS instruction_id,
        n.place AS place,
        n.work_key AS work_key,
        n.plain_key AS plain_key,
        n.contents_key AS contents_key,
        n.results_key AS results_key,
        n.name_key AS name_key,
        n.other_key AS other_key,
        CAST(NULL AS VARCHAR) AS match_key
    FROM _numbered AS n
    WHERE n.equal_number > LEAST(n.base_equals, n.head_equals)
),
_by_work AS (
    SELECT
        d.base_module_id AS base_module_id,
        d.head_module_id AS head_module_id,
        d.is_head AS is_head,
        d.instruction_id AS instruction_id,
        d.place AS place,
        d.plain_key AS plain_key,
        d.contents_key AS contents_key,
        d.results_key AS results_key,
        d.name_key AS name_key,
        d.other_key AS other_key,
        CASE
            WHEN d.match_key IS NOT NULL OR d.work_key IS NULL THEN d.match_key
            WHEN ROW_NUMBER() OVER (
                    PARTITION BY d.base_module_id, d.head_module_id, d.is_head, d.match_key, d.work_key
                    ORDER BY d.place NULLS FIRST
                ) <= LEAST(
                    COUNT(CASE WHEN d.is_head = 0 THEN 1 END) OVER (
                        PARTITION BY d.base_module_id, d.head_module_id, d.match_key, d.work_key
                    ),
                    COUNT(CASE WHEN d.is_head = 1 THEN 1 END) OVER (
                        PARTITION BY d.base_module_id, d.head_module_id, d.match_key, d.work_key
                    )
                )
                THEN 'work_key ' || CAST(ROW_NUMBER() OVER (
                    PARTITION BY d.base_module_id, d.head_module_id, d.is_head, d.match_key, d.work_key
                    ORDER BY d.place NULLS FIRST
                ) AS VARCHAR) || ' ' || d.work_key
        END AS match_key
    FROM _different AS d
),
_by_plain_name AS (
    SELECT
        w.base_module_id AS base_module_id,
        w.head_module_id AS head_module_id,
        w.is_head AS is_head,
        w.instruction_id AS instruction_id,
        w.place AS place,
        w.contents_key AS contents_key,
        w.results_key AS results_key,
        w.name_key AS name_key,
        w.other_key AS other_key,
        CASE
            WHEN w.match_key IS NOT NULL OR w.plain_key IS NULL THEN w.match_key
            WHEN ROW_NUMBER() OVER (
                    PARTITION BY w.base_module_id, w.head_module_id, w.is_head, w.match_key, w.plain_key
                    ORDER BY w.place NULLS FIRST
                ) <= LEAST(
                    COUNT(CASE WHEN w.is_head = 0 THEN 1 END) OVER (
                        PARTITION BY w.base_module_id, w.head_module_id, w.match_key, w.plain_key
                    ),
                    COUNT(CASE WHEN w.is_head = 1 THEN 1 END) OVER (
                        PARTITION BY w.base_module_id, w.head_module_id, w.match_key, w.plain_key
                    )
                )
                THEN 'plain_key ' || CAST(ROW_NUMBER() OVER (
                    PARTITION BY w.base_module_id, w.head_module_id, w.is_head, w.match_key, w.plain_key
                    ORDER BY w.place NULLS FIRST
                ) AS VARCHAR) || ' ' || w.plain_key
        END AS match_key
    FROM _by_work AS w
),
_by_contents AS (
    SELECT
        p.base_module_id AS base_module_id,
        p.head_module_id AS head_module_id,
        p.is_head AS is_head,
        p.instruction_id AS instruction_id,
        p.place AS place,
        p.results_key AS results_key,
        p.name_key AS name_key,
        p.other_key AS other_key,
        CASE
            WHEN p.match_key IS NOT NULL OR p.contents_key IS NULL THEN p.match_key
            WHEN ROW_NUMBER() OVER (
                    PARTITION BY p.base_module_id, p.head_module_id, p.is_head, p.match_key, p.contents_key
                    ORDER BY p.place NULLS FIRST
                ) <= LEAST(
                    COUNT(CASE WHEN p.is_head = 0 THEN 1 END) OVER (
                        PARTITION BY p.base_module_id, p.head_module_id, p.match_key, p.contents_key
                    ),
                    COUNT(CASE WHEN p.is_head = 1 THEN 1 END) OVER (
                        PARTITION BY p.base_module_id, p.head_module_id, p.match_key, p.contents_key
                    )
                )
                THEN 'contents_key ' || CAST(ROW_NUMBER() OVER (
                    PARTITION BY p.base_module_id, p.head_module_id, p.is_head, p.match_key, p.contents_key
                    ORDER BY p.place NULLS FIRST
                ) AS VARCHAR) || ' ' || p.contents_key
        END AS match_key
    FROM _by_plain_name AS p
),
_by_results AS (
    SELECT
        c.base_module_id AS base_module_id,
        c.head_module_id AS head_module_id,
        c.is_head AS is_head,
        c.instruction_id AS instruction_id,
        c.place AS place,
        c.name_key AS name_key,
        c.other_key AS other_key,
        CASE
            WHEN c.match_key IS NOT NULL OR c.results_key IS NULL THEN c.match_key
            WHEN ROW_NUMBER() OVER (
                    PARTITION BY c.base_module_id, c.head_module_id, c.is_head, c.match_key, c.results_key
                    ORDER BY c.place NULLS FIRST
                ) <= LEAST(
                    COUNT(CASE WHEN c.is_head = 0 THEN 1 END) OVER (
                        PARTITION BY c.base_module_id, c.head_module_id, c.match_key, c.results_key
                    ),
                    COUNT(CASE WHEN c.is_head = 1 THEN 1 END) OVER (
                        PARTITION BY c.base_module_id, c.head_module_id, c.match_key, c.results_key
                    )
                )
                THEN 'results_key ' || CAST(ROW_NUMBER() OVER (
                    PARTITION BY c.base_module_id, c.head_module_id, c.is_head, c.match_key, c.results_key
                    ORDER BY c.place NULLS FIRST
                ) AS VARCHAR) || ' ' || c.results_key
        END AS match_key
    FROM _by_contents AS c
),
_by_name AS (
    SELECT
        r.base_module_id AS base_module_id,
        r.head_module_id AS head_module_id,
        r.is_head AS is_head,
        r.instruction_id AS instruction_id,
        r.place AS place,
        r.other_key AS other_key,
        CASE
            WHEN r.match_key IS NOT NULL OR r.name_key IS NULL THEN r.match_key
            WHEN ROW_NUMBER() OVER (
                    PARTITION BY r.base_module_id, r.head_module_id, r.is_head, r.match_key, r.name_key
                    ORDER BY r.place NULLS FIRST
                ) <= LEAST(
                    COUNT(CASE WHEN r.is_head = 0 THEN 1 END) OVER (
                        PARTITION BY r.base_module_id, r.head_module_id, r.match_key, r.name_key
                    ),
                    COUNT(CASE WHEN r.is_head = 1 THEN 1 END) OVER (
                        PARTITION BY r.base_module_id, r.head_module_id, r.match_key, r.name_key
                    )
                )
                THEN 'name_key ' || CAST(ROW_NUMBER() OVER (
                    PARTITION BY r.base_module_id, r.head_module_id, r.is_head, r.match_key, r.name_key
                    ORDER BY r.place NULLS FIRST
                ) AS VARCHAR) || ' ' || r.name_key
        END AS match_key
    FROM _by_results AS r
)
SELECT
    n.base_module_id AS base_module_id,
    n.head_module_id AS head_module_id,
    n.is_head AS is_head,
    n.instruction_id AS instruction_id,
    CASE
        WHEN n.match_key IS NOT NULL OR n.other_key IS NULL THEN n.match_key
        WHEN ROW_NUMBER() OVER (
                PARTITION BY n.base_module_id, n.head_module_id, n.is_head, n.match_key, n.other_key
                ORDER BY n.place NULLS FIRST
            ) <= LEAST(
                COUNT(CASE WHEN n.is_head = 0 THEN 1 END) OVER (
                    PARTITION BY n.base_module_id, n.head_module_id, n.match_key, n.other_key
                ),
                COUNT(CASE WHEN n.is_head = 1 THEN 1 END) OVER (
                    PARTITION BY n.base_module_id, n.head_module_id, n.match_key, n.other_key
                )
            )
            THEN 'other_key ' || CAST(ROW_NUMBER() OVER (
                PARTITION BY n.base_module_id, n.head_module_id, n.is_head, n.match_key, n.other_key
                ORDER BY n.place NULLS FIRST
            ) AS VARCHAR) || ' ' || n.other_key
    END AS match_key
FROM _by_name AS n
