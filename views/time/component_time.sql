-- name: v1.component_time
-- version: 1
-- grain: one row per capture, device, step, phase, component group and component, and the same for the whole
--   capture with step_num NULL
-- summary: Device time of each model component within each phase.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   device_ordinal BIGINT: ordinal of the device on its host
--   step_num BIGINT: the step; NULL for the whole capture
--   phase VARCHAR: communication, remat, backward, forward, update or unattributed
--   component VARCHAR: deepest named scope, or unattributed
--   component_group VARCHAR: what the rules make of the component: Attention, Expert MLP, ...; or unattributed.
--     Components of one name in different groups, as wi_0 of a dense and of an expert block, have a row each
--   sum_ps BIGINT (ps): sum of event durations; counts overlapping events each
--   union_ps BIGINT (ps): union of the events
--   share_ratio DOUBLE (ratio): sum_ps over the sum of the phase; NULL where that is 0
--   sum_ms DOUBLE (ms): sum_ps in milliseconds
--   union_ms DOUBLE (ms): union_ps in milliseconds

WITH _shares AS (
    SELECT
        u.capture_id AS capture_id,
        u.device_id AS device_id,
        u.key_4 AS step_num,
        u.key_3 AS phase,
        u.key_2 AS component_group,
        u.key_1 AS component,
        u.sum_ps AS sum_ps,
        u.union_ps AS union_ps,
        CAST(SUM(u.sum_ps) OVER (
            PARTITION BY u.capture_id, u.device_id, u.key_4, u.key_3
        ) AS BIGINT) AS phase_sum_ps
    FROM v1.interval_union('v1._phased_events', component, component_group, phase, step_num) AS u
)
SELECT
    s.capture_id AS capture_id,
    s.device_id AS device_id,
    d.device_ordinal AS device_ordinal,
    s.step_num AS step_num,
    s.phase AS phase,
    s.component AS component,
    s.component_group AS component_group,
    s.sum_ps AS sum_ps,
    s.union_ps AS union_ps,
    CAST(s.sum_ps AS DOUBLE) / NULLIF(CAST(s.phase_sum_ps AS DOUBLE), 0) AS share_ratio,
    CAST(s.sum_ps AS DOUBLE) / 1e9 AS sum_ms,
    CAST(s.union_ps AS DOUBLE) / 1e9 AS union_ms
FROM _shares AS s
INNER JOIN main.devices AS d
    ON d.device_id = s.device_id
