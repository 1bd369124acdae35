-- name: v1.device_time
-- version: 1
-- grain: one row per capture, device and step, and one per capture and device with step_num NULL
-- summary: Where the window of a step went on its device, exactly: compute + exposed communication +
--   exposed copy + idle = window.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   device_ordinal BIGINT: ordinal of the device on its host
--   step_num BIGINT: the step; NULL for the whole capture
--   window_ps BIGINT (ps): from the start of the first event to the end of the last
--   busy_ps BIGINT (ps): union of all events
--   idle_ps BIGINT (ps): window_ps - busy_ps
--   compute_ps BIGINT (ps): union of compute events
--   communication_ps BIGINT (ps): union of collectives
--   copy_ps BIGINT (ps): union of copies and memsets
--   overlap_ps BIGINT (ps): time with compute and a collective at once
--   exposed_communication_ps BIGINT (ps): collective and no compute
--   exposed_copy_ps BIGINT (ps): copy, no compute and no collective
--   hidden_ratio DOUBLE (ratio): share of communication that compute hides: overlap_ps over communication_ps;
--     NULL without communication
--   window_ms DOUBLE (ms): window_ps in milliseconds
--   busy_ms DOUBLE (ms): busy_ps in milliseconds
--   idle_ms DOUBLE (ms): idle_ps in milliseconds
--   compute_ms DOUBLE (ms): compute_ps in milliseconds
--   communication_ms DOUBLE (ms): communication_ps in milliseconds
--   copy_ms DOUBLE (ms): copy_ps in milliseconds
--   overlap_ms DOUBLE (ms): overlap_ps in milliseconds
--   exposed_communication_ms DOUBLE (ms): exposed_communication_ps in milliseconds
--   exposed_copy_ms DOUBLE (ms): exposed_copy_ps in milliseconds
-- algorithm: Each picosecond is charged once, to compute before communication before copy; see
--   v1.interval_exclusive. What of the union of communication is not charged to it overlaps with compute.

WITH _times AS (
    SELECT
        u.capture_id AS capture_id,
        u.device_id AS device_id,
        d.device_ordinal AS device_ordinal,
        u.key_1 AS step_num,
        u.end_ps - u.start_ps AS window_ps,
        u.union_ps AS busy_ps,
        u.end_ps - u.start_ps - u.union_ps AS idle_ps,
        u.union_1_ps AS compute_ps,
        u.union_2_ps AS communication_ps,
        u.union_3_ps AS copy_ps,
        u.union_2_ps - u.exclusive_2_ps AS overlap_ps,
        u.exclusive_2_ps AS exposed_communication_ps,
        u.exclusive_3_ps AS exposed_copy_ps
    FROM v1.interval_exclusive(
        'v1._scoped_events',
        CASE event_class WHEN 'compute' THEN 1 WHEN 'collective' THEN 2 WHEN 'copy' THEN 3 END,
        step_num
    ) AS u
    INNER JOIN main.devices AS d
        ON d.device_id = u.device_id
)
SELECT
    t.capture_id AS capture_id,
    t.device_id AS device_id,
    t.device_ordinal AS device_ordinal,
    t.step_num AS step_num,
    t.window_ps AS window_ps,
    t.busy_ps AS busy_ps,
    t.idle_ps AS idle_ps,
    t.compute_ps AS compute_ps,
    t.communication_ps AS communication_ps,
    t.copy_ps AS copy_ps,
    t.overlap_ps AS overlap_ps,
    t.exposed_communication_ps AS exposed_communication_ps,
    t.exposed_copy_ps AS exposed_copy_ps,
    CAST(t.overlap_ps AS DOUBLE) / NULLIF(CAST(t.communication_ps AS DOUBLE), 0) AS hidden_ratio,
    CAST(t.window_ps AS DOUBLE) / 1e9 AS window_ms,
    CAST(t.busy_ps AS DOUBLE) / 1e9 AS busy_ms,
    CAST(t.idle_ps AS DOUBLE) / 1e9 AS idle_ms,
    CAST(t.compute_ps AS DOUBLE) / 1e9 AS compute_ms,
    CAST(t.communication_ps AS DOUBLE) / 1e9 AS communication_ms,
    CAST(t.copy_ps AS DOUBLE) / 1e9 AS copy_ms,
    CAST(t.overlap_ps AS DOUBLE) / 1e9 AS overlap_ms,
    CAST(t.exposed_communication_ps AS DOUBLE) / 1e9 AS exposed_communication_ms,
    CAST(t.exposed_copy_ps AS DOUBLE) / 1e9 AS exposed_copy_ms
FROM _times AS t
