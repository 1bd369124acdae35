-- name: v1._derived_counters
-- version: 1
-- grain: one row per run, device, kernel, grid, block, occurrence and derived name
-- summary: What formulas make of the counters of a dispatch, which may come from several passes.
-- evidence: derived
-- columns:
--   run_id BIGINT: the run
--   capture_id BIGINT: capture of the first pass that dispatched the kernel as often as those it is derived from
--   device_event_id BIGINT: the dispatch in that pass
--   device_id BIGINT: the device
--   name_id BIGINT: name of the kernel
--   grid VARCHAR: blocks as x,y,z; NULL where unknown
--   block VARCHAR: threads of a block as x,y,z; NULL where unknown
--   kernel_group BIGINT: number, in the run, of its device, kernel, grid and block
--   occurrence BIGINT: number of the dispatch in its kernel group
--   dispatch_count BIGINT (count): dispatches of its kernel group in each pass that it is derived from
--   derived_name VARCHAR: what is derived
--   value DOUBLE: its value; NULL for a quotient with 0 below
--   formula_id VARCHAR: the formula
--   pass_count BIGINT (count): passes that the formula takes counters from
--   has_die_mean BOOLEAN: it takes a clock that is the mean over dies, not the largest

WITH _results AS (
    SELECT
        v.run_id AS run_id,
        v.kernel_group AS kernel_group,
        v.occurrence AS occurrence,
        v.dispatch_count AS dispatch_count,
        p.derived_name AS derived_name,
        p.formula_id AS formula_id,
        p.required_terms AS required_terms,
        p.has_denominator AS has_denominator,
        p.pass_count AS pass_count,
        CAST(SUM(p.numerator_weight * v.formula_value) AS DOUBLE) AS numerator,
        CAST(SUM(p.denominator_weight * v.formula_value) AS DOUBLE) AS denominator,
        CAST(SUM(CASE WHEN p.is_required THEN 1 ELSE 0 END) AS BIGINT) AS found_terms,
        MAX(CASE WHEN v.is_die_mean THEN 1 ELSE 0 END) AS die_means
    FROM v1._dispatch_counters AS v
    INNER JOIN v1._formula_plans AS p
        ON p.run_id = v.run_id
        AND p.kernel_group = v.kernel_group
        AND p.pass_index = v.pass_index
        AND p.counter_id = v.counter_id
    WHERE v.formula_value IS NOT NULL
    GROUP BY
        v.run_id,
        v.kernel_group,
        v.occurrence,
        v.dispatch_count,
        p.derived_name,
        p.formula_id,
        p.required_terms,
        p.has_denominator,
        p.pass_count
),
_ranked_dispatches AS (
    SELECT
        d.run_id AS run_id,
        d.capture_id AS capture_id,
        d.device_event_id AS device_event_id,
        d.device_id AS device_id,
        d.name_id AS name_id,
        d.grid AS grid,
        d.block AS block,
        d.kernel_group AS kernel_group,
        d.occurrence AS occurrence,
        d.dispatch_count AS dispatch_count,
        ROW_NUMBER() OVER (
            PARTITION BY d.run_id, d.kernel_group, d.occurrence, d.dispatch_count
            ORDER BY d.pass_index NULLS FIRST
        ) AS pass_rank
    FROM v1._counted_dispatches AS d
)
SELECT
    r.run_id AS run_id,
    d.capture_id AS capture_id,
    d.device_event_id AS device_event_id,
    d.device_id AS device_id,
    d.name_id AS name_id,
    d.grid AS grid,
    d.block AS block,
    r.kernel_group AS kernel_group,
    r.occurrence AS occurrence,
    r.dispatch_count AS dispatch_count,
    r.derived_name AS derived_name,
    CASE WHEN r.has_denominator THEN r.numerator / NULLIF(r.denominator, 0) ELSE r.numerator END AS value,
    r.formula_id AS formula_id,
    r.pass_count AS pass_count,
    r.die_means = 1 AS has_die_mean
FROM _results AS r
INNER JOIN _ranked_dispatches AS d
    ON d.run_id = r.run_id
    AND d.kernel_group = r.kernel_group
    AND d.occurrence = r.occurrence
    AND d.dispatch_count = r.dispatch_count
    AND d.pass_rank = 1
WHERE r.found_terms = r.required_terms
