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
-- algorithm: A piece is what of an event no earlier one covers: of the same op for collectives, of any for
--   compute, so that pieces of compute lie one after the other. The compute before a moment is the length of
--   those that ended and, inside of one, the time since it began. The exposed part of a collective's piece is
--   its length less the compute between its ends.

WITH _events AS (
    SELECT
        o.capture_id AS capture_id,
        o.device_id AS device_id,
        o.device_event_id AS device_event_id,
        o.event_class AS event_class,
        CASE WHEN o.event_class = 'collective' THEN o.program_id END AS program_id,
        CASE WHEN o.event_class = 'collective' THEN o.hlo_op_name_id END AS hlo_op_name_id,
        o.start_ps AS start_ps,
        o.end_ps AS end_ps
    FROM v1._event_ops AS o
    WHERE o.event_class IN ('collective', 'compute')
),
_covered AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        e.device_event_id AS device_event_id,
        e.event_class AS event_class,
        e.program_id AS program_id,
        e.hlo_op_name_id AS hlo_op_name_id,
        e.start_ps AS start_ps,
        e.end_ps AS end_ps,
        MAX(e.end_ps) OVER (
            PARTITION BY e.capture_id, e.device_id, e.event_class, e.program_id, e.hlo_op_name_id
            ORDER BY e.start_ps NULLS FIRST, e.device_event_id NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS end_before
    FROM _events AS e
),
_pieces AS (
    SELECT
        c.capture_id AS capture_id,
        c.device_id AS device_id,
        c.device_event_id AS device_event_id,
        c.event_class AS event_class,
        c.program_id AS program_id,
        c.hlo_op_name_id AS hlo_op_name_id,
        c.end_ps - c.start_ps AS duration_ps,
        CASE WHEN c.end_before > c.start_ps THEN c.end_before ELSE c.start_ps END AS from_ps,
        CASE WHEN c.end_before > c.end_ps THEN c.end_before ELSE c.end_ps END AS until_ps
    FROM _covered AS c
),
_moments AS (
    SELECT
        p.capture_id AS capture_id,
        p.device_id AS device_id,
        p.from_ps AS moment_ps,
        p.device_event_id AS device_event_id,
        p.event_class AS event_class,
        TRUE AS is_start,
        CASE WHEN p.event_class = 'compute' THEN p.from_ps END AS compute_start_ps,
        CAST(0 AS BIGINT) AS ended_ps
    FROM _pieces AS p
    WHERE p.event_class = 'collective' OR p.from_ps < p.until_ps
    UNION ALL
    SELECT
        p.capture_id AS capture_id,
        p.device_id AS device_id,
        p.until_ps AS moment_ps,
        p.device_event_id AS device_event_id,
        p.event_class AS event_class,
        FALSE AS is_start,
        CAST(NULL AS BIGINT) AS compute_start_ps,
        CASE WHEN p.event_class = 'compute' THEN p.until_ps - p.from_ps ELSE 0 END AS ended_ps
    FROM _pieces AS p
    WHERE p.event_class = 'collective' OR p.from_ps < p.until_ps
),
_swept AS (
    SELECT
        m.capture_id AS capture_id,
        m.device_id AS device_id,
        m.device_event_id AS device_event_id,
        m.event_class AS event_class,
        m.is_start AS is_start,
        m.moment_ps AS moment_ps,
        CAST(SUM(m.ended_ps) OVER (
            PARTITION BY m.capture_id, m.device_id
            ORDER BY m.moment_ps NULLS FIRST, m.is_start NULLS FIRST, m.device_event_id NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT) AS compute_ended_ps,
        MAX(m.compute_start_ps) OVER (
            PARTITION BY m.capture_id, m.device_id
            ORDER BY m.moment_ps NULLS FIRST, m.is_start NULLS FIRST, m.device_event_id NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS last_start_ps,
        MAX(CASE WHEN m.event_class = 'compute' AND NOT m.is_start THEN m.moment_ps END) OVER (
            PARTITION BY m.capture_id, m.device_id
            ORDER BY m.moment_ps NULLS FIRST, m.is_start NULLS FIRST, m.device_event_id NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS last_end_ps
    FROM _moments AS m
),
_compute_before AS (
    SELECT
        s.capture_id AS capture_id,
        s.device_id AS device_id,
        s.device_event_id AS device_event_id,
        s.is_start AS is_start,
        s.compute_ended_ps + CASE
            WHEN s.last_start_ps IS NULL OR s.last_end_ps >= s.moment_ps THEN 0
            WHEN s.last_end_ps IS NULL OR s.last_start_ps >= s.last_end_ps THEN s.moment_ps - s.last_start_ps
            ELSE 0
        END AS compute_ps
    FROM _swept AS s
    WHERE s.event_class = 'collective'
)
SELECT
    p.capture_id AS capture_id,
    p.device_id AS device_id,
    p.program_id AS program_id,
    p.hlo_op_name_id AS hlo_op_name_id,
    COUNT(*) AS kernel_count,
    CAST(SUM(p.duration_ps) AS BIGINT) AS sum_ps,
    CAST(SUM(p.until_ps - p.from_ps) AS BIGINT) AS union_ps,
    CAST(SUM(p.until_ps - p.from_ps - (u.compute_ps - f.compute_ps)) AS BIGINT) AS exposed_ps
FROM _pieces AS p
INNER JOIN _compute_before AS f
    ON f.capture_id = p.capture_id
    AND f.device_id = p.device_id
    AND f.device_event_id = p.device_event_id
    AND f.is_start
INNER JOIN _compute_before AS u
    ON u.capture_id = p.capture_id
    AND u.device_id = p.device_id
    AND u.device_event_id = p.device_event_id
    AND NOT u.is_start
WHERE p.event_class = 'collective'
GROUP BY
    p.capture_id,
    p.device_id,
    p.program_id,
    p.hlo_op_name_id
