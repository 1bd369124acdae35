-- name: v1._scope_tree
-- version: 1
-- grain: one row per capture and scope range that has others inside, and that an outermost one leads to
-- summary: Depth and outermost scope of the scope ranges that have others inside.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   scope_range_id BIGINT: the scope range
--   outermost_scope_range_id BIGINT: the one around all others that it lies in; itself if it lies in none
--   depth INTEGER: 1 for the outermost
-- algorithm: Downwards from the scopes that have no row of their own in scope_ranges, since only nested ones
--   have. A scope has one parent, so each is reached once at most and the recursion ends; those on a cycle,
--   and those inside of them, are never reached.

WITH RECURSIVE _links AS (
    SELECT
        s.capture_id AS capture_id,
        s.scope_range_id AS scope_range_id,
        MIN(s.parent_scope_range_id) AS parent_id
    FROM main.scope_ranges AS s
    GROUP BY
        s.capture_id,
        s.scope_range_id
),
_parents AS (
    SELECT DISTINCT
        l.capture_id AS capture_id,
        l.parent_id AS scope_range_id
    FROM _links AS l
),
_nodes AS (
    SELECT
        p.capture_id AS capture_id,
        p.scope_range_id AS scope_range_id,
        l.parent_id AS parent_id
    FROM _parents AS p
    LEFT JOIN _links AS l
        ON l.capture_id = p.capture_id
        AND l.scope_range_id = p.scope_range_id
),
_tree AS (
    SELECT
        n.capture_id AS capture_id,
        n.scope_range_id AS scope_range_id,
        n.scope_range_id AS outermost_scope_range_id,
        1 AS depth
    FROM _nodes AS n
    WHERE n.parent_id IS NULL
    UNION ALL
    SELECT
        n.capture_id AS capture_id,
        n.scope_range_id AS scope_range_id,
        t.outermost_scope_range_id AS outermost_scope_range_id,
        t.depth + 1 AS depth
    FROM _tree AS t
    INNER JOIN _nodes AS n
        ON n.capture_id = t.capture_id
        AND n.parent_id = t.scope_range_id
)
SELECT
    t.capture_id AS capture_id,
    t.scope_range_id AS scope_range_id,
    t.outermost_scope_range_id AS outermost_scope_range_id,
    t.depth AS depth
FROM _tree AS t
