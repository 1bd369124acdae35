-- name: profiled_time_as_throughput
-- severity: warning
-- filter: run_name
-- question: Are there step times that the profiler did not slow down?
-- meaning: Every step time of the run was taken under the profiler. A profile explains performance and does not define
--   it: throughput and MFU from these times are those of the profiled program.
-- next: Run the same configuration without a profiler, time its steps after warm-up, and keep them with the run
--   (unprofiled_step_s in timing.json). Until then, label throughput as profiled.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: NULL: the whole run
--   profiled_samples BIGINT (count): step times under the profiler
--   shortest_s DOUBLE (s): the shortest of them
--   longest_s DOUBLE (s): the longest

WITH _times AS (
    SELECT
        t.run_id AS run_id,
        COUNT(CASE WHEN t.is_profiled THEN 1 END) AS profiled_samples,
        COUNT(*) AS samples,
        MIN(t.value) AS shortest_s,
        MAX(t.value) AS longest_s
    FROM main.timing_samples AS t
    WHERE t.metric = 'step_time_s'
    GROUP BY t.run_id
)
SELECT
    r.run_name AS run_name,
    CAST(NULL AS BIGINT) AS capture_id,
    t.profiled_samples AS profiled_samples,
    t.shortest_s AS shortest_s,
    t.longest_s AS longest_s
FROM _times AS t
INNER JOIN main.runs AS r
    ON r.run_id = t.run_id
WHERE t.profiled_samples = t.samples
ORDER BY r.run_name
