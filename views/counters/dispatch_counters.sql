-- name: v1._dispatch_counters
-- version: 1
-- grain: one row per dispatch and counter that was collected for it
-- summary: The one value of a counter for a dispatch, made of those of its hardware instances.
-- evidence: counter
-- columns:
--   run_id BIGINT: the run
--   capture_id BIGINT: the capture
--   device_event_id BIGINT: the dispatch
--   device_id BIGINT: the device
--   name_id BIGINT: name of the kernel
--   grid VARCHAR: blocks as x,y,z; NULL where unknown
--   block VARCHAR: threads of a block as x,y,z; NULL where unknown
--   kernel_group BIGINT: number, in the run, of its device, kernel, grid and block
--   pass_index BIGINT: pass over the device
--   occurrence BIGINT: number of the dispatch among those of its kernel and launch shape in the pass
--   dispatch_count BIGINT (count): dispatches of this kernel and launch shape in the pass
--   counter_id BIGINT: the counter, within its capture
--   counter_name VARCHAR: the counter as the profiler names it
--   formula_counter_name VARCHAR: its name in formulas
--   value DOUBLE: its value; NULL where no instance has one
--   formula_value DOUBLE: value for formulas; NULL also where is_die_count_unknown
--   is_die_mean BOOLEAN: the file has the sum of the clocks of several dies, and value is their mean
--   is_die_count_unknown BOOLEAN: a clock that may be the sum of those of several dies
--   aggregation VARCHAR: sum, max or mean of the instances
--   unit VARCHAR: of the value
--   instance_count BIGINT (count): hardware instances with a value
--   architecture VARCHAR: of the device; NULL where unknown
-- algorithm: A clock that each die has, of which the largest is wanted, comes as one value where the profiler
--   wrote one value per counter: it added them, as it adds all else. Their mean is the nearest to the largest
--   that can be had.

WITH _sums AS (
    SELECT
        c.run_id AS run_id,
        v.capture_id AS capture_id,
        v.device_event_id AS device_event_id,
        v.counter_id AS counter_id,
        CAST(SUM(v.value) AS DOUBLE) AS value_sum,
        MAX(v.value) AS value_max,
        COUNT(v.value) AS instance_count
    FROM main.counter_values AS v
    INNER JOIN main.captures AS c
        ON c.capture_id = v.capture_id
    WHERE v.device_event_id IS NOT NULL
        AND v.host_event_id IS NULL
    GROUP BY
        c.run_id,
        v.capture_id,
        v.device_event_id,
        v.counter_id
),
_counters AS (
    SELECT
        c.capture_id AS capture_id,
        c.counter_id AS counter_id,
        c.counter_name AS counter_name,
        k.formula_counter_name AS formula_counter_name,
        k.aggregation AS aggregation,
        COALESCE(NULLIF(c.units, ''), k.unit, 'count') AS unit
    FROM main.counters AS c
    INNER JOIN v1._counter_kinds AS k
        ON k.counter_name = c.counter_name
),
_values AS (
    SELECT
        s.run_id AS run_id,
        s.capture_id AS capture_id,
        s.device_event_id AS device_event_id,
        s.counter_id AS counter_id,
        s.value_sum AS value_sum,
        s.value_max AS value_max,
        s.instance_count AS instance_count,
        c.counter_name AS counter_name,
        c.formula_counter_name AS formula_counter_name,
        c.aggregation AS aggregation,
        c.unit AS unit,
        c.aggregation = 'max' AND s.instance_count = 1 AS is_single_clock
    FROM _sums AS s
    INNER JOIN _counters AS c
        ON c.capture_id = s.capture_id
        AND c.counter_id = s.counter_id
),
_dispatch_values AS (
    SELECT
        d.run_id AS run_id,
        d.capture_id AS capture_id,
        d.device_event_id AS device_event_id,
        d.device_id AS device_id,
        d.name_id AS name_id,
        d.grid AS grid,
        d.block AS block,
        d.kernel_group AS kernel_group,
        d.pass_index AS pass_index,
        d.occurrence AS occurrence,
        d.dispatch_count AS dispatch_count,
        v.counter_id AS counter_id,
        v.counter_name AS counter_name,
        v.formula_counter_name AS formula_counter_name,
        CASE
            WHEN v.is_single_clock THEN v.value_max / NULLIF(COALESCE(a.die_count, 1e0), 0)
            WHEN v.aggregation = 'max' THEN v.value_max
            WHEN v.aggregation = 'mean' THEN v.value_sum / NULLIF(CAST(v.instance_count AS DOUBLE), 0)
            ELSE v.value_sum
        END AS value,
        v.is_single_clock AND COALESCE(a.die_count, 1e0) > 1 AS is_die_mean,
        v.is_single_clock AND a.die_count IS NULL AS is_die_count_unknown,
        v.aggregation AS aggregation,
        v.unit AS unit,
        v.instance_count AS instance_count,
        a.architecture AS architecture
    FROM _values AS v
    INNER JOIN v1._counted_dispatches AS d
        ON d.run_id = v.run_id
        AND d.capture_id = v.capture_id
        AND d.device_event_id = v.device_event_id
    LEFT JOIN v1._counted_devices AS a
        ON a.device_id = d.device_id
)
SELECT
    v.run_id AS run_id,
    v.capture_id AS capture_id,
    v.device_event_id AS device_event_id,
    v.device_id AS device_id,
    v.name_id AS name_id,
    v.grid AS grid,
    v.block AS block,
    v.kernel_group AS kernel_group,
    v.pass_index AS pass_index,
    v.occurrence AS occurrence,
    v.dispatch_count AS dispatch_count,
    v.counter_id AS counter_id,
    v.counter_name AS counter_name,
    v.formula_counter_name AS formula_counter_name,
    v.value AS value,
    CASE WHEN NOT v.is_die_count_unknown THEN v.value END AS formula_value,
    v.is_die_mean AS is_die_mean,
    v.is_die_count_unknown AS is_die_count_unknown,
    CASE WHEN v.is_die_mean THEN 'mean' ELSE v.aggregation END AS aggregation,
    v.unit AS unit,
    v.instance_count AS instance_count,
    v.architecture AS architecture
FROM _dispatch_values AS v
