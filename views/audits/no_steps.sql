-- name: no_steps
-- severity: warning
-- filter: capture_id
-- question: Are there training steps?
-- meaning: The capture has device work and none of it belongs to a step. There are no step times, and no time per
--   step, phase or component.
-- next: Say what marks a step: tracewh steps RUN --step-marker REGEX, a pattern of the names of host events. Better,
--   put jax.profiler.StepTraceAnnotation around the update and profile again.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   source_kind VARCHAR: format that it was read from
--   annotated_step_count BIGINT (count): steps that the host marks, none of them with device work
--   device_event_count BIGINT (count): device events that are work

WITH _found AS (
    SELECT DISTINCT s.capture_id AS capture_id
    FROM v1.steps AS s
)
SELECT
    c.run_name AS run_name,
    c.capture_id AS capture_id,
    c.source_kind AS source_kind,
    c.step_count AS annotated_step_count,
    c.device_event_count AS device_event_count
FROM v1.captures AS c
LEFT JOIN _found AS f
    ON f.capture_id = c.capture_id
WHERE c.device_event_count > 0
    AND f.capture_id IS NULL
ORDER BY
    c.run_name,
    c.capture_id
