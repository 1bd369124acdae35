-- name: v1._execution_steps
-- version: 1
-- grain: one row per execution of a program that was started inside a step annotation
-- summary: The step of each program execution that the runtime numbers.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   execution_id BIGINT: the runtime's number of the execution, on host and device events alike
--   step_num BIGINT: the step

WITH _executions AS (
    SELECT
        h.capture_id AS capture_id,
        h.execution_id AS execution_id,
        MIN(a.step_num) AS first_step
    FROM main.host_events AS h
    INNER JOIN v1._step_annotations AS a
        ON a.capture_id = h.capture_id
        AND a.track_id = h.track_id
        AND h.start_ps >= a.start_ps
        AND h.start_ps < a.end_ps
    WHERE h.execution_id IS NOT NULL
    GROUP BY
        h.capture_id,
        h.execution_id
)
SELECT
    e.capture_id AS capture_id,
    e.execution_id AS execution_id,
    e.first_step AS step_num
FROM _executions AS e
