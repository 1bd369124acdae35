-- name: v1._hip_calls
-- version: 1
-- grain: one row per capture and correlation id of a HIP call
-- summary: The ids of the calls of HIP.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   correlation_id BIGINT: id of the call

SELECT DISTINCT
    h.capture_id AS capture_id,
    h.correlation_id AS correlation_id
FROM main.host_events AS h
INNER JOIN main.call_details AS d
    ON d.capture_id = h.capture_id
    AND d.call_details_id = h.call_details_id
WHERE h.correlation_id IS NOT NULL
    AND REGEXP_MATCHES(d.category, '^([rR][oO][cC][mM]_)?[hH][iI][pP]_.*$')
