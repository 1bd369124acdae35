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
-- algorithm: Events are counted per duration and launch details before they are ranked and described, since
--   few of each are distinct. The two middle durations are those at which the running count reaches the half.

WITH _events AS (
    SELECT
        o.capture_id AS capture_id,
        o.name_id AS name_id,
        o.op_name_id AS op_name_id,
        o.launch_details_id AS launch_details_id,
        o.end_ps - o.start_ps AS duration_ps
    FROM v1._event_ops AS o
),
_durations AS (
    SELECT
        e.capture_id AS capture_id,
        e.name_id AS name_id,
        e.op_name_id AS op_name_id,
        e.launch_details_id AS launch_details_id,
        e.duration_ps AS duration_ps,
        COUNT(*) AS event_count
    FROM _events AS e
    GROUP BY
        e.capture_id,
        e.name_id,
        e.op_name_id,
        e.launch_details_id,
        e.duration_ps
),
_ranked AS (
    SELECT
        d.capture_id AS capture_id,
        d.name_id AS name_id,
        d.op_name_id AS op_name_id,
        d.launch_details_id AS launch_details_id,
        d.duration_ps AS duration_ps,
        d.event_count AS event_count,
        CAST(SUM(d.event_count) OVER (
            PARTITION BY d.capture_id, d.name_id, d.op_name_id
            ORDER BY d.duration_ps NULLS FIRST, d.launch_details_id NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT) AS last_rank,
        CAST(SUM(d.event_count) OVER (
            PARTITION BY d.capture_id, d.name_id, d.op_name_id
        ) AS BIGINT) AS kernel_events
    FROM _durations AS d
),
_launches AS (
    SELECT
        r.capture_id AS capture_id,
        r.name_id AS name_id,
        r.op_name_id AS op_name_id,
        r.launch_details_id AS launch_details_id,
        CAST(SUM(r.event_count) AS BIGINT) AS launch_count,
        CAST(SUM(r.event_count * r.duration_ps) AS BIGINT) AS sum_ps,
        MIN(r.duration_ps) AS shortest_ps,
        MAX(r.duration_ps) AS longest_ps,
        MAX(CASE
            WHEN 2 * (r.last_rank - r.event_count) < r.kernel_events AND 2 * r.last_rank >= r.kernel_events
            THEN r.duration_ps
        END) AS lower_ps,
        MAX(CASE
            WHEN 2 * (r.last_rank - r.event_count) <= r.kernel_events AND 2 * r.last_rank > r.kernel_events
            THEN r.duration_ps
        END) AS upper_ps
    FROM _ranked AS r
    GROUP BY
        r.capture_id,
        r.name_id,
        r.op_name_id,
        r.launch_details_id
),
_details AS (
    SELECT
        l.capture_id AS capture_id,
        l.launch_details_id AS launch_details_id,
        l.registers_per_thread AS registers_per_thread,
        CASE
            WHEN l.static_shared_memory_bytes IS NOT NULL OR l.dynamic_shared_memory_bytes IS NOT NULL
            THEN COALESCE(l.static_shared_memory_bytes, 0) + COALESCE(l.dynamic_shared_memory_bytes, 0)
        END AS shared_memory_bytes,
        CAST(l.grid_x AS VARCHAR) || ',' || CAST(l.grid_y AS VARCHAR) || ',' || CAST(l.grid_z AS VARCHAR)
            AS grid,
        CAST(l.block_x AS VARCHAR) || ',' || CAST(l.block_y AS VARCHAR) || ',' || CAST(l.block_z AS VARCHAR)
            AS block,
        l.occupancy_ratio AS occupancy_ratio
    FROM main.launch_details AS l
),
_kernels AS (
    SELECT
        l.capture_id AS capture_id,
        l.name_id AS name_id,
        l.op_name_id AS op_name_id,
        CAST(SUM(l.launch_count) AS BIGINT) AS occurrences,
        CAST(SUM(l.sum_ps) AS BIGINT) AS total_ps,
        MIN(l.shortest_ps) AS min_ps,
        MAX(l.longest_ps) AS max_ps,
        MAX(l.lower_ps) AS lower_middle_ps,
        MAX(l.upper_ps) AS upper_middle_ps,
        COUNT(*) AS launch_kinds,
        COUNT(d.registers_per_thread) AS known_registers,
        MIN(d.registers_per_thread) AS min_registers,
        MAX(d.registers_per_thread) AS max_registers,
        COUNT(d.shared_memory_bytes) AS known_shared,
        MIN(d.shared_memory_bytes) AS min_shared,
        MAX(d.shared_memory_bytes) AS max_shared,
        COUNT(d.grid) AS known_grid,
        MIN(d.grid) AS min_grid,
        MAX(d.grid) AS max_grid,
        COUNT(d.block) AS known_block,
        MIN(d.block) AS min_block,
        MAX(d.block) AS max_block,
        COUNT(d.occupancy_ratio) AS known_occupancy,
        MIN(d.occupancy_ratio) AS min_occupancy,
        MAX(d.occupancy_ratio) AS max_occupancy,
        COUNT(DISTINCT CASE
            WHEN d.grid IS NOT NULL OR d.block IS NOT NULL
            THEN COALESCE(d.grid, '') || ' ' || COALESCE(d.block, '')
        END) AS launch_shape_count
    FROM _launches AS l
    LEFT JOIN _details AS d
        ON d.capture_id = l.capture_id
        AND d.launch_details_id = l.launch_details_id
    GROUP BY
        l.capture_id,
        l.name_id,
        l.op_name_id
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
    CAST(k.lower_middle_ps + k.upper_middle_ps AS DOUBLE) / 2 AS median_ps,
    CASE WHEN k.min_registers = k.max_registers AND k.known_registers = k.launch_kinds THEN k.min_registers END AS registers_per_thread,
    CASE WHEN k.min_shared = k.max_shared AND k.known_shared = k.launch_kinds THEN k.min_shared END AS shared_memory_bytes,
    CASE WHEN k.min_grid = k.max_grid AND k.known_grid = k.launch_kinds THEN k.min_grid END AS grid,
    CASE WHEN k.min_block = k.max_block AND k.known_block = k.launch_kinds THEN k.min_block END AS block,
    CASE WHEN k.min_occupancy = k.max_occupancy AND k.known_occupancy = k.launch_kinds THEN k.min_occupancy END AS occupancy_ratio,
    k.launch_shape_count AS launch_shape_count,
    CAST(k.total_ps AS DOUBLE) / 1e9 AS total_ms,
    CAST(k.total_ps AS DOUBLE) / NULLIF(CAST(k.occurrences AS DOUBLE), 0) / 1e6 AS avg_us
FROM _kernels AS k
INNER JOIN main.names AS n
    ON n.name_id = k.name_id
LEFT JOIN main.names AS o
    ON o.name_id = k.op_name_id
