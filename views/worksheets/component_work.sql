-- name: v1._component_work
-- version: 1
-- grain: one row per capture and component group with ops of known cost, on the critical device of the capture
-- summary: What the ops of each component group compute and move in the programs that are the step.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   component_group VARCHAR: the group
--   executed_flops DOUBLE (count): by the compiler's account and the formulas of library calls
--   replayed_flops DOUBLE (count): part of them in rematerialized forward work
--   hbm_bytes DOUBLE (bytes): by XLA's account, of each op no more than memory moves in its time
--   sent_bytes DOUBLE (bytes): what the device sends in collectives; NULL without
--   roof_ps DOUBLE (ps): least time of ops that are no collectives, each bound by compute or by memory
--   sending_roof_ps DOUBLE (ps): least time of what collectives send
--   dtype VARCHAR: data type of most of the FLOPs

WITH _ops AS (
    SELECT
        w.capture_id AS capture_id,
        w.device_id AS device_id,
        w.op_program_id AS program_id,
        w.hlo_op_name_id AS hlo_op_name_id,
        w.scope_name AS component_group,
        k.component AS component,
        k.launch_phase AS launch_phase,
        w.memory_level AS memory_level,
        w.dtype AS dtype,
        w.flops AS flops,
        w.bytes AS moved_bytes,
        w.memory_ps AS memory_ps,
        CASE
            WHEN COALESCE(w.compute_ps, 0) = 0 AND w.memory_ps IS NULL THEN NULL
            WHEN COALESCE(w.compute_ps, 0) >= COALESCE(w.memory_ps, 0) THEN w.compute_ps
            ELSE w.memory_ps
        END
            AS least_ps
    FROM v1._op_scopes AS w
    INNER JOIN v1._critical_devices AS c
        ON c.capture_id = w.capture_id
        AND c.device_id = w.device_id
    INNER JOIN v1._step_executables AS x
        ON x.capture_id = w.capture_id
        AND x.program_id = w.op_program_id
        AND x.is_step_program
    INNER JOIN v1._op_components AS k
        ON k.capture_id = w.capture_id
        AND k.device_id = w.device_id
        AND k.program_id = w.op_program_id
        AND k.hlo_op_name_id = w.hlo_op_name_id
    WHERE w.scope = 'component_group'
),
_typed AS (
    SELECT
        o.capture_id AS capture_id,
        o.component_group AS component_group,
        o.dtype AS dtype,
        ROW_NUMBER() OVER (
            PARTITION BY o.capture_id, o.component_group
            ORDER BY -CAST(SUM(o.flops) AS DOUBLE) NULLS FIRST, o.dtype NULLS FIRST
        ) AS dtype_rank
    FROM _ops AS o
    WHERE o.flops > 0
        AND o.dtype IS NOT NULL
    GROUP BY
        o.capture_id,
        o.component_group,
        o.dtype
),
_sums AS (
    SELECT
        o.capture_id AS capture_id,
        o.component_group AS component_group,
        CAST(SUM(o.flops) AS DOUBLE) AS executed_flops,
        CAST(SUM(CASE WHEN o.launch_phase = 'remat' THEN o.flops END) AS DOUBLE) AS replayed_flops,
        CAST(SUM(CASE WHEN o.memory_level = 'HBM' THEN o.moved_bytes END) AS DOUBLE) AS hbm_bytes,
        CAST(SUM(CASE WHEN o.memory_level = 'network' THEN o.moved_bytes END) AS DOUBLE) AS sent_bytes,
        CAST(SUM(CASE WHEN o.memory_level = 'HBM' THEN o.least_ps END) AS DOUBLE) AS roof_ps,
        CAST(SUM(CASE WHEN o.memory_level = 'network' THEN o.memory_ps END) AS DOUBLE) AS sending_roof_ps
    FROM _ops AS o
    GROUP BY
        o.capture_id,
        o.component_group
)
SELECT
    s.capture_id AS capture_id,
    s.component_group AS component_group,
    s.executed_flops AS executed_flops,
    s.replayed_flops AS replayed_flops,
    s.hbm_bytes AS hbm_bytes,
    s.sent_bytes AS sent_bytes,
    s.roof_ps AS roof_ps,
    s.sending_roof_ps AS sending_roof_ps,
    t.dtype AS dtype
FROM _sums AS s
LEFT JOIN _typed AS t
    ON t.capture_id = s.capture_id
    AND t.component_group = s.component_group
    AND t.dtype_rank = 1
