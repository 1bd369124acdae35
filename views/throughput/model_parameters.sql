-- name: v1._model_parameters
-- version: 1
-- grain: one row per run and dimension of its model that the configuration states
-- summary: What the configuration says of the model, under one name for each size, whatever it calls them.
-- evidence: analytical
-- columns:
--   run_id BIGINT: the run
--   dimension VARCHAR: model_keys.dimension
--   param VARCHAR: the parameter that says so
--   value VARCHAR: its value
--   number BIGINT: the value where it is a whole number below 10 to the 15; else NULL
-- algorithm: Of several spellings that a configuration has, the one with the lowest preference counts; of several files,
--   the first. The base_ sizes of MaxText count only where nothing scales them.

WITH _stated AS (
    SELECT
        p.run_id AS run_id,
        k.dimension AS dimension,
        p.param AS param,
        p.value AS value,
        ROW_NUMBER() OVER (
            PARTITION BY p.run_id, k.dimension
            ORDER BY k.preference NULLS FIRST, p.artifact_id NULLS FIRST
        ) AS choice
    FROM main.run_params AS p
    INNER JOIN main.model_keys AS k
        ON k.param = p.param
    LEFT JOIN (
        SELECT DISTINCT
            s.run_id AS run_id
        FROM main.run_params AS s
        INNER JOIN main.model_keys AS g
            ON g.param = s.param
        WHERE g.dimension = 'parameter_scale'
            AND s.value <> '1'
    ) AS x
        ON x.run_id = p.run_id
        AND k.preference >= 900
    WHERE p.value IS NOT NULL
        AND p.value <> ''
        AND x.run_id IS NULL
)
SELECT
    s.run_id AS run_id,
    s.dimension AS dimension,
    s.param AS param,
    s.value AS value,
    CASE
        WHEN REGEXP_MATCHES(s.value, '^[0-9]{1,15}([.]0{1,6})?$')
            THEN CAST(NULLIF(REGEXP_EXTRACT(s.value, '^([0-9]{1,15})([.]0{1,6})?$', 1), '') AS BIGINT)
    END AS number
FROM _stated AS s
WHERE s.choice = 1
