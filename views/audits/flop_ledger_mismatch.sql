-- name: flop_ledger_mismatch
-- severity: warning
-- filter: run_name
-- question: Do the ledgers of useful FLOPs agree?
-- meaning: Two statements of the same useful FLOPs differ by more than 0.1 %: what the sizes of the model give, what
--   useful_flops_per_update of the configuration says, and what a ledger beside it says. MFU follows useful_flops.
-- next: Compare the formula of v1.model_flops with the ledger: half of the keys in causal attention, three matrices of a
--   gated MLP, tokens of all devices and microsteps, the factor of three, and the output head are what most often differs.
-- evidence: analytical
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: NULL: the whole run
--   component VARCHAR: component of the model, or total
--   source VARCHAR: where useful_flops come from
--   useful_flops DOUBLE (count): those that count
--   other_source VARCHAR: config or config ledger
--   other_flops DOUBLE (count): what that says
--   other_over_useful_ratio DOUBLE (ratio): other_flops / useful_flops

WITH _compared AS (
    SELECT
        f.run_id AS run_id,
        f.line AS line,
        f.component AS component,
        f.source AS source,
        f.useful_flops AS useful_flops,
        v.other_source AS other_source,
        CASE WHEN v.other_source = 'config' THEN f.config_flops ELSE f.stated_flops END AS other_flops
    FROM v1.model_flops AS f
    CROSS JOIN (
        VALUES ('config'), ('config ledger')
    ) AS v (other_source)
    WHERE v.other_source <> f.source
)
SELECT
    r.run_name AS run_name,
    CAST(NULL AS BIGINT) AS capture_id,
    c.component AS component,
    c.source AS source,
    c.useful_flops AS useful_flops,
    c.other_source AS other_source,
    c.other_flops AS other_flops,
    c.other_flops / NULLIF(c.useful_flops, 0) AS other_over_useful_ratio
FROM _compared AS c
INNER JOIN main.runs AS r
    ON r.run_id = c.run_id
WHERE ABS(c.other_flops - c.useful_flops) > 1e-3 * c.useful_flops
ORDER BY
    r.run_name,
    c.line,
    c.other_source
