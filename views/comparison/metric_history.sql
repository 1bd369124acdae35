-- name: v1.metric_history
-- version: 1
-- grain: one row per run, metric, scope, timing and evidence
-- summary: The metrics of runs, with what places a run in a series, and what only runs of one series share.
-- evidence: measured, compiler, analytical or derived
-- columns:
--   run_id BIGINT: the run
--   run_name VARCHAR: its name
--   commit_sha VARCHAR: its commit; NULL where unknown
--   captured_unix_ns BIGINT (ns): wall clock when its first capture began; NULL where no capture tells
--   device_kind VARCHAR: kind of its accelerators, else of its other devices; two kinds as A, B
--   devices BIGINT (count): devices of the whole job
--   work VARCHAR: tokens of an update, size of the model and its dtype, as far as the configuration tells
--   metric VARCHAR: as in v1.metrics
--   scope VARCHAR: likewise
--   value DOUBLE: likewise
--   unit VARCHAR: likewise
--   polarity VARCHAR: likewise
--   evidence VARCHAR: likewise
--   timing VARCHAR: likewise
--   statistic VARCHAR: likewise
--   samples BIGINT (count): likewise
--   view_version VARCHAR: likewise
--   is_current BOOLEAN: likewise
-- algorithm: A series has one device_kind, devices, work, evidence and timing. `tracewh history` has the
--   order of commits from git; without it, order by captured_unix_ns and run_id.

WITH _captured AS (
    SELECT
        c.run_id AS run_id,
        MIN(c.origin_unix_ns) AS captured_unix_ns
    FROM main.captures AS c
    WHERE c.origin_unix_ns > 0
    GROUP BY c.run_id
),
_kinds AS (
    SELECT
        d.run_id AS run_id,
        COALESCE(MIN(CASE WHEN d.device_type <> 'CPU' THEN d.device_kind END), MIN(d.device_kind)) AS first_kind,
        COALESCE(MAX(CASE WHEN d.device_type <> 'CPU' THEN d.device_kind END), MAX(d.device_kind)) AS last_kind
    FROM main.devices AS d
    GROUP BY d.run_id
),
_work AS (
    SELECT
        d.run_id AS run_id,
        d.devices AS devices,
        COALESCE(CAST(d.tokens_per_update AS VARCHAR) || ' tokens', 'tokens unknown')
            || COALESCE(', sequence ' || CAST(d.sequence AS VARCHAR), '')
            || COALESCE(', ' || CAST(d.layers AS VARCHAR) || ' layers', '')
            || COALESCE(', width ' || CAST(d.width AS VARCHAR), '')
            || COALESCE(', ' || CAST(d.heads AS VARCHAR) || ' heads', '')
            || COALESCE(', MLP ' || CAST(COALESCE(d.expert_width, d.mlp_width) AS VARCHAR), '')
            || COALESCE(', ' || CAST(d.experts AS VARCHAR) || ' experts', '')
            || COALESCE(', top ' || CAST(d.top_k AS VARCHAR), '')
            || COALESCE(', vocabulary ' || CAST(d.vocabulary AS VARCHAR), '')
            || COALESCE(', ' || d.dtype, '') AS work
    FROM v1.model_dimensions AS d
)
SELECT
    m.run_id AS run_id,
    m.run_name AS run_name,
    m.commit_sha AS commit_sha,
    c.captured_unix_ns AS captured_unix_ns,
    CASE WHEN k.first_kind = k.last_kind THEN k.first_kind ELSE k.first_kind || ', ' || k.last_kind END AS device_kind,
    w.devices AS devices,
    w.work AS work,
    m.metric AS metric,
    m.scope AS scope,
    m.value AS value,
    m.unit AS unit,
    m.polarity AS polarity,
    m.evidence AS evidence,
    m.timing AS timing,
    m.statistic AS statistic,
    m.samples AS samples,
    m.view_version AS view_version,
    m.is_current AS is_current
FROM v1.metrics AS m
LEFT JOIN _captured AS c
    ON c.run_id = m.run_id
LEFT JOIN _kinds AS k
    ON k.run_id = m.run_id
LEFT JOIN _work AS w
    ON w.run_id = m.run_id
