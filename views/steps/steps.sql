-- name: v1.steps
-- version: 1
-- grain: one row per capture, device and step
-- summary: Device window of each training step, found from the work that the step launched.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   device_ordinal BIGINT: ordinal of the device on its host
--   step_num BIGINT: number that the step annotation gives
--   start_ps BIGINT (ps): start of the step's first device event
--   end_ps BIGINT (ps): end of its last
--   duration_ps BIGINT (ps): end_ps - start_ps
--   is_complete BOOLEAN: every launch of the step has its device event in the capture
--   found_by VARCHAR: weakest link from an event to the step: launch (launched inside the annotation on its
--     thread), context (on a thread that took work over from it, or in a program execution that it started),
--     host_time (while it was open by the host's
--     clock)
--   device_event_count BIGINT (count): device events of the step
--   missing_launch_count BIGINT (count): launches of the step, on any device, that have no device event, as
--     v1.unmatched_calls has them, but for calls that recorded a graph and kernels of RCCL that carry no id
--   host_start_ps BIGINT (ps): start of the step annotation
--   host_end_ps BIGINT (ps): end of the step annotation
--   step_name VARCHAR: name of the annotation; the one with the most annotated time in the capture
--   gap_before_ps BIGINT (ps): from the end of the step before on this device, in order of start, to the
--     start of this one; negative where they overlap, NULL for the first
--   duration_ms DOUBLE (ms): duration_ps in milliseconds
--   gap_before_ms DOUBLE (ms): gap_before_ps in milliseconds

WITH _device AS (
    SELECT
        s.capture_id AS capture_id,
        s.device_id AS device_id,
        s.step_num AS step_num,
        MIN(s.start_ps) AS first_start_ps,
        MAX(s.end_ps) AS last_end_ps,
        MAX(CASE WHEN s.found_rank < 4 THEN s.found_rank ELSE 0 END) AS weakest_rank,
        COUNT(*) AS device_event_count
    FROM v1._event_steps AS s
    GROUP BY
        s.capture_id,
        s.device_id,
        s.step_num
),
_annotations AS (
    SELECT
        a.capture_id AS capture_id,
        a.step_num AS step_num,
        MIN(a.name_id) AS step_name_id,
        MIN(a.start_ps) AS host_start_ps,
        MAX(a.end_ps) AS host_end_ps
    FROM v1._step_annotations AS a
    GROUP BY
        a.capture_id,
        a.step_num
),
_launches AS (
    SELECT DISTINCT
        u.capture_id AS capture_id,
        u.correlation_id AS correlation_id
    FROM v1.unmatched_calls AS u
    WHERE u.cause NOT IN ('stream_capture', 'collective_without_id')
),
_missing AS (
    SELECT
        s.capture_id AS capture_id,
        s.step_num AS step_num,
        COUNT(*) AS missing_launch_count
    FROM v1._launch_steps AS s
    INNER JOIN _launches AS l
        ON l.capture_id = s.capture_id
        AND l.correlation_id = s.correlation_id
    GROUP BY
        s.capture_id,
        s.step_num
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
        m.missing_launch_count IS NULL AS is_complete,
        CASE
            WHEN d.weakest_rank = 1 THEN 'launch'
            WHEN d.weakest_rank = 2 THEN 'context'
            ELSE 'host_time'
        END AS found_by,
        d.device_event_count AS device_event_count,
        COALESCE(m.missing_launch_count, 0) AS missing_launch_count,
        a.host_start_ps AS host_start_ps,
        a.host_end_ps AS host_end_ps,
        n.name AS step_name,
        d.first_start_ps - LAG(d.last_end_ps) OVER (
            PARTITION BY d.capture_id, d.device_id
            ORDER BY d.first_start_ps NULLS FIRST, d.step_num NULLS FIRST
        ) AS gap_before_ps
    FROM _device AS d
    INNER JOIN main.devices AS v
        ON v.device_id = d.device_id
    INNER JOIN _annotations AS a
        ON a.capture_id = d.capture_id
        AND a.step_num = d.step_num
    INNER JOIN main.names AS n
        ON n.name_id = a.step_name_id
    LEFT JOIN _missing AS m
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
    s.is_complete AS is_complete,
    s.found_by AS found_by,
    s.device_event_count AS device_event_count,
    s.missing_launch_count AS missing_launch_count,
    s.host_start_ps AS host_start_ps,
    s.host_end_ps AS host_end_ps,
    s.step_name AS step_name,
    s.gap_before_ps AS gap_before_ps,
    CAST(s.duration_ps AS DOUBLE) / 1e9 AS duration_ms,
    CAST(s.gap_before_ps AS DOUBLE) / 1e9 AS gap_before_ms
FROM _steps AS s
