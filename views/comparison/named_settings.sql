-- name: v1._named_settings
-- version: 1
-- grain: one row per run and parameter, flag or attribute that is a setting
-- summary: What the files of a run state of how it was made, under the names and with the meaning that rules give them.
-- evidence: measured
-- columns:
--   run_id BIGINT: the run
--   setting_kind VARCHAR: config, environment, device, versions or work
--   setting VARCHAR: name of the setting
--   list_setting VARCHAR: that of the list whose element it is; NULL for no element of a list
--   value VARCHAR: as the source has it; null for what the configuration leaves empty
--   effect VARCHAR: as in v1._run_settings
--   reason VARCHAR: likewise
--   known_by VARCHAR: likewise
-- algorithm: v1._setting_names says what names mean. Parameters that the sizes of the model are made of are left out:
--   v1._work_settings has what they make.

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
        WHEN p.param LIKE 'record.%' OR p.param LIKE 'timing.%' THEN 'environment'
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
        AND m.dimension IN (
            'width', 'layers', 'heads', 'kv_heads', 'head_dim', 'mlp_width', 'expert_width', 'experts', 'top_k',
            'shared_experts', 'dense_layers', 'vocabulary', 'sequence', 'window', 'global_batch', 'tokens',
            'nonpadding_tokens', 'devices'
        )
    )
WHERE m.run_id IS NULL
UNION ALL
SELECT
    f.run_id AS run_id,
    n.role AS setting_kind,
    n.setting AS setting,
    CAST(NULL AS VARCHAR) AS list_setting,
    f.value AS value,
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
