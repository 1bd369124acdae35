-- name: v1.occurrences
-- version: 1
-- grain: one row per capture, program and HLO op that runs on a device
-- summary: How often each op should have run by the compiler's loops, against how often its kernels show it.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   program_id BIGINT: the program
--   hlo_op VARCHAR: HLO instruction
--   opcode VARCHAR: HLO opcode; NULL where the instruction is not in a module at hand
--   component VARCHAR: deepest named scope of the op_name, or unattributed
--   component_group VARCHAR: what the rules make of the component, or unattributed
--   program_device_count BIGINT (count): devices that ran the program
--   program_runs BIGINT (count): runs of the program, summed over those devices; NULL where unknown for
--     any of them
--   executions_per_run BIGINT (count): product of the trip counts of the loops around it; NULL where unknown
--   expected BIGINT (count): program_runs times executions_per_run; NULL where that is unknown
--   actual BIGINT (count): executions that kernels show, summed over devices
--   kernel_count BIGINT (count): device events, summed over devices
--   status VARCHAR: complete; missing (fewer than expected, or none); extra (more); unknown (nothing to expect);
--     other_executable (whatever its counts: an op of a program that is not the step, as v1._step_executables has
--     it)
-- algorithm: Runs are counted per device by v1._op_runs. A capture that begins or ends inside of a run has ops
--   with one run fewer: they are missing. Twice as many kernels may be two of each execution: kernel_count tells
--   such a change from run to run. Ops that do device work and have no event are missing: their work is in a
--   command buffer whose events name no op, in another op's kernel, or lost. Whether a copy or a bookkeeping op
--   takes a kernel is the runtime's choice, so those count only where they are seen.

WITH _programs AS (
    SELECT DISTINCT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        o.program_id AS program_id
    FROM main.device_events AS e
    INNER JOIN main.ops AS o
        ON o.capture_id = e.capture_id
        AND o.op_id = e.op_id
    WHERE e.role = 'work'
        AND o.program_id IS NOT NULL
),
_runs AS (
    SELECT
        r.capture_id AS capture_id,
        r.device_id AS device_id,
        r.program_id AS program_id,
        MAX(r.program_runs) AS device_runs
    FROM v1._op_runs AS r
    GROUP BY
        r.capture_id,
        r.device_id,
        r.program_id
),
_totals AS (
    SELECT
        p.capture_id AS capture_id,
        p.program_id AS program_id,
        COUNT(*) AS program_device_count,
        CASE WHEN COUNT(r.device_runs) = COUNT(*) THEN CAST(SUM(r.device_runs) AS BIGINT) END AS program_runs
    FROM _programs AS p
    LEFT JOIN _runs AS r
        ON r.capture_id = p.capture_id
        AND r.device_id = p.device_id
        AND r.program_id = p.program_id
    GROUP BY
        p.capture_id,
        p.program_id
),
_seen AS (
    SELECT
        r.capture_id AS capture_id,
        r.program_id AS program_id,
        r.hlo_op_name_id AS hlo_op_name_id,
        MIN(r.op_name_id) AS any_op_name_id,
        MIN(r.opcode) AS any_opcode,
        CAST(SUM(r.executions) AS BIGINT) AS actual,
        CAST(SUM(r.kernel_count) AS BIGINT) AS kernels
    FROM v1._op_runs AS r
    GROUP BY
        r.capture_id,
        r.program_id,
        r.hlo_op_name_id
),
_instructions AS (
    SELECT
        i.capture_id AS capture_id,
        i.program_id AS program_id,
        i.name_id AS hlo_op_name_id,
        i.op_name_id AS op_name_id,
        i.opcode AS opcode,
        c.executions_per_run AS executions_per_run,
        (i.opcode IN ('fusion', 'dot', 'convolution', 'sort', 'scatter', 'reduce')
            OR i.opcode = 'custom-call' AND c.cost_rule <> 'no_work')
            AND c.computation_role IN ('entry', 'while_body', 'branch', 'call')
            AS is_device_work
    FROM v1._instructions AS i
    INNER JOIN v1._op_costs AS c
        ON c.module_id = i.module_id
        AND c.instruction_id = i.instruction_id
),
_ops AS (
    SELECT
        s.capture_id AS capture_id,
        s.program_id AS program_id,
        s.hlo_op_name_id AS hlo_op_name_id,
        1 AS is_counted,
        s.any_op_name_id AS seen_op_name_id,
        s.any_opcode AS seen_opcode,
        CAST(NULL AS BIGINT) AS op_name_id,
        CAST(NULL AS VARCHAR) AS opcode,
        CAST(NULL AS BIGINT) AS executions_per_run,
        s.actual AS actual,
        s.kernels AS kernels
    FROM _seen AS s
    UNION ALL
    SELECT
        i.capture_id AS capture_id,
        i.program_id AS program_id,
        i.hlo_op_name_id AS hlo_op_name_id,
        CASE WHEN i.is_device_work THEN 1 ELSE 0 END AS is_counted,
        CAST(NULL AS BIGINT) AS seen_op_name_id,
        CAST(NULL AS VARCHAR) AS seen_opcode,
        i.op_name_id AS op_name_id,
        i.opcode AS opcode,
        i.executions_per_run AS executions_per_run,
        CAST(0 AS BIGINT) AS actual,
        CAST(0 AS BIGINT) AS kernels
    FROM _instructions AS i
),
_counted AS (
    SELECT
        o.capture_id AS capture_id,
        o.program_id AS program_id,
        o.hlo_op_name_id AS hlo_op_name_id,
        COALESCE(MIN(o.seen_op_name_id), MIN(o.op_name_id)) AS any_op_name_id,
        COALESCE(MIN(o.seen_opcode), MIN(o.opcode)) AS any_opcode,
        MIN(o.executions_per_run) AS per_run,
        CAST(SUM(o.actual) AS BIGINT) AS executions,
        CAST(SUM(o.kernels) AS BIGINT) AS kernel_count
    FROM _ops AS o
    GROUP BY
        o.capture_id,
        o.program_id,
        o.hlo_op_name_id
    HAVING MAX(o.is_counted) = 1
),
_expected AS (
    SELECT
        o.capture_id AS capture_id,
        o.program_id AS program_id,
        o.hlo_op_name_id AS hlo_op_name_id,
        o.any_op_name_id AS op_name_id,
        o.any_opcode AS opcode,
        t.program_device_count AS program_device_count,
        t.program_runs AS program_runs,
        o.per_run AS executions_per_run,
        CASE
            WHEN o.per_run = 0 THEN 0
            ELSE t.program_runs * o.per_run
        END AS expected,
        o.executions AS actual,
        o.kernel_count AS kernels
    FROM _counted AS o
    INNER JOIN _totals AS t
        ON t.capture_id = o.capture_id
        AND t.program_id = o.program_id
)
SELECT
    e.capture_id AS capture_id,
    e.program_id AS program_id,
    h.name AS hlo_op,
    e.opcode AS opcode,
    COALESCE(c.component, 'unattributed') AS component,
    COALESCE(c.component_group, 'unattributed') AS component_group,
    e.program_device_count AS program_device_count,
    e.program_runs AS program_runs,
    e.executions_per_run AS executions_per_run,
    e.expected AS expected,
    e.actual AS actual,
    e.kernels AS kernel_count,
    CASE
        WHEN NOT p.is_step_program THEN 'other_executable'
        WHEN e.actual = e.expected THEN 'complete'
        WHEN e.actual = 0 AND e.executions_per_run > 0 THEN 'missing'
        WHEN e.expected IS NULL THEN 'unknown'
        WHEN e.actual < e.expected THEN 'missing'
        ELSE 'extra'
    END AS status
FROM _expected AS e
INNER JOIN v1._step_executables AS p
    ON p.capture_id = e.capture_id
    AND p.program_id = e.program_id
INNER JOIN main.names AS h
    ON h.name_id = e.hlo_op_name_id
LEFT JOIN v1._capture_rule_scopes AS r
    ON r.capture_id = e.capture_id
LEFT JOIN main.op_name_classes AS c
    ON c.rule_scope = COALESCE(r.rule_scope, 0)
    AND c.op_name_id = e.op_name_id
