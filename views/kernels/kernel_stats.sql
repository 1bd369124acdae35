-- name: v1.kernel_stats
-- version: 1
-- grain: one row per capture, kernel and op
-- summary: Count and durations of each kernel for each op that runs it, with its launch shape.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   kernel_name VARCHAR: name of the kernel, copy or op
--   op_name VARCHAR: JAX name stack; NULL where none is known
--   occurrences BIGINT (count): device events on all devices
--   total_ps BIGINT (ps): sum of durations
--   avg_ps DOUBLE (ps): mean duration
--   min_ps BIGINT (ps): shortest
--   max_ps BIGINT (ps): longest
--   median_ps DOUBLE (ps): median; mean of the two middle ones for an even count
--   registers_per_thread BIGINT (count): NULL where unknown or where launches differ
--   shared_memory_bytes BIGINT (bytes): static and dynamic, per block; NULL where unknown or where launches
--     differ
--   grid VARCHAR: blocks as x,y,z; NULL where unknown or where launches differ
--   block VARCHAR: threads of a block as x,y,z; NULL where unknown or where launches differ
--   occupancy_ratio DOUBLE (ratio): theoretical, 0 to 1; NULL where unknown or where launches differ
--   launch_shape_count BIGINT (count): distinct pairs of grid and block; 0 where neither is known
--   total_ms DOUBLE (ms): total_ps in milliseconds
--   avg_us DOUBLE (us): avg_ps in microseconds

WITH _events AS (
    SELECT
        o.capture_id AS capture_id,
        o.name_id AS name_id,
        o.op_name_id AS op_name_id,
        o.device_event_id AS device_event_id,
        o.end_ps - o.start_ps AS duration_ps,
        e.registers_per_thread AS registers_per_thread,
        CASE
            WHEN e.static_shared_memory_bytes IS NOT NULL OR e.dynamic_shared_memory_bytes IS NOT NULL
            THEN COALESCE(e.static_shared_memory_bytes, 0) + COALESCE(e.dynamic_shared_memory_bytes, 0)
        END AS shared_memory_bytes,
        CAST(e.grid_x AS VARCHAR) || ',' || CAST(e.grid_y AS VARCHAR) || ',' || CAST(e.grid_z AS VARCHAR)
            AS grid,
        CAST(e.block_x AS VARCHAR) || ',' || CAST(e.block_y AS VARCHAR) || ',' || CAST(e.block_z AS VARCHAR)
            AS block,
        e.occupancy_ratio AS occupancy_ratio
    FROM v1._event_ops AS o
    INNER JOIN main.device_events AS e
        ON e.capture_id = o.capture_id
        AND e.device_event_id = o.device_event_id
),
_ranked AS (
    SELECT
        e.capture_id AS capture_id,
        e.name_id AS name_id,
        e.op_name_id AS op_name_id,
        e.duration_ps AS duration_ps,
        e.registers_per_thread AS registers_per_thread,
        e.shared_memory_bytes AS shared_memory_bytes,
        e.grid AS grid,
        e.block AS block,
        e.occupancy_ratio AS occupancy_ratio,
        ROW_NUMBER() OVER (
            PARTITION BY e.capture_id, e.name_id, e.op_name_id
            ORDER BY e.duration_ps NULLS FIRST, e.device_event_id NULLS FIRST
        ) AS duration_rank,
        COUNT(*) OVER (PARTITION BY e.capture_id, e.name_id, e.op_name_id) AS event_count
    FROM _events AS e
),
_kernels AS (
    SELECT
        r.capture_id AS capture_id,
        r.name_id AS name_id,
        r.op_name_id AS op_name_id,
        COUNT(*) AS occurrences,
        CAST(SUM(r.duration_ps) AS BIGINT) AS total_ps,
        MIN(r.duration_ps) AS min_ps,
        MAX(r.duration_ps) AS max_ps,
        CAST(SUM(CASE
            WHEN 2 * r.duration_rank IN (r.event_count, r.event_count + 1, r.event_count + 2)
            THEN r.duration_ps
            ELSE 0
        END) AS BIGINT) AS middle_ps,
        CAST(SUM(CASE
            WHEN 2 * r.duration_rank IN (r.event_count, r.event_count + 1, r.event_count + 2)
            THEN 1
            ELSE 0
        END) AS BIGINT) AS middle_count,
        COUNT(r.registers_per_thread) AS known_registers,
        MIN(r.registers_per_thread) AS min_registers,
        MAX(r.registers_per_thread) AS max_registers,
        COUNT(r.shared_memory_bytes) AS known_shared,
        MIN(r.shared_memory_bytes) AS min_shared,
        MAX(r.shared_memory_bytes) AS max_shared,
        COUNT(r.grid) AS known_grid,
        MIN(r.grid) AS min_grid,
        MAX(r.grid) AS max_grid,
        COUNT(r.block) AS known_block,
        MIN(r.block) AS min_block,
        MAX(r.block) AS max_block,
        COUNT(r.occupancy_ratio) AS known_occupancy,
        MIN(r.occupancy_ratio) AS min_occupancy,
        MAX(r.occupancy_ratio) AS max_occupancy,
        COUNT(DISTINCT CASE
            WHEN r.grid IS NOT NULL OR r.block IS NOT NULL
            THEN COALESCE(r.grid, '') || ' ' || COALESCE(r.block, '')
        END) AS launch_shape_count
    FROM _ranked AS r
    GROUP BY
        r.capture_id,
        r.name_id,
        r.op_name_id
)
SELECT
    k.capture_id AS capture_id,
    n.name AS kernel_name,
    o.name AS op_name,
    k.occurrences AS occurrences,
    k.total_ps AS total_ps,
    CAST(k.total_ps AS DOUBLE) / NULLIF(CAST(k.occurrences AS DOUBLE), 0) AS avg_ps,
    k.min_ps AS min_ps,
    k.max_ps AS max_ps,
    CAST(k.middle_ps AS DOUBLE) / NULLIF(CAST(k.middle_count AS DOUBLE), 0) AS median_ps,
    CASE WHEN k.min_registers = k.max_registers AND k.known_registers = k.occurrences THEN k.min_registers END AS registers_per_thread,
    CASE WHEN k.min_shared = k.max_shared AND k.known_shared = k.occurrences THEN k.min_shared END AS shared_memory_bytes,
    CASE WHEN k.min_grid = k.max_grid AND k.known_grid = k.occurrences THEN k.min_grid END AS grid,
    CASE WHEN k.min_block = k.max_block AND k.known_block = k.occurrences THEN k.min_block END AS block,
    CASE WHEN k.min_occupancy = k.max_occupancy AND k.known_occupancy = k.occurrences THEN k.min_occupancy END AS occupancy_ratio,
    k.launch_shape_count AS launch_shape_count,
    CAST(k.total_ps AS DOUBLE) / 1e9 AS total_ms,
    CAST(k.total_ps AS DOUBLE) / NULLIF(CAST(k.occurrences AS DOUBLE), 0) / 1e6 AS avg_us
FROM _kernels AS k
INNER JOIN main.names AS n
    ON n.name_id = k.name_id
LEFT JOIN main.names AS o
    ON o.name_id = k.op_name_id
