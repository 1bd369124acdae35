-- name: v1._flop_peaks
-- version: 1
-- grain: one row per capture, device and kind of FLOPs in main.hlo_flops for which a peak is known
-- summary: The ceiling that holds for FLOPs of a unit and an element type on a device, by specification.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   unit VARCHAR: matrix or vector
--   element_type VARCHAR: of the operands, in XLA's words
--   matmul_precision VARCHAR: what the program asks of products; NULL for vector units
--   dtype VARCHAR: data type of the peak
--   flops_per_s DOUBLE (1/s): the peak
-- algorithm: Products of f32 that ask for no more run in TF32 on NVIDIA, in XF32 on AMD where it has that, and on a
--   TPU as passes of bf16, of which one is counted. What a device has no matrix units for runs on its vector units,
--   and narrow types that it does not compute in run as fp32. Integers other than of 8 bits have no peak.

WITH _kinds AS (
    SELECT DISTINCT
        f.unit AS unit,
        f.element_type AS element_type,
        f.matmul_precision AS matmul_precision
    FROM main.hlo_flops AS f
),
_types AS (
    SELECT
        k.unit AS unit,
        k.element_type AS element_type,
        k.matmul_precision AS matmul_precision,
        CASE
            WHEN k.element_type IN ('f64', 'c128') THEN 'fp64'
            WHEN k.element_type = 'tf32' THEN 'tf32'
            WHEN k.element_type IN ('f32', 'c64') AND k.matmul_precision IN ('default', 'high') THEN 'tf32'
            WHEN k.element_type IN ('f32', 'c64') THEN 'fp32'
            WHEN k.element_type = 'bf16' THEN 'bf16'
            WHEN k.element_type = 'f16' THEN 'fp16'
            WHEN k.element_type LIKE 'f8%' THEN 'fp8'
            WHEN k.element_type LIKE 'f6%' THEN 'fp6'
            WHEN k.element_type LIKE 'f4%' THEN 'fp4'
            WHEN k.unit = 'matrix' AND k.element_type IN ('s8', 'u8') THEN 'int8'
        END AS dtype
    FROM _kinds AS k
),
_choices AS (
    SELECT
        v.dtype AS dtype,
        v.unit AS unit,
        v.place AS place,
        v.peak_quantity AS peak_quantity,
        v.peak_dtype AS peak_dtype
    FROM (
        VALUES
            ('fp64', 'matrix', 1, 'matrix_flops_per_s', 'fp64'), ('fp64', 'matrix', 2, 'vector_flops_per_s', 'fp64'),
            ('fp64', 'vector', 1, 'vector_flops_per_s', 'fp64'),
            ('tf32', 'matrix', 1, 'matrix_flops_per_s', 'tf32'), ('tf32', 'matrix', 2, 'matrix_flops_per_s', 'xf32'),
            ('tf32', 'matrix', 3, 'matrix_flops_per_s', 'fp32'), ('tf32', 'matrix', 4, 'matrix_flops_per_s', 'bf16'),
            ('fp32', 'matrix', 1, 'matrix_flops_per_s', 'fp32'), ('fp32', 'matrix', 2, 'vector_flops_per_s', 'fp32'),
            ('fp32', 'matrix', 3, 'matrix_flops_per_s', 'bf16'),
            ('fp32', 'vector', 1, 'vector_flops_per_s', 'fp32'),
            ('bf16', 'matrix', 1, 'matrix_flops_per_s', 'bf16'), ('bf16', 'vector', 1, 'vector_flops_per_s', 'bf16'),
            ('bf16', 'vector', 2, 'vector_flops_per_s', 'fp32'),
            ('fp16', 'matrix', 1, 'matrix_flops_per_s', 'fp16'), ('fp16', 'vector', 1, 'vector_flops_per_s', 'fp16'),
            ('fp16', 'vector', 2, 'vector_flops_per_s', 'fp32'),
            ('fp8', 'matrix', 1, 'matrix_flops_per_s', 'fp8'), ('fp8', 'matrix', 2, 'matrix_flops_per_s', 'bf16'),
            ('fp8', 'vector', 1, 'vector_flops_per_s', 'fp32'),
            ('fp6', 'matrix', 1, 'matrix_flops_per_s', 'fp6'), ('fp6', 'matrix', 2, 'matrix_flops_per_s', 'fp8'),
            ('fp4', 'matrix', 1, 'matrix_flops_per_s', 'fp4'), ('fp4', 'matrix', 2, 'matrix_flops_per_s', 'fp8'),
            ('int8', 'matrix', 1, 'matrix_flops_per_s', 'int8')
    ) AS v (dtype, unit, place, peak_quantity, peak_dtype)
),
_known AS (
    SELECT
        p.capture_id AS capture_id,
        p.device_id AS device_id,
        t.unit AS unit,
        t.element_type AS element_type,
        t.matmul_precision AS matmul_precision,
        p.dtype AS dtype,
        p.value AS flops_per_s,
        ROW_NUMBER() OVER (
            PARTITION BY p.capture_id, p.device_id, t.unit, t.element_type, t.matmul_precision
            ORDER BY c.place NULLS FIRST
        ) AS choice
    FROM _types AS t
    INNER JOIN _choices AS c
        ON c.dtype = t.dtype
        AND c.unit = t.unit
    INNER JOIN v1.device_peaks AS p
        ON p.quantity = c.peak_quantity
        AND p.dtype = c.peak_dtype
    WHERE p.peak_kind = 'spec'
)
SELECT
    k.capture_id AS capture_id,
    k.device_id AS device_id,
    k.unit AS unit,
    k.element_type AS element_type,
    k.matmul_precision AS matmul_precision,
    k.dtype AS dtype,
    k.flops_per_s AS flops_per_s
FROM _known AS k
WHERE k.choice = 1
