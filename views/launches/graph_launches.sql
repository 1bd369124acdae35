-- name: v1.graph_launches
-- version: 1
-- grain: one row per launch of a CUDA or HIP graph and device that it ran on
-- summary: Kernels that each graph launch ran, against how many it must have run.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   correlation_id BIGINT: id of the launch; of the HIP call where an HSA call inside of it has another; NULL
--     where the source gives none
--   host_event_id BIGINT: the call; NULL where the trace has none
--   device_event_id BIGINT: the launch as the device's side records it; NULL where the trace has none
--   device_id BIGINT: the device; NULL for a call without kernels
--   device_ordinal BIGINT: ordinal of the device on its host
--   graph_id BIGINT: the graph; NULL where nothing names it
--   call_start_ps BIGINT (ps): start of the call
--   call_end_ps BIGINT (ps): end of the call
--   start_ps BIGINT (ps): start on the device: as recorded, else of the first kernel found
--   end_ps BIGINT (ps): end on the device: as recorded, else of the last kernel found
--   kernel_dispatch_count BIGINT (count): kernels that the launch ran, by the source; NULL where it does not say
--   kernels_found BIGINT (count): kernels of the capture that carry the id of the launch, on this device; NULL
--     for a launch without an id
--   kernels_expected BIGINT (count): kernel_dispatch_count, else the most that any launch of the graph has on
--     the device; NULL where neither is known
--   expected_by VARCHAR: source; other_launches; NULL
--   status VARCHAR: complete; kernels_missing (fewer than expected); no_kernels (none found); more_kernels (more
--     than the source counts, as where fills and copies run as kernels); not_comparable (nothing to expect);
--     no_correlation_id (the launch has none)

WITH _groups AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_event_id AS device_event_id,
        e.device_id AS device_id,
        COALESCE(h.hip_correlation_id, e.correlation_id) AS correlation_id,
        e.launch_details_id AS launch_details_id,
        e.start_ps AS start_ps,
        e.end_ps AS end_ps,
        g.kernel_dispatch_count AS kernel_dispatch_count
    FROM main.graph_launches AS g
    INNER JOIN main.device_events AS e
        ON e.capture_id = g.capture_id
        AND e.device_event_id = g.device_event_id
    LEFT JOIN v1._hip_callers AS h
        ON h.capture_id = e.capture_id
        AND h.correlation_id = e.correlation_id
),
_recorded AS (
    SELECT
        g.capture_id AS capture_id,
        g.correlation_id AS correlation_id,
        c.host_event_id AS host_event_id,
        g.device_event_id AS device_event_id,
        g.device_id AS device_id,
        COALESCE(l.graph_id, c.graph_id, k.graph_id) AS graph_id,
        c.start_ps AS call_start_ps,
        c.end_ps AS call_end_ps,
        g.start_ps AS start_ps,
        g.end_ps AS end_ps,
        g.kernel_dispatch_count AS kernel_dispatch_count,
        CASE WHEN g.correlation_id IS NOT NULL THEN COALESCE(k.kernel_count, 0) END AS kernels_found
    FROM _groups AS g
    LEFT JOIN main.launch_details AS l
        ON l.capture_id = g.capture_id
        AND l.launch_details_id = g.launch_details_id
    LEFT JOIN v1._graph_calls AS c
        ON c.capture_id = g.capture_id
        AND c.correlation_id = g.correlation_id
    LEFT JOIN v1._launched_kernels AS k
        ON k.capture_id = g.capture_id
        AND k.correlation_id = g.correlation_id
        AND k.device_id = g.device_id
),
_recorded_ids AS (
    SELECT DISTINCT
        g.capture_id AS capture_id,
        g.correlation_id AS correlation_id
    FROM _groups AS g
    WHERE g.correlation_id IS NOT NULL
),
_called AS (
    SELECT
        c.capture_id AS capture_id,
        c.correlation_id AS correlation_id,
        c.host_event_id AS host_event_id,
        CAST(NULL AS BIGINT) AS device_event_id,
        k.device_id AS device_id,
        COALESCE(c.graph_id, k.graph_id) AS graph_id,
        c.start_ps AS call_start_ps,
        c.end_ps AS call_end_ps,
        k.start_ps AS start_ps,
        k.end_ps AS end_ps,
        CAST(NULL AS BIGINT) AS kernel_dispatch_count,
        COALESCE(k.kernel_count, 0) AS kernels_found
    FROM v1._graph_calls AS c
    LEFT JOIN v1._launched_kernels AS k
        ON k.capture_id = c.capture_id
        AND k.correlation_id = c.correlation_id
    LEFT JOIN _recorded_ids AS r
        ON r.capture_id = c.capture_id
        AND r.correlation_id = c.correlation_id
    WHERE r.correlation_id IS NULL
),
_launches AS (
    SELECT
        r.capture_id AS capture_id,
        r.correlation_id AS correlation_id,
        r.host_event_id AS host_event_id,
        r.device_event_id AS device_event_id,
        r.device_id AS device_id,
        r.graph_id AS graph_id,
        r.call_start_ps AS call_start_ps,
        r.call_end_ps AS call_end_ps,
        r.start_ps AS start_ps,
        r.end_ps AS end_ps,
        r.kernel_dispatch_count AS kernel_dispatch_count,
        r.kernels_found AS kernels_found
    FROM _recorded AS r
    UNION ALL
    SELECT
        c.capture_id AS capture_id,
        c.correlation_id AS correlation_id,
        c.host_event_id AS host_event_id,
        c.device_event_id AS device_event_id,
        c.device_id AS device_id,
        c.graph_id AS graph_id,
        c.call_start_ps AS call_start_ps,
        c.call_end_ps AS call_end_ps,
        c.start_ps AS start_ps,
        c.end_ps AS end_ps,
        c.kernel_dispatch_count AS kernel_dispatch_count,
        c.kernels_found AS kernels_found
    FROM _called AS c
),
_compared AS (
    SELECT
        l.capture_id AS capture_id,
        l.correlation_id AS correlation_id,
        l.host_event_id AS host_event_id,
        l.device_event_id AS device_event_id,
        l.device_id AS device_id,
        l.graph_id AS graph_id,
        l.call_start_ps AS call_start_ps,
        l.call_end_ps AS call_end_ps,
        l.start_ps AS start_ps,
        l.end_ps AS end_ps,
        l.kernel_dispatch_count AS kernel_dispatch_count,
        l.kernels_found AS kernels_found,
        COUNT(*) OVER (PARTITION BY l.capture_id, l.graph_id) AS launches,
        MAX(l.kernels_found) OVER (PARTITION BY l.capture_id, l.graph_id) AS most_found
    FROM _launches AS l
),
_expected AS (
    SELECT
        c.capture_id AS capture_id,
        c.correlation_id AS correlation_id,
        c.host_event_id AS host_event_id,
        c.device_event_id AS device_event_id,
        c.device_id AS device_id,
        c.graph_id AS graph_id,
        c.call_start_ps AS call_start_ps,
        c.call_end_ps AS call_end_ps,
        c.start_ps AS start_ps,
        c.end_ps AS end_ps,
        c.kernel_dispatch_count AS kernel_dispatch_count,
        c.kernels_found AS kernels_found,
        CASE
            WHEN c.kernel_dispatch_count IS NOT NULL THEN c.kernel_dispatch_count
            WHEN c.graph_id IS NOT NULL AND c.launches > 1 AND c.most_found > 0 THEN c.most_found
        END AS kernels_expected,
        CASE
            WHEN c.kernel_dispatch_count IS NOT NULL THEN 'source'
            WHEN c.graph_id IS NOT NULL AND c.launches > 1 AND c.most_found > 0 THEN 'other_launches'
        END AS expected_by
    FROM _compared AS c
)
SELECT
    e.capture_id AS capture_id,
    e.correlation_id AS correlation_id,
    e.host_event_id AS host_event_id,
    e.device_event_id AS device_event_id,
    e.device_id AS device_id,
    d.device_ordinal AS device_ordinal,
    e.graph_id AS graph_id,
    e.call_start_ps AS call_start_ps,
    e.call_end_ps AS call_end_ps,
    e.start_ps AS start_ps,
    e.end_ps AS end_ps,
    e.kernel_dispatch_count AS kernel_dispatch_count,
    e.kernels_found AS kernels_found,
    e.kernels_expected AS kernels_expected,
    e.expected_by AS expected_by,
    CASE
        WHEN e.correlation_id IS NULL THEN 'no_correlation_id'
        WHEN e.kernels_found = e.kernels_expected THEN 'complete'
        WHEN e.kernels_found = 0 THEN 'no_kernels'
        WHEN e.kernels_expected IS NULL THEN 'not_comparable'
        WHEN e.kernels_found < e.kernels_expected THEN 'kernels_missing'
        ELSE 'more_kernels'
    END AS status
FROM _expected AS e
LEFT JOIN main.devices AS d
    ON d.device_id = e.device_id
