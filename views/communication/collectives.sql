-- name: v1.collectives
-- version: 1
-- grain: one row per capture, device and op that communicates
-- summary: Payload, time, bandwidth and exposed time of each collective.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   device_ordinal BIGINT: ordinal of the device on its host
--   program_id BIGINT: the program; NULL where the events name none
--   hlo_op VARCHAR: HLO instruction; NULL where the events name none: their collectives are one row
--   op_name VARCHAR: JAX name stack; NULL where none is known
--   kind VARCHAR: all-reduce, all-gather, reduce-scatter, all-to-all, collective-permute, ...; NULL where the
--     instruction is not in a module at hand
--   group_size BIGINT (count): devices that communicate with each other; NULL where unknown or where groups
--     differ
--   payload_bytes BIGINT (bytes): of one execution, per device: of an all-gather the result, else the operands;
--     NULL where unknown
--   executions BIGINT (count): how often it ran; NULL where no instruction is known
--   kernel_count BIGINT (count): device events
--   sum_ps BIGINT (ps): sum of their durations
--   union_ps BIGINT (ps): time with any of them
--   exposed_ps BIGINT (ps): part of union_ps without compute on the device
--   algorithm_bytes_per_s DOUBLE (bytes/s): payload of all executions in union_ps
--   bus_bytes_per_s DOUBLE (bytes/s): what each device sends for it at best, in union_ps; see v1._collective_bytes
--   unknown_reason VARCHAR: why groups or payload are NULL
--   union_ms DOUBLE (ms): union_ps in milliseconds
--   exposed_ms DOUBLE (ms): exposed_ps in milliseconds
-- algorithm: A kernel waits for the others of its group, and that is part of its time: the bandwidth of a group
--   whose devices come at different times is low without its link being slow. What only waits for the end of
--   another op (-done) has no payload.

WITH _ops AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        e.program_id AS program_id,
        e.hlo_op_name_id AS hlo_op_name_id,
        r.op_name_id AS op_name_id,
        c.collective_kind AS kind,
        c.group_size AS group_size,
        c.payload_bytes AS payload_bytes,
        c.bus_bytes AS bus_bytes,
        r.executions AS executions,
        e.kernel_count AS kernel_count,
        e.sum_ps AS sum_ps,
        e.union_ps AS union_ps,
        e.exposed_ps AS exposed_ps,
        c.unknown_reason AS unknown_reason
    FROM v1._collective_exposure AS e
    LEFT JOIN v1._op_runs AS r
        ON r.capture_id = e.capture_id
        AND r.device_id = e.device_id
        AND r.program_id = e.program_id
        AND r.hlo_op_name_id = e.hlo_op_name_id
    LEFT JOIN v1._collective_bytes AS c
        ON c.module_id = r.module_id
        AND c.instruction_id = r.instruction_id
)
SELECT
    r.capture_id AS capture_id,
    r.device_id AS device_id,
    d.device_ordinal AS device_ordinal,
    r.program_id AS program_id,
    h.name AS hlo_op,
    n.name AS op_name,
    r.kind AS kind,
    r.group_size AS group_size,
    r.payload_bytes AS payload_bytes,
    r.executions AS executions,
    r.kernel_count AS kernel_count,
    r.sum_ps AS sum_ps,
    r.union_ps AS union_ps,
    r.exposed_ps AS exposed_ps,
    CAST(r.payload_bytes AS DOUBLE) * CAST(r.executions AS DOUBLE) * 1e12 / NULLIF(CAST(r.union_ps AS DOUBLE), 0)
        AS algorithm_bytes_per_s,
    r.bus_bytes * CAST(r.executions AS DOUBLE) * 1e12 / NULLIF(CAST(r.union_ps AS DOUBLE), 0) AS bus_bytes_per_s,
    r.unknown_reason AS unknown_reason,
    CAST(r.union_ps AS DOUBLE) / 1e9 AS union_ms,
    CAST(r.exposed_ps AS DOUBLE) / 1e9 AS exposed_ms
FROM _ops AS r
INNER JOIN main.devices AS d
    ON d.device_id = r.device_id
LEFT JOIN main.names AS h
    ON h.name_id = r.hlo_op_name_id
LEFT JOIN main.names AS n
    ON n.name_id = r.op_name_id
