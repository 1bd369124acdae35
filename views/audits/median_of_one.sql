-- name: median_of_one
-- severity: warning
-- filter: run_name
-- question: Is a single timing sample all there is?
-- meaning: A quantity was timed once outside the profiler. Its median is that one sample, and it has no spread.
-- next: Call it one sample, not a median. Time at least three, better ten, updates after warm-up, each ended by
--   jax.block_until_ready, and report their spread.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: NULL: the whole run
--   metric VARCHAR: what was timed: step_time_s and the like
--   samples BIGINT (count): how many samples
--   value DOUBLE: the sample

WITH _metrics AS (
    SELECT
        t.run_id AS run_id,
        t.metric AS metric,
        COUNT(*) AS samples,
        MAX(t.value) AS only_value
    FROM main.timing_samples AS t
    -- What is apart from the step may well come once: a program is compiled once.
    WHERE t.metric NOT IN ('loss', 'compile_time_s', 'lower_time_s', 'checkpoint_time_s', 'evaluation_time_s',
            'input_stall_s')
        AND NOT COALESCE(t.is_profiled, FALSE)
    GROUP BY
        t.run_id,
        t.metric
)
SELECT
    r.run_name AS run_name,
    CAST(NULL AS BIGINT) AS capture_id,
    m.metric AS metric,
    m.samples AS samples,
    m.only_value AS value
FROM _metrics AS m
INNER JOIN main.runs AS r
    ON r.run_id = m.run_id
WHERE m.samples = 1
ORDER BY
    r.run_name,
    m.metric
