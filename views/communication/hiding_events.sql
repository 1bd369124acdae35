-- name: v1._hiding_events
-- version: 1
-- grain: one row per device event that is compute, from the first collective of its device to the last
-- summary: The compute that may hide collectives.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end

WITH _spans AS (
    SELECT
        c.capture_id AS capture_id,
        c.device_id AS device_id,
        MIN(c.start_ps) AS first_ps,
        MAX(c.end_ps) AS last_ps
    FROM v1._collective_events AS c
    GROUP BY
        c.capture_id,
        c.device_id
)
SELECT
    o.capture_id AS capture_id,
    o.device_id AS device_id,
    o.start_ps AS start_ps,
    o.end_ps AS end_ps
FROM v1._event_ops AS o
INNER JOIN _spans AS s
    ON s.capture_id = o.capture_id
    AND s.device_id = o.device_id
    AND s.first_ps < o.end_ps
    AND s.last_ps > o.start_ps
WHERE o.event_class = 'compute'
