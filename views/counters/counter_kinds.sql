-- name: v1._counter_kinds
-- version: 1
-- grain: one row per distinct counter name in the warehouse
-- summary: How the values of a counter are made one, and the name that formulas use for it.
-- evidence: derived
-- columns:
--   counter_name VARCHAR: the counter as the profiler names it
--   aggregation VARCHAR: sum, max or mean over its instances, by the first of counter_rules that matches
--   unit VARCHAR: of its values, by that rule; NULL for a plain count
--   formula_counter_name VARCHAR: its name in formulas: without the suffix _sum of the profiler's own sums

WITH _names AS (
    SELECT DISTINCT c.counter_name AS counter_name
    FROM main.counters AS c
),
_first_rules AS (
    SELECT
        n.counter_name AS counter_name,
        MIN(r.priority) AS first_priority
    FROM _names AS n
    INNER JOIN main.counter_rules AS r
        ON REGEXP_MATCHES(n.counter_name, r.pattern)
    GROUP BY n.counter_name
)
SELECT
    n.counter_name AS counter_name,
    COALESCE(r.aggregation, 'sum') AS aggregation,
    r.unit AS unit,
    COALESCE(NULLIF(REGEXP_EXTRACT(n.counter_name, '^(.+)_sum$', 1), ''), n.counter_name) AS formula_counter_name
FROM _names AS n
LEFT JOIN _first_rules AS f
    ON f.counter_name = n.counter_name
LEFT JOIN main.counter_rules AS r
    ON r.priority = f.first_priority
