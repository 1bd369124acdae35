-- name: v1.model_dimensions
-- version: 1
-- grain: one row per run
-- summary: The decoder that a run trains, and its batch, by the resolved configuration.
-- evidence: analytical
-- columns:
--   run_id BIGINT: the run
--   width BIGINT (count): of the residual stream
--   layers BIGINT (count): decoder layers
--   heads BIGINT (count): query heads
--   kv_heads BIGINT (count): key and value heads
--   head_dim DOUBLE (count): width of a head
--   mlp_width BIGINT (count): hidden width of a dense MLP
--   mlp_matrices BIGINT (count): 3 with a gate, 2 without
--   experts BIGINT (count): routed experts of a layer; NULL for a dense model
--   top_k BIGINT (count): routed experts of a token
--   shared_experts BIGINT (count): experts that every token passes through
--   expert_width BIGINT (count): hidden width of an expert
--   moe_layers BIGINT (count): layers with experts
--   vocabulary BIGINT (count): rows of the output head
--   sequence BIGINT (count): tokens of a sequence
--   key_rule VARCHAR: causal, or all for attention without a mask
--   window_keys BIGINT (count): keys that a token of a layer with a window sees at most
--   window_layers BIGINT (count): layers with a window that is shorter than the sequence
--   global_batch BIGINT (count): sequences of an update over all devices and microsteps
--   microsteps BIGINT (count): forward and backward passes of an update
--   tokens_per_update BIGINT (count): input tokens of an update, padding included, each once
--   nonpadding_tokens BIGINT (count): those of them that are no padding, where the configuration states it
--   devices BIGINT (count): devices of the whole job
--   devices_source VARCHAR: config or captures
--   dtype VARCHAR: of the matrix products, as peaks call it; NULL where unknown
--   quantized_dtype VARCHAR: of products that the configuration quantizes; NULL for none
--   missing VARCHAR: what the model's FLOPs lack; NULL where they are known
--   assumed VARCHAR: what the configuration does not say and is taken for granted; NULL for nothing
-- algorithm: The tokens of an update are the global batch times the sequence. A resolved global batch is that of all
--   devices and microsteps already; only a batch per device is multiplied by both. Without a key for them, key and
--   value heads are as many as query heads, a head is the width over the heads, an MLP has a gate, and attention is
--   causal.

WITH _sizes AS (
    SELECT
        r.run_id AS run_id,
        MAX(CASE WHEN p.dimension = 'width' THEN p.number END) AS width,
        MAX(CASE WHEN p.dimension = 'layers' THEN p.number END) AS layers,
        MAX(CASE WHEN p.dimension = 'heads' THEN p.number END) AS heads,
        MAX(CASE WHEN p.dimension = 'kv_heads' THEN p.number END) AS kv_heads,
        MAX(CASE WHEN p.dimension = 'head_dim' THEN p.number END) AS head_dim,
        MAX(CASE WHEN p.dimension = 'mlp_width' THEN p.number END) AS mlp_width,
        MAX(CASE WHEN p.dimension = 'expert_width' THEN p.number END) AS expert_width,
        MAX(CASE WHEN p.dimension = 'experts' AND p.number > 1 THEN p.number END) AS experts,
        MAX(CASE WHEN p.dimension = 'top_k' THEN p.number END) AS top_k,
        MAX(CASE WHEN p.dimension = 'shared_experts' THEN p.number END) AS shared_experts,
        MAX(CASE WHEN p.dimension = 'dense_layers' THEN p.number END) AS dense_layers,
        MAX(CASE WHEN p.dimension = 'vocabulary' THEN p.number END) AS vocabulary,
        MAX(CASE WHEN p.dimension = 'sequence' THEN p.number END) AS sequence,
        MAX(CASE WHEN p.dimension = 'window' THEN NULLIF(p.number, 0) END) AS window_keys,
        MAX(CASE WHEN p.dimension = 'global_batch' THEN p.number END) AS global_batch,
        MAX(CASE WHEN p.dimension = 'device_batch' THEN p.number END) AS device_batch,
        MAX(CASE WHEN p.dimension = 'microsteps' THEN p.number END) AS microsteps,
        MAX(CASE WHEN p.dimension = 'devices' THEN NULLIF(p.number, 0) END) AS devices,
        MAX(CASE WHEN p.dimension = 'tokens' THEN p.number END) AS tokens,
        MAX(CASE WHEN p.dimension = 'nonpadding_tokens' THEN p.number END) AS nonpadding_tokens,
        MAX(CASE WHEN p.dimension = 'predicting_layers' THEN p.number END) AS predicting_layers,
        MAX(CASE WHEN p.dimension = 'attention_type' THEN p.value END) AS attention_type,
        MAX(CASE WHEN p.dimension = 'second_activation' THEN 3 WHEN p.dimension = 'first_activation' THEN 2 END)
            AS activation_list,
        MAX(CASE WHEN p.dimension = 'decoder_block' THEN p.value END) AS decoder_block
    FROM main.runs AS r
    LEFT JOIN v1._model_parameters AS p
        ON p.run_id = r.run_id
    GROUP BY r.run_id
),
_words AS (
    SELECT
        p.run_id AS run_id,
        MAX(CASE WHEN p.dimension = 'dtype' AND w.dimension = 'dtype' THEN w.meaning END) AS dtype,
        MAX(CASE WHEN p.dimension = 'quantization' AND w.dimension = 'dtype' THEN w.meaning END) AS quantized_dtype,
        MAX(CASE
            WHEN p.dimension = 'activation' AND w.dimension = 'activation_matrices' THEN CAST(w.meaning AS BIGINT)
        END) AS activation_matrices,
        MAX(CASE
            WHEN p.dimension = 'is_gated' AND w.dimension = 'truth' AND w.meaning = 'true' THEN 3
            WHEN p.dimension = 'is_gated' AND w.dimension = 'truth' THEN 2
        END) AS gate_matrices,
        MAX(CASE WHEN p.dimension = 'attention_type' AND w.dimension = 'attention_keys' THEN w.meaning END) AS key_rule,
        MAX(CASE
            WHEN p.dimension = 'is_causal' AND w.dimension = 'truth' AND w.meaning = 'false' THEN 'all'
        END) AS unmasked,
        MAX(CASE
            WHEN p.dimension = 'decoder_block' AND w.dimension = 'window_period' THEN CAST(w.meaning AS BIGINT)
        END) AS window_period,
        MAX(CASE WHEN p.dimension = 'decoder_block' AND w.dimension = 'own_expert_width' THEN w.meaning END)
            AS own_expert_width,
        MAX(CASE
            WHEN p.dimension IN ('decoder_block', 'attention_type') AND w.dimension = 'not_modelled' THEN w.meaning
        END) AS not_modelled
    FROM v1._model_parameters AS p
    INNER JOIN main.model_words AS w
        ON w.word = p.value
    GROUP BY p.run_id
),
_captured AS (
    SELECT
        d.run_id AS run_id,
        COALESCE(
            NULLIF(COUNT(CASE WHEN d.device_type <> 'CPU' THEN 1 END), 0),
            NULLIF(COUNT(*), 0)
        ) AS devices
    FROM main.devices AS d
    GROUP BY d.run_id
),
_decided AS (
    SELECT
        s.run_id AS run_id,
        s.width AS width,
        s.layers AS layers,
        s.heads AS heads,
        COALESCE(s.kv_heads, s.heads) AS kv_heads,
        COALESCE(CAST(s.head_dim AS DOUBLE), CAST(s.width AS DOUBLE) / NULLIF(s.heads, 0)) AS head_dim,
        s.mlp_width AS mlp_width,
        COALESCE(w.gate_matrices, s.activation_list, w.activation_matrices, 3) AS mlp_matrices,
        s.experts AS experts,
        CASE WHEN s.experts IS NOT NULL THEN s.top_k END AS top_k,
        CASE WHEN s.experts IS NOT NULL THEN COALESCE(s.shared_experts, 0) END AS shared_experts,
        -- A resolved configuration of MaxText always has a width of experts, which most of its models do not use.
        CASE
            WHEN s.experts IS NULL THEN NULL
            WHEN s.decoder_block IS NULL OR w.own_expert_width IS NOT NULL THEN COALESCE(s.expert_width, s.mlp_width)
            ELSE s.mlp_width
        END AS expert_width,
        CASE WHEN s.experts IS NULL THEN 0 ELSE s.layers - LEAST(COALESCE(s.dense_layers, 0), s.layers) END
            AS moe_layers,
        s.vocabulary AS vocabulary,
        s.sequence AS sequence,
        CASE WHEN w.key_rule = 'all' OR w.unmasked = 'all' THEN 'all' ELSE 'causal' END AS key_rule,
        s.window_keys AS window_keys,
        CASE
            WHEN s.window_keys IS NULL OR s.window_keys >= s.sequence THEN 0
            WHEN w.unmasked = 'all' OR w.key_rule = 'all' THEN 0
            WHEN w.key_rule = 'window' THEN s.layers
            WHEN w.window_period IS NOT NULL THEN s.layers - CAST(NULLIF(REGEXP_EXTRACT(
                CAST(CAST(s.layers - MOD(s.layers, NULLIF(w.window_period, 0)) AS DOUBLE) / NULLIF(w.window_period, 0) AS VARCHAR),
                '^([0-9]{1,15})([.]0)?$', 1
            ), '') AS BIGINT)
            WHEN s.attention_type IS NULL THEN s.layers
            ELSE 0
        END AS window_layers,
        s.global_batch AS global_batch,
        s.device_batch AS device_batch,
        COALESCE(NULLIF(s.microsteps, 0), 1) AS microsteps,
        COALESCE(s.devices, c.devices) AS devices,
        CASE
            WHEN s.devices IS NOT NULL THEN 'config'
            WHEN c.devices IS NOT NULL THEN 'captures'
        END AS devices_source,
        s.tokens AS stated_tokens,
        s.nonpadding_tokens AS nonpadding_tokens,
        w.dtype AS dtype,
        w.quantized_dtype AS quantized_dtype,
        CASE WHEN s.predicting_layers > 0 THEN 'layers that predict further tokens' ELSE w.not_modelled END
            AS not_modelled,
        CASE WHEN s.kv_heads IS NULL THEN ', kv_heads = heads' ELSE '' END
            || CASE WHEN s.head_dim IS NULL THEN ', head_dim = d_model / heads' ELSE '' END
            || CASE WHEN COALESCE(w.gate_matrices, s.activation_list, w.activation_matrices) IS NULL THEN ', a gated MLP' ELSE '' END
            || CASE WHEN COALESCE(w.key_rule, w.unmasked) IS NULL THEN ', causal attention' ELSE '' END
            || CASE
                WHEN s.window_keys < s.sequence AND w.key_rule = 'causal' AND w.window_period IS NULL
                THEN ', no layer with the sliding window'
                ELSE ''
            END
            AS assumptions
    FROM _sizes AS s
    LEFT JOIN _words AS w
        ON w.run_id = s.run_id
    LEFT JOIN _captured AS c
        ON c.run_id = s.run_id
),
_batched AS (
    SELECT
        d.run_id AS run_id,
        COALESCE(d.global_batch, CASE
            WHEN CAST(d.device_batch AS DOUBLE) * CAST(d.devices AS DOUBLE) * CAST(d.microsteps AS DOUBLE) < 1e9
                THEN d.device_batch * d.devices * d.microsteps
        END) AS global_batch
    FROM _decided AS d
),
_tokens AS (
    SELECT
        d.run_id AS run_id,
        b.global_batch AS global_batch,
        CASE
            WHEN CAST(b.global_batch AS DOUBLE) * CAST(d.sequence AS DOUBLE) < 1e15
                THEN NULLIF(b.global_batch * d.sequence, 0)
            WHEN b.global_batch IS NULL OR d.sequence IS NULL THEN NULLIF(d.stated_tokens, 0)
        END AS tokens_per_update
    FROM _decided AS d
    INNER JOIN _batched AS b
        ON b.run_id = d.run_id
),
_lacking AS (
    SELECT
        d.run_id AS run_id,
        CASE WHEN d.not_modelled IS NOT NULL THEN ', a formula for ' || d.not_modelled ELSE '' END
            || CASE WHEN COALESCE(d.width, 0) = 0 THEN ', d_model' ELSE '' END
            || CASE WHEN COALESCE(d.layers, 0) = 0 THEN ', layers' ELSE '' END
            || CASE WHEN COALESCE(d.heads, 0) = 0 THEN ', heads' ELSE '' END
            || CASE
                WHEN (d.experts IS NULL OR d.moe_layers < d.layers) AND COALESCE(d.mlp_width, 0) = 0 THEN ', ff'
                ELSE ''
            END
            || CASE WHEN d.moe_layers > 0 AND COALESCE(d.expert_width, 0) = 0 THEN ', expert_ff' ELSE '' END
            || CASE WHEN d.experts IS NOT NULL AND COALESCE(d.top_k, 0) = 0 THEN ', topk' ELSE '' END
            || CASE WHEN COALESCE(d.vocabulary, 0) = 0 THEN ', vocab' ELSE '' END
            || CASE WHEN COALESCE(d.sequence, 0) = 0 THEN ', seq' ELSE '' END
            || CASE
                WHEN t.tokens_per_update IS NULL AND (t.global_batch IS NULL OR d.sequence > 0) THEN ', global_batch'
                ELSE ''
            END
            AS missing
    FROM _decided AS d
    INNER JOIN _tokens AS t
        ON t.run_id = d.run_id
)
SELECT
    d.run_id AS run_id,
    d.width AS width,
    d.layers AS layers,
    d.heads AS heads,
    d.kv_heads AS kv_heads,
    d.head_dim AS head_dim,
    d.mlp_width AS mlp_width,
    CAST(d.mlp_matrices AS BIGINT) AS mlp_matrices,
    d.experts AS experts,
    d.top_k AS top_k,
    d.shared_experts AS shared_experts,
    d.expert_width AS expert_width,
    d.moe_layers AS moe_layers,
    d.vocabulary AS vocabulary,
    d.sequence AS sequence,
    d.key_rule AS key_rule,
    d.window_keys AS window_keys,
    d.window_layers AS window_layers,
    t.global_batch AS global_batch,
    d.microsteps AS microsteps,
    t.tokens_per_update AS tokens_per_update,
    d.nonpadding_tokens AS nonpadding_tokens,
    d.devices AS devices,
    d.devices_source AS devices_source,
    d.dtype AS dtype,
    d.quantized_dtype AS quantized_dtype,
    NULLIF(REGEXP_EXTRACT(l.missing, '^, (.*)$', 1), '') AS missing,
    NULLIF(REGEXP_EXTRACT(d.assumptions, '^, (.*)$', 1), '') AS assumed
FROM _decided AS d
INNER JOIN _tokens AS t
    ON t.run_id = d.run_id
INNER JOIN _lacking AS l
    ON l.run_id = d.run_id
