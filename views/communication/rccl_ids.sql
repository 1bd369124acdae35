-- name: v1._rccl_ids
-- version: 1
-- grain: one row per capture and correlation id of a call of RCCL
-- summary: The ids of RCCL's calls.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   correlation_id BIGINT: id of the call
--   first_host_event_id BIGINT: the call; the first where several share the id

SELECT
    h.capture_id AS capture_id,
    h.correlation_id AS correlation_id,
    MIN(h.host_event_id) AS first_host_event_id
FROM main.host_events AS h
INNER JOIN main.names AS n
    ON n.name_id = h.name_id
INNER JOIN v1._rccl_functions AS f
    ON f.function_name = n.name
WHERE h.correlation_id IS NOT NULL
GROUP BY
    h.capture_id,
    h.correlation_id
