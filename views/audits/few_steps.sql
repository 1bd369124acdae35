-- name: few_steps
-- severity: warning
-- filter: capture_id
-- question: Are there enough whole steps for a median and a spread?
-- meaning: The capture has fewer than three complete steps. One duration is no median, and two tell nothing of the
--   spread.
-- next: Report the duration as one sample. For a step time with a spread, profile at least three steps after warm-up,
--   or time more steps without the profiler and keep them in timing.json.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   complete_step_count BIGINT (count): steps that are complete on every device
--   step_count BIGINT (count): all steps

WITH _steps AS (
    SELECT
        s.capture_id AS capture_id,
        s.step_num AS step_num,
        MIN(CASE WHEN s.is_complete THEN 1 ELSE 0 END) AS is_whole
    FROM v1.steps AS s
    GROUP BY
        s.capture_id,
        s.step_num
),
_captures AS (
    SELECT
        s.capture_id AS capture_id,
        CAST(SUM(s.is_whole) AS BIGINT) AS complete_step_count,
        COUNT(*) AS step_count
    FROM _steps AS s
    GROUP BY s.capture_id
)
SELECT
    r.run_name AS run_name,
    s.capture_id AS capture_id,
    s.complete_step_count AS complete_step_count,
    s.step_count AS step_count
FROM _captures AS s
INNER JOIN main.captures AS c
    ON c.capture_id = s.capture_id
INNER JOIN main.runs AS r
    ON r.run_id = c.run_id
WHERE s.complete_step_count BETWEEN 1 AND 2
ORDER BY
    r.run_name,
    s.capture_id
