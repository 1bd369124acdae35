-- name: v1._memory_limits
-- version: 1
-- grain: one row per device whose allocators say how much they can have
-- summary: Most memory that the allocators of a process may take on a device.
-- evidence: measured
-- columns:
--   run_id BIGINT: the run
--   device_id BIGINT: the device
--   limit_bytes BIGINT (bytes): the largest limit that its statistics or its events in a capture state

WITH _stated AS (
    SELECT
        m.run_id AS run_id,
        m.device_id AS device_id,
        m.bytes AS stated_bytes
    FROM main.memory_samples AS m
    WHERE m.kind = 'bytes_limit'
        AND m.bytes > 0
        AND m.device_id IS NOT NULL
    UNION ALL
    SELECT
        c.run_id AS run_id,
        t.device_id AS device_id,
        t.limit_bytes AS stated_bytes
    FROM v1.memory_timeline AS t
    INNER JOIN main.captures AS c
        ON c.capture_id = t.capture_id
    WHERE t.memory_space = 0
        AND t.limit_bytes > 0
        AND t.device_id IS NOT NULL
)
SELECT
    s.run_id AS run_id,
    s.device_id AS device_id,
    MAX(s.stated_bytes) AS limit_bytes
FROM _stated AS s
GROUP BY
    s.run_id,
    s.device_id
