-- name: efficiency_over_one
-- severity: warning
-- filter: capture_id
-- question: Does any op compute faster than its device can?
-- meaning: The FLOPs of an op in its time exceed what the peaks of its types allow. FLOPs, time or peak is wrong: an
--   efficiency above 1 is a fault, not a result.
-- next: Compare the op's shapes with flops_per_execution (tracewh hlo), its executions with v1.occurrences, and the
--   peak with the device's data sheet and partition mode (tracewh peaks). A peak for structured sparsity, or of
--   another dtype, is not one for dense work.
-- evidence: derived
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   device_ordinal BIGINT: ordinal of the device on its host
--   program_id BIGINT: the program
--   hlo_op VARCHAR: HLO instruction
--   evidence VARCHAR: where its FLOPs come from
--   unit VARCHAR: matrix or vector
--   dtype VARCHAR: data type of the peak
--   union_ms DOUBLE (ms): time with any of its events
--   tflops_per_s DOUBLE (TFLOP/s): its rate
--   peak_tflops_per_s DOUBLE (TFLOP/s): what its types allow
--   efficiency_ratio DOUBLE (ratio): rate over peak
-- algorithm: A device without a peak has no rows; see peak_unknown.

SELECT
    n.run_name AS run_name,
    r.capture_id AS capture_id,
    r.device_ordinal AS device_ordinal,
    r.program_id AS program_id,
    r.scope_name AS hlo_op,
    r.evidence AS evidence,
    r.unit AS unit,
    r.dtype AS dtype,
    r.union_ms AS union_ms,
    r.achieved_flops_per_s / 1e12 AS tflops_per_s,
    r.peak_flops_per_s / 1e12 AS peak_tflops_per_s,
    r.achieved_flops_per_s / NULLIF(r.peak_flops_per_s, 0) AS efficiency_ratio
FROM v1.roofline AS r
INNER JOIN main.captures AS c
    ON c.capture_id = r.capture_id
INNER JOIN main.runs AS n
    ON n.run_id = c.run_id
WHERE r.scope = 'op'
    AND r.achieved_flops_per_s > r.peak_flops_per_s
ORDER BY
    efficiency_ratio DESC,
    n.run_name,
    r.capture_id,
    r.device_ordinal,
    r.program_id,
    r.scope_name
