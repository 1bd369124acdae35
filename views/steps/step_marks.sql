-- name: v1._step_marks
-- version: 1
-- grain: one row per range of a host thread, or execution of the step program, that marks a step
-- summary: What marks the steps of each capture.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   track_id BIGINT: the thread; NULL for an execution that the device tells
--   device_id BIGINT: device of such an execution; NULL where it is one of all devices
--   execution_id BIGINT: the runtime's number of such an execution
--   name_id BIGINT: names.name_id of what the step is called
--   start_rank BIGINT: position in the capture by start
--   end_rank BIGINT: position in the capture by end
--   step_num BIGINT: the step
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end
--   mark_source VARCHAR: marker (by the user's word), annotation (of the program: StepTraceAnnotation, NVTX,
--     ROCTx), program_run (neither is there: what is around the launches of the step program)

WITH _marks AS (
    SELECT
        a.capture_id AS capture_id,
        a.track_id AS track_id,
        CAST(NULL AS BIGINT) AS device_id,
        CAST(NULL AS BIGINT) AS execution_id,
        a.name_id AS name_id,
        a.step_num AS step_num,
        a.start_ps AS start_ps,
        a.end_ps AS end_ps,
        'annotation' AS mark_source
    FROM v1._step_annotations AS a
    LEFT JOIN v1._step_choices AS x
        ON x.capture_id = a.capture_id
    WHERE x.marker_pattern IS NULL
        AND NOT a.is_repeated
    UNION ALL
    SELECT
        n.capture_id AS capture_id,
        n.track_id AS track_id,
        n.device_id AS device_id,
        n.execution_id AS execution_id,
        n.name_id AS name_id,
        n.step_num AS step_num,
        n.start_ps AS start_ps,
        n.end_ps AS end_ps,
        n.mark_source AS mark_source
    FROM main.numbered_marks AS n
)
SELECT
    m.capture_id AS capture_id,
    m.track_id AS track_id,
    m.device_id AS device_id,
    m.execution_id AS execution_id,
    m.name_id AS name_id,
    ROW_NUMBER() OVER (
        PARTITION BY m.capture_id
        ORDER BY m.start_ps NULLS FIRST, m.end_ps NULLS FIRST, m.step_num NULLS FIRST, m.track_id NULLS FIRST
    ) AS start_rank,
    ROW_NUMBER() OVER (
        PARTITION BY m.capture_id
        ORDER BY m.end_ps NULLS FIRST, m.start_ps NULLS FIRST, m.step_num NULLS FIRST, m.track_id NULLS FIRST
    ) AS end_rank,
    m.step_num AS step_num,
    m.start_ps AS start_ps,
    m.end_ps AS end_ps,
    m.mark_source AS mark_source
FROM _marks AS m
