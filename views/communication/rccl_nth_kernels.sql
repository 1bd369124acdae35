-- name: v1._rccl_nth_kernels
-- version: 1
-- grain: one row per kernel of RCCL that only name and time join to calls
-- summary: Kernels of RCCL that no id joins to calls, paired with calls that have no kernel, in order.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   device_event_id BIGINT: the kernel
--   unit_track_id BIGINT: with unit_place, the calls in v1._rccl_host_calls
--   unit_place BIGINT: see unit_track_id
-- algorithm: In each step, or in the capture where it has none, the nth such kernel of a device belongs to the
--   nth such unit of calls to the device, in order of start. All or none of a step: there must be as many of the
--   ones as of the others, no kernel may start before its call, and the order must be one that the library
--   keeps: all kernels on one stream, or all calls with one communicator. The calls of a thread are to the one
--   device that kernels of RCCL run on, or that all work launched by the thread runs on; else unknown.

WITH _linked AS (
    SELECT DISTINCT
        k.capture_id AS capture_id,
        k.unit_track_id AS unit_track_id,
        k.unit_place AS unit_place
    FROM v1._rccl_kernels AS k
    WHERE k.unit_place IS NOT NULL
),
_devices AS (
    SELECT
        k.capture_id AS capture_id,
        MIN(k.device_id) AS lowest_device,
        MAX(k.device_id) AS highest_device
    FROM v1._rccl_kernels AS k
    GROUP BY k.capture_id
),
_threads AS (
    SELECT
        h.capture_id AS capture_id,
        h.track_id AS track_id,
        MIN(e.device_id) AS lowest_device,
        MAX(e.device_id) AS highest_device
    FROM main.host_events AS h
    INNER JOIN main.device_events AS e
        ON e.capture_id = h.capture_id
        AND e.correlation_id = h.correlation_id
    WHERE e.role IN ('work', 'serialized')
    GROUP BY
        h.capture_id,
        h.track_id
),
_units AS (
    SELECT
        c.capture_id AS capture_id,
        c.track_id AS unit_track_id,
        c.unit_place AS unit_place,
        MIN(c.start_ps) AS first_start_ps,
        MIN(a.communicator) AS lowest_communicator,
        MAX(a.communicator) AS highest_communicator,
        MIN(CASE WHEN a.communicator IS NULL THEN 0 ELSE 1 END) AS has_communicator,
        MIN(s.step_num) AS first_step
    FROM v1._rccl_host_calls AS c
    LEFT JOIN v1._rccl_arguments AS a
        ON a.capture_id = c.capture_id
        AND a.host_event_id = c.host_event_id
    LEFT JOIN v1._launch_steps AS s
        ON s.capture_id = c.capture_id
        AND s.correlation_id = c.correlation_id
    WHERE c.function_role = 'communicates'
        AND NOT c.is_nested
    GROUP BY
        c.capture_id,
        c.track_id,
        c.unit_place
),
_rows AS (
    SELECT
        u.capture_id AS capture_id,
        CASE
            WHEN d.lowest_device = d.highest_device THEN d.lowest_device
            WHEN t.lowest_device = t.highest_device THEN t.lowest_device
        END AS device_id,
        u.first_step AS step_num,
        0 AS is_kernel,
        u.first_start_ps AS start_ps,
        u.unit_track_id AS first_id,
        u.unit_place AS second_id,
        u.lowest_communicator AS lowest_communicator,
        u.highest_communicator AS highest_communicator,
        u.has_communicator AS has_communicator
    FROM _units AS u
    INNER JOIN _devices AS d
        ON d.capture_id = u.capture_id
    LEFT JOIN _threads AS t
        ON t.capture_id = u.capture_id
        AND t.track_id = u.unit_track_id
    LEFT JOIN _linked AS l
        ON l.capture_id = u.capture_id
        AND l.unit_track_id = u.unit_track_id
        AND l.unit_place = u.unit_place
    WHERE l.unit_place IS NULL
    UNION ALL
    SELECT
        k.capture_id AS capture_id,
        k.device_id AS device_id,
        s.step_num AS step_num,
        1 AS is_kernel,
        k.start_ps AS start_ps,
        k.track_id AS first_id,
        k.device_event_id AS second_id,
        CAST(NULL AS VARCHAR) AS lowest_communicator,
        CAST(NULL AS VARCHAR) AS highest_communicator,
        1 AS has_communicator
    FROM v1._rccl_kernels AS k
    LEFT JOIN v1._event_steps AS s
        ON s.capture_id = k.capture_id
        AND s.device_event_id = k.device_event_id
    WHERE k.unit_place IS NULL
),
_ranked AS (
    SELECT
        r.capture_id AS capture_id,
        r.device_id AS device_id,
        r.step_num AS step_num,
        r.is_kernel AS is_kernel,
        r.start_ps AS start_ps,
        r.first_id AS first_id,
        r.second_id AS second_id,
        r.lowest_communicator AS lowest_communicator,
        r.highest_communicator AS highest_communicator,
        r.has_communicator AS has_communicator,
        ROW_NUMBER() OVER (
            PARTITION BY r.capture_id, r.device_id, r.step_num, r.is_kernel
            ORDER BY r.start_ps NULLS FIRST, r.first_id NULLS FIRST, r.second_id NULLS FIRST
        ) AS place
    FROM _rows AS r
    WHERE r.device_id IS NOT NULL
),
_pairs AS (
    SELECT
        r.capture_id AS capture_id,
        r.device_id AS device_id,
        r.step_num AS step_num,
        r.place AS place,
        CAST(SUM(1 - r.is_kernel) AS BIGINT) AS units,
        CAST(SUM(r.is_kernel) AS BIGINT) AS kernels,
        MIN(CASE WHEN r.is_kernel = 0 THEN r.start_ps END) AS call_start_ps,
        MIN(CASE WHEN r.is_kernel = 1 THEN r.start_ps END) AS kernel_start_ps,
        MIN(CASE WHEN r.is_kernel = 0 THEN r.first_id END) AS unit_track_id,
        MIN(CASE WHEN r.is_kernel = 0 THEN r.second_id END) AS unit_place,
        MIN(CASE WHEN r.is_kernel = 1 THEN r.first_id END) AS kernel_track_id,
        MIN(CASE WHEN r.is_kernel = 1 THEN r.second_id END) AS device_event_id,
        MIN(r.lowest_communicator) AS low_communicator,
        MAX(r.highest_communicator) AS high_communicator,
        MIN(r.has_communicator) AS with_communicator
    FROM _ranked AS r
    GROUP BY
        r.capture_id,
        r.device_id,
        r.step_num,
        r.place
),
_checked AS (
    SELECT
        p.capture_id AS capture_id,
        p.device_event_id AS device_event_id,
        p.unit_track_id AS unit_track_id,
        p.unit_place AS unit_place,
        MIN(CASE
            WHEN p.units = 1 AND p.kernels = 1 AND p.kernel_start_ps >= p.call_start_ps THEN 1
            ELSE 0
        END) OVER (PARTITION BY p.capture_id, p.device_id, p.step_num) AS are_in_order,
        MIN(p.kernel_track_id) OVER (PARTITION BY p.capture_id, p.device_id, p.step_num) AS lowest_track,
        MAX(p.kernel_track_id) OVER (PARTITION BY p.capture_id, p.device_id, p.step_num) AS highest_track,
        MIN(p.low_communicator) OVER (PARTITION BY p.capture_id, p.device_id, p.step_num)
            AS lowest_communicator,
        MAX(p.high_communicator) OVER (PARTITION BY p.capture_id, p.device_id, p.step_num)
            AS highest_communicator,
        MIN(p.with_communicator) OVER (PARTITION BY p.capture_id, p.device_id, p.step_num)
            AS all_with_communicator
    FROM _pairs AS p
)
SELECT
    c.capture_id AS capture_id,
    c.device_event_id AS device_event_id,
    c.unit_track_id AS unit_track_id,
    c.unit_place AS unit_place
FROM _checked AS c
WHERE c.are_in_order = 1
    AND (
        c.lowest_track = c.highest_track
        OR (c.all_with_communicator = 1 AND c.lowest_communicator = c.highest_communicator)
    )
