-- name: v1.collective_executions
-- version: 1
-- grain: one row per device event that communicates
-- summary: When each collective ran on each device, what it is for, and how much of it no compute hides.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   device_ordinal BIGINT: ordinal of the device on its host
--   step_num BIGINT: the step whose work it is; NULL outside the steps
--   device_event_id BIGINT: the event
--   kernel_name VARCHAR: name of the kernel or op
--   program_id BIGINT: program that ran it; NULL outside a program
--   hlo_op VARCHAR: HLO instruction; NULL where none is known
--   kind VARCHAR: all-reduce, all-gather, reduce-scatter, ...; NULL where the instruction is not in a module at
--     hand
--   group_size BIGINT (count): devices that communicate with each other; NULL where unknown or where groups
--     differ
--   payload_bytes BIGINT (bytes): per device: of an all-gather the result, else the operands; NULL where unknown
--   launch_phase VARCHAR: phase by the op_name, as in v1.attribution
--   component VARCHAR: component, as in v1.attribution
--   component_group VARCHAR: group of the component, as in v1.attribution
--   occurrence BIGINT: 1 for the first with this program, HLO op and kernel in the step on the device, in order
--     of start
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end
--   duration_ps BIGINT (ps): end_ps - start_ps
--   exposed_ps BIGINT (ps): part of duration_ps without compute on the device
--   hidden_ps BIGINT (ps): the rest of duration_ps
--   module_id BIGINT: module of the program; NULL where the instruction is not in a module at hand
--   group_set_id BIGINT: with module_id its groups in main.hlo_replica_groups; NULL where they are unknown
--   duration_us DOUBLE (us): duration_ps in microseconds
--   exposed_us DOUBLE (us): exposed_ps in microseconds
-- algorithm: Compute of any step hides a collective. Where no two collectives of a device run at once, exposed_ps
--   of a capture sums to exposed_communication_ps of v1.device_time, else to more, for each counts for itself.
--   So it does for a step with which the compute of no other step overlaps.

SELECT
    a.capture_id AS capture_id,
    a.device_id AS device_id,
    a.device_ordinal AS device_ordinal,
    a.step_num AS step_num,
    a.device_event_id AS device_event_id,
    a.kernel_name AS kernel_name,
    a.program_id AS program_id,
    a.hlo_op AS hlo_op,
    h.collective_kind AS kind,
    h.group_size AS group_size,
    CASE WHEN NOT h.is_done THEN h.payload_bytes END AS payload_bytes,
    a.launch_phase AS launch_phase,
    a.component AS component,
    a.component_group AS component_group,
    ROW_NUMBER() OVER (
        PARTITION BY a.capture_id, a.device_id, a.step_num, a.program_id, a.hlo_op, a.kernel_name
        ORDER BY a.start_ps NULLS FIRST, a.device_event_id NULLS FIRST
    ) AS occurrence,
    a.start_ps AS start_ps,
    a.end_ps AS end_ps,
    a.end_ps - a.start_ps AS duration_ps,
    c.uncovered_ps AS exposed_ps,
    c.covered_ps AS hidden_ps,
    h.module_id AS module_id,
    h.group_set_id AS group_set_id,
    CAST(a.end_ps - a.start_ps AS DOUBLE) / 1e6 AS duration_us,
    CAST(c.uncovered_ps AS DOUBLE) / 1e6 AS exposed_us
FROM v1.attribution AS a
INNER JOIN v1.interval_coverage('v1._collective_events', 'v1._hiding_events', device_event_id) AS c
    ON c.capture_id = a.capture_id
    AND c.label_1 = a.device_event_id
LEFT JOIN main.names AS n
    ON n.name = a.hlo_op
LEFT JOIN v1._instructions AS i
    ON i.capture_id = a.capture_id
    AND i.program_id = a.program_id
    AND i.name_id = n.name_id
LEFT JOIN main.hlo_collectives AS h
    ON h.module_id = i.module_id
    AND h.instruction_id = i.instruction_id
WHERE a.event_class = 'collective'
