-- name: v1._work_settings
-- version: 1
-- grain: one row per run and setting that defines the useful work of its steps, or how many devices share it
-- summary: What a step of the run has to compute: sizes of the model, tokens, types of its products, useful FLOPs.
-- evidence: analytical
-- columns:
--   run_id BIGINT: the run
--   setting_kind VARCHAR: work, or device of device_count
--   setting VARCHAR: column of v1.model_dimensions, dimension of v1._model_parameters, or useful_flops_per_update
--   value VARCHAR: its value
--   effect VARCHAR: as in v1._run_settings
--   reason VARCHAR: likewise
--   known_by VARCHAR: likewise
-- algorithm: What v1.model_dimensions takes for granted is known where the configuration tells the layers. A model without
--   experts has 0 of them. useful_flops_per_update is the total of a ledger of the user.

WITH _sizes AS (
    SELECT
        d.run_id AS run_id,
        s.setting AS setting,
        CASE s.setting
            WHEN 'width' THEN CAST(d.width AS VARCHAR)
            WHEN 'layers' THEN CAST(d.layers AS VARCHAR)
            WHEN 'heads' THEN CAST(d.heads AS VARCHAR)
            WHEN 'kv_heads' THEN CAST(d.kv_heads AS VARCHAR)
            WHEN 'head_dim' THEN COALESCE(
                NULLIF(REGEXP_EXTRACT(CAST(d.head_dim AS VARCHAR), '^([0-9]+)[.]0$', 1), ''),
                CAST(d.head_dim AS VARCHAR)
            )
            WHEN 'mlp_width' THEN CAST(d.mlp_width AS VARCHAR)
            WHEN 'mlp_matrices' THEN CASE WHEN d.layers IS NOT NULL THEN CAST(d.mlp_matrices AS VARCHAR) END
            WHEN 'experts' THEN CASE WHEN d.layers IS NOT NULL THEN CAST(COALESCE(d.experts, 0) AS VARCHAR) END
            WHEN 'top_k' THEN CAST(d.top_k AS VARCHAR)
            WHEN 'shared_experts' THEN CAST(d.shared_experts AS VARCHAR)
            WHEN 'expert_width' THEN CAST(d.expert_width AS VARCHAR)
            WHEN 'moe_layers' THEN CASE WHEN d.layers IS NOT NULL THEN CAST(d.moe_layers AS VARCHAR) END
            WHEN 'vocabulary' THEN CAST(d.vocabulary AS VARCHAR)
            WHEN 'sequence' THEN CAST(d.sequence AS VARCHAR)
            WHEN 'key_rule' THEN CASE WHEN d.layers IS NOT NULL THEN d.key_rule END
            WHEN 'window_keys' THEN CASE WHEN d.window_layers > 0 THEN CAST(d.window_keys AS VARCHAR) END
            WHEN 'window_layers' THEN CASE WHEN d.layers IS NOT NULL THEN CAST(d.window_layers AS VARCHAR) END
            WHEN 'global_batch' THEN CAST(d.global_batch AS VARCHAR)
            WHEN 'tokens_per_update' THEN CAST(d.tokens_per_update AS VARCHAR)
            WHEN 'nonpadding_tokens' THEN CAST(d.nonpadding_tokens AS VARCHAR)
            WHEN 'device_count' THEN CAST(d.devices AS VARCHAR)
        END AS value
    FROM v1.model_dimensions AS d
    CROSS JOIN (
        VALUES
            ('width'),
            ('layers'),
            ('heads'),
            ('kv_heads'),
            ('head_dim'),
            ('mlp_width'),
            ('mlp_matrices'),
            ('experts'),
            ('top_k'),
            ('shared_experts'),
            ('expert_width'),
            ('moe_layers'),
            ('vocabulary'),
            ('sequence'),
            ('key_rule'),
            ('window_keys'),
            ('window_layers'),
            ('global_batch'),
            ('tokens_per_update'),
            ('nonpadding_tokens'),
            ('device_count')
    ) AS s (setting)
)
SELECT
    z.run_id AS run_id,
    CASE WHEN z.setting = 'device_count' THEN 'device' ELSE 'work' END AS setting_kind,
    z.setting AS setting,
    z.value AS value,
    CASE WHEN z.setting = 'device_count' THEN 'candidate_cause' ELSE 'not_comparable' END AS effect,
    CASE
        WHEN z.setting = 'device_count' THEN 'another number of devices: each has another share of the work'
        ELSE 'another amount of useful work'
    END AS reason,
    CAST(NULL AS VARCHAR) AS known_by
FROM _sizes AS z
WHERE z.value IS NOT NULL
UNION ALL
SELECT
    p.run_id AS run_id,
    'work' AS setting_kind,
    p.dimension AS setting,
    COALESCE(w.meaning, p.value) AS value,
    'not_comparable' AS effect,
    CASE
        WHEN p.dimension IN ('dtype', 'quantization') THEN 'products of another type'
        ELSE 'another model'
    END AS reason,
    CASE WHEN p.dimension = 'quantization' THEN 'config' END AS known_by
FROM v1._model_parameters AS p
LEFT JOIN main.model_words AS w
    ON w.dimension = 'dtype'
    AND w.word = p.value
    AND p.dimension IN ('dtype', 'quantization')
WHERE p.dimension IN ('dtype', 'quantization', 'decoder_block', 'attention_type', 'predicting_layers')
UNION ALL
SELECT
    l.run_id AS run_id,
    'work' AS setting_kind,
    'useful_flops_per_update' AS setting,
    CAST(COALESCE(
        MAX(CASE WHEN l.component = 'total' THEN l.useful_flops END),
        CAST(SUM(l.useful_flops) AS DOUBLE)
    ) AS VARCHAR) AS value,
    'not_comparable' AS effect,
    'another amount of useful work' AS reason,
    CAST(NULL AS VARCHAR) AS known_by
FROM main.model_flop_ledger AS l
GROUP BY l.run_id
