-- name: v1.memory_timeline
-- version: 1
-- grain: one row per allocation or release that a capture recorded
-- summary: Bytes in use over time, of each allocator of each device.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device; NULL of host memory, and where nothing tells the device
--   device_ordinal BIGINT: its ordinal on its host, also where the capture has no such device
--   memory_space BIGINT: 0 for a device's own memory, 5 for the host's; NULL where unknown
--   source VARCHAR: allocator (of XLA or TensorFlow, in an XSpace) or runtime (calls that a ROCm profiler recorded);
--     never add up both, the allocator takes its memory from the runtime
--   allocator VARCHAR: name of the allocator: GPU_0_bfc, NULL where it tells none; of the runtime the level: real,
--     virtual (by handles that are mapped) or scratch
--   host_event_id BIGINT: the event in main.host_events; NULL of the runtime
--   memory_allocation_id BIGINT: the row of main.memory_allocations; NULL of an allocator
--   time_ps BIGINT (ps): when
--   operation VARCHAR: alloc, free, realloc or reclaim
--   delta_bytes BIGINT (bytes): what it adds to the bytes in use, negative where it ends them; NULL for a release
--     whose size neither it nor an allocation of the capture tells
--   live_bytes BIGINT (bytes): in use after it
--   is_lower_bound BOOLEAN: live_bytes lacks what was allocated before the capture began; an allocator's own count
--     has it
--   reserved_bytes BIGINT (bytes): set aside beside live_bytes: the temporary memory of programs on TPU
--   limit_bytes BIGINT (bytes): most that the allocator can have; NULL of the runtime
--   lifetime_peak_bytes BIGINT (bytes): most that was in use since the process began, by the allocator; NULL of the
--     runtime
--   is_high_water BOOLEAN: the first row of this allocator and device in the capture that has most live_bytes
--   requested_bytes BIGINT (bytes): what was asked for, before it was rounded up; NULL where unknown
--   op_name VARCHAR: the operation that asked for it; NULL where the event tells none
--   shape VARCHAR: shape of the array; NULL where the event tells none
--   live_mib DOUBLE (MiB): live_bytes in mebibytes

WITH _allocator AS (
    SELECT
        a.capture_id AS capture_id,
        d.device_id AS device_id,
        a.device_ordinal AS device_ordinal,
        a.memory_space AS memory_space,
        'allocator' AS source,
        a.allocator AS allocator,
        a.host_event_id AS host_event_id,
        CAST(NULL AS BIGINT) AS memory_allocation_id,
        a.time_ps AS time_ps,
        a.operation AS operation,
        CASE
            WHEN a.operation = 'alloc' THEN a.allocation_bytes
            ELSE -COALESCE(
                a.allocation_bytes,
                LAG(CASE WHEN a.operation = 'alloc' THEN a.allocation_bytes END) OVER (
                    PARTITION BY a.capture_id, a.allocator, a.device_ordinal, a.address
                    ORDER BY a.time_ps NULLS FIRST, a.host_event_id NULLS FIRST
                )
            )
        END AS delta_bytes,
        a.live_bytes AS live_bytes,
        FALSE AS is_lower_bound,
        a.reserved_bytes AS reserved_bytes,
        a.live_bytes + COALESCE(a.reserved_bytes, 0) + a.free_bytes AS limit_bytes,
        a.lifetime_peak_bytes AS lifetime_peak_bytes,
        a.requested_bytes AS requested_bytes,
        a.op_name AS op_name,
        a.shape AS shape
    FROM main.allocator_events AS a
    INNER JOIN main.captures AS c
        ON c.capture_id = a.capture_id
    LEFT JOIN main.devices AS d
        ON d.run_id = c.run_id
        AND d.hostname = c.hostname
        AND d.device_type = a.device_type
        AND d.device_ordinal = a.device_ordinal
),
_events AS (
    SELECT
        a.capture_id AS capture_id,
        a.device_id AS device_id,
        a.device_ordinal AS device_ordinal,
        a.memory_space AS memory_space,
        a.source AS source,
        a.allocator AS allocator,
        a.host_event_id AS host_event_id,
        a.memory_allocation_id AS memory_allocation_id,
        a.time_ps AS time_ps,
        a.operation AS operation,
        a.delta_bytes AS delta_bytes,
        a.live_bytes AS live_bytes,
        a.is_lower_bound AS is_lower_bound,
        a.reserved_bytes AS reserved_bytes,
        a.limit_bytes AS limit_bytes,
        a.lifetime_peak_bytes AS lifetime_peak_bytes,
        a.requested_bytes AS requested_bytes,
        a.op_name AS op_name,
        a.shape AS shape
    FROM _allocator AS a
    UNION ALL
    SELECT
        r.capture_id AS capture_id,
        r.device_id AS device_id,
        d.device_ordinal AS device_ordinal,
        r.memory_space AS memory_space,
        'runtime' AS source,
        r.memory_level AS allocator,
        CAST(NULL AS BIGINT) AS host_event_id,
        r.memory_allocation_id AS memory_allocation_id,
        r.time_ps AS time_ps,
        r.operation AS operation,
        r.delta_bytes AS delta_bytes,
        r.live_bytes AS live_bytes,
        TRUE AS is_lower_bound,
        CAST(NULL AS BIGINT) AS reserved_bytes,
        CAST(NULL AS BIGINT) AS limit_bytes,
        CAST(NULL AS BIGINT) AS lifetime_peak_bytes,
        CAST(NULL AS BIGINT) AS requested_bytes,
        CAST(NULL AS VARCHAR) AS op_name,
        CAST(NULL AS VARCHAR) AS shape
    FROM v1._runtime_allocations AS r
    LEFT JOIN main.devices AS d
        ON d.device_id = r.device_id
),
_ranked AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        e.device_ordinal AS device_ordinal,
        e.memory_space AS memory_space,
        e.source AS source,
        e.allocator AS allocator,
        e.host_event_id AS host_event_id,
        e.memory_allocation_id AS memory_allocation_id,
        e.time_ps AS time_ps,
        e.operation AS operation,
        e.delta_bytes AS delta_bytes,
        e.live_bytes AS live_bytes,
        e.is_lower_bound AS is_lower_bound,
        e.reserved_bytes AS reserved_bytes,
        e.limit_bytes AS limit_bytes,
        e.lifetime_peak_bytes AS lifetime_peak_bytes,
        e.requested_bytes AS requested_bytes,
        e.op_name AS op_name,
        e.shape AS shape,
        ROW_NUMBER() OVER (
            PARTITION BY e.capture_id, e.source, e.allocator, e.device_id, e.device_ordinal
            ORDER BY
                -COALESCE(e.live_bytes, -1) NULLS FIRST,
                e.time_ps NULLS FIRST,
                e.host_event_id NULLS FIRST,
                e.memory_allocation_id NULLS FIRST
        ) AS high_rank
    FROM _events AS e
)
SELECT
    e.capture_id AS capture_id,
    e.device_id AS device_id,
    e.device_ordinal AS device_ordinal,
    e.memory_space AS memory_space,
    e.source AS source,
    e.allocator AS allocator,
    e.host_event_id AS host_event_id,
    e.memory_allocation_id AS memory_allocation_id,
    e.time_ps AS time_ps,
    e.operation AS operation,
    e.delta_bytes AS delta_bytes,
    e.live_bytes AS live_bytes,
    e.is_lower_bound AS is_lower_bound,
    e.reserved_bytes AS reserved_bytes,
    e.limit_bytes AS limit_bytes,
    e.lifetime_peak_bytes AS lifetime_peak_bytes,
    e.high_rank = 1 AND e.live_bytes IS NOT NULL AS is_high_water,
    e.requested_bytes AS requested_bytes,
    e.op_name AS op_name,
    e.shape AS shape,
    CAST(e.live_bytes AS DOUBLE) / 1048576 AS live_mib
FROM _ranked AS e
