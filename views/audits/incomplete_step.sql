-- name: incomplete_step
-- severity: note
-- filter: capture_id
-- question: Is any step cut by the start or the end of the capture?
-- meaning: A step lacks device work: launches of it have none in the capture, or it is the first or the last and has
--   less than the others. It is left out of statistics, and its own times are too short.
-- next: Nothing, where the first or the last step is cut and enough others are whole. Else profile more steps, and
--   call jax.block_until_ready before the profiler stops.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   step_num BIGINT: the step
--   device_count BIGINT (count): devices on which it is cut
--   missing_launches BIGINT (count): its launches that have no device event
--   longest_ms DOUBLE (ms): what there is of it, on the device with most

SELECT
    r.run_name AS run_name,
    s.capture_id AS capture_id,
    s.step_num AS step_num,
    COUNT(*) AS device_count,
    MAX(s.missing_launch_count) AS missing_launches,
    MAX(s.duration_ms) AS longest_ms
FROM v1.steps AS s
INNER JOIN main.captures AS c
    ON c.capture_id = s.capture_id
INNER JOIN main.runs AS r
    ON r.run_id = c.run_id
WHERE NOT s.is_complete
GROUP BY
    r.run_name,
    s.capture_id,
    s.step_num
ORDER BY
    r.run_name,
    s.capture_id,
    s.step_num
