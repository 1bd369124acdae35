-- name: v1._launched_kernels
-- version: 1
-- grain: one row per capture, correlation id of a launch and device that it ran kernels on
-- summary: How many kernels each launch ran.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   correlation_id BIGINT: id of the launching call; of the HIP call where an HSA call inside of it has another
--   device_id BIGINT: the device
--   graph_id BIGINT: the graph that the kernels name; NULL for none
--   kernel_count BIGINT (count): kernels
--   start_ps BIGINT (ps): start of the first
--   end_ps BIGINT (ps): end of the last

WITH _kernels AS (
    SELECT
        e.capture_id AS capture_id,
        COALESCE(k.hip_correlation_id, e.correlation_id) AS correlation_id,
        e.device_id AS device_id,
        e.launch_details_id AS launch_details_id,
        e.start_ps AS start_ps,
        e.end_ps AS end_ps
    FROM main.device_events AS e
    LEFT JOIN v1._hip_callers AS k
        ON k.capture_id = e.capture_id
        AND k.correlation_id = e.correlation_id
    WHERE e.correlation_id IS NOT NULL
        AND e.kind = 'kernel'
        AND e.role IN ('work', 'serialized')
),
_counted AS (
    SELECT
        k.capture_id AS capture_id,
        k.correlation_id AS correlation_id,
        k.device_id AS device_id,
        MIN(l.graph_id) AS named_graph_id,
        COUNT(*) AS kernel_count,
        MIN(k.start_ps) AS first_start_ps,
        MAX(k.end_ps) AS last_end_ps
    FROM _kernels AS k
    LEFT JOIN main.launch_details AS l
        ON l.capture_id = k.capture_id
        AND l.launch_details_id = k.launch_details_id
    GROUP BY
        k.capture_id,
        k.correlation_id,
        k.device_id
)
SELECT
    c.capture_id AS capture_id,
    c.correlation_id AS correlation_id,
    c.device_id AS device_id,
    c.named_graph_id AS graph_id,
    c.kernel_count AS kernel_count,
    c.first_start_ps AS start_ps,
    c.last_end_ps AS end_ps
FROM _counted AS c
