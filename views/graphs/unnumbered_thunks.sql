-- name: v1._unnumbered_thunks
-- version: 1
-- grain: one row per capture, program, command buffer without numbered nodes and thunk that it may record
-- summary: The thunks from the one that begins a command buffer to the last that can belong to it.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   program_id BIGINT: the program
--   buffer_name_id BIGINT: names.name_id of the command buffer
--   module_id BIGINT: module of the program
--   node_position BIGINT: place of the thunk in its computation
--   thunk_index BIGINT: the thunk
--   shape VARCHAR: result of its instruction
--   kernel_name_id BIGINT: names.name_id of the kernel that XLA made for it; NULL where it made none
--   member_kind VARCHAR: as in v1._thunk_members
--   is_launched BOOLEAN: an event of the capture names the instruction, so that it runs without the graph at times
-- algorithm: A buffer begins with the thunk whose number its name has, in that thunk's computation. A loop, a
--   branch and the beginning of another buffer are beyond its end.

WITH _buffers AS (
    SELECT
        o.capture_id AS capture_id,
        o.program_id AS program_id,
        o.hlo_op_name_id AS buffer_name_id,
        p.module_id AS module_id,
        CAST(NULLIF(REGEXP_EXTRACT(b.name, '^command_buffer_([0-9]{1,9})$', 1), '') AS BIGINT)
            AS first_thunk_index,
        MIN(CASE WHEN o.graph_node_index IS NULL THEN 0 ELSE 1 END) AS is_numbered
    FROM main.ops AS o
    INNER JOIN main.names AS b
        ON b.name_id = o.hlo_op_name_id
    INNER JOIN main.hlo_programs AS p
        ON p.capture_id = o.capture_id
        AND p.program_id = o.program_id
    WHERE b.name LIKE 'command_buffer%'
    GROUP BY
        o.capture_id,
        o.program_id,
        o.hlo_op_name_id,
        p.module_id,
        b.name
),
_launched AS (
    SELECT DISTINCT
        o.capture_id AS capture_id,
        o.program_id AS program_id,
        o.hlo_op_name_id AS hlo_op_name_id
    FROM main.ops AS o
),
_following AS (
    SELECT
        b.capture_id AS capture_id,
        b.program_id AS program_id,
        b.buffer_name_id AS buffer_name_id,
        b.module_id AS module_id,
        t.node_position AS node_position,
        t.thunk_index AS thunk_index,
        t.shape AS shape,
        t.kernel_name_id AS kernel_name_id,
        t.member_kind AS member_kind,
        l.hlo_op_name_id IS NOT NULL AS is_launched,
        MIN(CASE WHEN t.member_kind IN ('loop', 'branch') OR o.buffer_name_id IS NOT NULL THEN t.node_position END)
            OVER (PARTITION BY b.capture_id, b.program_id, b.buffer_name_id) AS end_position
    FROM _buffers AS b
    INNER JOIN main.hlo_thunks AS s
        ON s.module_id = b.module_id
        AND s.thunk_index = b.first_thunk_index
    INNER JOIN v1._thunk_members AS t
        ON t.module_id = s.module_id
        AND t.computation_id = s.computation_id
        AND t.node_position >= s.node_position
    INNER JOIN main.hlo_instructions AS i
        ON i.module_id = t.module_id
        AND i.instruction_id = t.instruction_id
    LEFT JOIN _buffers AS o
        ON o.capture_id = b.capture_id
        AND o.program_id = b.program_id
        AND o.first_thunk_index = t.thunk_index
        AND o.buffer_name_id <> b.buffer_name_id
    LEFT JOIN _launched AS l
        ON l.capture_id = b.capture_id
        AND l.program_id = b.program_id
        AND l.hlo_op_name_id = i.name_id
    WHERE b.is_numbered = 0
)
SELECT
    f.capture_id AS capture_id,
    f.program_id AS program_id,
    f.buffer_name_id AS buffer_name_id,
    f.module_id AS module_id,
    f.node_position AS node_position,
    f.thunk_index AS thunk_index,
    f.shape AS shape,
    f.kernel_name_id AS kernel_name_id,
    f.member_kind AS member_kind,
    f.is_launched AS is_launched
FROM _following AS f
WHERE f.end_position IS NULL
    OR f.node_position < f.end_position
