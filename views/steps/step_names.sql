-- name: v1._step_names
-- version: 1
-- grain: one row per capture and step that something marks
-- summary: The steps of each capture, whether or not device work was found for them.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   step_num BIGINT: the step
--   name_id BIGINT: names.name_id of what it is called
--   host_start_ps BIGINT (ps): start of its first mark on the host; NULL where the device tells the steps
--   host_end_ps BIGINT (ps): end of its last mark on the host
--   mark_source VARCHAR: marker, annotation or program_run, as in v1._step_marks
--   is_chosen INTEGER: 1 unless the user leaves the step out

WITH _steps AS (
    SELECT
        m.capture_id AS capture_id,
        m.step_num AS step_num,
        MIN(m.name_id) AS first_name_id,
        MIN(CASE WHEN m.track_id IS NOT NULL THEN m.start_ps END) AS first_start_ps,
        MAX(CASE WHEN m.track_id IS NOT NULL THEN m.end_ps END) AS last_end_ps,
        MIN(m.mark_source) AS any_source
    FROM v1._step_marks AS m
    GROUP BY
        m.capture_id,
        m.step_num
)
SELECT
    s.capture_id AS capture_id,
    s.step_num AS step_num,
    s.first_name_id AS name_id,
    s.first_start_ps AS host_start_ps,
    s.last_end_ps AS host_end_ps,
    s.any_source AS mark_source,
    CASE WHEN s.step_num < x.first_step OR s.step_num > x.last_step THEN 0 ELSE 1 END AS is_chosen
FROM _steps AS s
LEFT JOIN v1._step_choices AS x
    ON x.capture_id = s.capture_id
