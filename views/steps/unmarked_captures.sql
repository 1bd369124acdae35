-- name: v1._unmarked_captures
-- version: 1
-- grain: one row per capture without a step annotation and without a marker of the user's
-- summary: The captures whose steps are the executions of a program.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture

SELECT
    c.capture_id AS capture_id
FROM main.captures AS c
LEFT JOIN main.steps AS s
    ON s.capture_id = c.capture_id
LEFT JOIN v1._step_choices AS x
    ON x.capture_id = c.capture_id
WHERE s.step_id IS NULL
    AND x.marker_pattern IS NULL
