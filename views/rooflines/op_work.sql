-- name: v1._op_work
-- version: 1
-- grain: one row per capture, device, program and HLO op with device events and a known cost
-- summary: What all executions of an op compute and move, and the least time that the device's peaks allow for it.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   program_id BIGINT: the program
--   hlo_op_name_id BIGINT: names.name_id of the HLO op
--   evidence VARCHAR: compiler for XLA's own rules, analytical for the formula of a library call
--   memory_level VARCHAR: network for collectives, else HBM
--   unit VARCHAR: unit of most of the FLOPs: matrix or vector; NULL without FLOPs, and for collectives
--   dtype VARCHAR: data type of the peak of most of the FLOPs; NULL where none is known
--   flops DOUBLE (count): floating-point operations; those of a collective do not count; NULL where unknown
--   bytes DOUBLE (bytes): through memory, by XLA's rules, or what a collective sends; NULL where unknown
--   compute_ps DOUBLE (ps): least time of the FLOPs, each kind at its own peak, of matrix and vector units the
--     longer; NULL where the peak of most of them is unknown
--   memory_ps DOUBLE (ps): least time of the bytes at the specified bandwidth; NULL where either is unknown
--   peak_bytes_per_s DOUBLE (bytes/s): that bandwidth
-- algorithm: Starts and ends of asynchronous ops of TPUs are left out: their work is under way between the two.

WITH _runs AS (
    SELECT
        r.capture_id AS capture_id,
        r.device_id AS device_id,
        r.program_id AS program_id,
        r.hlo_op_name_id AS hlo_op_name_id,
        r.module_id AS module_id,
        c.costed_instruction_id AS costed_instruction_id,
        CAST(r.executions AS DOUBLE) AS executions,
        c.cost_evidence AS cost_evidence,
        CAST(c.flops AS DOUBLE) AS flops_per_execution,
        CAST(c.bytes_accessed AS DOUBLE) AS bytes_per_execution,
        b.bus_bytes AS bus_bytes,
        b.instruction_id IS NOT NULL AS is_collective
    FROM v1._op_runs AS r
    INNER JOIN main.captures AS p
        ON p.capture_id = r.capture_id
    INNER JOIN v1._op_costs AS c
        ON c.module_id = r.module_id
        AND c.instruction_id = r.instruction_id
    LEFT JOIN v1._collective_bytes AS b
        ON b.module_id = r.module_id
        AND b.instruction_id = r.instruction_id
    WHERE c.cost_evidence IS NOT NULL
        AND (p.platform IS NULL OR p.platform <> 'tpu' OR NOT REGEXP_MATCHES(r.opcode, '^.*-(start|done)$'))
),
_kinds AS (
    SELECT
        r.capture_id AS capture_id,
        r.device_id AS device_id,
        r.program_id AS program_id,
        r.hlo_op_name_id AS hlo_op_name_id,
        f.unit AS unit,
        p.dtype AS dtype,
        r.executions * CAST(f.flops AS DOUBLE) / NULLIF(p.flops_per_s, 0) * 1e12 AS kind_ps,
        ROW_NUMBER() OVER (
            PARTITION BY r.capture_id, r.device_id, r.program_id, r.hlo_op_name_id
            ORDER BY -f.flops NULLS FIRST, f.unit NULLS FIRST, f.element_type NULLS FIRST,
                f.matmul_precision NULLS FIRST
        ) AS kind_rank
    FROM _runs AS r
    INNER JOIN main.hlo_flops AS f
        ON f.module_id = r.module_id
        AND f.instruction_id = r.costed_instruction_id
    LEFT JOIN v1._flop_peaks AS p
        ON p.capture_id = r.capture_id
        AND p.device_id = r.device_id
        AND p.unit = f.unit
        AND p.element_type = f.element_type
        AND COALESCE(p.matmul_precision, '') = COALESCE(f.matmul_precision, '')
    WHERE NOT r.is_collective
),
_computed AS (
    SELECT
        k.capture_id AS capture_id,
        k.device_id AS device_id,
        k.program_id AS program_id,
        k.hlo_op_name_id AS hlo_op_name_id,
        MIN(CASE WHEN k.kind_rank = 1 THEN k.unit END) AS main_unit,
        MIN(CASE WHEN k.kind_rank = 1 THEN k.dtype END) AS main_dtype,
        MIN(CASE WHEN k.kind_rank = 1 THEN k.kind_ps END) AS main_ps,
        COALESCE(CAST(SUM(CASE WHEN k.unit = 'matrix' THEN k.kind_ps END) AS DOUBLE), 0) AS matrix_ps,
        COALESCE(CAST(SUM(CASE WHEN k.unit = 'vector' THEN k.kind_ps END) AS DOUBLE), 0) AS vector_ps
    FROM _kinds AS k
    GROUP BY
        k.capture_id,
        k.device_id,
        k.program_id,
        k.hlo_op_name_id
),
_bandwidths AS (
    SELECT
        p.capture_id AS capture_id,
        p.device_id AS device_id,
        p.memory_level AS memory_level,
        p.value AS bytes_per_s
    FROM v1.device_peaks AS p
    WHERE p.quantity = 'bytes_per_s'
        AND p.peak_kind = 'spec'
),
_levels AS (
    SELECT
        r.capture_id AS capture_id,
        r.device_id AS device_id,
        r.program_id AS program_id,
        r.hlo_op_name_id AS hlo_op_name_id,
        r.cost_evidence AS cost_evidence,
        CASE WHEN r.is_collective THEN 'network' ELSE 'HBM' END AS memory_level,
        CASE WHEN NOT r.is_collective THEN r.executions * r.flops_per_execution END AS flops,
        r.executions * CASE WHEN r.is_collective THEN r.bus_bytes ELSE r.bytes_per_execution END AS moved_bytes
    FROM _runs AS r
)
SELECT
    l.capture_id AS capture_id,
    l.device_id AS device_id,
    l.program_id AS program_id,
    l.hlo_op_name_id AS hlo_op_name_id,
    l.cost_evidence AS evidence,
    l.memory_level AS memory_level,
    c.main_unit AS unit,
    c.main_dtype AS dtype,
    l.flops AS flops,
    l.moved_bytes AS bytes,
    CASE WHEN l.flops = 0 THEN 0 WHEN c.main_ps IS NOT NULL THEN GREATEST(c.matrix_ps, c.vector_ps) END
        AS compute_ps,
    l.moved_bytes / NULLIF(b.bytes_per_s, 0) * 1e12 AS memory_ps,
    b.bytes_per_s AS peak_bytes_per_s
FROM _levels AS l
LEFT JOIN _computed AS c
    ON c.capture_id = l.capture_id
    AND c.device_id = l.device_id
    AND c.program_id = l.program_id
    AND c.hlo_op_name_id = l.hlo_op_name_id
LEFT JOIN _bandwidths AS b
    ON b.capture_id = l.capture_id
    AND b.device_id = l.device_id
    AND b.memory_level = l.memory_level
