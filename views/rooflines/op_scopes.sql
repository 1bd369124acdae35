-- name: v1._op_scopes
-- version: 1
-- grain: one row per capture, device, program, HLO op with a known cost, and scope that it is in
-- summary: The work of each op, once for itself and once for its component, group, phase and program.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   op_program_id BIGINT: program of the op
--   hlo_op_name_id BIGINT: names.name_id of the HLO op
--   scope VARCHAR: op, component, component_group, phase or program
--   scope_name VARCHAR: which of them
--   program_id BIGINT: the program, of ops and programs; else NULL
--   work_class VARCHAR: what shares a ceiling: unit and data type, or network, or neither: memory
--   evidence VARCHAR: compiler or analytical
--   memory_level VARCHAR: HBM or network
--   unit VARCHAR: matrix or vector; NULL without FLOPs
--   dtype VARCHAR: data type of the peak; NULL where none is known
--   flops DOUBLE (count): of all executions
--   bytes DOUBLE (bytes): of all executions; in a scope that is no op, no more than the memory can move in the
--     time of the op
--   is_clipped BOOLEAN: its bytes are more than that
--   compute_ps DOUBLE (ps): least time of the FLOPs
--   memory_ps DOUBLE (ps): least time of the bytes
--   peak_bytes_per_s DOUBLE (bytes/s): bandwidth of the memory level

WITH _work AS (
    SELECT
        w.capture_id AS capture_id,
        w.device_id AS device_id,
        w.program_id AS program_id,
        w.hlo_op_name_id AS hlo_op_name_id,
        h.name AS hlo_op,
        CASE WHEN w.memory_level = 'network' THEN 'communication' ELSE c.launch_phase END AS phase,
        c.component AS component,
        c.component_group AS component_group,
        COALESCE(w.unit || ' ' || COALESCE(w.dtype, 'unknown'), CASE w.memory_level
            WHEN 'network' THEN 'network' ELSE 'memory'
        END) AS work_class,
        w.evidence AS evidence,
        w.memory_level AS memory_level,
        w.unit AS unit,
        w.dtype AS dtype,
        w.flops AS flops,
        w.bytes AS moved_bytes,
        w.compute_ps AS compute_ps,
        w.memory_ps AS memory_ps,
        w.peak_bytes_per_s AS peak_bytes_per_s,
        CAST(r.sum_ps AS DOUBLE) AS sum_ps
    FROM v1._op_work AS w
    INNER JOIN v1._op_runs AS r
        ON r.capture_id = w.capture_id
        AND r.device_id = w.device_id
        AND r.program_id = w.program_id
        AND r.hlo_op_name_id = w.hlo_op_name_id
    INNER JOIN v1._op_components AS c
        ON c.capture_id = w.capture_id
        AND c.device_id = w.device_id
        AND c.program_id = w.program_id
        AND c.hlo_op_name_id = w.hlo_op_name_id
    INNER JOIN main.names AS h
        ON h.name_id = w.hlo_op_name_id
),
_scopes AS (
    SELECT v.scope AS scope
    FROM (VALUES ('op'), ('component'), ('component_group'), ('phase'), ('program')) AS v (scope)
)
SELECT
    w.capture_id AS capture_id,
    w.device_id AS device_id,
    w.program_id AS op_program_id,
    w.hlo_op_name_id AS hlo_op_name_id,
    s.scope AS scope,
    CASE s.scope
        WHEN 'op' THEN w.hlo_op
        WHEN 'component' THEN w.component
        WHEN 'component_group' THEN w.component_group
        WHEN 'phase' THEN w.phase
        ELSE COALESCE(m.module_name, 'program')
    END AS scope_name,
    CASE WHEN s.scope IN ('op', 'program') THEN w.program_id END AS program_id,
    w.work_class AS work_class,
    w.evidence AS evidence,
    w.memory_level AS memory_level,
    w.unit AS unit,
    w.dtype AS dtype,
    w.flops AS flops,
    CASE
        WHEN s.scope <> 'op' AND w.memory_ps > w.sum_ps THEN w.moved_bytes * w.sum_ps / NULLIF(w.memory_ps, 0)
        ELSE w.moved_bytes
    END AS bytes,
    COALESCE(w.memory_ps > w.sum_ps, FALSE) AS is_clipped,
    w.compute_ps AS compute_ps,
    CASE WHEN s.scope <> 'op' AND w.memory_ps > w.sum_ps THEN w.sum_ps ELSE w.memory_ps END AS memory_ps,
    w.peak_bytes_per_s AS peak_bytes_per_s
FROM _work AS w
CROSS JOIN _scopes AS s
LEFT JOIN main.hlo_programs AS p
    ON p.capture_id = w.capture_id
    AND p.program_id = w.program_id
LEFT JOIN main.hlo_modules AS m
    ON m.module_id = p.module_id
