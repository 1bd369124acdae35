-- name: v1._hip_callers
-- version: 1
-- grain: one row per capture and correlation id of an HSA call that a HIP call encloses
-- summary: The HIP call that each call of the runtime below it works for.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   correlation_id BIGINT: id of the HSA call
--   hsa_host_event_id BIGINT: the HSA call; the first where several share the id
--   hip_correlation_id BIGINT: id of the innermost HIP call around it, at most four calls up

WITH _hsa AS (
    SELECT
        h.capture_id AS capture_id,
        h.correlation_id AS correlation_id,
        MIN(h.host_event_id) AS first_host_event_id
    FROM main.host_events AS h
    INNER JOIN main.call_details AS d
        ON d.capture_id = h.capture_id
        AND d.call_details_id = h.call_details_id
    WHERE h.correlation_id IS NOT NULL
        AND REGEXP_MATCHES(d.category, '^([rR][oO][cC][mM]_)?[hH][sS][aA]_.*$')
    GROUP BY
        h.capture_id,
        h.correlation_id
),
_climbed AS (
    SELECT
        s.capture_id AS capture_id,
        s.correlation_id AS correlation_id,
        s.first_host_event_id AS hsa_host_event_id,
        COALESCE(h1.correlation_id, h2.correlation_id, h3.correlation_id, h4.correlation_id)
            AS hip_correlation_id
    FROM _hsa AS s
    INNER JOIN v1._call_parents AS p1
        ON p1.capture_id = s.capture_id
        AND p1.correlation_id = s.correlation_id
    LEFT JOIN v1._hip_calls AS h1
        ON h1.capture_id = s.capture_id
        AND h1.correlation_id = p1.parent_id
    LEFT JOIN v1._call_parents AS p2
        ON p2.capture_id = s.capture_id
        AND p2.correlation_id = p1.parent_id
    LEFT JOIN v1._hip_calls AS h2
        ON h2.capture_id = s.capture_id
        AND h2.correlation_id = p2.parent_id
    LEFT JOIN v1._call_parents AS p3
        ON p3.capture_id = s.capture_id
        AND p3.correlation_id = p2.parent_id
    LEFT JOIN v1._hip_calls AS h3
        ON h3.capture_id = s.capture_id
        AND h3.correlation_id = p3.parent_id
    LEFT JOIN v1._call_parents AS p4
        ON p4.capture_id = s.capture_id
        AND p4.correlation_id = p3.parent_id
    LEFT JOIN v1._hip_calls AS h4
        ON h4.capture_id = s.capture_id
        AND h4.correlation_id = p4.parent_id
)
SELECT
    c.capture_id AS capture_id,
    c.correlation_id AS correlation_id,
    c.hsa_host_event_id AS hsa_host_event_id,
    c.hip_correlation_id AS hip_correlation_id
FROM _climbed AS c
WHERE c.hip_correlation_id IS NOT NULL
