-- name: v1._rccl_kernels
-- version: 1
-- grain: one row per kernel of RCCL on a device
-- summary: The calls of RCCL that launched each of its kernels, where ids or times on the thread tell.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   device_event_id BIGINT: the kernel
--   device_id BIGINT: its device
--   track_id BIGINT: its stream or queue
--   name_id BIGINT: names.name_id of the kernel
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end
--   role VARCHAR: work; serialized, of a run that counted, whose times tell nothing
--   unit_track_id BIGINT: with unit_place, the calls in v1._rccl_host_calls; NULL where unknown
--   unit_place BIGINT: see unit_track_id
-- algorithm: The call with the kernel's id is one of RCCL or lies in one: the outermost of the enclosing calls,
--   at most four up, or else the last to begin on the thread, if it ends after. Where the library launches on a
--   thread of its own, or the profiler gives its kernels no id, neither finds one.

WITH _climbed AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_event_id AS device_event_id,
        e.device_id AS device_id,
        e.track_id AS track_id,
        e.name_id AS name_id,
        e.start_ps AS start_ps,
        e.end_ps AS end_ps,
        e.role AS role,
        e.correlation_id AS correlation_id,
        COALESCE(
            r4.first_host_event_id, r3.first_host_event_id, r2.first_host_event_id, r1.first_host_event_id,
            r0.first_host_event_id
        ) AS rccl_host_event_id
    FROM main.device_events AS e
    INNER JOIN v1._kernel_name_classes AS k
        ON k.name_id = e.name_id
        AND k.event_class = 'collective'
    LEFT JOIN v1._call_parents AS p1
        ON p1.capture_id = e.capture_id
        AND p1.correlation_id = e.correlation_id
    LEFT JOIN v1._call_parents AS p2
        ON p2.capture_id = e.capture_id
        AND p2.correlation_id = p1.parent_id
    LEFT JOIN v1._call_parents AS p3
        ON p3.capture_id = e.capture_id
        AND p3.correlation_id = p2.parent_id
    LEFT JOIN v1._call_parents AS p4
        ON p4.capture_id = e.capture_id
        AND p4.correlation_id = p3.parent_id
    LEFT JOIN v1._rccl_ids AS r0
        ON r0.capture_id = e.capture_id
        AND r0.correlation_id = e.correlation_id
    LEFT JOIN v1._rccl_ids AS r1
        ON r1.capture_id = e.capture_id
        AND r1.correlation_id = p1.parent_id
    LEFT JOIN v1._rccl_ids AS r2
        ON r2.capture_id = e.capture_id
        AND r2.correlation_id = p2.parent_id
    LEFT JOIN v1._rccl_ids AS r3
        ON r3.capture_id = e.capture_id
        AND r3.correlation_id = p3.parent_id
    LEFT JOIN v1._rccl_ids AS r4
        ON r4.capture_id = e.capture_id
        AND r4.correlation_id = p4.parent_id
    WHERE e.role IN ('work', 'serialized')
        AND e.kind = 'kernel'
),
_called AS (
    SELECT
        c.capture_id AS capture_id,
        c.device_event_id AS device_event_id,
        c.device_id AS device_id,
        c.track_id AS track_id,
        c.name_id AS name_id,
        c.start_ps AS start_ps,
        c.end_ps AS end_ps,
        c.role AS role,
        c.rccl_host_event_id AS rccl_host_event_id,
        h.track_id AS call_track_id,
        h.start_ps AS call_start_ps,
        ROW_NUMBER() OVER (
            PARTITION BY c.capture_id, c.device_event_id
            ORDER BY h.start_ps NULLS FIRST, h.host_event_id NULLS FIRST
        ) AS call_rank
    FROM _climbed AS c
    LEFT JOIN main.host_events AS h
        ON h.capture_id = c.capture_id
        AND h.correlation_id = c.correlation_id
),
_points AS (
    SELECT
        c.capture_id AS capture_id,
        c.call_track_id AS call_track_id,
        c.call_start_ps AS call_start_ps,
        1 AS is_kernel,
        CAST(NULL AS BIGINT) AS call_end_ps,
        CAST(NULL AS BIGINT) AS unit_place,
        c.device_event_id AS device_event_id,
        c.device_id AS device_id,
        c.track_id AS track_id,
        c.name_id AS name_id,
        c.start_ps AS start_ps,
        c.end_ps AS end_ps,
        c.role AS role,
        c.rccl_host_event_id AS rccl_host_event_id
    FROM _called AS c
    WHERE c.call_rank = 1
    UNION ALL
    SELECT
        r.capture_id AS capture_id,
        r.track_id AS call_track_id,
        r.start_ps AS call_start_ps,
        0 AS is_kernel,
        r.end_ps AS call_end_ps,
        r.unit_place AS unit_place,
        CAST(NULL AS BIGINT) AS device_event_id,
        CAST(NULL AS BIGINT) AS device_id,
        CAST(NULL AS BIGINT) AS track_id,
        CAST(NULL AS BIGINT) AS name_id,
        CAST(NULL AS BIGINT) AS start_ps,
        CAST(NULL AS BIGINT) AS end_ps,
        CAST(NULL AS VARCHAR) AS role,
        CAST(NULL AS BIGINT) AS rccl_host_event_id
    FROM v1._rccl_host_calls AS r
    WHERE NOT r.is_nested
),
_open AS (
    SELECT
        p.capture_id AS capture_id,
        p.call_track_id AS call_track_id,
        p.call_start_ps AS call_start_ps,
        p.is_kernel AS is_kernel,
        p.device_event_id AS device_event_id,
        p.device_id AS device_id,
        p.track_id AS track_id,
        p.name_id AS name_id,
        p.start_ps AS start_ps,
        p.end_ps AS end_ps,
        p.role AS role,
        p.rccl_host_event_id AS rccl_host_event_id,
        MAX(p.call_end_ps) OVER (
            PARTITION BY p.capture_id, p.call_track_id
            ORDER BY p.call_start_ps NULLS FIRST, p.is_kernel NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS last_end_ps,
        MAX(p.unit_place) OVER (
            PARTITION BY p.capture_id, p.call_track_id
            ORDER BY p.call_start_ps NULLS FIRST, p.is_kernel NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS last_unit_place
    FROM _points AS p
)
SELECT
    o.capture_id AS capture_id,
    o.device_event_id AS device_event_id,
    o.device_id AS device_id,
    o.track_id AS track_id,
    o.name_id AS name_id,
    o.start_ps AS start_ps,
    o.end_ps AS end_ps,
    o.role AS role,
    CASE
        WHEN r.unit_place IS NOT NULL THEN r.track_id
        WHEN o.last_end_ps > o.call_start_ps THEN o.call_track_id
    END AS unit_track_id,
    CASE
        WHEN r.unit_place IS NOT NULL THEN r.unit_place
        WHEN o.last_end_ps > o.call_start_ps THEN o.last_unit_place
    END AS unit_place
FROM _open AS o
LEFT JOIN v1._rccl_host_calls AS r
    ON r.capture_id = o.capture_id
    AND r.host_event_id = o.rccl_host_event_id
WHERE o.is_kernel = 1
