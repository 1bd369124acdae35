-- name: v1.kernel_counters
-- version: 1
-- grain: one row per run, device, kernel, grid and block of which counters were collected
-- summary: FLOPs, bytes and arithmetic intensity of each kernel by hardware counters.
-- evidence: derived
-- columns:
--   run_id BIGINT: the run
--   capture_id BIGINT: the first pass
--   device_id BIGINT: the device
--   device_ordinal BIGINT: ordinal of the device on its host
--   kernel_name VARCHAR: name of the kernel
--   grid VARCHAR: blocks as x,y,z; NULL where unknown
--   block VARCHAR: threads of a block as x,y,z; NULL where unknown
--   occurrences BIGINT (count): dispatches in the first pass
--   flops DOUBLE (count): matrix_flops and vector_flops; NULL where neither was counted
--   matrix_flops DOUBLE (count): of all types that were counted
--   vector_flops DOUBLE (count): of all types that were counted
--   is_flops_complete BOOLEAN: the counters of all types were collected; else flops is a lower bound
--   matrix_int8_ops DOUBLE (count): integer operations of the matrix units
--   memory_read_bytes DOUBLE (bytes): that the L2 cache read from outside
--   memory_write_bytes DOUBLE (bytes): that the L2 cache wrote outside
--   memory_bytes DOUBLE (bytes): both; NULL unless both were counted
--   flops_per_memory_byte DOUBLE (1/bytes): flops over memory_bytes, the arithmetic intensity
--   l2_bytes DOUBLE (bytes): between the vector L1 caches and the L2 cache
--   lds_bytes DOUBLE (bytes): that the LDS could have moved at most
--   matrix_utilization_ratio DOUBLE (ratio): mean over the dispatches
--   memory_read_formula_id VARCHAR: formula of memory_read_bytes
--   memory_write_formula_id VARCHAR: formula of memory_write_bytes
--   unknown_reason VARCHAR: why flops or memory_bytes is NULL and what to do; NULL where both are known
-- algorithm: Totals of all occurrences. What is not known of each of them is NULL, so that no total is partial;
--   v1.counters has the single values and what speaks against each formula. Filter by run_id, which spares the
--   other runs; capture_id alone does not. Kernels that were counted ran one by one and slower: they are in no
--   timing view (v1.kernel_stats, v1.device_time, ...); times are of a run without counters.

WITH _passes AS (
    SELECT
        d.run_id AS run_id,
        d.capture_id AS capture_id,
        d.device_id AS device_id,
        d.name_id AS name_id,
        d.grid AS grid,
        d.block AS block,
        d.kernel_group AS kernel_group,
        d.dispatch_count AS dispatch_count,
        ROW_NUMBER() OVER (
            PARTITION BY d.run_id, d.kernel_group
            ORDER BY d.pass_index NULLS FIRST
        ) AS pass_rank,
        MIN(d.dispatch_count) OVER (PARTITION BY d.run_id, d.kernel_group) AS least_dispatches,
        MAX(d.dispatch_count) OVER (PARTITION BY d.run_id, d.kernel_group) AS most_dispatches,
        COUNT(*) OVER (PARTITION BY d.run_id, d.kernel_group) AS own_passes,
        MAX(d.pass_index) OVER (PARTITION BY d.run_id, d.device_id) AS device_passes
    FROM v1._counted_dispatches AS d
    WHERE d.occurrence = 1
),
_kernels AS (
    SELECT
        p.run_id AS run_id,
        p.capture_id AS capture_id,
        p.device_id AS device_id,
        p.name_id AS name_id,
        p.grid AS grid,
        p.block AS block,
        p.kernel_group AS kernel_group,
        p.dispatch_count AS occurrences,
        CASE
            WHEN p.least_dispatches < p.most_dispatches OR p.own_passes < p.device_passes
            THEN 'passes differ in how often they dispatched the kernel: count a run that repeats itself'
            ELSE 'not each dispatch has a value of each counter: count all dispatches'
        END AS other_reason
    FROM _passes AS p
    WHERE p.pass_rank = 1
),
_sums AS (
    SELECT
        k.run_id AS run_id,
        k.kernel_group AS kernel_group,
        'occurrences' AS derived_name,
        CAST(NULL AS VARCHAR) AS formula_id,
        k.occurrences AS dispatch_count,
        k.occurrences AS known_values,
        CAST(NULL AS DOUBLE) AS value_sum
    FROM _kernels AS k
    UNION ALL
    SELECT
        q.run_id AS run_id,
        q.kernel_group AS kernel_group,
        q.derived_name AS derived_name,
        q.formula_id AS formula_id,
        q.dispatch_count AS dispatch_count,
        COUNT(q.value) AS known_values,
        CAST(SUM(q.value) AS DOUBLE) AS value_sum
    FROM v1._derived_counters AS q
    GROUP BY
        q.run_id,
        q.kernel_group,
        q.derived_name,
        q.formula_id,
        q.dispatch_count
),
_totals AS (
    SELECT
        s.run_id AS run_id,
        s.kernel_group AS kernel_group,
        s.derived_name AS derived_name,
        s.formula_id AS formula_id,
        CASE
            WHEN s.known_values = s.dispatch_count AND s.dispatch_count = MAX(
                CASE WHEN s.derived_name = 'occurrences' THEN s.dispatch_count END
            ) OVER (PARTITION BY s.run_id, s.kernel_group)
            THEN s.value_sum
        END AS total
    FROM _sums AS s
),
_quantities AS (
    SELECT
        t.run_id AS run_id,
        t.kernel_group AS kernel_group,
        CAST(SUM(CASE WHEN t.derived_name LIKE 'matrix_flops_%' THEN t.total END) AS DOUBLE) AS matrix_flops,
        CAST(SUM(CASE WHEN t.derived_name LIKE 'vector_flops_%' THEN t.total END) AS DOUBLE) AS vector_flops,
        MAX(CASE
            WHEN t.total IS NULL AND (t.derived_name LIKE 'matrix_flops_%' OR t.derived_name LIKE 'vector_flops_%')
            THEN 1
            ELSE 0
        END) AS has_partial_flops,
        MAX(CASE WHEN t.derived_name = 'flops' AND t.total IS NOT NULL THEN 1 ELSE 0 END) AS has_all_flops,
        MAX(CASE WHEN t.derived_name = 'matrix_ops_int8' THEN t.total END) AS matrix_int8_ops,
        MAX(CASE WHEN t.derived_name = 'memory_read_bytes' THEN t.total END) AS memory_read_bytes,
        MAX(CASE WHEN t.derived_name = 'memory_write_bytes' THEN t.total END) AS memory_write_bytes,
        MAX(CASE WHEN t.derived_name = 'l2_bytes' THEN t.total END) AS l2_bytes,
        MAX(CASE WHEN t.derived_name = 'lds_bytes' THEN t.total END) AS lds_bytes,
        MAX(CASE WHEN t.derived_name = 'matrix_utilization_ratio' THEN t.total END) AS utilization_sum,
        MAX(CASE WHEN t.derived_name = 'memory_read_bytes' THEN t.formula_id END) AS memory_read_formula_id,
        MAX(CASE WHEN t.derived_name = 'memory_write_bytes' THEN t.formula_id END) AS memory_write_formula_id
    FROM _totals AS t
    GROUP BY
        t.run_id,
        t.kernel_group
),
_rates AS (
    SELECT
        q.run_id AS run_id,
        q.kernel_group AS kernel_group,
        CASE
            WHEN q.has_partial_flops = 0 AND (q.matrix_flops IS NOT NULL OR q.vector_flops IS NOT NULL)
            THEN COALESCE(q.matrix_flops, 0e0) + COALESCE(q.vector_flops, 0e0)
        END AS flops,
        CASE WHEN q.has_partial_flops = 0 THEN q.matrix_flops END AS matrix_flops,
        CASE WHEN q.has_partial_flops = 0 THEN q.vector_flops END AS vector_flops,
        q.has_partial_flops = 1 AS is_flops_partial,
        q.has_all_flops = 1 AS is_flops_complete,
        q.matrix_int8_ops AS matrix_int8_ops,
        q.memory_read_bytes AS memory_read_bytes,
        q.memory_write_bytes AS memory_write_bytes,
        q.memory_read_bytes + q.memory_write_bytes AS memory_bytes,
        q.l2_bytes AS l2_bytes,
        q.lds_bytes AS lds_bytes,
        q.utilization_sum AS utilization_sum,
        q.memory_read_formula_id AS memory_read_formula_id,
        q.memory_write_formula_id AS memory_write_formula_id
    FROM _quantities AS q
),
_gaps AS (
    SELECT
        g.run_id AS run_id,
        g.device_id AS device_id,
        MAX(CASE WHEN g.derived_name = 'flops' THEN g.reason END) AS flops_gap,
        MAX(CASE WHEN g.derived_name = 'memory_read_bytes' THEN g.reason END) AS read_gap,
        MAX(CASE WHEN g.derived_name = 'memory_write_bytes' THEN g.reason END) AS write_gap
    FROM v1._counter_gaps AS g
    GROUP BY
        g.run_id,
        g.device_id
),
_reasons AS (
    SELECT
        k.run_id AS run_id,
        k.kernel_group AS kernel_group,
        CASE
            WHEN r.flops IS NOT NULL THEN NULL
            WHEN r.is_flops_partial THEN k.other_reason
            ELSE COALESCE(g.flops_gap, k.other_reason)
        END AS flops_reason,
        CASE
            WHEN r.memory_bytes IS NOT NULL THEN NULL
            WHEN r.memory_read_formula_id IS NULL AND g.read_gap IS NOT NULL THEN g.read_gap
            WHEN r.memory_write_formula_id IS NULL AND g.write_gap IS NOT NULL THEN g.write_gap
            ELSE k.other_reason
        END AS memory_reason
    FROM _kernels AS k
    INNER JOIN _rates AS r
        ON r.run_id = k.run_id
        AND r.kernel_group = k.kernel_group
    INNER JOIN _gaps AS g
        ON g.run_id = k.run_id
        AND g.device_id = k.device_id
)
SELECT
    k.run_id AS run_id,
    k.capture_id AS capture_id,
    k.device_id AS device_id,
    d.device_ordinal AS device_ordinal,
    n.name AS kernel_name,
    k.grid AS grid,
    k.block AS block,
    k.occurrences AS occurrences,
    r.flops AS flops,
    r.matrix_flops AS matrix_flops,
    r.vector_flops AS vector_flops,
    r.is_flops_complete AS is_flops_complete,
    r.matrix_int8_ops AS matrix_int8_ops,
    r.memory_read_bytes AS memory_read_bytes,
    r.memory_write_bytes AS memory_write_bytes,
    r.memory_bytes AS memory_bytes,
    r.flops / NULLIF(r.memory_bytes, 0) AS flops_per_memory_byte,
    r.l2_bytes AS l2_bytes,
    r.lds_bytes AS lds_bytes,
    r.utilization_sum / NULLIF(CAST(k.occurrences AS DOUBLE), 0) AS matrix_utilization_ratio,
    r.memory_read_formula_id AS memory_read_formula_id,
    r.memory_write_formula_id AS memory_write_formula_id,
    CASE
        WHEN u.flops_reason = u.memory_reason THEN u.flops_reason
        ELSE COALESCE(
            'flops: ' || u.flops_reason || '; memory_bytes: ' || u.memory_reason,
            'flops: ' || u.flops_reason,
            'memory_bytes: ' || u.memory_reason
        )
    END AS unknown_reason
FROM _kernels AS k
INNER JOIN _rates AS r
    ON r.run_id = k.run_id
    AND r.kernel_group = k.kernel_group
INNER JOIN _reasons AS u
    ON u.run_id = k.run_id
    AND u.kernel_group = k.kernel_group
INNER JOIN main.devices AS d
    ON d.device_id = k.device_id
INNER JOIN main.names AS n
    ON n.name_id = k.name_id
