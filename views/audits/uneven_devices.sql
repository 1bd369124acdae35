-- name: uneven_devices
-- severity: note
-- filter: capture_id
-- question: Do all devices of the capture work alike?
-- meaning: A device was busy for less than half as long as the busiest of the capture. A mean over devices describes
--   none of them.
-- next: Report the busiest device, or each value with the spread. A device with copies alone holds data for others;
--   where all should do the same work, look for its idle time in v1.device_time.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   device_ordinal BIGINT: ordinal of the device on its host
--   busy_ms DOUBLE (ms): time with any device event
--   event_count BIGINT (count): its device events
--   busiest_ms DOUBLE (ms): busy time of the busiest device of the capture
--   busy_ratio DOUBLE (ratio): busy_ms / busiest_ms

WITH _work AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        e.start_ps AS start_ps,
        e.end_ps AS end_ps
    FROM main.device_events AS e
    WHERE e.role = 'work'
),
_devices AS (
    SELECT
        u.capture_id AS capture_id,
        v.device_ordinal AS device_ordinal,
        u.interval_count AS event_count,
        CAST(u.union_ps AS DOUBLE) / 1e9 AS busy_ms,
        CAST(MAX(u.union_ps) OVER (PARTITION BY u.capture_id) AS DOUBLE) / 1e9 AS busiest_ms
    FROM v1.interval_union('_work') AS u
    INNER JOIN main.devices AS v
        ON v.device_id = u.device_id
)
SELECT
    r.run_name AS run_name,
    d.capture_id AS capture_id,
    d.device_ordinal AS device_ordinal,
    d.busy_ms AS busy_ms,
    d.event_count AS event_count,
    d.busiest_ms AS busiest_ms,
    d.busy_ms / NULLIF(d.busiest_ms, 0) AS busy_ratio
FROM _devices AS d
INNER JOIN main.captures AS c
    ON c.capture_id = d.capture_id
INNER JOIN main.runs AS r
    ON r.run_id = c.run_id
WHERE d.busy_ms < 5e-1 * d.busiest_ms
ORDER BY
    r.run_name,
    d.capture_id,
    d.device_ordinal
