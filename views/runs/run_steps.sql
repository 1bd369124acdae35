-- name: v1._run_steps
-- version: 1
-- grain: one row per run, capture, device and step that summaries of the run are made of
-- summary: The complete steps of each device; for a run without any, the whole of its captures.
-- evidence: derived
-- columns:
--   run_id BIGINT: the run
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   step_num BIGINT: the step; NULL for the whole capture
-- algorithm: A step that the trace cuts is left out, and so is a capture without complete steps beside one that has
--   some, so that means are of whole steps. Captures whose kernels ran one by one, for counters, have no device work
--   and no rows.

WITH _steps AS (
    SELECT
        s.capture_id AS capture_id,
        s.device_id AS device_id,
        s.step_num AS step_num
    FROM v1.steps AS s
    WHERE s.is_complete
),
_with_steps AS (
    SELECT DISTINCT c.run_id AS run_id
    FROM _steps AS s
    INNER JOIN main.captures AS c
        ON c.capture_id = s.capture_id
),
_without AS (
    SELECT DISTINCT
        c.run_id AS run_id,
        e.capture_id AS capture_id,
        e.device_id AS device_id
    FROM main.device_events AS e
    INNER JOIN main.captures AS c
        ON c.capture_id = e.capture_id
    LEFT JOIN _with_steps AS w
        ON w.run_id = c.run_id
    WHERE e.role = 'work'
        AND w.run_id IS NULL
)
SELECT
    c.run_id AS run_id,
    s.capture_id AS capture_id,
    s.device_id AS device_id,
    s.step_num AS step_num
FROM _steps AS s
INNER JOIN main.captures AS c
    ON c.capture_id = s.capture_id
UNION ALL
SELECT
    w.run_id AS run_id,
    w.capture_id AS capture_id,
    w.device_id AS device_id,
    CAST(NULL AS BIGINT) AS step_num
FROM _without AS w
