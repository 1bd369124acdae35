-- name: v1._kernels_seen
-- version: 1
-- grain: one row per capture, device, kernel name and symbol
-- summary: The kernels that ran on each device of each capture.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   name_id BIGINT: names.name_id of the kernel
--   symbol_name_id BIGINT: names.name_id of its symbol in the code object; NULL where unknown
--   has_shape INTEGER: 1 where grid and block of every launch are known, else 0
--   is_serialized INTEGER: 1 where a launch is of a run that counted per dispatch, else 0

WITH _launches AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        e.name_id AS name_id,
        e.launch_details_id AS launch_details_id,
        MAX(CASE WHEN e.role = 'serialized' THEN 1 ELSE 0 END) AS any_serialized
    FROM main.device_events AS e
    WHERE e.kind = 'kernel'
        AND e.role IN ('work', 'serialized')
    GROUP BY
        e.capture_id,
        e.device_id,
        e.name_id,
        e.launch_details_id
)
SELECT
    l.capture_id AS capture_id,
    l.device_id AS device_id,
    l.name_id AS name_id,
    s.symbol_name_id AS symbol_name_id,
    MIN(CASE WHEN s.grid IS NULL OR s.block IS NULL THEN 0 ELSE 1 END) AS has_shape,
    MAX(l.any_serialized) AS is_serialized
FROM _launches AS l
LEFT JOIN v1._launch_shapes AS s
    ON s.capture_id = l.capture_id
    AND s.launch_details_id = l.launch_details_id
GROUP BY
    l.capture_id,
    l.device_id,
    l.name_id,
    s.symbol_name_id
