-- name: v1.steps
-- version: 1
-- grain: one row per capture, device and step
-- summary: Device window of each training step, found from the work that the step launched.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   device_ordinal BIGINT: ordinal of the device on its host
--   step_num BIGINT: number that the mark of the step gives; without marks 0, 1, ... in order
--   start_ps BIGINT (ps): start of the step's first device event
--   end_ps BIGINT (ps): end of its last
--   duration_ps BIGINT (ps): end_ps - start_ps
--   is_complete BOOLEAN: neither does a launch of the step lack its device event, nor is the step cut by the
--     start or end of the capture
--   found_by VARCHAR: weakest link from an event to the step: launch (launched inside the mark on its
--     thread), context (on a thread that took work over from it, or in a program execution that it started),
--     host_time (while it was open by the host's clock); program_run where nothing marks steps, so that
--     each execution of the program with the most device time is one
--   device_event_count BIGINT (count): device events of the step
--   missing_launch_count BIGINT (count): launches of the step, on any device, that have no device event, as
--     v1.unmatched_calls has them, but for calls that recorded a graph and kernels of RCCL that carry no id
--   host_start_ps BIGINT (ps): start of the step's mark on the host; NULL where the device tells the steps
--   host_end_ps BIGINT (ps): end of the step's mark on the host; NULL as before
--   step_name VARCHAR: name of the annotation, the one with the most annotated time in the capture; the text
--     that the user's marker selects; or the step program
--   gap_before_ps BIGINT (ps): from the end of the step before on this device, in order of start and even
--     if the user left it out, to the start of this one; negative where they overlap, NULL for the first
--   duration_ms DOUBLE (ms): duration_ps in milliseconds
--   gap_before_ms DOUBLE (ms): gap_before_ps in milliseconds
--   is_cut BOOLEAN: first or last of three or more steps of the device, with less than nine tenths of the device
--     events of each other step
--   mark_source VARCHAR: what marks the step: marker (by the user's word: tracewh steps), annotation
--     (StepTraceAnnotation, NVTX or ROCTx range), program_run
-- algorithm: A host range brackets launches and nothing else: device work belongs to the step that launched it,
--   whenever it runs. Steps may overlap on a device.

WITH _device AS (
    SELECT
        s.capture_id AS capture_id,
        s.device_id AS device_id,
        s.step_num AS step_num,
        MIN(s.start_ps) AS first_start_ps,
        MAX(s.end_ps) AS last_end_ps,
        MAX(CASE WHEN s.found_rank < 4 THEN s.found_rank ELSE 0 END) AS weakest_rank,
        COUNT(*) AS device_event_count
    FROM main.event_links AS s
    GROUP BY
        s.capture_id,
        s.device_id,
        s.step_num
),
_placed AS (
    SELECT
        d.capture_id AS capture_id,
        d.device_id AS device_id,
        d.step_num AS step_num,
        d.first_start_ps AS first_start_ps,
        d.last_end_ps AS last_end_ps,
        d.weakest_rank AS weakest_rank,
        d.device_event_count AS device_event_count,
        d.first_start_ps - LAG(d.last_end_ps) OVER (
            PARTITION BY d.capture_id, d.device_id
            ORDER BY d.first_start_ps NULLS FIRST, d.step_num NULLS FIRST
        ) AS gap_before_ps,
        ROW_NUMBER() OVER (
            PARTITION BY d.capture_id, d.device_id
            ORDER BY d.first_start_ps NULLS FIRST, d.step_num NULLS FIRST
        ) AS step_rank,
        ROW_NUMBER() OVER (
            PARTITION BY d.capture_id, d.device_id
            ORDER BY d.device_event_count NULLS FIRST, d.step_num NULLS FIRST
        ) AS count_rank,
        LEAD(d.device_event_count) OVER (
            PARTITION BY d.capture_id, d.device_id
            ORDER BY d.device_event_count NULLS FIRST, d.step_num NULLS FIRST
        ) AS next_count,
        COUNT(*) OVER (PARTITION BY d.capture_id, d.device_id) AS step_count
    FROM _device AS d
),
_steps AS (
    SELECT
        d.capture_id AS capture_id,
        d.device_id AS device_id,
        v.device_ordinal AS device_ordinal,
        d.step_num AS step_num,
        d.first_start_ps AS start_ps,
        d.last_end_ps AS end_ps,
        d.last_end_ps - d.first_start_ps AS duration_ps,
        CASE
            WHEN a.mark_source = 'program_run' THEN 'program_run'
            WHEN d.weakest_rank = 1 THEN 'launch'
            WHEN d.weakest_rank = 2 THEN 'context'
            ELSE 'host_time'
        END AS found_by,
        d.device_event_count AS device_event_count,
        COALESCE(m.missing_launch_count, 0) AS missing_launch_count,
        a.host_start_ps AS host_start_ps,
        a.host_end_ps AS host_end_ps,
        n.name AS step_name,
        d.gap_before_ps AS gap_before_ps,
        d.step_count >= 3
            AND d.count_rank = 1
            AND d.step_rank IN (1, d.step_count)
            AND 10 * d.device_event_count < 9 * d.next_count AS is_cut,
        a.mark_source AS mark_source
    FROM _placed AS d
    INNER JOIN main.devices AS v
        ON v.device_id = d.device_id
    INNER JOIN v1._step_names AS a
        ON a.capture_id = d.capture_id
        AND a.step_num = d.step_num
        AND a.is_chosen = 1
    INNER JOIN main.names AS n
        ON n.name_id = a.name_id
    LEFT JOIN main.missing_launches AS m
        ON m.capture_id = d.capture_id
        AND m.step_num = d.step_num
)
SELECT
    s.capture_id AS capture_id,
    s.device_id AS device_id,
    s.device_ordinal AS device_ordinal,
    s.step_num AS step_num,
    s.start_ps AS start_ps,
    s.end_ps AS end_ps,
    s.duration_ps AS duration_ps,
    s.missing_launch_count = 0 AND NOT s.is_cut AS is_complete,
    s.found_by AS found_by,
    s.device_event_count AS device_event_count,
    s.missing_launch_count AS missing_launch_count,
    s.host_start_ps AS host_start_ps,
    s.host_end_ps AS host_end_ps,
    s.step_name AS step_name,
    s.gap_before_ps AS gap_before_ps,
    CAST(s.duration_ps AS DOUBLE) / 1e9 AS duration_ms,
    CAST(s.gap_before_ps AS DOUBLE) / 1e9 AS gap_before_ms,
    s.is_cut AS is_cut,
    s.mark_source AS mark_source
FROM _steps AS s
