-- name: v1._call_parents
-- version: 1
-- grain: one row per capture and correlation id of a call that another one encloses
-- summary: The call around each call, one for each, whatever the source states.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   correlation_id BIGINT: id of the call
--   parent_id BIGINT: id of the call around it; the lowest where the source states several

SELECT
    p.capture_id AS capture_id,
    p.correlation_id AS correlation_id,
    MIN(p.parent_correlation_id) AS parent_id
FROM main.call_parents AS p
WHERE p.parent_correlation_id <> p.correlation_id
GROUP BY
    p.capture_id,
    p.correlation_id
