-- name: v1._launched_ids
-- version: 1
-- grain: one row per capture and correlation id of a call that device work came from
-- summary: The ids that device events carry, or the HIP calls around those that do.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   correlation_id BIGINT: id of the call

SELECT DISTINCT
    e.capture_id AS capture_id,
    COALESCE(k.hip_correlation_id, e.correlation_id) AS correlation_id
FROM main.device_events AS e
LEFT JOIN v1._hip_callers AS k
    ON k.capture_id = e.capture_id
    AND k.correlation_id = e.correlation_id
WHERE e.correlation_id IS NOT NULL
    AND e.role IN ('work', 'serialized', 'marker')
