-- name: v1._static_memory
-- version: 1
-- grain: one row per module, memory space and kind
-- summary: What running a module takes in each memory space of a device, as its compiler planned it.
-- evidence: compiler
-- columns:
--   module_id BIGINT: the module
--   memory_space BIGINT: 0 for the device's own memory, 5 for the host's, else a space of the backend
--   kind VARCHAR: argument, alias, output, constant, temporary, thread_local, heap_peak, peak or reserved
--   bytes BIGINT (bytes): amount; those of argument, output, constant, temporary and thread_local are of
--     different allocations
-- algorithm: Each allocation is an argument, an output of its own, a constant, thread-local or temporary.
--   heap_peak is the most that is live at once in the heap trace, of several that of the largest.

WITH _allocations AS (
    SELECT
        b.module_id AS module_id,
        b.memory_space AS memory_space,
        CAST(SUM(CASE WHEN b.allocation_kind = 'parameter' THEN b.bytes ELSE 0 END) AS BIGINT)
            AS argument_bytes,
        CAST(SUM(CASE WHEN b.is_aliased THEN b.bytes ELSE 0 END) AS BIGINT) AS alias_bytes,
        CAST(SUM(CASE WHEN b.allocation_kind = 'output' THEN b.bytes ELSE 0 END) AS BIGINT) AS output_bytes,
        CAST(SUM(CASE WHEN b.allocation_kind = 'constant' THEN b.bytes ELSE 0 END) AS BIGINT)
            AS constant_bytes,
        CAST(SUM(CASE WHEN b.allocation_kind = 'temporary' THEN b.bytes ELSE 0 END) AS BIGINT)
            AS temporary_bytes,
        CAST(SUM(CASE WHEN b.allocation_kind = 'thread_local' THEN b.bytes ELSE 0 END) AS BIGINT)
            AS thread_local_bytes
    FROM main.hlo_buffers AS b
    GROUP BY
        b.module_id,
        b.memory_space
),
_peaks AS (
    SELECT
        e.module_id AS module_id,
        b.memory_space AS memory_space,
        MAX(e.live_bytes) AS heap_peak_bytes
    FROM main.hlo_heap_events AS e
    INNER JOIN main.hlo_buffers AS b
        ON b.module_id = e.module_id
        AND b.allocation_index = e.allocation_index
    GROUP BY
        e.module_id,
        b.memory_space
),
_spaces AS (
    SELECT
        a.module_id AS module_id,
        a.memory_space AS memory_space,
        a.argument_bytes AS argument_bytes,
        a.alias_bytes AS alias_bytes,
        a.output_bytes AS output_bytes,
        a.constant_bytes AS constant_bytes,
        a.temporary_bytes AS temporary_bytes,
        a.thread_local_bytes AS thread_local_bytes,
        a.argument_bytes + a.output_bytes + a.constant_bytes AS lasting_bytes,
        COALESCE(p.heap_peak_bytes, CASE WHEN a.temporary_bytes = 0 THEN 0 END) AS heap_peak_bytes
    FROM _allocations AS a
    LEFT JOIN _peaks AS p
        ON p.module_id = a.module_id
        AND p.memory_space = a.memory_space
),
_kinds AS (
    SELECT
        k.kind AS kind
    FROM (
        VALUES
            ('argument'), ('alias'), ('output'), ('constant'), ('temporary'), ('thread_local'),
            ('heap_peak'), ('peak'), ('reserved')
    ) AS k (kind)
)
SELECT
    s.module_id AS module_id,
    s.memory_space AS memory_space,
    k.kind AS kind,
    CASE k.kind
        WHEN 'argument' THEN s.argument_bytes
        WHEN 'alias' THEN s.alias_bytes
        WHEN 'output' THEN s.output_bytes
        WHEN 'constant' THEN s.constant_bytes
        WHEN 'temporary' THEN s.temporary_bytes
        WHEN 'thread_local' THEN s.thread_local_bytes
        WHEN 'heap_peak' THEN s.heap_peak_bytes
        WHEN 'peak' THEN s.lasting_bytes + s.heap_peak_bytes
        ELSE s.lasting_bytes + s.temporary_bytes
    END AS bytes
FROM _spaces AS s
CROSS JOIN _kinds AS k
