-- name: v1._formula_plans
-- version: 1
-- grain: one row per term of a formula that is used for a kernel with one grid and block
-- summary: Which counter of which pass each formula takes for a kernel.
-- evidence: derived
-- columns:
--   run_id BIGINT: the run
--   kernel_group BIGINT: number, in the run, of device, kernel, grid and block
--   formula_id VARCHAR: the formula
--   derived_name VARCHAR: what it derives
--   pass_index BIGINT: pass that the counter is taken from
--   counter_id BIGINT: the counter, within the capture of that pass
--   numerator_weight DOUBLE: what its value is multiplied with above the line; 0 for a counter below it
--   denominator_weight DOUBLE: what its value is multiplied with below the line; 0 for a counter above it
--   is_required BOOLEAN: without it there is no result
--   required_terms BIGINT (count): required terms of the formula
--   has_denominator BOOLEAN: it is a quotient
--   pass_count BIGINT (count): passes that the formula takes counters from
--   dispatch_count BIGINT (count): dispatches of the kernel in each of these passes
-- algorithm: Each counter is taken from the first pass that has it. A formula can be used where all of its
--   required counters are there, with the device attributes they need, and all passes that it takes counters
--   from, also optional ones, dispatched the kernel equally often: then the nth dispatch of one is the nth of
--   another. Of formulas for one derived name the first by formula_id is used, so that a kernel mixes none;
--   those of any architecture come last, and serve also where the architecture is unknown.

WITH _formulas AS (
    SELECT
        f.formula_id AS formula_id,
        f.architecture AS architecture,
        f.derived_name AS derived_name,
        f.scale AS scale,
        t.counter_name AS counter_name,
        t.part AS part,
        t.factor AS factor,
        t.device_attribute AS device_attribute,
        t.is_required AS is_required
    FROM main.counter_formulas AS f
    INNER JOIN main.counter_formula_terms AS t
        ON t.formula_id = f.formula_id
),
_needs AS (
    SELECT
        f.formula_id AS formula_id,
        CAST(SUM(CASE WHEN f.is_required THEN 1 ELSE 0 END) AS BIGINT) AS required_terms,
        MAX(CASE WHEN f.part = 'denominator' THEN 1 ELSE 0 END) AS denominators
    FROM _formulas AS f
    GROUP BY f.formula_id
),
_offers AS (
    SELECT DISTINCT
        v.run_id AS run_id,
        v.kernel_group AS kernel_group,
        v.device_id AS device_id,
        v.architecture AS architecture,
        v.formula_counter_name AS formula_counter_name,
        v.pass_index AS pass_index,
        v.counter_name AS counter_name,
        v.counter_id AS counter_id,
        v.dispatch_count AS dispatch_count
    FROM v1._dispatch_counters AS v
    WHERE v.formula_value IS NOT NULL
),
_ranked_offers AS (
    SELECT
        o.run_id AS run_id,
        o.kernel_group AS kernel_group,
        o.device_id AS device_id,
        o.architecture AS architecture,
        o.formula_counter_name AS formula_counter_name,
        o.pass_index AS pass_index,
        o.counter_id AS counter_id,
        o.dispatch_count AS dispatch_count,
        ROW_NUMBER() OVER (
            PARTITION BY o.run_id, o.kernel_group, o.formula_counter_name
            ORDER BY o.pass_index NULLS FIRST, o.counter_name NULLS FIRST, o.counter_id NULLS FIRST
        ) AS offer_rank
    FROM _offers AS o
),
_attributes AS (
    SELECT
        a.device_id AS device_id,
        a.attribute AS attribute,
        MIN(CASE WHEN REGEXP_MATCHES(a.value, '^[0-9]{1,9}$') THEN CAST(a.value AS DOUBLE) END) AS number
    FROM main.device_attributes AS a
    INNER JOIN (SELECT DISTINCT f.device_attribute AS attribute FROM _formulas AS f) AS w
        ON w.attribute = a.attribute
    GROUP BY
        a.device_id,
        a.attribute
),
_terms AS (
    SELECT
        o.run_id AS run_id,
        o.kernel_group AS kernel_group,
        o.pass_index AS pass_index,
        o.counter_id AS counter_id,
        o.dispatch_count AS dispatch_count,
        f.formula_id AS formula_id,
        f.derived_name AS derived_name,
        CASE WHEN f.architecture = 'any' THEN 1 ELSE 0 END AS is_of_any,
        f.scale AS scale,
        f.part AS part,
        f.is_required AS is_required,
        CASE WHEN f.device_attribute IS NULL THEN f.factor ELSE f.factor * a.number END AS weight
    FROM _ranked_offers AS o
    INNER JOIN _formulas AS f
        ON f.counter_name = o.formula_counter_name
    LEFT JOIN _attributes AS a
        ON a.device_id = o.device_id
        AND a.attribute = f.device_attribute
    WHERE o.offer_rank = 1
        AND (f.architecture = o.architecture OR f.architecture = 'any')
),
_usable AS (
    SELECT
        t.run_id AS run_id,
        t.kernel_group AS kernel_group,
        t.derived_name AS derived_name,
        t.formula_id AS formula_id,
        n.required_terms AS required_terms,
        n.denominators AS denominators,
        COUNT(DISTINCT t.pass_index) AS pass_count,
        ROW_NUMBER() OVER (
            PARTITION BY t.run_id, t.kernel_group, t.derived_name
            ORDER BY t.is_of_any NULLS FIRST, t.formula_id NULLS FIRST
        ) AS preference
    FROM _terms AS t
    INNER JOIN _needs AS n
        ON n.formula_id = t.formula_id
    GROUP BY
        t.run_id,
        t.kernel_group,
        t.derived_name,
        t.formula_id,
        t.is_of_any,
        n.required_terms,
        n.denominators
    HAVING MIN(t.dispatch_count) = MAX(t.dispatch_count)
        AND CAST(SUM(CASE WHEN t.is_required AND t.weight IS NOT NULL THEN 1 ELSE 0 END) AS BIGINT)
            = n.required_terms
)
SELECT
    t.run_id AS run_id,
    t.kernel_group AS kernel_group,
    t.formula_id AS formula_id,
    t.derived_name AS derived_name,
    t.pass_index AS pass_index,
    t.counter_id AS counter_id,
    CASE WHEN t.part = 'denominator' THEN 0e0 ELSE t.scale * t.weight END AS numerator_weight,
    CASE WHEN t.part = 'denominator' THEN t.weight ELSE 0e0 END AS denominator_weight,
    t.is_required AS is_required,
    u.required_terms AS required_terms,
    u.denominators = 1 AS has_denominator,
    u.pass_count AS pass_count,
    t.dispatch_count AS dispatch_count
FROM _terms AS t
INNER JOIN _usable AS u
    ON u.run_id = t.run_id
    AND u.kernel_group = t.kernel_group
    AND u.formula_id = t.formula_id
    AND u.preference = 1
WHERE t.weight IS NOT NULL
