-- name: efficiency_over_one
-- severity: warning
-- filter: capture_id
-- question: Does any op compute faster than its device can?
-- meaning: The FLOPs of an op in its time exceed the peak of the device. FLOPs, time or peak is wrong: an efficiency
--   above 1 is a fault, not a result.
-- next: Compare the op's shapes with flops_per_execution (tracewh hlo), its executions with v1.occurrences, and the
--   peak with the device's data sheet and partition mode. A peak for structured sparsity, or of another dtype, is not
--   one for dense work.
-- evidence: derived
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   device_ordinal BIGINT: ordinal of the device on its host
--   hlo_op VARCHAR: HLO instruction
--   opcode VARCHAR: HLO opcode
--   executions BIGINT (count): how often it ran
--   union_ms DOUBLE (ms): time with any of its events
--   tflops_per_s DOUBLE (TFLOP/s): its rate
--   peak_tflops_per_s DOUBLE (TFLOP/s): the highest peak of the device that its program could use
--   efficiency_ratio DOUBLE (ratio): rate over peak
--   cost_rule VARCHAR: what the FLOPs come from
--   peak_source VARCHAR: what the peak comes from
-- algorithm: A peak of a narrow type counts only for programs that have values of that type. Specified peaks count
--   before others, since a measured one is not a limit. A device without a peak has no rows; see peak_unknown.

WITH _types AS (
    SELECT DISTINCT
        p.capture_id AS capture_id,
        p.program_id AS program_id,
        i.element_type AS element_type
    FROM main.hlo_programs AS p
    INNER JOIN main.hlo_instructions AS i
        ON i.module_id = p.module_id
    WHERE i.element_type IS NOT NULL
),
_dtypes AS (
    SELECT
        v.dtype_pattern AS dtype_pattern,
        v.element_pattern AS element_pattern
    FROM (
        VALUES
            ('fp64', 'f64'),
            ('fp32', 'f32'),
            ('xf32', 'f32'),
            ('tf32', 'f32'),
            ('fp16', 'f16'),
            ('bf16', 'bf16'),
            ('%fp8%', 'f8%'),
            ('%fp6%', 'f6%'),
            ('%fp4%', 'f4%')
    ) AS v (dtype_pattern, element_pattern)
),
_peaks AS (
    SELECT
        p.capture_id AS capture_id,
        p.device_pattern AS device_pattern,
        p.dtype AS dtype,
        p.value AS peak,
        p.peak_kind || ': ' || p.source AS peak_source,
        CASE p.peak_kind WHEN 'spec' THEN 1 ELSE 2 END AS peak_order
    FROM main.device_peaks AS p
    WHERE p.quantity LIKE '%flops_per_s'
),
_programs AS (
    SELECT
        t.capture_id AS capture_id,
        t.program_id AS program_id,
        d.dtype_pattern AS dtype_pattern
    FROM _types AS t
    INNER JOIN _dtypes AS d
        ON t.element_type LIKE d.element_pattern
    GROUP BY
        t.capture_id,
        t.program_id,
        d.dtype_pattern
),
_program_peaks AS (
    SELECT
        g.capture_id AS capture_id,
        g.program_id AS program_id,
        p.device_pattern AS device_pattern,
        p.peak AS peak,
        p.peak_source AS peak_source,
        p.peak_order AS peak_order
    FROM _programs AS g
    INNER JOIN _peaks AS p
        ON p.dtype LIKE g.dtype_pattern
        AND COALESCE(p.capture_id, g.capture_id) = g.capture_id
),
_device_peaks AS (
    SELECT
        p.capture_id AS capture_id,
        p.program_id AS program_id,
        d.device_id AS device_id,
        p.peak AS peak,
        p.peak_source AS peak_source,
        ROW_NUMBER() OVER (
            PARTITION BY p.capture_id, p.program_id, d.device_id
            ORDER BY p.peak_order NULLS FIRST, p.peak DESC NULLS FIRST, p.peak_source NULLS FIRST
        ) AS peak_rank
    FROM _program_peaks AS p
    INNER JOIN main.devices AS d
        ON d.device_kind LIKE p.device_pattern
)
SELECT
    r.run_name AS run_name,
    o.capture_id AS capture_id,
    o.device_ordinal AS device_ordinal,
    o.hlo_op AS hlo_op,
    o.opcode AS opcode,
    o.executions AS executions,
    o.union_ms AS union_ms,
    o.flops_per_s / 1e12 AS tflops_per_s,
    p.peak / 1e12 AS peak_tflops_per_s,
    o.flops_per_s / NULLIF(p.peak, 0) AS efficiency_ratio,
    o.cost_rule AS cost_rule,
    p.peak_source AS peak_source
FROM v1.op_stats AS o
INNER JOIN _device_peaks AS p
    ON p.capture_id = o.capture_id
    AND p.program_id = o.program_id
    AND p.device_id = o.device_id
    AND p.peak_rank = 1
INNER JOIN main.captures AS c
    ON c.capture_id = o.capture_id
INNER JOIN main.runs AS r
    ON r.run_id = c.run_id
WHERE o.flops_per_s > p.peak
ORDER BY
    efficiency_ratio DESC,
    r.run_name,
    o.capture_id,
    o.device_ordinal,
    o.hlo_op
