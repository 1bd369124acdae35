-- name: v1._part_metrics
-- version: 1
-- grain: one row per run, metric and scope
-- summary: Summed durations of each phase, component, group, op family and kernel in the mean device step.
-- evidence: measured
-- columns:
--   run_id BIGINT: the run
--   metric VARCHAR: as in v1.metrics
--   scope VARCHAR: likewise
--   value DOUBLE: likewise
--   unit VARCHAR: likewise
--   polarity VARCHAR: likewise
--   evidence VARCHAR: likewise
--   timing VARCHAR: likewise
--   statistic VARCHAR: likewise
--   samples BIGINT (count): likewise
-- algorithm: Durations of events that overlap count each, as in v1.phase_time's sum_ps; device_events is their number. A
--   run without complete steps has no rows: what its captures last is up to whoever recorded them.

WITH _scoped AS (
    SELECT
        p.run_id AS run_id,
        m.metric AS metric,
        CASE m.metric
            WHEN 'phase_time' THEN p.phase
            WHEN 'component_group_time' THEN p.component_group
            WHEN 'component_time' THEN p.component
            WHEN 'op_family_time' THEN p.op_family
            WHEN 'kernel_time' THEN p.kernel
            ELSE ''
        END AS scope,
        p.sum_ps AS sum_ps,
        p.event_count AS event_count,
        p.device_steps AS device_steps
    FROM v1._step_parts AS p
    CROSS JOIN (
        VALUES
            ('phase_time'),
            ('component_group_time'),
            ('component_time'),
            ('op_family_time'),
            ('kernel_time'),
            ('device_events')
    ) AS m (metric)
    WHERE p.phase <> 'idle'
),
_sums AS (
    SELECT
        s.run_id AS run_id,
        s.metric AS metric,
        s.scope AS scope,
        CAST(SUM(CASE WHEN s.metric = 'device_events' THEN s.event_count ELSE s.sum_ps END) AS BIGINT) AS total,
        MAX(s.device_steps) AS steps
    FROM _scoped AS s
    GROUP BY
        s.run_id,
        s.metric,
        s.scope
),
_stepped AS (
    SELECT DISTINCT s.run_id AS run_id
    FROM v1._run_steps AS s
    WHERE s.step_num IS NOT NULL
)
SELECT
    s.run_id AS run_id,
    s.metric AS metric,
    s.scope AS scope,
    CAST(s.total AS DOUBLE) / NULLIF(s.steps, 0)
        * CASE WHEN s.metric = 'device_events' THEN 1 ELSE 1e-9 END AS value,
    CASE WHEN s.metric = 'device_events' THEN 'count' ELSE 'ms' END AS unit,
    CASE WHEN s.metric = 'device_events' THEN 'none' ELSE 'lower' END AS polarity,
    'measured' AS evidence,
    CASE WHEN s.metric = 'device_events' THEN NULL ELSE 'profiled' END AS timing,
    'mean' AS statistic,
    s.steps AS samples
FROM _sums AS s
INNER JOIN _stepped AS t
    ON t.run_id = s.run_id
