-- name: v1._run_settings
-- version: 1
-- grain: one row per run, setting and value of it
-- summary: What a run was made with and on, under one name for each setting, without what it was called or measured.
-- evidence: measured or analytical
-- columns:
--   run_id BIGINT: the run
--   setting_kind VARCHAR: config, environment, device, versions, or work: what defines the useful work of a step
--   setting VARCHAR: name of the setting
--   list_setting VARCHAR: of an element at its place in a list, the list's; NULL for all else
--   value VARCHAR: as its source has it; null for what the configuration leaves empty
--   value_key VARCHAR: equal for equal values: numbers as numbers, truth values in one spelling
--   effect VARCHAR: of a difference: not_comparable, candidate_cause or information
--   reason VARCHAR: why
--   known_by VARCHAR: source in v1._setting_sources without which it is unknown what a run without the setting has; NULL
--     where that is unknown in any case
-- algorithm: v1._setting_names says what a source's names mean. Sizes of the model are those of v1.model_dimensions, and
--   parameters that they are made of are left out. A list of words has one row per word, whatever their order, and, with
--   list_setting, one more for each place. A device is of the product that its captures tell, else of the kind.

WITH _sizes AS (
    SELECT
        d.run_id AS run_id,
        s.setting AS setting,
        CASE s.setting
            WHEN 'width' THEN CAST(d.width AS VARCHAR)
            WHEN 'layers' THEN CAST(d.layers AS VARCHAR)
            WHEN 'heads' THEN CAST(d.heads AS VARCHAR)
            WHEN 'kv_heads' THEN CAST(d.kv_heads AS VARCHAR)
            WHEN 'head_dim' THEN CAST(d.head_dim AS VARCHAR)
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
),
_products AS (
    SELECT
        p.device_id AS device_id,
        MAX(p.product) AS product
    FROM v1._device_products AS p
    WHERE p.product_count = 1
    GROUP BY p.device_id
),
_stated AS (
    SELECT
        z.run_id AS run_id,
        CASE WHEN z.setting = 'device_count' THEN 'device' ELSE 'work' END AS setting_kind,
        z.setting AS setting,
        CAST(NULL AS VARCHAR) AS list_setting,
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
        CAST(NULL AS VARCHAR) AS list_setting,
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
        CAST(NULL AS VARCHAR) AS list_setting,
        CAST(COALESCE(
            MAX(CASE WHEN l.component = 'total' THEN l.useful_flops END),
            CAST(SUM(l.useful_flops) AS DOUBLE)
        ) AS VARCHAR) AS value,
        'not_comparable' AS effect,
        'another amount of useful work' AS reason,
        CAST(NULL AS VARCHAR) AS known_by
    FROM main.model_flop_ledger AS l
    GROUP BY l.run_id
    UNION ALL
    SELECT
        d.run_id AS run_id,
        'device' AS setting_kind,
        'device_kind' AS setting,
        CAST(NULL AS VARCHAR) AS list_setting,
        COALESCE(p.product, d.device_kind) AS value,
        'not_comparable' AS effect,
        'another kind of device' AS reason,
        CAST(NULL AS VARCHAR) AS known_by
    FROM main.devices AS d
    LEFT JOIN _products AS p
        ON p.device_id = d.device_id
    LEFT JOIN (
        SELECT DISTINCT
            o.run_id AS run_id
        FROM main.devices AS o
        WHERE o.device_type <> 'CPU'
    ) AS x
        ON x.run_id = d.run_id
    WHERE COALESCE(p.product, d.device_kind) IS NOT NULL
        AND (d.device_type <> 'CPU' OR x.run_id IS NULL)
    UNION ALL
    SELECT
        k.run_id AS run_id,
        'device' AS setting_kind,
        'device_kind' AS setting,
        CAST(NULL AS VARCHAR) AS list_setting,
        k.value AS value,
        'not_comparable' AS effect,
        'another kind of device' AS reason,
        CAST(NULL AS VARCHAR) AS known_by
    FROM main.run_params AS k
    LEFT JOIN (
        SELECT DISTINCT
            o.run_id AS run_id
        FROM main.devices AS o
        WHERE o.device_kind IS NOT NULL
    ) AS x
        ON x.run_id = k.run_id
    WHERE k.param = 'device_kind'
        AND k.value IS NOT NULL
        AND x.run_id IS NULL
    UNION ALL
    SELECT
        d.run_id AS run_id,
        n.role AS setting_kind,
        n.setting AS setting,
        CAST(NULL AS VARCHAR) AS list_setting,
        a.value AS value,
        n.effect AS effect,
        n.reason AS reason,
        CAST(NULL AS VARCHAR) AS known_by
    FROM main.device_attributes AS a
    INNER JOIN v1._setting_names AS n
        ON n.source = 'device_attribute'
        AND n.name = a.attribute
        AND n.effect IS NOT NULL
    INNER JOIN main.devices AS d
        ON d.device_id = a.device_id
        AND d.device_type <> 'CPU'
    WHERE a.value IS NOT NULL
    UNION ALL
    SELECT
        c.run_id AS run_id,
        n.role AS setting_kind,
        n.setting AS setting,
        CAST(NULL AS VARCHAR) AS list_setting,
        a.value AS value,
        n.effect AS effect,
        n.reason AS reason,
        CAST(NULL AS VARCHAR) AS known_by
    FROM main.capture_attributes AS a
    INNER JOIN v1._setting_names AS n
        ON n.source = 'capture_attribute'
        AND n.name = a.attribute
        AND n.effect IS NOT NULL
    INNER JOIN main.captures AS c
        ON c.capture_id = a.capture_id
    WHERE a.value IS NOT NULL
    UNION ALL
    SELECT
        f.run_id AS run_id,
        n.role AS setting_kind,
        n.setting AS setting,
        CAST(NULL AS VARCHAR) AS list_setting,
        CASE WHEN f.value = '1' THEN 'true' WHEN f.value = '0' THEN 'false' ELSE f.value END AS value,
        n.effect AS effect,
        n.reason AS reason,
        'flags' AS known_by
    FROM main.run_flags AS f
    INNER JOIN v1._setting_names AS n
        ON n.source = 'flag'
        AND n.name = f.flag
        AND n.effect IS NOT NULL
    UNION ALL
    SELECT
        p.run_id AS run_id,
        n.role AS setting_kind,
        n.setting AS setting,
        n.list_setting AS list_setting,
        COALESCE(p.value, 'null') AS value,
        n.effect AS effect,
        n.reason AS reason,
        CASE
            WHEN n.role IN ('device', 'versions', 'work') THEN NULL
            WHEN p.param LIKE 'record.environment.%' OR p.param LIKE 'timing.environment.%' THEN 'environment'
            ELSE 'config'
        END AS known_by
    FROM main.run_params AS p
    INNER JOIN v1._setting_names AS n
        ON n.source = 'param'
        AND n.name = p.param
        AND n.effect IS NOT NULL
    LEFT JOIN v1._model_parameters AS m
        ON m.run_id = p.run_id
        AND m.param = p.param
        AND (
            m.dimension IN ('dtype', 'quantization', 'decoder_block', 'attention_type', 'predicting_layers')
            OR m.number IS NOT NULL
            AND m.dimension NOT IN ('device_batch', 'microsteps', 'stated_total')
        )
    WHERE m.run_id IS NULL
),
_keyed AS (
    SELECT
        s.run_id AS run_id,
        s.setting_kind AS setting_kind,
        s.setting AS setting,
        s.list_setting AS list_setting,
        s.value AS value,
        COALESCE(
            CAST(CAST(NULLIF(REGEXP_EXTRACT(s.value, '^([-+]?[0-9]{1,15}([.][0-9]{0,20})?([eE][-+]?[0-9]{1,2})?)$', 1), '') AS DOUBLE) AS VARCHAR),
            CASE
                WHEN s.value IN ('True', 'TRUE') THEN 'true'
                WHEN s.value IN ('False', 'FALSE') THEN 'false'
                WHEN s.value IN ('None', 'NULL') THEN 'null'
                ELSE s.value
            END
        ) AS value_key,
        REGEXP_MATCHES(s.value, '^([-+]?[0-9][0-9.eE+-]*|[Tt]rue|[Ff]alse|TRUE|FALSE|null|None)$') AS is_scalar,
        s.effect = 'candidate_cause' AND REGEXP_MATCHES(s.value, '^([a-z0-9]{1,5}:/|[.]|[.][.])?/.*$') AS is_path,
        s.effect AS effect,
        s.reason AS reason,
        s.known_by AS known_by
    FROM _stated AS s
),
_placed AS (
    SELECT
        k.run_id AS run_id,
        k.setting_kind AS setting_kind,
        CASE
            WHEN w.way = 'place' OR k.list_setting IS NULL OR k.is_scalar THEN k.setting
            ELSE k.list_setting
        END AS setting,
        CASE WHEN w.way = 'place' THEN k.list_setting END AS list_setting,
        k.value AS value,
        k.value_key AS value_key,
        CASE WHEN k.is_path THEN 'information' ELSE k.effect END AS effect,
        CASE
            WHEN k.is_path THEN 'where something lies'
            WHEN w.way = 'place' THEN 'the same words in another order, or another number of times'
            ELSE k.reason
        END AS reason,
        k.known_by AS known_by
    FROM _keyed AS k
    CROSS JOIN (
        VALUES
            ('word'),
            ('place')
    ) AS w (way)
    WHERE w.way = 'word'
        OR k.list_setting IS NOT NULL AND NOT k.is_scalar
)
SELECT
    p.run_id AS run_id,
    p.setting_kind AS setting_kind,
    p.setting AS setting,
    p.list_setting AS list_setting,
    MIN(p.value) AS value,
    p.value_key AS value_key,
    MIN(p.effect) AS effect,
    MIN(p.reason) AS reason,
    MIN(p.known_by) AS known_by
FROM _placed AS p
GROUP BY
    p.run_id,
    p.setting_kind,
    p.setting,
    p.list_setting,
    p.value_key
