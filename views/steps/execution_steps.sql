-- name: v1._execution_steps
-- version: 1
-- grain: one row per execution of a program, of a device where it has numbers of its own, that belongs to a step
-- summary: The step of each program execution that the runtime numbers.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device that the number is one of; NULL where the devices share the numbers
--   execution_id BIGINT: the runtime's number of the execution, on host and device events alike
--   step_num BIGINT: the step
-- algorithm: An execution belongs to the first step in whose ranges, as in v1._step_ranges, a host event names
--   it; without marks of steps, an execution of the step program is a step. The ranges that are open are found as
--   in v1._flow_producers. The runtime of a TPU numbers the executions of each device by themselves: there the
--   host event has the ordinal of the device as a stat.

WITH _points AS (
    SELECT
        r.capture_id AS capture_id,
        r.track_id AS track_id,
        r.start_ps AS start_ps,
        r.end_ps AS end_ps,
        r.start_rank AS start_rank,
        r.end_rank AS end_rank,
        r.step_num AS step_num,
        0 AS is_point,
        CAST(NULL AS BIGINT) AS execution_id,
        CAST(NULL AS BIGINT) AS host_event_id
    FROM v1._step_ranges AS r
    UNION ALL
    SELECT
        h.capture_id AS capture_id,
        h.track_id AS track_id,
        h.start_ps AS start_ps,
        CAST(NULL AS BIGINT) AS end_ps,
        CAST(NULL AS BIGINT) AS start_rank,
        CAST(NULL AS BIGINT) AS end_rank,
        CAST(NULL AS BIGINT) AS step_num,
        1 AS is_point,
        h.execution_id AS execution_id,
        h.host_event_id AS host_event_id
    FROM main.host_events AS h
    WHERE h.execution_id IS NOT NULL
),
_open AS (
    SELECT
        p.capture_id AS capture_id,
        p.track_id AS track_id,
        p.start_ps AS start_ps,
        p.end_ps AS end_ps,
        p.start_rank AS start_rank,
        p.end_rank AS end_rank,
        p.step_num AS step_num,
        p.is_point AS is_point,
        p.execution_id AS execution_id,
        p.host_event_id AS host_event_id,
        MAX(p.start_rank) OVER (
            PARTITION BY p.capture_id, p.track_id
            ORDER BY p.start_ps NULLS FIRST, p.is_point NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS last_begun,
        MAX(p.end_rank) OVER (
            PARTITION BY p.capture_id, p.track_id
            ORDER BY p.start_ps NULLS FIRST, p.is_point NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS last_ended
    FROM _points AS p
),
_found AS (
    SELECT
        o.capture_id AS capture_id,
        o.start_ps AS start_ps,
        o.is_point AS is_point,
        o.execution_id AS execution_id,
        o.host_event_id AS host_event_id,
        MAX(CASE WHEN o.start_rank = o.last_begun THEN o.end_ps END)
            OVER (PARTITION BY o.capture_id, o.track_id, o.last_begun) AS begun_end_ps,
        MAX(CASE WHEN o.start_rank = o.last_begun THEN o.step_num END)
            OVER (PARTITION BY o.capture_id, o.track_id, o.last_begun) AS begun_step,
        MAX(CASE WHEN o.end_rank = o.last_ended THEN o.end_ps END)
            OVER (PARTITION BY o.capture_id, o.track_id, o.last_ended) AS ended_end_ps,
        MAX(CASE WHEN o.end_rank = o.last_ended THEN o.step_num END)
            OVER (PARTITION BY o.capture_id, o.track_id, o.last_ended) AS ended_step
    FROM _open AS o
),
_devices AS (
    SELECT DISTINCT
        r.capture_id AS capture_id,
        r.device_id AS device_id,
        d.device_ordinal AS device_ordinal
    FROM v1._module_runs AS r
    INNER JOIN main.devices AS d
        ON d.device_id = r.device_id
),
_ordinals AS (
    SELECT
        d.capture_id AS capture_id,
        s.owner_id AS host_event_id,
        d.device_id AS device_id
    FROM _devices AS d
    INNER JOIN main.event_stats AS s
        ON s.capture_id = d.capture_id
        AND s.int_value = d.device_ordinal
        AND s.owner = 'host_event'
    INNER JOIN main.names AS n
        ON n.name_id = s.stat_name_id
        AND n.name = 'device_ordinal'
),
_executions AS (
    SELECT
        f.capture_id AS capture_id,
        o.device_id AS device_id,
        f.execution_id AS execution_id,
        CASE
            WHEN f.begun_end_ps > f.start_ps THEN f.begun_step
            WHEN f.ended_end_ps > f.start_ps THEN f.ended_step
        END AS range_step
    FROM _found AS f
    LEFT JOIN _ordinals AS o
        ON o.capture_id = f.capture_id
        AND o.host_event_id = f.host_event_id
    WHERE f.is_point = 1
    UNION ALL
    SELECT
        m.capture_id AS capture_id,
        m.device_id AS device_id,
        m.execution_id AS execution_id,
        m.step_num AS range_step
    FROM v1._step_marks AS m
    WHERE m.execution_id IS NOT NULL
)
SELECT
    e.capture_id AS capture_id,
    e.device_id AS device_id,
    e.execution_id AS execution_id,
    MIN(e.range_step) AS step_num
FROM _executions AS e
WHERE e.range_step IS NOT NULL
GROUP BY
    e.capture_id,
    e.device_id,
    e.execution_id
