-- name: clock_skew
-- severity: warning
-- filter: capture_id
-- question: Do the clocks of host and device agree?
-- meaning: Device events begin before the call that launched them, or lie outside the time in which the profiler ran.
--   The two clocks are not aligned: launch latencies, queue delays and causes of idle time are wrong. Times among
--   device events stay right.
-- next: Use no number that compares host and device times of this capture. Profile again; an NTP step or a suspended
--   machine during the capture causes it, and so do old drivers.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   device_ordinal BIGINT: ordinal of the device on its host
--   fault VARCHAR: before its launch, or outside the profile
--   event_count BIGINT (count): device events with the fault
--   share_ratio DOUBLE (ratio): of the device's events
--   worst_us DOUBLE (us): by how much, at most

WITH _windows AS (
    SELECT
        c.capture_id AS capture_id,
        MAX(CASE
            WHEN a.attribute = 'profile_start_time' AND REGEXP_MATCHES(a.value, '^1?[0-9]{1,18}$')
                THEN CAST(a.value AS BIGINT)
        END) - MAX(c.origin_unix_ns) AS start_ns,
        MAX(CASE
            WHEN a.attribute = 'profile_stop_time' AND REGEXP_MATCHES(a.value, '^1?[0-9]{1,18}$')
                THEN CAST(a.value AS BIGINT)
        END) - MAX(c.origin_unix_ns) AS stop_ns
    FROM main.captures AS c
    INNER JOIN main.capture_attributes AS a
        ON a.capture_id = c.capture_id
    WHERE a.attribute IN ('profile_start_time', 'profile_stop_time')
    GROUP BY c.capture_id
),
_events AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        COALESCE(-l.launch_latency_ps, 0) AS early_ps,
        GREATEST(
            COALESCE(w.start_ns * 1000 - e.start_ps, 0),
            COALESCE(e.end_ps - w.stop_ns * 1000, 0)
        ) AS outside_ps
    FROM main.device_events AS e
    INNER JOIN v1.launches AS l
        ON l.capture_id = e.capture_id
        AND l.device_event_id = e.device_event_id
    LEFT JOIN _windows AS w
        ON w.capture_id = e.capture_id
    WHERE e.role = 'work'
),
_devices AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        COUNT(*) AS event_count,
        COUNT(CASE WHEN e.early_ps > 0 THEN 1 END) AS early_count,
        MAX(e.early_ps) AS most_early_ps,
        COUNT(CASE WHEN e.outside_ps > 0 THEN 1 END) AS outside_count,
        MAX(e.outside_ps) AS most_outside_ps
    FROM _events AS e
    GROUP BY
        e.capture_id,
        e.device_id
),
_faults AS (
    SELECT
        d.capture_id AS capture_id,
        d.device_id AS device_id,
        'before its launch' AS fault,
        d.early_count AS fault_count,
        d.event_count AS event_count,
        d.most_early_ps AS worst_ps
    FROM _devices AS d
    UNION ALL
    SELECT
        d.capture_id AS capture_id,
        d.device_id AS device_id,
        'outside the profile' AS fault,
        d.outside_count AS fault_count,
        d.event_count AS event_count,
        d.most_outside_ps AS worst_ps
    FROM _devices AS d
)
SELECT
    r.run_name AS run_name,
    f.capture_id AS capture_id,
    d.device_ordinal AS device_ordinal,
    f.fault AS fault,
    f.fault_count AS event_count,
    CAST(f.fault_count AS DOUBLE) / NULLIF(CAST(f.event_count AS DOUBLE), 0) AS share_ratio,
    CAST(f.worst_ps AS DOUBLE) / 1e6 AS worst_us
FROM _faults AS f
INNER JOIN main.devices AS d
    ON d.device_id = f.device_id
INNER JOIN main.captures AS c
    ON c.capture_id = f.capture_id
INNER JOIN main.runs AS r
    ON r.run_id = c.run_id
WHERE f.fault_count > 0
ORDER BY
    r.run_name,
    f.capture_id,
    d.device_ordinal,
    f.fault
