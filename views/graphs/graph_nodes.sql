-- name: v1._graph_nodes
-- version: 1
-- grain: one row per capture, program, command buffer, node and kernel
-- summary: The nodes of the graphs that a capture shows.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   program_id BIGINT: the program
--   buffer_name_id BIGINT: names.name_id of the command buffer
--   module_id BIGINT: module of the program
--   first_thunk_index BIGINT: number in the name of the buffer: that of its first thunk
--   node_index BIGINT: the node, in the order in which the graph was made
--   kernel_name_id BIGINT: names.name_id of what it runs
--   node_kind VARCHAR: memset, copy, collective, kernel (that XLA made for the module), condition (of a loop or
--     branch in the graph), attention_forward, attention_backward, epilogue (of a library, that ends the work
--     of the kernel before it) or library

WITH _made AS (
    SELECT DISTINCT
        t.module_id AS module_id,
        t.kernel_name_id AS kernel_name_id
    FROM main.hlo_thunks AS t
    WHERE t.kernel_name_id IS NOT NULL
),
_nodes AS (
    SELECT
        o.capture_id AS capture_id,
        o.program_id AS program_id,
        o.hlo_op_name_id AS buffer_name_id,
        o.graph_node_index AS node_index,
        o.graph_kernel_name_id AS kernel_name_id
    FROM main.ops AS o
    WHERE o.graph_node_index IS NOT NULL
    GROUP BY
        o.capture_id,
        o.program_id,
        o.hlo_op_name_id,
        o.graph_node_index,
        o.graph_kernel_name_id
)
SELECT
    n.capture_id AS capture_id,
    n.program_id AS program_id,
    n.buffer_name_id AS buffer_name_id,
    p.module_id AS module_id,
    CAST(NULLIF(REGEXP_EXTRACT(b.name, '^command_buffer_([0-9]{1,9})$', 1), '') AS BIGINT)
        AS first_thunk_index,
    n.node_index AS node_index,
    n.kernel_name_id AS kernel_name_id,
    CASE
        WHEN REGEXP_MATCHES(k.name, '^[Mm]emset.*$') THEN 'memset'
        WHEN REGEXP_MATCHES(k.name, '^([Mm]emcpy|__amd_rocclr_copy).*$') THEN 'copy'
        WHEN REGEXP_MATCHES(k.name, '^(void )?(nccl|rccl).*$') THEN 'collective'
        WHEN x.kernel_name_id IS NOT NULL THEN 'kernel'
        WHEN REGEXP_MATCHES(k.name, '^set_[a-z]+_condition$') THEN 'condition'
        WHEN REGEXP_MATCHES(k.name, '^.*(bprop|dot_do_o|convert_dq|fmha_reduce_head|(fmha|attn|flash).*bwd).*$')
            THEN 'attention_backward'
        WHEN REGEXP_MATCHES(k.name, '^.*(fprop|(fmha|attn|flash).*fwd).*$') THEN 'attention_forward'
        WHEN REGEXP_MATCHES(k.name, '^.*(splitK|SplitK|split_k|PostGSU).*$') THEN 'epilogue'
        ELSE 'library'
    END AS node_kind
FROM _nodes AS n
INNER JOIN main.hlo_programs AS p
    ON p.capture_id = n.capture_id
    AND p.program_id = n.program_id
INNER JOIN main.names AS b
    ON b.name_id = n.buffer_name_id
INNER JOIN main.names AS k
    ON k.name_id = n.kernel_name_id
LEFT JOIN _made AS x
    ON x.module_id = p.module_id
    AND x.kernel_name_id = n.kernel_name_id
WHERE b.name LIKE 'command_buffer%'
