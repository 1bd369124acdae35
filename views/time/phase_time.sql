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

WITH _members AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        e.step_num AS step_num,
        e.phase AS phase,
        e.start_ps AS start_ps,
        e.end_ps AS end_ps,
        MAX(e.end_ps) OVER (
            PARTITION BY e.capture_id, e.device_id, e.step_num, e.phase
            ORDER BY e.start_ps NULLS FIRST, e.device_event_id NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS end_before
    FROM v1._phased_events AS e
),
_totals AS (
    SELECT
        m.capture_id AS capture_id,
        m.device_id AS device_id,
        m.step_num AS step_num,
        m.phase AS phase,
        CAST(SUM(m.end_ps - m.start_ps) AS BIGINT) AS sum_ps,
        CAST(SUM(CASE
            WHEN m.end_before IS NULL OR m.end_before <= m.start_ps THEN m.end_ps - m.start_ps
            WHEN m.end_before < m.end_ps THEN m.end_ps - m.end_before
            ELSE 0
        END) AS BIGINT) AS union_ps
    FROM _members AS m
    GROUP BY
        m.capture_id,
        m.device_id,
        m.step_num,
        m.phase
),
_shares AS (
    SELECT
        t.capture_id AS capture_id,
        t.device_id AS device_id,
        t.step_num AS step_num,
        t.phase AS phase,
        t.sum_ps AS sum_ps,
        t.union_ps AS union_ps,
        CAST(SUM(t.sum_ps) OVER (
            PARTITION BY t.capture_id, t.device_id, t.step_num
        ) AS BIGINT) AS total_ps
    FROM _totals AS t
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
