-- name: v1._flow_takers
-- version: 1
-- grain: one row per host event that takes up work which another handed over
-- summary: The ranges of host threads that work for another thread.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   host_event_id BIGINT: the event
--   track_id BIGINT: the thread
--   flow_type BIGINT: type of the flow
--   flow_id BIGINT: id of the flow within its type
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end
-- algorithm: An event that hands work over carries a producer type and id; the event that takes it up carries
--   the same pair as consumer.

WITH _handed AS (
    SELECT DISTINCT
        f.capture_id AS capture_id,
        f.producer_type AS producer_type,
        f.producer_id AS producer_id
    FROM main.host_flows AS f
    WHERE f.producer_id IS NOT NULL
)
SELECT
    f.capture_id AS capture_id,
    h.host_event_id AS host_event_id,
    h.track_id AS track_id,
    f.consumer_type AS flow_type,
    f.consumer_id AS flow_id,
    h.start_ps AS start_ps,
    h.end_ps AS end_ps
FROM main.host_flows AS f
INNER JOIN _handed AS p
    ON p.capture_id = f.capture_id
    AND p.producer_type = f.consumer_type
    AND p.producer_id = f.consumer_id
INNER JOIN main.host_events AS h
    ON h.capture_id = f.capture_id
    AND h.host_event_id = f.host_event_id
