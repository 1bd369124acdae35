-- name: v1._metric_samples
-- version: 1
-- grain: one row per run, metric, timing and step
-- summary: Times of single steps, for the metrics of a run that are medians of them.
-- evidence: measured
-- columns:
--   run_id BIGINT: the run
--   metric VARCHAR: step_time (of an update, without warm-up); device_step_time (window of a device step), busy, idle,
--     compute, communication, copy, overlap, exposed_communication, exposed_copy (of v1.device_time)
--   timing VARCHAR: unprofiled, profiled or unknown
--   sample_index BIGINT: order of the samples, from 1: of device steps by step, capture and device
--   value DOUBLE (ms): the time
-- algorithm: Device steps are those of v1._run_steps; a run without complete steps has none here.

WITH _windows AS (
    SELECT
        s.run_id AS run_id,
        ROW_NUMBER() OVER (
            PARTITION BY s.run_id
            ORDER BY s.step_num NULLS FIRST, s.capture_id NULLS FIRST, s.device_id NULLS FIRST
        ) AS sample_index,
        t.window_ps AS window_ps,
        t.busy_ps AS busy_ps,
        t.idle_ps AS idle_ps,
        t.compute_ps AS compute_ps,
        t.communication_ps AS communication_ps,
        t.copy_ps AS copy_ps,
        t.overlap_ps AS overlap_ps,
        t.exposed_communication_ps AS exposed_communication_ps,
        t.exposed_copy_ps AS exposed_copy_ps
    FROM v1._run_steps AS s
    INNER JOIN v1.device_time AS t
        ON t.capture_id = s.capture_id
        AND t.device_id = s.device_id
        AND t.step_num = s.step_num
)
SELECT
    w.run_id AS run_id,
    m.metric AS metric,
    'profiled' AS timing,
    w.sample_index AS sample_index,
    CAST(
        CASE m.metric
            WHEN 'device_step_time' THEN w.window_ps
            WHEN 'busy' THEN w.busy_ps
            WHEN 'idle' THEN w.idle_ps
            WHEN 'compute' THEN w.compute_ps
            WHEN 'communication' THEN w.communication_ps
            WHEN 'copy' THEN w.copy_ps
            WHEN 'overlap' THEN w.overlap_ps
            WHEN 'exposed_communication' THEN w.exposed_communication_ps
            ELSE w.exposed_copy_ps
        END AS DOUBLE
    ) / 1e9 AS value
FROM _windows AS w
CROSS JOIN (
    VALUES
        ('device_step_time'),
        ('busy'),
        ('idle'),
        ('compute'),
        ('communication'),
        ('copy'),
        ('overlap'),
        ('exposed_communication'),
        ('exposed_copy')
) AS m (metric)
UNION ALL
SELECT
    s.run_id AS run_id,
    'step_time' AS metric,
    s.timing AS timing,
    s.position AS sample_index,
    s.step_s * 1000 AS value
FROM v1._step_samples AS s
WHERE NOT s.is_warmup
