-- name: v1._graph_calls
-- version: 1
-- grain: one row per capture and correlation id of a call that launches a graph
-- summary: The host calls that launch CUDA or HIP graphs.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   correlation_id BIGINT: id of the call
--   host_event_id BIGINT: the call; the first where several share the id
--   graph_id BIGINT: the graph: as the call names it, or the handle among its arguments; NULL for neither
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end

WITH _arguments AS (
    SELECT
        s.capture_id AS capture_id,
        s.owner_id AS host_event_id,
        s.int_value AS graph_handle
    FROM main.event_stats AS s
    INNER JOIN main.names AS n
        ON n.name_id = s.stat_name_id
    WHERE s.owner = 'host_event'
        AND n.name = 'graphExec'
),
_calls AS (
    SELECT
        h.capture_id AS capture_id,
        h.correlation_id AS correlation_id,
        MIN(h.host_event_id) AS first_host_event_id,
        MIN(COALESCE(d.graph_id, a.graph_handle)) AS named_graph_id,
        MIN(h.start_ps) AS first_start_ps,
        MAX(h.end_ps) AS last_end_ps
    FROM main.host_events AS h
    INNER JOIN main.names AS n
        ON n.name_id = h.name_id
    LEFT JOIN main.call_details AS d
        ON d.capture_id = h.capture_id
        AND d.call_details_id = h.call_details_id
    LEFT JOIN _arguments AS a
        ON a.capture_id = h.capture_id
        AND a.host_event_id = h.host_event_id
    WHERE h.correlation_id IS NOT NULL
        AND REGEXP_MATCHES(n.name, '^(hip|cuda|cu)GraphLaunch(_[a-z]+)?( .*)?$')
    GROUP BY
        h.capture_id,
        h.correlation_id
)
SELECT
    c.capture_id AS capture_id,
    c.correlation_id AS correlation_id,
    c.first_host_event_id AS host_event_id,
    c.named_graph_id AS graph_id,
    c.first_start_ps AS start_ps,
    c.last_end_ps AS end_ps
FROM _calls AS c
