-- name: profile_perturbs
-- severity: note
-- filter: run_name
-- question: Is the profiled step as long as the same step without the profiler?
-- meaning: The median step under the profiler differs by more than 10 % from the median without it. Above 1, the profile
--   describes a slower program than the one that trains: shares of idle time and launch gaps above all. Below 1, the
--   two were not the same work or not equally warm.
-- next: Above 1, turn off what costs most (the Python tracer, host tracing at level 3), or profile larger steps; below 1,
--   time more steps after warm-up, on the same machine and data. Take times from the unprofiled run, and from the
--   profile only where device time goes.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: NULL: the whole run
--   profiled_samples BIGINT (count): step times under the profiler
--   profiled_median_s DOUBLE (s): their median; of an even number the mean of the middle two
--   unprofiled_samples BIGINT (count): step times without it
--   unprofiled_median_s DOUBLE (s): their median, in the same way
--   profiled_over_unprofiled_ratio DOUBLE (ratio): profiled_median_s / unprofiled_median_s

WITH _ranked AS (
    SELECT
        t.run_id AS run_id,
        t.is_profiled AS is_profiled,
        t.value AS value,
        ROW_NUMBER() OVER (
            PARTITION BY t.run_id, t.is_profiled
            ORDER BY t.value NULLS FIRST
        ) AS value_rank,
        COUNT(*) OVER (PARTITION BY t.run_id, t.is_profiled) AS samples
    FROM main.timing_samples AS t
    WHERE t.metric = 'step_time_s'
        AND t.is_profiled IS NOT NULL
),
_medians AS (
    SELECT
        t.run_id AS run_id,
        MAX(CASE WHEN t.is_profiled THEN t.samples END) AS profiled_samples,
        (MIN(CASE WHEN t.is_profiled THEN t.value END) + MAX(CASE WHEN t.is_profiled THEN t.value END)) / 2
            AS profiled_median_s,
        MAX(CASE WHEN NOT t.is_profiled THEN t.samples END) AS unprofiled_samples,
        (MIN(CASE WHEN NOT t.is_profiled THEN t.value END) + MAX(CASE WHEN NOT t.is_profiled THEN t.value END)) / 2
            AS unprofiled_median_s
    FROM _ranked AS t
    -- The value in the middle, or both.
    WHERE 2 * t.value_rank BETWEEN t.samples AND t.samples + 2
    GROUP BY t.run_id
),
_ratios AS (
    SELECT
        m.run_id AS run_id,
        m.profiled_samples AS profiled_samples,
        m.profiled_median_s AS profiled_median_s,
        m.unprofiled_samples AS unprofiled_samples,
        m.unprofiled_median_s AS unprofiled_median_s,
        m.profiled_median_s / NULLIF(m.unprofiled_median_s, 0) AS profiled_over_unprofiled_ratio
    FROM _medians AS m
)
SELECT
    r.run_name AS run_name,
    CAST(NULL AS BIGINT) AS capture_id,
    m.profiled_samples AS profiled_samples,
    m.profiled_median_s AS profiled_median_s,
    m.unprofiled_samples AS unprofiled_samples,
    m.unprofiled_median_s AS unprofiled_median_s,
    m.profiled_over_unprofiled_ratio AS profiled_over_unprofiled_ratio
FROM _ratios AS m
INNER JOIN main.runs AS r
    ON r.run_id = m.run_id
WHERE m.profiled_over_unprofiled_ratio NOT BETWEEN 9e-1 AND 11e-1
ORDER BY r.run_name
