-- name: v1.counters
-- version: 1
-- grain: one row per capture, dispatch and counter, or quantity that a formula derives from counters
-- summary: Hardware counters of each dispatch over all instances, and the FLOPs and bytes that follow from them.
-- evidence: counter and derived
-- columns:
--   capture_id BIGINT: the capture; of a derived quantity that of the first pass
--   run_id BIGINT: the run
--   device_id BIGINT: the device
--   device_ordinal BIGINT: ordinal of the device on its host
--   device_event_id BIGINT: the dispatch; its times are those of a run that counted, not the program's
--   kernel_name VARCHAR: name of the kernel
--   grid VARCHAR: blocks as x,y,z; NULL where unknown
--   block VARCHAR: threads of a block as x,y,z; NULL where unknown
--   occurrence BIGINT: 1 for the first dispatch of this kernel with this grid and block on the device
--   counter_name VARCHAR: the counter as the profiler names it, or memory_read_bytes and the like
--   value DOUBLE: its value; NULL where the file has none
--   unit VARCHAR: count, bytes, KiB, cycles, percent, ratio, or as the profiler says
--   aggregation VARCHAR: sum, max or mean of the instances; NULL for a derived quantity
--   instance_count BIGINT (count): hardware instances with a value; NULL for a derived quantity
--   formula_id VARCHAR: row of counter_formulas that it is derived by; NULL for a collected counter
--   pass_count BIGINT (count): passes that its counters come from
--   evidence VARCHAR: counter for a collected one, derived otherwise
--   caveat VARCHAR: what it has too much or too little; NULL where nothing is known against it
-- algorithm: Passes of one run (rocprofv3 runs the program again for each group of counters) are joined by device,
--   kernel, grid, block and occurrence. A counter that several passes have is taken from the first of them. A
--   derived quantity has no row where its architecture has no formula, a counter is missing, or its passes
--   differ in how often they dispatched the kernel with that grid and block; v1.kernel_counters says which of
--   these. Filter by run_id, which spares the other runs; a filter on capture_id alone does not, since passes are
--   joined before it applies. A profiler that counts runs kernels one by one and slower: such dispatches are in
--   no timing view (v1.kernel_stats, v1.device_time, ...); times are of a run without counters.

SELECT
    c.capture_id AS capture_id,
    c.run_id AS run_id,
    c.device_id AS device_id,
    d.device_ordinal AS device_ordinal,
    c.device_event_id AS device_event_id,
    n.name AS kernel_name,
    c.grid AS grid,
    c.block AS block,
    c.occurrence AS occurrence,
    c.counter_name AS counter_name,
    c.value AS value,
    c.unit AS unit,
    c.aggregation AS aggregation,
    c.instance_count AS instance_count,
    CAST(NULL AS VARCHAR) AS formula_id,
    CAST(1 AS BIGINT) AS pass_count,
    'counter' AS evidence,
    CASE
        WHEN c.is_die_mean THEN 'the file has the sum over the dies: this is their mean, not the largest'
        WHEN c.is_die_count_unknown THEN 'the sum over the dies if the device has several, which no file tells'
    END AS caveat
FROM v1._dispatch_counters AS c
INNER JOIN main.devices AS d
    ON d.device_id = c.device_id
INNER JOIN main.names AS n
    ON n.name_id = c.name_id
UNION ALL
SELECT
    q.capture_id AS capture_id,
    q.run_id AS run_id,
    q.device_id AS device_id,
    d.device_ordinal AS device_ordinal,
    q.device_event_id AS device_event_id,
    n.name AS kernel_name,
    q.grid AS grid,
    q.block AS block,
    q.occurrence AS occurrence,
    q.derived_name AS counter_name,
    q.value AS value,
    f.unit AS unit,
    CAST(NULL AS VARCHAR) AS aggregation,
    CAST(NULL AS BIGINT) AS instance_count,
    q.formula_id AS formula_id,
    q.pass_count AS pass_count,
    'derived' AS evidence,
    CASE
        WHEN q.has_die_mean THEN f.caveat || '; with the mean clock of the dies, not the largest'
        ELSE f.caveat
    END AS caveat
FROM v1._derived_counters AS q
INNER JOIN main.counter_formulas AS f
    ON f.formula_id = q.formula_id
INNER JOIN main.devices AS d
    ON d.device_id = q.device_id
INNER JOIN main.names AS n
    ON n.name_id = q.name_id
