-- name: rate_implausible
-- severity: warning
-- filter: run_name
-- question: Can the rates of the run be true?
-- meaning: The run computes faster than its devices can, or its ops compute less than the model that it declares. Useful
--   FLOPs, step time, number of devices or peak is wrong.
-- next: Compare v1.model_flops with the model (a ledger is in FLOPs of an update over all devices, not in TFLOP or of one
--   device), v1.model_dimensions with the configuration, and tracewh peaks --run RUN with the data sheet.
-- evidence: derived
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: NULL: the whole run
--   metric VARCHAR: mfu, hfu, or executed_over_useful
--   value DOUBLE (ratio): what it is
--   lowest DOUBLE (ratio): least that it can be
--   highest DOUBLE (ratio): most that it can be
--   denominator VARCHAR: what it is over
-- algorithm: Rates over a specified or published peak are at most 1, and a training step executes at least what its
--   model declares: of that, two per cent are left for what the compiler leaves out.

SELECT
    t.run_name AS run_name,
    CAST(NULL AS BIGINT) AS capture_id,
    t.metric AS metric,
    t.value AS value,
    CASE t.metric WHEN 'executed_over_useful' THEN 98e-2 ELSE 0e0 END AS lowest,
    CASE t.metric WHEN 'executed_over_useful' THEN 100e0 ELSE 1e0 END AS highest,
    t.denominator AS denominator
FROM v1.throughput AS t
WHERE t.metric IN ('mfu', 'hfu') AND t.value > 1
    OR t.metric = 'executed_over_useful' AND (t.value < 98e-2 OR t.value > 100)
ORDER BY
    t.run_name,
    t.metric,
    t.value
