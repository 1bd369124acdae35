-- name: v1._setting_sources
-- version: 1
-- grain: one row per run and source of settings that it has
-- summary: Which runs tell their configuration, environment and flags: of those, what is not set has its default.
-- evidence: measured
-- columns:
--   run_id BIGINT: the run
--   source VARCHAR: config, environment or flags
-- algorithm: tracewh.record notes the flags whenever there are any, so that a run with its environment has no others.

WITH _told AS (
    SELECT
        p.run_id AS run_id,
        CASE
            WHEN p.param LIKE 'record.environment.%' OR p.param LIKE 'timing.environment.%' THEN 'environment'
            WHEN p.param LIKE 'record.%' OR p.param LIKE 'timing.%' OR p.param LIKE 'cost_analysis.%' THEN NULL
            WHEN p.param LIKE '%xla_flags' OR p.param LIKE '%XLA_FLAGS' THEN 'flags'
            ELSE 'config'
        END AS teller
    FROM main.run_params AS p
    UNION ALL
    SELECT
        f.run_id AS run_id,
        'flags' AS teller
    FROM main.run_flags AS f
)
SELECT DISTINCT
    t.run_id AS run_id,
    s.source AS source
FROM _told AS t
INNER JOIN (
    VALUES
        ('config', 'config'),
        ('environment', 'environment'),
        ('environment', 'flags'),
        ('flags', 'flags')
) AS s (teller, source)
    ON s.teller = t.teller
