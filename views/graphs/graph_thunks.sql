-- name: v1._graph_thunks
-- version: 1
-- grain: one row per capture, program, command buffer and thunk in it
-- summary: The thunks that each command buffer records, with the nodes that stand for them.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   program_id BIGINT: the program
--   buffer_name_id BIGINT: names.name_id of the command buffer
--   module_id BIGINT: module of the program
--   node_index BIGINT: node of the thunk
--   thunk_kind VARCHAR: kernel, copy, library, collective, dynamic_slice or other
--   instruction_id BIGINT: the instruction that it runs
--   kernel_name_id BIGINT: names.name_id of the kernel that the instruction is called after
--   is_child_graph BOOLEAN: the node is a graph in the graph, which no event stands for
--   is_end_known BOOLEAN: what follows the last thunk of the buffer is known to run outside of it
-- algorithm: From its start on, a thunk that launches one kernel has a node of its kind among the events, and one
--   that is a graph in the graph has none. The first of which that is not true is beyond the end: the nodes of
--   the graphs in the graph are numbered after all thunks. So is one that is launched without a graph, unless
--   the node has its very name, one that begins another buffer, and a loop: of these it is known that they run
--   elsewhere. Nodes whose events name their instruction instead of the buffer count as seen. A kernel that
--   XLA made is that of a thunk of its kind, and one whose own kernel exists runs no other: a start of which
--   that is not true, up to what runs elsewhere, is wrong, and the buffer is left out.

WITH _shown AS (
    SELECT
        n.capture_id AS capture_id,
        n.program_id AS program_id,
        n.buffer_name_id AS buffer_name_id,
        n.node_index AS node_index,
        MIN(n.node_kind) AS any_kind,
        MIN(n.kernel_name_id) AS any_kernel_id
    FROM v1._graph_nodes AS n
    GROUP BY
        n.capture_id,
        n.program_id,
        n.buffer_name_id,
        n.node_index
),
_self_named AS (
    SELECT DISTINCT
        o.capture_id AS capture_id,
        o.program_id AS program_id,
        o.hlo_op_name_id AS hlo_op_name_id,
        o.graph_node_index AS node_index
    FROM main.ops AS o
    WHERE o.graph_node_index IS NOT NULL
),
_kernels AS (
    SELECT DISTINCT
        o.capture_id AS capture_id,
        o.program_id AS program_id,
        o.graph_kernel_name_id AS kernel_name_id
    FROM main.ops AS o
    WHERE o.graph_kernel_name_id IS NOT NULL
),
_launched AS (
    SELECT DISTINCT
        o.capture_id AS capture_id,
        o.program_id AS program_id,
        o.hlo_op_name_id AS hlo_op_name_id
    FROM main.ops AS o
    WHERE o.graph_node_index IS NULL
),
_following AS (
    SELECT
        s.capture_id AS capture_id,
        s.program_id AS program_id,
        s.buffer_name_id AS buffer_name_id,
        s.module_id AS module_id,
        t.node_position - s.start_position AS node_index,
        t.thunk_kind AS thunk_kind,
        t.instruction_id AS instruction_id,
        t.kernel_name_id AS kernel_name_id,
        t.thunk_kind IN ('library', 'collective', 'dynamic_slice') AS is_child_graph,
        t.thunk_kind IN ('loop', 'branch')
            OR o.buffer_name_id IS NOT NULL
            OR (t.thunk_kind IN ('library', 'collective', 'dynamic_slice'))
            = (e.node_index IS NOT NULL OR w.node_index IS NOT NULL)
            OR t.thunk_kind IN ('kernel', 'copy') AND e.any_kind <> t.thunk_kind
            OR d.hlo_op_name_id IS NOT NULL AND COALESCE(e.any_kernel_id <> t.kernel_name_id, TRUE)
            AS is_beyond,
        t.thunk_kind IN ('loop', 'branch')
            OR o.buffer_name_id IS NOT NULL
            OR d.hlo_op_name_id IS NOT NULL
            AS is_elsewhere,
        e.any_kind = 'kernel' AND (
            t.thunk_kind NOT IN ('kernel', 'other')
            OR k.kernel_name_id IS NOT NULL AND e.any_kernel_id <> t.kernel_name_id
        ) AS is_contradicted
    FROM v1._graph_starts AS s
    INNER JOIN main.hlo_thunks AS t
        ON t.module_id = s.module_id
        AND t.computation_id = s.computation_id
        AND t.thunk_kind NOT IN ('async_start', 'async_done', 'nested_copy')
        AND t.node_position >= s.start_position
        AND t.node_position <= s.start_position + s.last_node_index
    INNER JOIN main.hlo_instructions AS i
        ON i.module_id = t.module_id
        AND i.instruction_id = t.instruction_id
    LEFT JOIN _launched AS d
        ON d.capture_id = s.capture_id
        AND d.program_id = s.program_id
        AND d.hlo_op_name_id = i.name_id
    LEFT JOIN v1._graph_starts AS o
        ON o.capture_id = s.capture_id
        AND o.program_id = s.program_id
        AND o.computation_id = s.computation_id
        AND o.start_position = t.node_position
        AND o.buffer_name_id <> s.buffer_name_id
    LEFT JOIN _shown AS e
        ON e.capture_id = s.capture_id
        AND e.program_id = s.program_id
        AND e.buffer_name_id = s.buffer_name_id
        AND e.node_index = t.node_position - s.start_position
    LEFT JOIN _self_named AS w
        ON w.capture_id = s.capture_id
        AND w.program_id = s.program_id
        AND w.hlo_op_name_id = i.name_id
        AND w.node_index = t.node_position - s.start_position
    LEFT JOIN _kernels AS k
        ON k.capture_id = s.capture_id
        AND k.program_id = s.program_id
        AND k.kernel_name_id = t.kernel_name_id
),
_ends AS (
    SELECT
        f.capture_id AS capture_id,
        f.program_id AS program_id,
        f.buffer_name_id AS buffer_name_id,
        MIN(CASE WHEN f.is_beyond THEN f.node_index END) AS end_index,
        MIN(CASE WHEN f.is_beyond AND f.is_elsewhere THEN f.node_index END) AS known_end_index,
        MIN(CASE WHEN f.is_contradicted THEN f.node_index END) AS contradicted_index
    FROM _following AS f
    GROUP BY
        f.capture_id,
        f.program_id,
        f.buffer_name_id
)
SELECT
    f.capture_id AS capture_id,
    f.program_id AS program_id,
    f.buffer_name_id AS buffer_name_id,
    f.module_id AS module_id,
    f.node_index AS node_index,
    f.thunk_kind AS thunk_kind,
    f.instruction_id AS instruction_id,
    f.kernel_name_id AS kernel_name_id,
    f.is_child_graph AS is_child_graph,
    e.end_index IS NULL OR COALESCE(e.known_end_index = e.end_index, FALSE) AS is_end_known
FROM _following AS f
INNER JOIN _ends AS e
    ON e.capture_id = f.capture_id
    AND e.program_id = f.program_id
    AND e.buffer_name_id = f.buffer_name_id
WHERE COALESCE(f.node_index < e.end_index, TRUE)
    AND COALESCE(e.contradicted_index >= e.known_end_index, e.contradicted_index IS NULL)
