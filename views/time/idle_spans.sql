-- name: v1._idle_spans
-- version: 1
-- grain: one row per capture, device, step and gap between device work, and the same for the whole capture with
--   step_num NULL
-- summary: When a device had nothing to do, and between which events.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   step_num BIGINT: the step, of whose work there was none; NULL for the whole capture
--   start_ps BIGINT (ps): end of what came before
--   end_ps BIGINT (ps): start of what came after
--   previous_id BIGINT: the event that ended last before; of several, the one that began last
--   next_id BIGINT: the event that began first after; of several that began together, the one with the lowest id
-- algorithm: In order of start, each event that ends no earlier than all before it may be what a gap comes
--   after; where it ends before the next such event begins, the gap is between the two.

WITH _work AS (
    SELECT
        s.capture_id AS capture_id,
        s.device_id AS device_id,
        s.step_num AS step_num,
        s.device_event_id AS device_event_id,
        s.start_ps AS start_ps,
        s.end_ps AS end_ps
    FROM v1._event_steps AS s
    UNION ALL
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        CAST(NULL AS BIGINT) AS step_num,
        e.device_event_id AS device_event_id,
        e.start_ps AS start_ps,
        e.end_ps AS end_ps
    FROM main.device_events AS e
    WHERE e.role = 'work'
),
_reach AS (
    SELECT
        w.capture_id AS capture_id,
        w.device_id AS device_id,
        w.step_num AS step_num,
        w.device_event_id AS device_event_id,
        w.start_ps AS start_ps,
        w.end_ps AS end_ps,
        MAX(w.end_ps) OVER (
            PARTITION BY w.capture_id, w.device_id, w.step_num
            ORDER BY w.start_ps NULLS FIRST, w.device_event_id NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS end_before
    FROM _work AS w
),
_far AS (
    SELECT
        r.capture_id AS capture_id,
        r.device_id AS device_id,
        r.step_num AS step_num,
        r.device_event_id AS device_event_id,
        r.start_ps AS start_ps,
        r.end_before AS end_before,
        LAG(r.device_event_id) OVER (
            PARTITION BY r.capture_id, r.device_id, r.step_num
            ORDER BY r.start_ps NULLS FIRST, r.device_event_id NULLS FIRST
        ) AS previous_id
    FROM _reach AS r
    WHERE r.end_before IS NULL
        OR r.end_ps >= r.end_before
)
SELECT
    f.capture_id AS capture_id,
    f.device_id AS device_id,
    f.step_num AS step_num,
    f.end_before AS start_ps,
    f.start_ps AS end_ps,
    f.previous_id AS previous_id,
    f.device_event_id AS next_id
FROM _far AS f
WHERE f.end_before < f.start_ps
