-- name: v1._launch_shapes
-- version: 1
-- grain: one row per row of launch_details
-- summary: Grid, block and symbol of launches, as text and name that captures have in common.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   launch_details_id BIGINT: joins device_events
--   grid VARCHAR: blocks as x,y,z; NULL where unknown
--   block VARCHAR: threads of a block as x,y,z; NULL where unknown
--   symbol_name_id BIGINT: names.name_id of the kernel's symbol in its code object; NULL where unknown
--   is_repeated BOOLEAN: of a kernel that was run again for more counters, after the first time

SELECT
    l.capture_id AS capture_id,
    l.launch_details_id AS launch_details_id,
    CAST(l.grid_x AS VARCHAR) || ',' || CAST(l.grid_y AS VARCHAR) || ',' || CAST(l.grid_z AS VARCHAR) AS grid,
    CAST(l.block_x AS VARCHAR) || ',' || CAST(l.block_y AS VARCHAR) || ',' || CAST(l.block_z AS VARCHAR)
        AS block,
    s.symbol_name_id AS symbol_name_id,
    COALESCE(l.replay_pass > MIN(l.replay_pass) OVER (PARTITION BY l.capture_id), FALSE) AS is_repeated
FROM main.launch_details AS l
LEFT JOIN main.kernel_symbols AS s
    ON s.capture_id = l.capture_id
    AND s.kernel_symbol_id = l.kernel_symbol_id
