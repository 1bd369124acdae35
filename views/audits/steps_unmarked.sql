-- name: steps_unmarked
-- severity: note
-- filter: capture_id
-- question: Does the program say what a step is?
-- meaning: Nothing marks the steps. Each execution of the program with the most device time is taken for one: that is
--   no optimizer update where an update runs several programs, or one program for each microstep.
-- next: Make sure that an execution is an update. Else say what marks one: tracewh steps RUN --step-marker REGEX, or
--   profile with jax.profiler.StepTraceAnnotation around the update.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   program_name VARCHAR: the program whose executions are the steps
--   step_count BIGINT (count): how many there are

SELECT
    r.run_name AS run_name,
    s.capture_id AS capture_id,
    s.step_name AS program_name,
    COUNT(DISTINCT s.step_num) AS step_count
FROM v1.steps AS s
INNER JOIN main.captures AS c
    ON c.capture_id = s.capture_id
INNER JOIN main.runs AS r
    ON r.run_id = c.run_id
WHERE s.found_by = 'program_run'
GROUP BY
    r.run_name,
    s.capture_id,
    s.step_name
ORDER BY
    r.run_name,
    s.capture_id,
    s.step_name
