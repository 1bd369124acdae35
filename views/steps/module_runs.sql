-- name: v1._module_runs
-- version: 1
-- grain: one row per execution of a program that a device line of modules has
-- summary: Executions of programs on a device, as the producer's line of modules says; TPU traces have it.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   execution_id BIGINT: the runtime's number of the execution on this device
--   name_id BIGINT: names.name_id of the program, with its fingerprint
--   run_rank BIGINT: position on the device by start, from 1
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end

SELECT
    e.capture_id AS capture_id,
    e.device_id AS device_id,
    e.execution_id AS execution_id,
    e.name_id AS name_id,
    ROW_NUMBER() OVER (
        PARTITION BY e.capture_id, e.device_id
        ORDER BY e.start_ps NULLS FIRST, e.end_ps NULLS FIRST, e.device_event_id NULLS FIRST
    ) AS run_rank,
    e.start_ps AS start_ps,
    e.end_ps AS end_ps
FROM main.device_events AS e
WHERE e.role = 'derived'
    AND e.execution_id IS NOT NULL
