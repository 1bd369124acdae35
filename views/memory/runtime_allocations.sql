-- name: v1._runtime_allocations
-- version: 1
-- grain: one row per allocation or release that a ROCm profiler recorded of the runtime
-- summary: What the runtime took and gave back, with the size and the device of what a release ends.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   memory_allocation_id BIGINT: row of main.memory_allocations
--   time_ps BIGINT (ps): when the call returned
--   operation VARCHAR: alloc, free, realloc or reclaim
--   memory_level VARCHAR: real, virtual (by handles that are mapped) or scratch
--   device_id BIGINT: the device; NULL of host memory, and of what was allocated before the capture
--   memory_space BIGINT: 0 for a device's own memory, 5 for the host's; NULL where unknown
--   address BIGINT: the bits of the pointer
--   delta_bytes BIGINT (bytes): what it adds to the bytes in use; NULL for a release of what was allocated before
--     the capture, and where there is no address that could tell what ends
--   live_bytes BIGINT (bytes): sum of what the capture saw of this device and level so far: a lower bound
-- algorithm: A release ends the allocation that the same address had last, and takes its size and device from it;
--   so does an allocation at that address, as the release before it is missing. Rows without an address count for
--   nothing: nobody could tell when they end.

WITH _addressed AS (
    SELECT
        a.capture_id AS capture_id,
        a.memory_allocation_id AS memory_allocation_id,
        a.end_ps AS end_ps,
        a.operation AS operation,
        a.memory_level AS memory_level,
        a.device_id AS device_id,
        NULLIF(a.address, 0) AS address,
        a.bytes AS bytes
    FROM main.memory_allocations AS a
),
_paired AS (
    SELECT
        a.capture_id AS capture_id,
        a.memory_allocation_id AS memory_allocation_id,
        a.end_ps AS time_ps,
        a.operation AS operation,
        a.memory_level AS memory_level,
        a.device_id AS device_id,
        a.address AS address,
        CASE WHEN a.operation IN ('alloc', 'realloc') THEN a.bytes ELSE 0 END AS new_bytes,
        LAG(CASE WHEN a.operation IN ('alloc', 'realloc') THEN a.bytes END) OVER (
            PARTITION BY a.capture_id, a.memory_level, a.address
            ORDER BY a.end_ps NULLS FIRST, a.memory_allocation_id NULLS FIRST
        ) AS old_bytes,
        LAG(a.device_id) OVER (
            PARTITION BY a.capture_id, a.memory_level, a.address
            ORDER BY a.end_ps NULLS FIRST, a.memory_allocation_id NULLS FIRST
        ) AS old_device_id
    FROM _addressed AS a
),
_sized AS (
    SELECT
        p.capture_id AS capture_id,
        p.memory_allocation_id AS memory_allocation_id,
        p.time_ps AS time_ps,
        p.operation AS operation,
        p.memory_level AS memory_level,
        CASE WHEN p.address IS NULL THEN p.device_id ELSE COALESCE(p.device_id, p.old_device_id) END AS device_id,
        p.address AS address,
        CASE
            WHEN p.address IS NULL THEN NULL
            WHEN p.operation = 'alloc' THEN p.new_bytes - COALESCE(p.old_bytes, 0)
            ELSE p.new_bytes - p.old_bytes
        END AS delta_bytes
    FROM _paired AS p
)
SELECT
    s.capture_id AS capture_id,
    s.memory_allocation_id AS memory_allocation_id,
    s.time_ps AS time_ps,
    s.operation AS operation,
    s.memory_level AS memory_level,
    s.device_id AS device_id,
    CAST(
        CASE
            WHEN d.device_type = 'CPU' THEN 5
            WHEN d.device_id IS NOT NULL THEN 0
        END AS BIGINT
    ) AS memory_space,
    s.address AS address,
    s.delta_bytes AS delta_bytes,
    CAST(SUM(COALESCE(s.delta_bytes, 0)) OVER (
        PARTITION BY s.capture_id, s.memory_level, s.device_id
        ORDER BY s.time_ps NULLS FIRST, s.memory_allocation_id NULLS FIRST
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) AS BIGINT) AS live_bytes
FROM _sized AS s
LEFT JOIN main.devices AS d
    ON d.device_id = s.device_id
