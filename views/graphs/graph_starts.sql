-- name: v1._graph_starts
-- version: 1
-- grain: one row per capture, program and command buffer whose place in the schedule is found
-- summary: Where in the thunks of its program each command buffer begins.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   program_id BIGINT: the program
--   buffer_name_id BIGINT: names.name_id of the command buffer
--   module_id BIGINT: module of the program
--   computation_id BIGINT: computation whose thunks it records
--   start_position BIGINT: node_position of its first thunk
--   last_node_index BIGINT: the last node that the capture shows
--   named_nodes BIGINT (count): nodes whose kernel has the name of the thunk there
-- algorithm: A buffer begins with the thunk whose number its name has. Nodes count up with thunks, so each node
--   that has the name of its thunk tells the same start, and one that is named after another thunk of equal
--   code some other. Where the numbers are found right by less than half of the names that the best starts
--   have, they are of some other way to number: then the start that most nodes tell is the one, if they are
--   two or more, and of several none.

WITH _nodes AS (
    SELECT
        n.capture_id AS capture_id,
        n.program_id AS program_id,
        n.buffer_name_id AS buffer_name_id,
        n.module_id AS module_id,
        n.first_thunk_index AS first_thunk_index,
        n.node_index AS node_index,
        n.kernel_name_id AS kernel_name_id,
        MAX(n.node_index) OVER (
            PARTITION BY n.capture_id, n.program_id, n.buffer_name_id
            ORDER BY n.node_index NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
        ) AS last_node_index
    FROM v1._graph_nodes AS n
),
_votes AS (
    SELECT
        n.capture_id AS capture_id,
        n.program_id AS program_id,
        n.buffer_name_id AS buffer_name_id,
        n.module_id AS module_id,
        n.last_node_index AS last_node_index,
        t.computation_id AS computation_id,
        t.node_position - n.node_index AS start_position,
        1 AS named_node,
        0 AS is_named_start
    FROM _nodes AS n
    INNER JOIN main.hlo_thunks AS t
        ON t.module_id = n.module_id
        AND t.kernel_name_id = n.kernel_name_id
        AND t.thunk_kind <> 'nested_copy'
    WHERE t.node_position >= n.node_index
    UNION ALL
    SELECT
        n.capture_id AS capture_id,
        n.program_id AS program_id,
        n.buffer_name_id AS buffer_name_id,
        n.module_id AS module_id,
        n.last_node_index AS last_node_index,
        t.computation_id AS computation_id,
        t.node_position AS start_position,
        0 AS named_node,
        1 AS is_named_start
    FROM _nodes AS n
    INNER JOIN main.hlo_thunks AS t
        ON t.module_id = n.module_id
        AND t.thunk_index = n.first_thunk_index
),
_candidates AS (
    SELECT
        v.capture_id AS capture_id,
        v.program_id AS program_id,
        v.buffer_name_id AS buffer_name_id,
        v.module_id AS module_id,
        v.last_node_index AS last_node_index,
        v.computation_id AS computation_id,
        v.start_position AS start_position,
        CAST(SUM(v.named_node) AS BIGINT) AS votes,
        MAX(v.is_named_start) AS is_named
    FROM _votes AS v
    GROUP BY
        v.capture_id,
        v.program_id,
        v.buffer_name_id,
        v.module_id,
        v.last_node_index,
        v.computation_id,
        v.start_position
),
_trusted AS (
    SELECT
        b.capture_id AS capture_id,
        b.program_id AS program_id,
        2 * CAST(SUM(b.named_votes) AS BIGINT) >= CAST(SUM(b.most_votes) AS BIGINT) AS is_numbered
    FROM (
        SELECT
            c.capture_id AS capture_id,
            c.program_id AS program_id,
            c.buffer_name_id AS buffer_name_id,
            MAX(c.votes) AS most_votes,
            MAX(CASE WHEN c.is_named = 1 THEN c.votes ELSE 0 END) AS named_votes
        FROM _candidates AS c
        GROUP BY
            c.capture_id,
            c.program_id,
            c.buffer_name_id
    ) AS b
    GROUP BY
        b.capture_id,
        b.program_id
),
_ranked AS (
    SELECT
        c.capture_id AS capture_id,
        c.program_id AS program_id,
        c.buffer_name_id AS buffer_name_id,
        c.module_id AS module_id,
        c.last_node_index AS last_node_index,
        c.computation_id AS computation_id,
        c.start_position AS start_position,
        c.votes AS votes,
        t.is_numbered AND c.is_named = 1 OR c.votes > 1 AS is_sure,
        RANK() OVER (
            PARTITION BY c.capture_id, c.program_id, c.buffer_name_id
            ORDER BY
                CASE WHEN t.is_numbered THEN -c.is_named ELSE 0 END NULLS FIRST,
                -c.votes NULLS FIRST
        ) AS vote_rank
    FROM _candidates AS c
    INNER JOIN _trusted AS t
        ON t.capture_id = c.capture_id
        AND t.program_id = c.program_id
),
_first AS (
    SELECT
        r.capture_id AS capture_id,
        r.program_id AS program_id,
        r.buffer_name_id AS buffer_name_id,
        r.module_id AS module_id,
        MIN(r.last_node_index) AS last_index,
        MIN(r.computation_id) AS first_computation_id,
        MIN(r.start_position) AS first_position,
        MIN(r.votes) AS named_nodes
    FROM _ranked AS r
    WHERE r.vote_rank = 1
        AND r.is_sure
    GROUP BY
        r.capture_id,
        r.program_id,
        r.buffer_name_id,
        r.module_id
    HAVING COUNT(*) = 1
)
SELECT
    f.capture_id AS capture_id,
    f.program_id AS program_id,
    f.buffer_name_id AS buffer_name_id,
    f.module_id AS module_id,
    f.first_computation_id AS computation_id,
    f.first_position AS start_position,
    f.last_index AS last_node_index,
    f.named_nodes AS named_nodes
FROM _first AS f
