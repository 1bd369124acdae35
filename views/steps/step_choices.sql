-- name: v1._step_choices
-- version: 1
-- grain: one row per capture of a run whose steps the user chose
-- summary: What the user calls the steps, by capture.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   run_id BIGINT: its run
--   marker_pattern VARCHAR: regular expression of the events that mark the steps; NULL for none
--   first_step BIGINT: steps below are left out; NULL for none
--   last_step BIGINT: steps above are left out; NULL for none

SELECT
    c.capture_id AS capture_id,
    c.run_id AS run_id,
    x.marker_pattern AS marker_pattern,
    x.first_step AS first_step,
    x.last_step AS last_step
FROM main.captures AS c
INNER JOIN main.step_choices AS x
    ON x.run_id = c.run_id
