-- name: v1.op_stats
-- version: 1
-- grain: one row per capture, device, program and HLO op with device events
-- summary: Executions, time, FLOPs and bytes of each HLO op, whichever kernels ran it.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   device_ordinal BIGINT: ordinal of the device on its host
--   program_id BIGINT: the program; op names repeat between programs
--   hlo_op VARCHAR: HLO instruction
--   opcode VARCHAR: HLO opcode; NULL where the instruction is not in a module at hand
--   op_name VARCHAR: JAX name stack; NULL where none is known
--   launch_phase VARCHAR: remat, backward, forward, update or unattributed, by the op_name
--   component VARCHAR: deepest named scope, or unattributed, as in v1.attribution
--   component_group VARCHAR: what the rules make of the component, or unattributed
--   executions BIGINT (count): how often it ran; an execution may launch several kernels
--   kernel_count BIGINT (count): device events
--   kernels_per_execution DOUBLE (ratio): device events for each execution
--   sum_ps BIGINT (ps): sum of the durations of its events
--   union_ps BIGINT (ps): time with any of its events
--   flops_per_execution BIGINT (count): floating-point operations by the compiler's rules or a library's
--     formula; NULL where unknown
--   bytes_per_execution BIGINT (bytes): read and written by XLA's rules: nothing is cached, and an array
--     that a fusion slices behind a bitcast counts whole, so that it can be more than memory moves; NULL
--     where unknown
--   flops DOUBLE (count): of all executions
--   bytes_accessed DOUBLE (bytes): of all executions
--   flops_per_s DOUBLE (1/s): flops in union_ps; NULL for the start and done halves of asynchronous ops of
--     TPUs, whose work is under way between them
--   bytes_per_s DOUBLE (bytes/s): bytes_accessed in union_ps; NULL likewise
--   cost_evidence VARCHAR: compiler where XLA's own rules gave the cost, analytical where a formula for the
--     library call did; NULL without a cost
--   cost_rule VARCHAR: the rule or formula; NULL without the instruction
--   cost_note VARCHAR: why FLOPs or bytes are NULL, or in what way they are a bound
--   source_file VARCHAR: Python source that traced it; NULL where unknown
--   source_line BIGINT: line in it
--   sum_ms DOUBLE (ms): sum_ps in milliseconds
--   union_ms DOUBLE (ms): union_ps in milliseconds
-- algorithm: The number of executions is that of v1._op_runs.

WITH _events AS (
    SELECT
        o.capture_id AS capture_id,
        o.device_id AS device_id,
        o.program_id AS program_id,
        o.hlo_op_name_id AS hlo_op_name_id,
        o.start_ps AS start_ps,
        o.end_ps AS end_ps
    FROM v1._event_ops AS o
    WHERE o.attribution_source <> 'none'
        AND o.hlo_op_name_id IS NOT NULL
        AND o.program_id IS NOT NULL
),
_costs AS (
    SELECT
        r.capture_id AS capture_id,
        r.device_id AS device_id,
        r.program_id AS program_id,
        r.hlo_op_name_id AS hlo_op_name_id,
        r.opcode AS opcode,
        r.op_name_id AS op_name_id,
        r.executions AS executions,
        r.kernel_count AS kernel_count,
        r.sum_ps AS sum_ps,
        u.union_ps AS union_ps,
        CASE
            WHEN p.platform = 'tpu' AND REGEXP_MATCHES(r.opcode, '^.*-(start|done)$') THEN NULL
            ELSE u.union_ps
        END AS worked_ps,
        c.flops AS flops_per_execution,
        c.bytes_accessed AS bytes_per_execution,
        CAST(r.executions AS DOUBLE) * CAST(c.flops AS DOUBLE) AS flops,
        CAST(r.executions AS DOUBLE) * CAST(c.bytes_accessed AS DOUBLE) AS bytes_accessed,
        c.cost_evidence AS cost_evidence,
        c.cost_rule AS cost_rule,
        c.cost_note AS cost_note,
        i.source_file AS source_file,
        i.source_line AS source_line
    FROM v1._op_runs AS r
    INNER JOIN v1.interval_union('_events', program_id, hlo_op_name_id) AS u
        ON u.capture_id = r.capture_id
        AND u.device_id = r.device_id
        AND u.key_1 = r.program_id
        AND u.key_2 = r.hlo_op_name_id
    INNER JOIN main.captures AS p
        ON p.capture_id = r.capture_id
    LEFT JOIN v1._op_costs AS c
        ON c.module_id = r.module_id
        AND c.instruction_id = r.instruction_id
    LEFT JOIN main.hlo_instructions AS i
        ON i.module_id = r.module_id
        AND i.instruction_id = r.instruction_id
)
SELECT
    c.capture_id AS capture_id,
    c.device_id AS device_id,
    d.device_ordinal AS device_ordinal,
    c.program_id AS program_id,
    h.name AS hlo_op,
    c.opcode AS opcode,
    o.name AS op_name,
    k.launch_phase AS launch_phase,
    k.component AS component,
    k.component_group AS component_group,
    c.executions AS executions,
    c.kernel_count AS kernel_count,
    CAST(c.kernel_count AS DOUBLE) / NULLIF(CAST(c.executions AS DOUBLE), 0) AS kernels_per_execution,
    c.sum_ps AS sum_ps,
    c.union_ps AS union_ps,
    c.flops_per_execution AS flops_per_execution,
    c.bytes_per_execution AS bytes_per_execution,
    c.flops AS flops,
    c.bytes_accessed AS bytes_accessed,
    c.flops * 1e12 / NULLIF(CAST(c.worked_ps AS DOUBLE), 0) AS flops_per_s,
    c.bytes_accessed * 1e12 / NULLIF(CAST(c.worked_ps AS DOUBLE), 0) AS bytes_per_s,
    c.cost_evidence AS cost_evidence,
    c.cost_rule AS cost_rule,
    c.cost_note AS cost_note,
    c.source_file AS source_file,
    c.source_line AS source_line,
    CAST(c.sum_ps AS DOUBLE) / 1e9 AS sum_ms,
    CAST(c.union_ps AS DOUBLE) / 1e9 AS union_ms
FROM _costs AS c
INNER JOIN main.devices AS d
    ON d.device_id = c.device_id
INNER JOIN main.names AS h
    ON h.name_id = c.hlo_op_name_id
LEFT JOIN main.names AS o
    ON o.name_id = c.op_name_id
INNER JOIN v1._op_components AS k
    ON k.capture_id = c.capture_id
    AND k.device_id = c.device_id
    AND k.program_id = c.program_id
    AND k.hlo_op_name_id = c.hlo_op_name_id
