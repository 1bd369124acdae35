-- name: v1.phase_time
-- version: 1
-- grain: one row per capture, device, step and phase, and the same for the whole capture with step_num NULL
-- summary: Device time of each phase of the training step.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   device_ordinal BIGINT: ordinal of the device on its host
--   step_num BIGINT: the step; NULL for the whole capture
--   phase VARCHAR: communication, remat, backward, forward, update or unattributed
--   sum_ps BIGINT (ps): sum of event durations; counts overlapping events each
--   union_ps BIGINT (ps): union of the events
--   share_ratio DOUBLE (ratio): sum_ps over the summed device time of the step; NULL where that is 0
--   sum_ms DOUBLE (ms): sum_ps in milliseconds
--   union_ms DOUBLE (ms): union_ps in milliseconds

WITH _shares AS (
    SELECT
        u.capture_id AS capture_id,
        u.device_id AS device_id,
        u.key_2 AS step_num,
        u.key_1 AS phase,
        u.sum_ps AS sum_ps,
        u.union_ps AS union_ps,
        CAST(SUM(u.sum_ps) OVER (PARTITION BY u.capture_id, u.device_id, u.key_2) AS BIGINT) AS total_ps
    FROM v1.interval_union('v1._phased_events', phase, step_num) AS u
)
SELECT
    s.capture_id AS capture_id,
    s.device_id AS device_id,
    d.device_ordinal AS device_ordinal,
    s.step_num AS step_num,
    s.phase AS phase,
    s.sum_ps AS sum_ps,
    s.union_ps AS union_ps,
    CAST(s.sum_ps AS DOUBLE) / NULLIF(CAST(s.total_ps AS DOUBLE), 0) AS share_ratio,
    CAST(s.sum_ps AS DOUBLE) / 1e9 AS sum_ms,
    CAST(s.union_ps AS DOUBLE) / 1e9 AS union_ms
FROM _shares AS s
INNER JOIN main.devices AS d
    ON d.device_id = s.device_id
