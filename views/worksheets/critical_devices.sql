-- name: v1._critical_devices
-- version: 1
-- grain: one row per capture with device work
-- summary: The device that a step waits for: of those of the capture, the one whose steps take longest together.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device; without steps, the one with most work
--   updates BIGINT (count): its steps; NULL for none
--   divisor DOUBLE (count): the same, and 1 for none
--   windows_ps DOUBLE (ps): windows of the steps together; without steps, from the first event to the last

WITH _steps AS (
    SELECT
        s.capture_id AS capture_id,
        s.device_id AS device_id,
        COUNT(*) AS updates,
        CAST(SUM(s.duration_ps) AS BIGINT) AS windows_ps
    FROM v1.steps AS s
    GROUP BY
        s.capture_id,
        s.device_id
),
_devices AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        MAX(e.end_ps) - MIN(e.start_ps) AS span_ps,
        CAST(SUM(e.end_ps - e.start_ps) AS BIGINT) AS work_ps
    FROM main.device_events AS e
    WHERE e.role = 'work'
    GROUP BY
        e.capture_id,
        e.device_id
),
_ranked AS (
    SELECT
        d.capture_id AS capture_id,
        d.device_id AS device_id,
        s.updates AS updates,
        CAST(COALESCE(s.updates, 1) AS DOUBLE) AS divisor,
        CAST(COALESCE(s.windows_ps, d.span_ps) AS DOUBLE) AS windows_ps,
        ROW_NUMBER() OVER (
            PARTITION BY d.capture_id
            ORDER BY -COALESCE(s.windows_ps, 0) NULLS FIRST, -d.work_ps NULLS FIRST, d.device_id NULLS FIRST
        ) AS device_rank
    FROM _devices AS d
    LEFT JOIN _steps AS s
        ON s.capture_id = d.capture_id
        AND s.device_id = d.device_id
)
SELECT
    r.capture_id AS capture_id,
    r.device_id AS device_id,
    r.updates AS updates,
    r.divisor AS divisor,
    r.windows_ps AS windows_ps
FROM _ranked AS r
WHERE r.device_rank = 1
