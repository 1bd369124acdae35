-- name: v1.kernel_roofline
-- version: 1
-- grain: one row per run, device, kernel, grid, block and memory level of which counters were collected
-- summary: Points of kernels by hardware counters, each against the ceiling of its own memory level.
-- evidence: counter
-- columns:
--   run_id BIGINT: the run
--   capture_id BIGINT: the first pass
--   device_id BIGINT: the device
--   device_ordinal BIGINT: ordinal of the device on its host
--   kernel_name VARCHAR: name of the kernel
--   grid VARCHAR: blocks as x,y,z; NULL where unknown
--   block VARCHAR: threads of a block as x,y,z; NULL where unknown
--   evidence VARCHAR: counter
--   memory_level VARCHAR: HBM (what the L2 cache moved from and to outside), L2, or LDS
--   unit VARCHAR: matrix or vector, by most of the FLOPs; NULL without counted FLOPs
--   dtype VARCHAR: data type of most of the FLOPs; NULL without
--   occurrences BIGINT (count): counted dispatches
--   flops DOUBLE (count): of one dispatch, the mean; NULL where not counted
--   bytes DOUBLE (bytes): of one dispatch at this level, the mean
--   intensity_flops_per_byte DOUBLE (1/bytes): flops over bytes
--   ridge_flops_per_byte DOUBLE (1/bytes): intensity from which the compute peak bounds
--   peak_flops_per_s DOUBLE (1/s): flops in the least time that their peaks allow
--   peak_bytes_per_s DOUBLE (bytes/s): bandwidth of this level by specification
--   roof_flops_per_s DOUBLE (1/s): flops in roof_ps; NULL without FLOPs
--   roof_ps DOUBLE (ps): least time of a dispatch by these peaks
--   bound_by VARCHAR: compute, or the memory level; NULL where no peak is known, and without work
--   timed_count BIGINT (count): dispatches of the same kernel and shape in the run's XSpace capture; NULL for none
--   timed_ps DOUBLE (ps): how long one of them takes there, the mean: times of counted dispatches are of no use
--   achieved_flops_per_s DOUBLE (1/s): flops in timed_ps
--   achieved_bytes_per_s DOUBLE (bytes/s): bytes in timed_ps
--   efficiency_ratio DOUBLE (ratio): roof_ps over timed_ps; NULL where that is more than 1, and without either
--   saved_ps DOUBLE (ps): of all timed dispatches, timed_ps - roof_ps
--   problem VARCHAR: why there is no efficiency though times and peaks are known
--   hlo_op VARCHAR: the HLO instruction behind all timed dispatches; NULL where they are of several
--   compiler_flops_ratio DOUBLE (ratio): FLOPs by the compiler's account over counted ones, for an op that runs as one
--     kernel
--   compiler_bytes_ratio DOUBLE (ratio): likewise of bytes, where memory_level is HBM
-- algorithm: Bytes and FLOPs are those of v1.kernel_counters; v1.counters says by which formula, and its caveat. Filter
--   by run_id, which spares the other runs.

WITH _typed AS (
    SELECT
        q.run_id AS run_id,
        q.capture_id AS capture_id,
        q.device_id AS device_id,
        n.name AS kernel_name,
        q.grid AS grid,
        q.block AS block,
        CASE WHEN q.derived_name LIKE 'matrix%' THEN 'matrix' ELSE 'vector' END AS unit,
        v.dtype AS dtype,
        CAST(SUM(q.value) AS DOUBLE) / NULLIF(CAST(COUNT(q.value) AS DOUBLE), 0) AS kind_flops
    FROM v1._derived_counters AS q
    INNER JOIN main.names AS n
        ON n.name_id = q.name_id
    INNER JOIN (
        VALUES
            ('f16', 'fp16'), ('bf16', 'bf16'), ('f32', 'fp32'), ('f64', 'fp64'), ('xf32', 'xf32'), ('f8', 'fp8'),
            ('f6f4', 'fp6')
    ) AS v (suffix, dtype)
        ON q.derived_name IN ('matrix_flops_' || v.suffix, 'vector_flops_' || v.suffix)
    WHERE q.value > 0
    GROUP BY
        q.run_id,
        q.capture_id,
        q.device_id,
        n.name,
        q.grid,
        q.block,
        q.derived_name,
        v.dtype
),
_peaks AS (
    SELECT
        p.device_id AS device_id,
        p.quantity AS quantity,
        p.memory_level AS memory_level,
        p.dtype AS dtype,
        MIN(p.value) AS peak
    FROM v1.device_peaks AS p
    WHERE p.peak_kind = 'spec'
    GROUP BY
        p.device_id,
        p.quantity,
        p.memory_level,
        p.dtype
    HAVING MIN(p.value) = MAX(p.value)
),
_kinds AS (
    SELECT
        t.run_id AS run_id,
        t.device_id AS device_id,
        t.kernel_name AS kernel_name,
        t.grid AS grid,
        t.block AS block,
        t.unit AS unit,
        t.dtype AS dtype,
        t.kind_flops / NULLIF(COALESCE(p.peak, w.peak), 0) * 1e12 AS kind_ps,
        ROW_NUMBER() OVER (
            PARTITION BY t.run_id, t.device_id, t.kernel_name, t.grid, t.block
            ORDER BY -t.kind_flops NULLS FIRST, t.unit NULLS FIRST, t.dtype NULLS FIRST
        ) AS kind_rank
    FROM _typed AS t
    LEFT JOIN _peaks AS p
        ON p.device_id = t.device_id
        AND p.quantity = t.unit || '_flops_per_s'
        AND p.dtype = t.dtype
    LEFT JOIN _peaks AS w
        ON w.device_id = t.device_id
        AND w.quantity = t.unit || '_flops_per_s'
        AND w.dtype = 'fp32'
        AND t.unit = 'vector'
),
_computed AS (
    SELECT
        k.run_id AS run_id,
        k.device_id AS device_id,
        k.kernel_name AS kernel_name,
        k.grid AS grid,
        k.block AS block,
        MIN(CASE WHEN k.kind_rank = 1 THEN k.unit END) AS main_unit,
        MIN(CASE WHEN k.kind_rank = 1 THEN k.dtype END) AS main_dtype,
        MIN(CASE WHEN k.kind_rank = 1 THEN k.kind_ps END) AS main_ps,
        COALESCE(CAST(SUM(CASE WHEN k.unit = 'matrix' THEN k.kind_ps END) AS DOUBLE), 0) AS matrix_ps,
        COALESCE(CAST(SUM(CASE WHEN k.unit = 'vector' THEN k.kind_ps END) AS DOUBLE), 0) AS vector_ps
    FROM _kinds AS k
    GROUP BY
        k.run_id,
        k.device_id,
        k.kernel_name,
        k.grid,
        k.block
),
_timed AS (
    SELECT
        j.run_id AS run_id,
        j.rocm_capture_id AS rocm_capture_id,
        j.device_ordinal AS device_ordinal,
        j.rocm_kernel_name AS rocm_kernel_name,
        j.grid AS grid,
        j.block AS block,
        CAST(SUM(j.matched_count) AS BIGINT) AS timed_count,
        CAST(SUM(j.xspace_sum_ps) AS DOUBLE) AS all_ps,
        CASE WHEN COUNT(*) = 1 THEN MIN(j.xspace_capture_id) END AS only_capture_id,
        CASE WHEN COUNT(*) = 1 THEN MIN(j.program_id) END AS only_program_id,
        CASE WHEN COUNT(*) = 1 THEN MIN(j.hlo_op) END AS only_op
    FROM v1.joined_kernels AS j
    WHERE j.matched_count > 0
    GROUP BY
        j.run_id,
        j.rocm_capture_id,
        j.device_ordinal,
        j.rocm_kernel_name,
        j.grid,
        j.block
),
_points AS (
    SELECT
        k.run_id AS run_id,
        k.capture_id AS capture_id,
        k.device_id AS device_id,
        k.device_ordinal AS device_ordinal,
        k.kernel_name AS kernel_name,
        k.grid AS grid,
        k.block AS block,
        v.memory_level AS memory_level,
        c.main_unit AS unit,
        c.main_dtype AS dtype,
        k.occurrences AS occurrences,
        k.flops / NULLIF(CAST(k.occurrences AS DOUBLE), 0) AS flops,
        CASE v.memory_level WHEN 'HBM' THEN k.memory_bytes WHEN 'L2' THEN k.l2_bytes ELSE k.lds_bytes END
            / NULLIF(CAST(k.occurrences AS DOUBLE), 0) AS moved_bytes,
        CASE WHEN k.flops = 0 THEN 0 WHEN c.main_ps IS NOT NULL THEN GREATEST(c.matrix_ps, c.vector_ps) END
            AS compute_ps,
        b.peak AS peak_bytes_per_s,
        t.timed_count AS timed_count,
        t.all_ps / NULLIF(CAST(t.timed_count AS DOUBLE), 0) AS timed_ps,
        t.only_op AS hlo_op,
        s.flops_per_execution AS flops_per_execution,
        CASE WHEN v.memory_level = 'HBM' THEN s.bytes_per_execution END AS bytes_per_execution
    FROM v1.kernel_counters AS k
    CROSS JOIN (VALUES ('HBM'), ('L2'), ('LDS')) AS v (memory_level)
    LEFT JOIN _computed AS c
        ON c.run_id = k.run_id
        AND c.device_id = k.device_id
        AND c.kernel_name = k.kernel_name
        AND COALESCE(c.grid, '') = COALESCE(k.grid, '')
        AND COALESCE(c.block, '') = COALESCE(k.block, '')
    LEFT JOIN _peaks AS b
        ON b.device_id = k.device_id
        AND b.memory_level = v.memory_level
    LEFT JOIN _timed AS t
        ON t.run_id = k.run_id
        AND t.rocm_capture_id = k.capture_id
        AND t.device_ordinal = k.device_ordinal
        AND t.rocm_kernel_name = k.kernel_name
        AND COALESCE(t.grid, '') = COALESCE(k.grid, '')
        AND COALESCE(t.block, '') = COALESCE(k.block, '')
    LEFT JOIN v1.op_stats AS s
        ON s.capture_id = t.only_capture_id
        AND s.device_ordinal = t.device_ordinal
        AND s.program_id = t.only_program_id
        AND s.hlo_op = t.only_op
        AND s.kernel_count = s.executions
),
_roofs AS (
    SELECT
        p.run_id AS run_id,
        p.capture_id AS capture_id,
        p.device_id AS device_id,
        p.device_ordinal AS device_ordinal,
        p.kernel_name AS kernel_name,
        p.grid AS grid,
        p.block AS block,
        p.memory_level AS memory_level,
        p.unit AS unit,
        p.dtype AS dtype,
        p.occurrences AS occurrences,
        p.flops AS flops,
        p.moved_bytes AS moved_bytes,
        p.compute_ps AS compute_ps,
        p.moved_bytes / NULLIF(p.peak_bytes_per_s, 0) * 1e12 AS memory_ps,
        CASE
            WHEN COALESCE(p.compute_ps, 0) = 0 AND p.peak_bytes_per_s IS NULL THEN NULL
            WHEN COALESCE(p.compute_ps, 0) >= COALESCE(p.moved_bytes / NULLIF(p.peak_bytes_per_s, 0) * 1e12, 0)
            THEN p.compute_ps
            ELSE p.moved_bytes / NULLIF(p.peak_bytes_per_s, 0) * 1e12
        END AS roof_ps,
        p.peak_bytes_per_s AS peak_bytes_per_s,
        p.timed_count AS timed_count,
        p.timed_ps AS timed_ps,
        p.hlo_op AS hlo_op,
        p.flops_per_execution AS flops_per_execution,
        p.bytes_per_execution AS bytes_per_execution
    FROM _points AS p
    WHERE p.moved_bytes IS NOT NULL
)
SELECT
    r.run_id AS run_id,
    r.capture_id AS capture_id,
    r.device_id AS device_id,
    r.device_ordinal AS device_ordinal,
    r.kernel_name AS kernel_name,
    r.grid AS grid,
    r.block AS block,
    'counter' AS evidence,
    r.memory_level AS memory_level,
    r.unit AS unit,
    r.dtype AS dtype,
    r.occurrences AS occurrences,
    r.flops AS flops,
    r.moved_bytes AS bytes,
    r.flops / NULLIF(r.moved_bytes, 0) AS intensity_flops_per_byte,
    r.flops * 1e12 / NULLIF(r.compute_ps * r.peak_bytes_per_s, 0) AS ridge_flops_per_byte,
    r.flops * 1e12 / NULLIF(r.compute_ps, 0) AS peak_flops_per_s,
    r.peak_bytes_per_s AS peak_bytes_per_s,
    CASE WHEN r.flops > 0 THEN r.flops * 1e12 / NULLIF(r.roof_ps, 0) END AS roof_flops_per_s,
    r.roof_ps AS roof_ps,
    CASE
        WHEN r.compute_ps >= COALESCE(r.memory_ps, 0) AND r.compute_ps > 0 THEN 'compute'
        WHEN r.memory_ps > 0 THEN r.memory_level
    END AS bound_by,
    r.timed_count AS timed_count,
    r.timed_ps AS timed_ps,
    r.flops * 1e12 / NULLIF(r.timed_ps, 0) AS achieved_flops_per_s,
    r.moved_bytes * 1e12 / NULLIF(r.timed_ps, 0) AS achieved_bytes_per_s,
    CASE WHEN r.roof_ps <= r.timed_ps THEN r.roof_ps / NULLIF(r.timed_ps, 0) END AS efficiency_ratio,
    CASE WHEN r.roof_ps <= r.timed_ps THEN (r.timed_ps - r.roof_ps) * CAST(r.timed_count AS DOUBLE) END AS saved_ps,
    CASE
        WHEN r.compute_ps > r.timed_ps THEN 'more FLOPs than the peak allows in that time'
        WHEN r.memory_ps > r.timed_ps THEN 'more bytes than the level moves in that time'
    END AS problem,
    r.hlo_op AS hlo_op,
    CAST(r.flops_per_execution AS DOUBLE) / NULLIF(r.flops, 0) AS compiler_flops_ratio,
    CAST(r.bytes_per_execution AS DOUBLE) / NULLIF(r.moved_bytes, 0) AS compiler_bytes_ratio
FROM _roofs AS r
