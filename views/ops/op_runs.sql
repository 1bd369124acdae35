-- name: v1._op_runs
-- version: 1
-- grain: one row per capture, device, program and HLO op with device events
-- summary: How often each HLO op ran on each device, from its kernels and the compiler's loops.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   program_id BIGINT: the program
--   hlo_op_name_id BIGINT: names.name_id of the HLO op
--   module_id BIGINT: module of the program; NULL where it is not at hand
--   instruction_id BIGINT: the instruction in the module; NULL where it is not at hand
--   opcode VARCHAR: HLO opcode; NULL where the instruction is not at hand
--   op_name_id BIGINT: names.name_id of the JAX name stack; NULL where none is known
--   neighbour_op_name_id BIGINT: as in v1._event_ops
--   program_runs BIGINT (count): runs of the program that the events show; NULL where they do not tell
--   expected_executions BIGINT (count): executions of the op in so many runs; NULL where unknown
--   executions BIGINT (count): executions that the events show
--   kernel_count BIGINT (count): device events
--   sum_ps BIGINT (ps): sum of their durations
-- algorithm: An execution may launch several kernels, and one kernel several times. The program ran as often
--   as most kernels of ops outside of loops did, or as there are steps that launched any of it, if that is once
--   or twice more: where a capture begins or ends inside of a run, most of its ops may lack it. An op ran as
--   often as that one of its kernels whose count is nearest to what runs and loops let expect; where even that
--   is half more, each execution launches it several times, and the expectation holds. Without one, or where
--   nothing is expected, the rarest kernel tells. Events that name an op of no module at hand, and no op_name,
--   may be of a command buffer: none.

WITH _kernels AS (
    SELECT
        o.capture_id AS capture_id,
        o.device_id AS device_id,
        o.program_id AS program_id,
        o.hlo_op_name_id AS hlo_op_name_id,
        o.name_id AS name_id,
        MIN(o.op_name_id) AS own_op_name_id,
        MIN(o.neighbour_op_name_id) AS near_op_name_id,
        COUNT(*) AS launches,
        CAST(SUM(o.end_ps - o.start_ps) AS BIGINT) AS kernel_ps
    FROM v1._event_ops AS o
    WHERE o.attribution_source <> 'none'
        AND o.hlo_op_name_id IS NOT NULL
        AND o.program_id IS NOT NULL
    GROUP BY
        o.capture_id,
        o.device_id,
        o.program_id,
        o.hlo_op_name_id,
        o.name_id
),
_known AS (
    SELECT
        k.capture_id AS capture_id,
        k.device_id AS device_id,
        k.program_id AS program_id,
        k.hlo_op_name_id AS hlo_op_name_id,
        k.name_id AS name_id,
        k.launches AS launches,
        k.kernel_ps AS kernel_ps,
        i.module_id AS module_id,
        i.instruction_id AS instruction_id,
        i.opcode AS opcode,
        COALESCE(i.op_name_id, k.own_op_name_id) AS op_name_id,
        k.near_op_name_id AS neighbour_op_name_id,
        c.executions_per_run AS executions_per_run
    FROM _kernels AS k
    LEFT JOIN v1._instructions AS i
        ON i.capture_id = k.capture_id
        AND i.program_id = k.program_id
        AND i.name_id = k.hlo_op_name_id
    LEFT JOIN v1._op_costs AS c
        ON c.module_id = i.module_id
        AND c.instruction_id = i.instruction_id
),
_counts AS (
    SELECT
        k.capture_id AS capture_id,
        k.device_id AS device_id,
        k.program_id AS program_id,
        k.launches AS launches,
        COUNT(*) AS kernels
    FROM _known AS k
    WHERE k.executions_per_run = 1
    GROUP BY
        k.capture_id,
        k.device_id,
        k.program_id,
        k.launches
),
_votes AS (
    SELECT
        c.capture_id AS capture_id,
        c.device_id AS device_id,
        c.program_id AS program_id,
        c.launches AS launches,
        ROW_NUMBER() OVER (
            PARTITION BY c.capture_id, c.device_id, c.program_id
            ORDER BY c.kernels DESC NULLS FIRST, c.launches NULLS FIRST
        ) AS place
    FROM _counts AS c
),
_step_counts AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        o.program_id AS program_id,
        COUNT(DISTINCT s.step_num) AS steps
    FROM main.device_events AS e
    INNER JOIN main.ops AS o
        ON o.capture_id = e.capture_id
        AND o.op_id = e.op_id
    INNER JOIN v1._event_steps AS s
        ON s.capture_id = e.capture_id
        AND s.device_event_id = e.device_event_id
        AND s.found_rank < 4
    WHERE e.role = 'work'
        AND o.program_id IS NOT NULL
    GROUP BY
        e.capture_id,
        e.device_id,
        o.program_id
),
_runs AS (
    SELECT
        v.capture_id AS capture_id,
        v.device_id AS device_id,
        v.program_id AS program_id,
        CASE WHEN s.steps > v.launches AND s.steps <= v.launches + 2 THEN s.steps ELSE v.launches END
            AS program_runs
    FROM _votes AS v
    LEFT JOIN _step_counts AS s
        ON s.capture_id = v.capture_id
        AND s.device_id = v.device_id
        AND s.program_id = v.program_id
    WHERE v.place = 1
),
_expected AS (
    SELECT
        k.capture_id AS capture_id,
        k.device_id AS device_id,
        k.program_id AS program_id,
        k.hlo_op_name_id AS hlo_op_name_id,
        k.name_id AS name_id,
        k.launches AS launches,
        r.program_runs AS program_runs,
        r.program_runs * k.executions_per_run AS expected_executions
    FROM _known AS k
    LEFT JOIN _runs AS r
        ON r.capture_id = k.capture_id
        AND r.device_id = k.device_id
        AND r.program_id = k.program_id
),
_ranked AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        e.program_id AS program_id,
        e.hlo_op_name_id AS hlo_op_name_id,
        e.launches AS launches,
        e.program_runs AS program_runs,
        e.expected_executions AS expected_executions,
        ROW_NUMBER() OVER (
            PARTITION BY e.capture_id, e.device_id, e.program_id, e.hlo_op_name_id
            ORDER BY
                CASE WHEN e.expected_executions IS NULL THEN e.launches
                    ELSE ABS(e.launches - e.expected_executions) END NULLS FIRST,
                e.launches NULLS FIRST,
                e.name_id NULLS FIRST
        ) AS place
    FROM _expected AS e
),
_ops AS (
    SELECT
        k.capture_id AS capture_id,
        k.device_id AS device_id,
        k.program_id AS program_id,
        k.hlo_op_name_id AS hlo_op_name_id,
        MIN(k.module_id) AS any_module_id,
        MIN(k.instruction_id) AS any_instruction_id,
        MIN(k.opcode) AS any_opcode,
        MIN(k.op_name_id) AS any_op_name_id,
        MIN(k.neighbour_op_name_id) AS any_neighbour_id,
        CAST(SUM(k.launches) AS BIGINT) AS kernel_count,
        CAST(SUM(k.kernel_ps) AS BIGINT) AS sum_ps
    FROM _known AS k
    GROUP BY
        k.capture_id,
        k.device_id,
        k.program_id,
        k.hlo_op_name_id
)
SELECT
    o.capture_id AS capture_id,
    o.device_id AS device_id,
    o.program_id AS program_id,
    o.hlo_op_name_id AS hlo_op_name_id,
    o.any_module_id AS module_id,
    o.any_instruction_id AS instruction_id,
    o.any_opcode AS opcode,
    o.any_op_name_id AS op_name_id,
    o.any_neighbour_id AS neighbour_op_name_id,
    r.program_runs AS program_runs,
    r.expected_executions AS expected_executions,
    CASE
        WHEN r.expected_executions > 0 AND 2 * r.launches >= 3 * r.expected_executions
        THEN r.expected_executions
        ELSE r.launches
    END AS executions,
    o.kernel_count AS kernel_count,
    o.sum_ps AS sum_ps
FROM _ops AS o
INNER JOIN _ranked AS r
    ON r.capture_id = o.capture_id
    AND r.device_id = o.device_id
    AND r.program_id = o.program_id
    AND r.hlo_op_name_id = o.hlo_op_name_id
    AND r.place = 1
