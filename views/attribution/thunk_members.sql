-- name: v1._thunk_members
-- version: 1
-- grain: one row per module and thunk that launches work
-- summary: The thunks of a module with the kind of work that stands for each on a device.
-- evidence: compiler
-- columns:
--   module_id BIGINT: the module
--   thunk_index BIGINT: the thunk, as XLA numbers them
--   computation_id BIGINT: computation whose sequence it belongs to
--   node_position BIGINT: its place in that sequence
--   instruction_id BIGINT: the instruction that it runs
--   shape VARCHAR: result of the instruction
--   kernel_name_id BIGINT: names.name_id of the kernel that XLA made for it; NULL where it made none
--   member_kind VARCHAR: kernel (that XLA made), copy, collective, attention_forward, attention_backward, library,
--     loop, branch or other
--   is_beside BOOLEAN: it runs on another stream than those around it, unless in a graph

SELECT
    t.module_id AS module_id,
    t.thunk_index AS thunk_index,
    t.computation_id AS computation_id,
    t.node_position AS node_position,
    t.instruction_id AS instruction_id,
    i.shape AS shape,
    t.kernel_name_id AS kernel_name_id,
    CASE
        WHEN t.kernel_name_id IS NOT NULL THEN 'kernel'
        WHEN t.thunk_kind = 'dynamic_slice' THEN 'copy'
        WHEN t.thunk_kind <> 'library' THEN t.thunk_kind
        WHEN REGEXP_MATCHES(i.custom_call_target, '^.*(fmha|[aA]tt|sdpa).*([bB]ackward|bwd).*$')
            THEN 'attention_backward'
        WHEN REGEXP_MATCHES(i.custom_call_target, '^.*(fmha|[aA]tt|sdpa).*$') THEN 'attention_forward'
        ELSE 'library'
    END AS member_kind,
    t.thunk_kind = 'dynamic_slice' OR s.thunk_index IS NOT NULL AS is_beside
FROM main.hlo_thunks AS t
INNER JOIN main.hlo_instructions AS i
    ON i.module_id = t.module_id
    AND i.instruction_id = t.instruction_id
LEFT JOIN main.hlo_thunks AS s
    ON s.module_id = t.module_id
    AND s.thunk_index = t.thunk_index - 1
    AND s.instruction_id = t.instruction_id
    AND s.thunk_kind = 'async_start'
WHERE t.thunk_kind NOT IN ('async_start', 'async_done', 'nested_copy')
