-- name: v1._model_terms
-- version: 1
-- grain: one row per run with a known model, and component of it
-- summary: Useful FLOPs by the formulas of a decoder, with the run's numbers.
-- evidence: analytical
-- columns:
--   run_id BIGINT: the run
--   line INTEGER: order of the components
--   component VARCHAR: attention_projections, attention_core, mlp, router, experts_selected, shared_experts, lm_head
--   useful_flops DOUBLE (count): of one optimizer update over all devices
--   formula VARCHAR: the formula with the run's numbers
-- algorithm: Each product of matrices counts two FLOPs for a multiplication and an addition, and each training step three
--   times the forward pass: once forward, twice backward. A token sees half of its sequence, S / 2 keys, on
--   average, not the (S + 1) / 2 that the mask's triangle has exactly; a window of W keys gives W - W * W / (2 * S). Of
--   Mixtral 8x22B at 4096 tokens both give 2.217 PFLOP, and S / 2 the published 242.212 GFLOP of a token, where
--   (S + 1) / 2 gives 242.214.
--   Of the experts, those that the router selects count, once for each token.

WITH _known AS (
    SELECT
        d.run_id AS run_id,
        3e0 * CAST(d.tokens_per_update AS DOUBLE) AS triple_tokens,
        CAST(d.width AS DOUBLE) AS width,
        CAST(d.layers AS DOUBLE) AS layers,
        CAST(d.heads AS DOUBLE) AS heads,
        CAST(d.kv_heads AS DOUBLE) AS kv_heads,
        d.head_dim AS head_dim,
        CAST(d.mlp_matrices AS DOUBLE) AS mlp_matrices,
        CAST(d.mlp_width AS DOUBLE) AS mlp_width,
        CAST(d.expert_width AS DOUBLE) AS expert_width,
        CAST(d.moe_layers AS DOUBLE) AS moe_layers,
        CAST(d.experts AS DOUBLE) AS experts,
        CAST(d.top_k AS DOUBLE) AS top_k,
        CAST(d.shared_experts AS DOUBLE) AS shared_experts,
        CAST(d.vocabulary AS DOUBLE) AS vocabulary,
        CAST(d.sequence AS DOUBLE) AS sequence,
        CAST(d.window_keys AS DOUBLE) AS window_keys,
        CAST(d.window_layers AS DOUBLE) AS window_layers,
        CASE WHEN d.key_rule = 'causal' THEN 2e0 ELSE 1e0 END AS key_divisor,
        CAST(d.width AS VARCHAR) AS width_text,
        CAST(d.layers AS VARCHAR) AS layers_text,
        CAST(d.layers - d.window_layers AS VARCHAR) AS open_layers_text,
        CAST(d.window_layers AS VARCHAR) AS window_layers_text,
        CAST(d.window_keys AS VARCHAR) AS window_text,
        CAST(d.heads AS VARCHAR) AS heads_text,
        CAST(d.kv_heads AS VARCHAR) AS kv_heads_text,
        COALESCE(
            NULLIF(REGEXP_EXTRACT(CAST(d.head_dim AS VARCHAR), '^([0-9]{1,15})([.]0)?$', 1), ''),
            CAST(d.width AS VARCHAR) || ' / ' || CAST(d.heads AS VARCHAR)
        ) AS head_text,
        CAST(d.mlp_matrices AS VARCHAR) || ' matrices x 2 x ' || CAST(d.width AS VARCHAR) || ' x ' AS matrices_text,
        CAST(d.mlp_width AS VARCHAR) AS mlp_text,
        CAST(d.expert_width AS VARCHAR) AS expert_text,
        CAST(d.layers - d.moe_layers AS VARCHAR) AS dense_layers_text,
        CAST(d.moe_layers AS VARCHAR) AS moe_layers_text,
        CAST(d.experts AS VARCHAR) AS experts_text,
        CAST(d.top_k AS VARCHAR) AS top_k_text,
        CAST(d.shared_experts AS VARCHAR) AS shared_text,
        CAST(d.vocabulary AS VARCHAR) AS vocabulary_text,
        CAST(d.sequence AS VARCHAR) || CASE WHEN d.key_rule = 'causal' THEN ' / 2' ELSE '' END AS keys_text,
        CAST(d.sequence AS VARCHAR) AS sequence_text,
        ' x ' || CAST(d.tokens_per_update AS VARCHAR) || ' tokens' AS tokens_text
    FROM v1.model_dimensions AS d
    WHERE d.missing IS NULL
),
_terms AS (
    SELECT
        k.run_id AS run_id,
        v.line AS line,
        v.component AS component,
        CASE v.line
            WHEN 1 THEN k.triple_tokens * k.layers * 2 * k.width * k.head_dim * (2 * k.heads + 2 * k.kv_heads)
            WHEN 2 THEN k.triple_tokens * 4 * k.heads * k.head_dim * (
                (k.layers - k.window_layers) * k.sequence / NULLIF(k.key_divisor, 0)
                + CASE
                    WHEN k.window_layers > 0 THEN k.window_layers
                        * k.window_keys * (2 * k.sequence - k.window_keys) / NULLIF(2 * k.sequence, 0)
                    ELSE 0
                END
            )
            WHEN 3 THEN k.triple_tokens * (k.layers - k.moe_layers) * k.mlp_matrices * 2 * k.width * k.mlp_width
            WHEN 4 THEN k.triple_tokens * k.moe_layers * 2 * k.width * k.experts
            WHEN 5 THEN k.triple_tokens * k.moe_layers * k.top_k * k.mlp_matrices * 2 * k.width * k.expert_width
            WHEN 6 THEN k.triple_tokens * k.moe_layers * k.shared_experts * k.mlp_matrices * 2 * k.width
                * k.expert_width
            ELSE k.triple_tokens * 2 * k.width * k.vocabulary
        END AS useful_flops,
        CASE v.line
            WHEN 1 THEN k.layers_text || ' layers x 2 x ' || k.width_text || ' x ' || k.head_text || ' x (2 x '
                || k.heads_text || ' + 2 x ' || k.kv_heads_text || ')'
            WHEN 2 THEN '4 x ' || k.heads_text || ' x ' || k.head_text || ' x '
                || CASE
                    WHEN k.window_layers = 0 THEN k.layers_text || ' layers x ' || k.keys_text || ' keys'
                    ELSE '(' || k.open_layers_text || ' layers x ' || k.keys_text || ' keys + '
                        || k.window_layers_text || ' layers x (' || k.window_text || ' - ' || k.window_text || ' x '
                        || k.window_text || ' / (2 x ' || k.sequence_text || ')) keys)'
                END
            WHEN 3 THEN k.dense_layers_text || ' layers x ' || k.matrices_text || k.mlp_text
            WHEN 4 THEN k.moe_layers_text || ' layers x 2 x ' || k.width_text || ' x ' || k.experts_text || ' experts'
            WHEN 5 THEN k.moe_layers_text || ' layers x ' || k.top_k_text || ' experts x ' || k.matrices_text
                || k.expert_text
            WHEN 6 THEN k.moe_layers_text || ' layers x ' || k.shared_text || ' experts x ' || k.matrices_text
                || k.expert_text
            ELSE '2 x ' || k.width_text || ' x ' || k.vocabulary_text
        END || k.tokens_text AS forward_formula
    FROM _known AS k
    CROSS JOIN (
        VALUES
            (1, 'attention_projections'),
            (2, 'attention_core'),
            (3, 'mlp'),
            (4, 'router'),
            (5, 'experts_selected'),
            (6, 'shared_experts'),
            (7, 'lm_head')
    ) AS v (line, component)
)
SELECT
    t.run_id AS run_id,
    t.line AS line,
    t.component AS component,
    t.useful_flops AS useful_flops,
    '3 x ' || t.forward_formula AS formula
FROM _terms AS t
WHERE t.useful_flops > 0
