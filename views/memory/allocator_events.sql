-- name: v1._allocator_events
-- version: 1
-- grain: one row per allocation or release that the allocator of a framework recorded in an XSpace
-- summary: What the allocators of XLA and TensorFlow said of each allocation, as columns. An ingest keeps its rows in
--   main.allocator_events.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   host_event_id BIGINT: the event
--   time_ps BIGINT (ps): when
--   operation VARCHAR: alloc or free
--   allocator VARCHAR: name of the allocator: GPU_0_bfc; NULL where it tells none, as on TPU
--   device_type VARCHAR: GPU or TPU; NULL where the event tells no device, as of host memory
--   device_ordinal BIGINT: ordinal of the device on its host; NULL where the event tells none
--   memory_space BIGINT: 0 for the device's own memory, 5 for the host's; NULL where unknown
--   address BIGINT: the bits of the pointer
--   requested_bytes BIGINT (bytes): what was asked for
--   allocation_bytes BIGINT (bytes): what was taken or given back; NULL where the event does not say
--   live_bytes BIGINT (bytes): in use after the event, by the allocator's own count
--   reserved_bytes BIGINT (bytes): set aside for programs beside that: their temporary memory on TPU
--   free_bytes BIGINT (bytes): that the allocator could still give
--   lifetime_peak_bytes BIGINT (bytes): most that was in use since the process began
--   op_name VARCHAR: the operation that asked for it; NULL where the event tells none
--   shape VARCHAR: shape of the array; NULL where the event tells none
-- algorithm: The events MemoryAllocation and MemoryDeallocation of a host, as XProf reads them: the device is that in
--   the name of the allocator, else index_on_host or device_ordinal.

WITH _event_names AS (
    SELECT
        n.name_id AS name_id,
        CASE n.name WHEN 'MemoryAllocation' THEN 'alloc' ELSE 'free' END AS operation
    FROM main.names AS n
    WHERE n.name IN ('MemoryAllocation', 'MemoryDeallocation')
),
_stat_names AS (
    SELECT
        n.name_id AS name_id,
        n.name AS name
    FROM main.names AS n
    WHERE n.name IN (
        'allocator_name', 'index_on_host', 'device_ordinal', 'addr', 'requested_bytes', 'allocation_bytes',
        'bytes_allocated', 'bytes_reserved', 'bytes_available', 'peak_bytes_in_use', 'tf_op', 'shape'
    )
),
_stats AS (
    SELECT
        e.capture_id AS capture_id,
        e.host_event_id AS host_event_id,
        e.start_ps AS time_ps,
        w.operation AS operation,
        k.name AS stat_name,
        s.int_value AS int_value,
        t.name AS text_value
    FROM main.host_events AS e
    INNER JOIN _event_names AS w
        ON w.name_id = e.name_id
    LEFT JOIN main.event_stats AS s
        ON s.capture_id = e.capture_id
        AND s.owner_id = e.host_event_id
        AND s.owner = 'host_event'
    LEFT JOIN _stat_names AS k
        ON k.name_id = s.stat_name_id
    LEFT JOIN main.names AS t
        ON t.name_id = s.value_name_id
),
_events AS (
    SELECT
        s.capture_id AS capture_id,
        s.host_event_id AS host_event_id,
        s.time_ps AS time_ps,
        s.operation AS operation,
        MAX(CASE WHEN s.stat_name = 'allocator_name' THEN s.text_value END) AS allocator,
        MAX(CASE WHEN s.stat_name IN ('index_on_host', 'device_ordinal') THEN s.int_value END)
            AS index_on_host,
        MAX(CASE WHEN s.stat_name = 'addr' THEN s.int_value END) AS address,
        MAX(CASE WHEN s.stat_name = 'requested_bytes' THEN s.int_value END) AS requested_bytes,
        MAX(CASE WHEN s.stat_name = 'allocation_bytes' THEN s.int_value END) AS allocation_bytes,
        MAX(CASE WHEN s.stat_name = 'bytes_allocated' THEN s.int_value END) AS live_bytes,
        MAX(CASE WHEN s.stat_name = 'bytes_reserved' THEN s.int_value END) AS reserved_bytes,
        MAX(CASE WHEN s.stat_name = 'bytes_available' THEN s.int_value END) AS free_bytes,
        MAX(CASE WHEN s.stat_name = 'peak_bytes_in_use' THEN s.int_value END) AS lifetime_peak_bytes,
        MAX(CASE WHEN s.stat_name = 'tf_op' THEN s.text_value END) AS op_name,
        MAX(CASE WHEN s.stat_name = 'shape' THEN s.text_value END) AS shape
    FROM _stats AS s
    GROUP BY
        s.capture_id,
        s.host_event_id,
        s.time_ps,
        s.operation
),
_numbered AS (
    SELECT
        e.capture_id AS capture_id,
        e.host_event_id AS host_event_id,
        e.time_ps AS time_ps,
        e.operation AS operation,
        e.allocator AS allocator,
        e.index_on_host AS index_on_host,
        CAST(NULLIF(REGEXP_EXTRACT(e.allocator, '^GPU_[a-z_]*([0-9]{1,9})_bfc$', 1), '') AS BIGINT)
            AS gpu_ordinal,
        e.address AS address,
        e.requested_bytes AS requested_bytes,
        e.allocation_bytes AS allocation_bytes,
        e.live_bytes AS live_bytes,
        e.reserved_bytes AS reserved_bytes,
        e.free_bytes AS free_bytes,
        e.lifetime_peak_bytes AS lifetime_peak_bytes,
        e.op_name AS op_name,
        e.shape AS shape
    FROM _events AS e
)
SELECT
    e.capture_id AS capture_id,
    e.host_event_id AS host_event_id,
    e.time_ps AS time_ps,
    e.operation AS operation,
    e.allocator AS allocator,
    CASE
        WHEN e.gpu_ordinal IS NOT NULL THEN 'GPU'
        WHEN e.index_on_host IS NOT NULL THEN 'TPU'
    END AS device_type,
    COALESCE(e.gpu_ordinal, e.index_on_host) AS device_ordinal,
    CAST(
        CASE
            WHEN COALESCE(e.gpu_ordinal, e.index_on_host) IS NOT NULL THEN 0
            WHEN e.allocator LIKE '%host%' THEN 5
        END AS BIGINT
    ) AS memory_space,
    e.address AS address,
    e.requested_bytes AS requested_bytes,
    e.allocation_bytes AS allocation_bytes,
    e.live_bytes AS live_bytes,
    e.reserved_bytes AS reserved_bytes,
    e.free_bytes AS free_bytes,
    e.lifetime_peak_bytes AS lifetime_peak_bytes,
    NULLIF(e.op_name, '(null)') AS op_name,
    NULLIF(e.shape, '(null)') AS shape
FROM _numbered AS e
