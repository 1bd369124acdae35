-- name: v1._program_runs
-- version: 1
-- grain: one row per execution of the step program that a thread, a device or the runtime tells
-- summary: Executions of the program whose executions are the steps, in captures without step marks.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   host_event_id BIGINT: the host event around the launches; NULL where the device tells
--   track_id BIGINT: its thread
--   device_id BIGINT: the device that tells; NULL where the execution is one of all devices
--   execution_id BIGINT: the runtime's number of the execution; NULL for a host event
--   name_id BIGINT: names.name_id of the program
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end
-- algorithm: The first that the capture has: executions on the device's line of modules; device events with the
--   number of their execution; calls of the jitted function from Python (PjitFunction), which are one for all
--   devices; host events that XLA puts around the launches of a program on one device (NAME:XLA GPU module).

WITH _executions AS (
    SELECT
        e.capture_id AS capture_id,
        e.execution_id AS execution_id,
        MIN(p.name_id) AS program_name_id,
        MIN(e.start_ps) AS first_start_ps,
        MAX(e.end_ps) AS last_end_ps
    FROM v1._step_programs AS p
    INNER JOIN main.device_events AS e
        ON e.capture_id = p.capture_id
        AND e.role = 'work'
    INNER JOIN main.ops AS o
        ON o.capture_id = e.capture_id
        AND o.op_id = e.op_id
        AND o.hlo_module_name_id = p.name_id
        AND (p.program_id IS NULL OR o.program_id = p.program_id)
    WHERE p.has_module_runs = 0
        AND e.execution_id IS NOT NULL
    GROUP BY
        e.capture_id,
        e.execution_id
)
SELECT
    r.capture_id AS capture_id,
    CAST(NULL AS BIGINT) AS host_event_id,
    CAST(NULL AS BIGINT) AS track_id,
    r.device_id AS device_id,
    r.execution_id AS execution_id,
    r.name_id AS name_id,
    r.start_ps AS start_ps,
    r.end_ps AS end_ps
FROM v1._step_programs AS p
INNER JOIN v1._module_runs AS r
    ON r.capture_id = p.capture_id
    AND r.name_id = p.name_id
    AND p.has_module_runs = 1
UNION ALL
SELECT
    x.capture_id AS capture_id,
    CAST(NULL AS BIGINT) AS host_event_id,
    CAST(NULL AS BIGINT) AS track_id,
    CAST(NULL AS BIGINT) AS device_id,
    x.execution_id AS execution_id,
    x.program_name_id AS name_id,
    x.first_start_ps AS start_ps,
    x.last_end_ps AS end_ps
FROM _executions AS x
UNION ALL
SELECT
    c.capture_id AS capture_id,
    c.host_event_id AS host_event_id,
    c.track_id AS track_id,
    CAST(NULL AS BIGINT) AS device_id,
    CAST(NULL AS BIGINT) AS execution_id,
    c.name_id AS name_id,
    c.start_ps AS start_ps,
    c.end_ps AS end_ps
FROM v1._program_calls AS c
