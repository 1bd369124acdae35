-- name: v1._collective_exposure
-- version: 1
-- grain: one row per capture, device, program and HLO op that communicates
-- summary: Time of each collective op on a device, and how much of it no compute hides.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   program_id BIGINT: the program; NULL outside a program
--   hlo_op_name_id BIGINT: names.name_id of the HLO op; NULL where none is known
--   kernel_count BIGINT (count): device events
--   sum_ps BIGINT (ps): sum of their durations
--   union_ps BIGINT (ps): time with any of them
--   exposed_ps BIGINT (ps): part of union_ps without compute on the device
-- algorithm: The events of an op, merged, are windows, of which compute covers a part; the rest is exposed.

WITH _merged AS (
    SELECT
        i.capture_id AS capture_id,
        i.device_id AS device_id,
        i.key_1 AS program_id,
        i.key_2 AS hlo_op_name_id,
        i.start_ps AS start_ps,
        i.end_ps AS end_ps
    FROM v1.interval_islands('v1._collective_events', program_id, hlo_op_name_id) AS i
),
_times AS (
    SELECT
        u.capture_id AS capture_id,
        u.device_id AS device_id,
        u.key_1 AS program_id,
        u.key_2 AS hlo_op_name_id,
        u.interval_count AS kernels,
        u.sum_ps AS event_ps,
        u.union_ps AS covered_ps,
        CAST(0 AS BIGINT) AS alone_ps
    FROM v1.interval_union('v1._collective_events', program_id, hlo_op_name_id) AS u
    UNION ALL
    SELECT
        c.capture_id AS capture_id,
        c.device_id AS device_id,
        c.label_1 AS program_id,
        c.label_2 AS hlo_op_name_id,
        0 AS kernels,
        0 AS event_ps,
        0 AS covered_ps,
        c.uncovered_ps AS alone_ps
    FROM v1.interval_coverage('_merged', 'v1._hiding_events', program_id, hlo_op_name_id) AS c
)
SELECT
    t.capture_id AS capture_id,
    t.device_id AS device_id,
    t.program_id AS program_id,
    t.hlo_op_name_id AS hlo_op_name_id,
    CAST(SUM(t.kernels) AS BIGINT) AS kernel_count,
    CAST(SUM(t.event_ps) AS BIGINT) AS sum_ps,
    CAST(SUM(t.covered_ps) AS BIGINT) AS union_ps,
    CAST(SUM(t.alone_ps) AS BIGINT) AS exposed_ps
FROM _times AS t
GROUP BY
    t.capture_id,
    t.device_id,
    t.program_id,
    t.hlo_op_name_id
