-- name: no_unprofiled_time
-- severity: note
-- filter: run_name
-- question: Does the run come with any step times of its own?
-- meaning: The run has captures with steps and no step time beside them. The only step times are those of the profiled
--   steps, which are no throughput.
-- next: Keep a timing.json beside the capture, with the step times of the same program without a profiler
--   (unprofiled_step_s), or the program's log.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: NULL: the whole run
--   capture_count BIGINT (count): captures with marked steps

WITH _marked AS (
    SELECT DISTINCT s.capture_id AS capture_id
    FROM main.steps AS s
),
_profiled AS (
    SELECT
        c.run_id AS run_id,
        COUNT(*) AS capture_count
    FROM _marked AS m
    INNER JOIN main.captures AS c
        ON c.capture_id = m.capture_id
    GROUP BY c.run_id
),
_timed AS (
    SELECT DISTINCT t.run_id AS run_id
    FROM main.timing_samples AS t
    WHERE t.metric = 'step_time_s'
)
SELECT
    r.run_name AS run_name,
    CAST(NULL AS BIGINT) AS capture_id,
    p.capture_count AS capture_count
FROM _profiled AS p
INNER JOIN main.runs AS r
    ON r.run_id = p.run_id
LEFT JOIN _timed AS t
    ON t.run_id = p.run_id
WHERE t.run_id IS NULL
ORDER BY r.run_name
