-- name: v1.model_flops
-- version: 1
-- grain: one row per run with a declared model, and component of it; one more for the total
-- summary: Useful FLOPs of one optimizer update over all devices, by component of the declared model.
-- evidence: analytical
-- columns:
--   run_id BIGINT: the run
--   run_name VARCHAR: its name
--   line BIGINT: order of the components; the total is last
--   component VARCHAR: attention_projections, attention_core, mlp, router, experts_selected, shared_experts, lm_head, or
--     as the ledger calls it; total for all of them, which a sum over components must leave out
--   useful_flops DOUBLE (count): of one update over all devices and microsteps
--   flops_per_token DOUBLE (count): useful_flops over the input tokens of the update; NULL where those are unknown
--   share_ratio DOUBLE (ratio): useful_flops over those of all components
--   formula VARCHAR: the formula with the run's numbers; NULL where a ledger states none
--   evidence VARCHAR: analytical: what the model declares, not what the hardware did
--   source VARCHAR: config (the sizes of the model), config ledger (useful_flops_per_update of the configuration), or the
--     path of the ledger
--   stated_flops DOUBLE (count): what useful_flops_per_update of the configuration says of the component, for comparison;
--     NULL where it says nothing
--   config_flops DOUBLE (count): what the sizes of the model give, for comparison with a ledger; NULL where they do not
--     tell
--   assumed VARCHAR: what the configuration does not say and the formulas take for granted; NULL for nothing, and for a
--     ledger
-- algorithm: Forward products and twice those for the backward pass; norms, softmax, sorting, the optimizer, padding,
--   replay and collectives are not in it. Causal attention counts half of the sequence as keys of each token, S / 2: for
--   Mixtral 8x22B, 3 * 56 * 4 * 48 * 128 * (4096 / 2) * 262144 = 2.217e15. A ledger of the user (flops.json,
--   flop_ledger.json or .csv) counts instead of the sizes; the configuration's own only where the sizes do not tell.
--   v1.model_dimensions says what a configuration lacks.

WITH _sized AS (
    SELECT
        t.run_id AS run_id,
        t.line AS line,
        t.component AS component,
        t.useful_flops AS term_flops
    FROM v1._model_terms AS t
    UNION ALL
    SELECT
        t.run_id AS run_id,
        100 AS line,
        'total' AS component,
        CAST(SUM(t.useful_flops) AS DOUBLE) AS term_flops
    FROM v1._model_terms AS t
    GROUP BY t.run_id
),
_stated AS (
    SELECT
        p.run_id AS run_id,
        NULLIF(REGEXP_EXTRACT(p.dimension, '^stated_([a-z_]+)$', 1), '') AS component,
        CASE
            WHEN REGEXP_MATCHES(p.value, '^[0-9]{1,18}([.][0-9]{1,18})?(e[+]?[0-9]{1,2})?$')
                THEN CAST(p.value AS DOUBLE)
        END AS useful_flops
    FROM v1._model_parameters AS p
    WHERE p.dimension LIKE 'stated_%'
),
_own AS (
    SELECT
        l.run_id AS run_id,
        l.component AS component,
        l.useful_flops AS useful_flops,
        l.formula AS formula,
        a.path AS path,
        ROW_NUMBER() OVER (
            PARTITION BY l.run_id, l.component
            ORDER BY l.artifact_id NULLS FIRST
        ) AS choice
    FROM main.model_flop_ledger AS l
    INNER JOIN main.artifacts AS a
        ON a.artifact_id = l.artifact_id
),
_with_own AS (
    SELECT DISTINCT l.run_id AS run_id
    FROM main.model_flop_ledger AS l
),
_with_sizes AS (
    SELECT DISTINCT t.run_id AS run_id
    FROM v1._model_terms AS t
),
_chosen AS (
    SELECT
        o.run_id AS run_id,
        o.component AS component,
        o.useful_flops AS useful_flops,
        o.formula AS formula,
        o.path AS source
    FROM _own AS o
    WHERE o.choice = 1
    UNION ALL
    SELECT
        t.run_id AS run_id,
        t.component AS component,
        t.useful_flops AS useful_flops,
        t.formula AS formula,
        'config' AS source
    FROM v1._model_terms AS t
    LEFT JOIN _with_own AS o
        ON o.run_id = t.run_id
    WHERE o.run_id IS NULL
    UNION ALL
    SELECT
        s.run_id AS run_id,
        s.component AS component,
        s.useful_flops AS useful_flops,
        CAST(NULL AS VARCHAR) AS formula,
        'config ledger' AS source
    FROM _stated AS s
    LEFT JOIN _with_own AS o
        ON o.run_id = s.run_id
    LEFT JOIN _with_sizes AS t
        ON t.run_id = s.run_id
    WHERE o.run_id IS NULL
        AND t.run_id IS NULL
        AND s.useful_flops > 0
),
_totals AS (
    SELECT
        c.run_id AS run_id,
        -- A total alone is all that such a ledger has.
        COALESCE(
            CAST(SUM(CASE WHEN c.component <> 'total' THEN c.useful_flops END) AS DOUBLE),
            MAX(c.useful_flops)
        ) AS update_flops,
        MIN(c.source) AS total_source
    FROM _chosen AS c
    GROUP BY c.run_id
),
_rows AS (
    SELECT
        c.run_id AS run_id,
        c.component AS component,
        c.useful_flops AS useful_flops,
        c.formula AS formula,
        c.source AS source,
        t.update_flops AS update_flops
    FROM _chosen AS c
    INNER JOIN _totals AS t
        ON t.run_id = c.run_id
    WHERE c.component <> 'total'
    UNION ALL
    SELECT
        t.run_id AS run_id,
        'total' AS component,
        t.update_flops AS useful_flops,
        CASE WHEN t.total_source <> 'config' THEN NULL ELSE 'sum of the components' END AS formula,
        t.total_source AS source,
        t.update_flops AS update_flops
    FROM _totals AS t
)
SELECT
    w.run_id AS run_id,
    r.run_name AS run_name,
    ROW_NUMBER() OVER (
        PARTITION BY w.run_id
        ORDER BY
            CASE WHEN w.component = 'total' THEN 1 ELSE 0 END NULLS FIRST,
            COALESCE(z.line, 100) NULLS FIRST,
            w.component NULLS FIRST
    ) AS line,
    w.component AS component,
    w.useful_flops AS useful_flops,
    w.useful_flops / NULLIF(d.tokens_per_update, 0) AS flops_per_token,
    w.useful_flops / NULLIF(w.update_flops, 0) AS share_ratio,
    w.formula AS formula,
    'analytical' AS evidence,
    w.source AS source,
    s.useful_flops AS stated_flops,
    z.term_flops AS config_flops,
    CASE WHEN w.source = 'config' THEN d.assumed END AS assumed
FROM _rows AS w
INNER JOIN main.runs AS r
    ON r.run_id = w.run_id
INNER JOIN v1.model_dimensions AS d
    ON d.run_id = w.run_id
LEFT JOIN _stated AS s
    ON s.run_id = w.run_id
    AND s.component = w.component
LEFT JOIN _sized AS z
    ON z.run_id = w.run_id
    AND z.component = w.component
