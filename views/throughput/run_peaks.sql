-- name: v1._run_peaks
-- version: 1
-- grain: one row per run, dtype that its configuration declares, and kind of peak
-- summary: The dense matrix peak of a device in the declared dtype: what MFU and HFU divide by.
-- evidence: measured, analytical
-- columns:
--   run_id BIGINT: the run
--   dtype VARCHAR: bf16, fp8, ...
--   peak_kind VARCHAR: spec, achievable or measured
--   device_flops_per_s DOUBLE (1/s): of one device; the mean where devices of the run differ

WITH _devices AS (
    SELECT
        c.run_id AS run_id,
        p.device_id AS device_id,
        p.dtype AS dtype,
        p.peak_kind AS peak_kind,
        MAX(p.value) AS peak
    FROM v1.device_peaks AS p
    INNER JOIN main.captures AS c
        ON c.capture_id = p.capture_id
    INNER JOIN v1.model_dimensions AS d
        ON d.run_id = c.run_id
    WHERE p.quantity = 'matrix_flops_per_s'
        AND (p.dtype = d.dtype OR p.dtype = d.quantized_dtype)
    GROUP BY
        c.run_id,
        p.device_id,
        p.dtype,
        p.peak_kind
)
SELECT
    d.run_id AS run_id,
    d.dtype AS dtype,
    d.peak_kind AS peak_kind,
    CAST(SUM(d.peak) AS DOUBLE) / NULLIF(COUNT(*), 0) AS device_flops_per_s
FROM _devices AS d
GROUP BY
    d.run_id,
    d.dtype,
    d.peak_kind
