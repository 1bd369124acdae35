-- name: model_unknown
-- severity: note
-- filter: run_name
-- question: Are the useful FLOPs of an update known?
-- meaning: The run has step times, and its configuration does not say which model it trains. There is no MFU, and no
--   useful FLOP rate.
-- next: Add what is missing to config.json, or keep a ledger beside it: flops.json with the useful FLOPs of an optimizer
--   update over all devices, {"attention": 1.0e15, "mlp": 2.5e15}.
-- evidence: analytical
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: NULL: the whole run
--   missing VARCHAR: what the configuration lacks, by plain names; other spellings are known too (model_keys)

WITH _timed AS (
    SELECT DISTINCT t.run_id AS run_id
    FROM main.timing_samples AS t
    WHERE t.metric = 'step_time_s'
),
_declared AS (
    SELECT DISTINCT f.run_id AS run_id
    FROM v1.model_flops AS f
)
SELECT
    r.run_name AS run_name,
    CAST(NULL AS BIGINT) AS capture_id,
    d.missing AS missing
FROM _timed AS t
INNER JOIN main.runs AS r
    ON r.run_id = t.run_id
INNER JOIN v1.model_dimensions AS d
    ON d.run_id = t.run_id
LEFT JOIN _declared AS f
    ON f.run_id = t.run_id
WHERE f.run_id IS NULL
ORDER BY r.run_name
