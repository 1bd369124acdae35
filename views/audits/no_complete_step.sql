-- name: no_complete_step
-- severity: error
-- filter: capture_id
-- question: Does the capture hold a whole step?
-- meaning: Every step of the capture is cut: some of its work was launched before the capture began, or ended after
--   it. No number per step can be taken from it.
-- next: Profile again, over several whole steps: start the profiler before a step begins, and call
--   jax.block_until_ready on its result before the profiler stops.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   step_count BIGINT (count): steps, all of them cut
--   missing_launch_count BIGINT (count): launches of these steps that have no device event

WITH _steps AS (
    SELECT
        s.capture_id AS capture_id,
        s.step_num AS step_num,
        MAX(CASE WHEN s.is_complete THEN 0 ELSE 1 END) AS is_cut,
        MAX(s.missing_launch_count) AS missing_count
    FROM v1.steps AS s
    GROUP BY
        s.capture_id,
        s.step_num
),
_captures AS (
    SELECT
        s.capture_id AS capture_id,
        COUNT(*) AS step_count,
        CAST(SUM(s.is_cut) AS BIGINT) AS cut_count,
        CAST(SUM(s.missing_count) AS BIGINT) AS missing_launch_count
    FROM _steps AS s
    GROUP BY s.capture_id
)
SELECT
    r.run_name AS run_name,
    s.capture_id AS capture_id,
    s.step_count AS step_count,
    s.missing_launch_count AS missing_launch_count
FROM _captures AS s
INNER JOIN main.captures AS c
    ON c.capture_id = s.capture_id
INNER JOIN main.runs AS r
    ON r.run_id = c.run_id
WHERE s.cut_count = s.step_count
ORDER BY
    r.run_name,
    s.capture_id
