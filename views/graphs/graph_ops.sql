-- name: v1._graph_ops
-- version: 1
-- grain: one row per capture, program, command buffer, node and kernel whose instruction is found
-- summary: The HLO instruction of each node of a graph.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   program_id BIGINT: the program
--   buffer_name_id BIGINT: names.name_id of the command buffer
--   node_index BIGINT: the node
--   kernel_name_id BIGINT: names.name_id of what it runs
--   module_id BIGINT: module of the program
--   instruction_id BIGINT: the instruction
--   attribution_source VARCHAR: graph_name where the kernel is called after the instruction, else
--     graph_position
-- algorithm: Nodes up to the last thunk are the thunks. Those after it belong to the graphs in the graph, in
--   their order. A memset belongs to what follows it, an epilogue to what it follows; the rest are heads.
--   Heads and graphs of one kind in a row are a group. Where the groups of both agree in number and kinds,
--   a group with as many heads as graphs has one each, a group with one graph belongs to it whole, and any
--   other is ambiguous: its nodes are left out. Where they do not agree, all are: so where a kernel that XLA
--   made is behind the end, as after a loop in the graph. Where it is not known that what follows the last
--   thunk runs elsewhere, a thunk could be behind it: one without events, or one whose kernel has some other
--   name. Then all nodes behind it are left out too.

WITH _ends AS (
    SELECT
        t.capture_id AS capture_id,
        t.program_id AS program_id,
        t.buffer_name_id AS buffer_name_id,
        MAX(t.node_index) AS last_thunk_index
    FROM v1._graph_thunks AS t
    WHERE t.is_end_known
    GROUP BY
        t.capture_id,
        t.program_id,
        t.buffer_name_id
),
_graphs AS (
    SELECT
        t.capture_id AS capture_id,
        t.program_id AS program_id,
        t.buffer_name_id AS buffer_name_id,
        t.module_id AS module_id,
        t.node_index AS node_index,
        t.instruction_id AS instruction_id,
        CASE
            WHEN t.thunk_kind = 'dynamic_slice' THEN 'copy'
            WHEN t.thunk_kind = 'collective' THEN 'collective'
            WHEN REGEXP_MATCHES(i.custom_call_target, '^.*(fmha|[aA]tt|sdpa).*([bB]ackward|bwd).*$')
                THEN 'attention_backward'
            WHEN REGEXP_MATCHES(i.custom_call_target, '^.*(fmha|[aA]tt|sdpa).*$') THEN 'attention_forward'
            ELSE 'library'
        END AS member_kind
    FROM v1._graph_thunks AS t
    INNER JOIN main.hlo_instructions AS i
        ON i.module_id = t.module_id
        AND i.instruction_id = t.instruction_id
    WHERE t.is_child_graph
),
_inner AS (
    SELECT
        n.capture_id AS capture_id,
        n.program_id AS program_id,
        n.buffer_name_id AS buffer_name_id,
        n.module_id AS module_id,
        n.node_index AS node_index,
        n.kernel_name_id AS kernel_name_id,
        n.node_kind AS node_kind
    FROM v1._graph_nodes AS n
    INNER JOIN _ends AS e
        ON e.capture_id = n.capture_id
        AND e.program_id = n.program_id
        AND e.buffer_name_id = n.buffer_name_id
    WHERE n.node_index > e.last_thunk_index
),
_heads AS (
    SELECT
        i.capture_id AS capture_id,
        i.program_id AS program_id,
        i.buffer_name_id AS buffer_name_id,
        i.node_index AS node_index,
        MIN(i.node_kind) AS any_kind
    FROM _inner AS i
    WHERE i.node_kind NOT IN ('memset', 'epilogue')
    GROUP BY
        i.capture_id,
        i.program_id,
        i.buffer_name_id,
        i.node_index
),
_members AS (
    SELECT
        g.capture_id AS capture_id,
        g.program_id AS program_id,
        g.buffer_name_id AS buffer_name_id,
        0 AS is_head,
        g.node_index AS node_index,
        g.member_kind AS member_kind
    FROM _graphs AS g
    UNION ALL
    SELECT
        h.capture_id AS capture_id,
        h.program_id AS program_id,
        h.buffer_name_id AS buffer_name_id,
        1 AS is_head,
        h.node_index AS node_index,
        h.any_kind AS member_kind
    FROM _heads AS h
),
_changes AS (
    SELECT
        m.capture_id AS capture_id,
        m.program_id AS program_id,
        m.buffer_name_id AS buffer_name_id,
        m.is_head AS is_head,
        m.node_index AS node_index,
        m.member_kind AS member_kind,
        CASE
            WHEN m.member_kind = LAG(m.member_kind) OVER (
                PARTITION BY m.capture_id, m.program_id, m.buffer_name_id, m.is_head
                ORDER BY m.node_index NULLS FIRST
            ) THEN 0
            ELSE 1
        END AS is_first_of_group
    FROM _members AS m
),
_grouped AS (
    SELECT
        c.capture_id AS capture_id,
        c.program_id AS program_id,
        c.buffer_name_id AS buffer_name_id,
        c.is_head AS is_head,
        c.node_index AS node_index,
        c.member_kind AS member_kind,
        CAST(SUM(c.is_first_of_group) OVER (
            PARTITION BY c.capture_id, c.program_id, c.buffer_name_id, c.is_head
            ORDER BY c.node_index NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT) AS group_number
    FROM _changes AS c
),
_ranked AS (
    SELECT
        g.capture_id AS capture_id,
        g.program_id AS program_id,
        g.buffer_name_id AS buffer_name_id,
        g.is_head AS is_head,
        g.node_index AS node_index,
        g.group_number AS group_number,
        ROW_NUMBER() OVER (
            PARTITION BY g.capture_id, g.program_id, g.buffer_name_id, g.is_head, g.group_number
            ORDER BY g.node_index NULLS FIRST
        ) AS group_rank
    FROM _grouped AS g
),
_groups AS (
    SELECT
        g.capture_id AS capture_id,
        g.program_id AS program_id,
        g.buffer_name_id AS buffer_name_id,
        g.group_number AS group_number,
        CAST(SUM(g.is_head) AS BIGINT) AS head_count,
        CAST(SUM(1 - g.is_head) AS BIGINT) AS graph_count,
        MIN(g.member_kind) = MAX(g.member_kind) AS is_one_kind
    FROM _grouped AS g
    GROUP BY
        g.capture_id,
        g.program_id,
        g.buffer_name_id,
        g.group_number
),
_agreement AS (
    SELECT
        g.capture_id AS capture_id,
        g.program_id AS program_id,
        g.buffer_name_id AS buffer_name_id,
        MIN(CASE WHEN g.is_one_kind AND g.head_count > 0 AND g.graph_count > 0 THEN 1 ELSE 0 END) AS agrees
    FROM _groups AS g
    GROUP BY
        g.capture_id,
        g.program_id,
        g.buffer_name_id
),
_found_heads AS (
    SELECT
        h.capture_id AS capture_id,
        h.program_id AS program_id,
        h.buffer_name_id AS buffer_name_id,
        h.node_index AS head_index,
        c.node_index AS graph_index
    FROM _ranked AS h
    INNER JOIN _groups AS g
        ON g.capture_id = h.capture_id
        AND g.program_id = h.program_id
        AND g.buffer_name_id = h.buffer_name_id
        AND g.group_number = h.group_number
    INNER JOIN _agreement AS a
        ON a.capture_id = h.capture_id
        AND a.program_id = h.program_id
        AND a.buffer_name_id = h.buffer_name_id
        AND a.agrees = 1
    INNER JOIN _ranked AS c
        ON c.capture_id = h.capture_id
        AND c.program_id = h.program_id
        AND c.buffer_name_id = h.buffer_name_id
        AND c.group_number = h.group_number
        AND c.is_head = 0
        AND c.group_rank = CASE WHEN g.graph_count = 1 THEN 1 ELSE h.group_rank END
    WHERE h.is_head = 1
        AND (g.graph_count = 1 OR g.graph_count = g.head_count)
),
_near AS (
    SELECT
        i.capture_id AS capture_id,
        i.program_id AS program_id,
        i.buffer_name_id AS buffer_name_id,
        i.module_id AS module_id,
        i.node_index AS node_index,
        i.kernel_name_id AS kernel_name_id,
        CASE
            WHEN i.node_kind = 'memset' THEN MIN(
                CASE WHEN i.node_kind NOT IN ('memset', 'epilogue') THEN i.node_index END
            ) OVER (
                PARTITION BY i.capture_id, i.program_id, i.buffer_name_id
                ORDER BY i.node_index NULLS FIRST, i.kernel_name_id NULLS FIRST
                ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
            )
            ELSE MAX(
                CASE WHEN i.node_kind NOT IN ('memset', 'epilogue') THEN i.node_index END
            ) OVER (
                PARTITION BY i.capture_id, i.program_id, i.buffer_name_id
                ORDER BY i.node_index NULLS FIRST, i.kernel_name_id NULLS FIRST
                ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
            )
        END AS head_index
    FROM _inner AS i
)
SELECT
    n.capture_id AS capture_id,
    n.program_id AS program_id,
    n.buffer_name_id AS buffer_name_id,
    n.node_index AS node_index,
    n.kernel_name_id AS kernel_name_id,
    n.module_id AS module_id,
    t.instruction_id AS instruction_id,
    CASE WHEN t.kernel_name_id = n.kernel_name_id THEN 'graph_name' ELSE 'graph_position' END
        AS attribution_source
FROM v1._graph_nodes AS n
INNER JOIN v1._graph_thunks AS t
    ON t.capture_id = n.capture_id
    AND t.program_id = n.program_id
    AND t.buffer_name_id = n.buffer_name_id
    AND t.node_index = n.node_index
    AND NOT t.is_child_graph
UNION ALL
SELECT
    i.capture_id AS capture_id,
    i.program_id AS program_id,
    i.buffer_name_id AS buffer_name_id,
    i.node_index AS node_index,
    i.kernel_name_id AS kernel_name_id,
    i.module_id AS module_id,
    t.instruction_id AS instruction_id,
    'graph_position' AS attribution_source
FROM _near AS i
INNER JOIN _found_heads AS h
    ON h.capture_id = i.capture_id
    AND h.program_id = i.program_id
    AND h.buffer_name_id = i.buffer_name_id
    AND h.head_index = i.head_index
INNER JOIN v1._graph_thunks AS t
    ON t.capture_id = h.capture_id
    AND t.program_id = h.program_id
    AND t.buffer_name_id = h.buffer_name_id
    AND t.node_index = h.graph_index
