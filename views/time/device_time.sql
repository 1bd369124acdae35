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
--   window_ms DOUBLE (ms): window_ps in milliseconds
--   busy_ms DOUBLE (ms): busy_ps in milliseconds
--   idle_ms DOUBLE (ms): idle_ps in milliseconds
--   compute_ms DOUBLE (ms): compute_ps in milliseconds
--   communication_ms DOUBLE (ms): communication_ps in milliseconds
--   copy_ms DOUBLE (ms): copy_ps in milliseconds
--   overlap_ms DOUBLE (ms): overlap_ps in milliseconds
--   exposed_communication_ms DOUBLE (ms): exposed_communication_ps in milliseconds
--   exposed_copy_ms DOUBLE (ms): exposed_copy_ps in milliseconds
-- algorithm: A union is the sum of what each interval adds beyond the latest end before it, in order of
--   start. Each event goes into the sets it belongs to; overlap and exposed time follow from the unions:
--   |A and B| = |A| + |B| - |A or B|.

WITH _sets AS (
    SELECT
        v.event_class AS event_class,
        v.set_name AS set_name
    FROM (
        VALUES
            ('compute', 'compute'),
            ('compute', 'compute_or_communication'),
            ('compute', 'busy'),
            ('collective', 'communication'),
            ('collective', 'compute_or_communication'),
            ('collective', 'busy'),
            ('copy', 'copy'),
            ('copy', 'busy')
    ) AS v (event_class, set_name)
),
_members AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        e.step_num AS step_num,
        s.set_name AS set_name,
        e.start_ps AS start_ps,
        e.end_ps AS end_ps,
        MAX(e.end_ps) OVER (
            PARTITION BY e.capture_id, e.device_id, e.step_num, s.set_name
            ORDER BY e.start_ps NULLS FIRST, e.device_event_id NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS end_before
    FROM v1._scoped_events AS e
    INNER JOIN _sets AS s
        ON s.event_class = e.event_class
),
_added AS (
    SELECT
        m.capture_id AS capture_id,
        m.device_id AS device_id,
        m.step_num AS step_num,
        m.set_name AS set_name,
        m.start_ps AS start_ps,
        m.end_ps AS end_ps,
        CASE
            WHEN m.end_before IS NULL OR m.end_before <= m.start_ps THEN m.end_ps - m.start_ps
            WHEN m.end_before < m.end_ps THEN m.end_ps - m.end_before
            ELSE 0
        END AS added_ps
    FROM _members AS m
),
_unions AS (
    SELECT
        a.capture_id AS capture_id,
        a.device_id AS device_id,
        a.step_num AS step_num,
        MAX(a.end_ps) - MIN(a.start_ps) AS window_ps,
        CAST(SUM(CASE WHEN a.set_name = 'busy' THEN a.added_ps ELSE 0 END) AS BIGINT) AS busy_ps,
        CAST(SUM(CASE WHEN a.set_name = 'compute' THEN a.added_ps ELSE 0 END) AS BIGINT) AS compute_ps,
        CAST(SUM(CASE WHEN a.set_name = 'communication' THEN a.added_ps ELSE 0 END) AS BIGINT)
            AS communication_ps,
        CAST(SUM(CASE WHEN a.set_name = 'copy' THEN a.added_ps ELSE 0 END) AS BIGINT) AS copy_ps,
        CAST(SUM(CASE WHEN a.set_name = 'compute_or_communication' THEN a.added_ps ELSE 0 END) AS BIGINT)
            AS compute_or_communication_ps
    FROM _added AS a
    GROUP BY
        a.capture_id,
        a.device_id,
        a.step_num
),
_times AS (
    SELECT
        u.capture_id AS capture_id,
        u.device_id AS device_id,
        d.device_ordinal AS device_ordinal,
        u.step_num AS step_num,
        u.window_ps AS window_ps,
        u.busy_ps AS busy_ps,
        u.window_ps - u.busy_ps AS idle_ps,
        u.compute_ps AS compute_ps,
        u.communication_ps AS communication_ps,
        u.copy_ps AS copy_ps,
        u.compute_ps + u.communication_ps - u.compute_or_communication_ps AS overlap_ps,
        u.compute_or_communication_ps - u.compute_ps AS exposed_communication_ps,
        u.busy_ps - u.compute_or_communication_ps AS exposed_copy_ps
    FROM _unions AS u
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
