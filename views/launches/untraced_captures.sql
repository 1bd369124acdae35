-- name: v1._untraced_captures
-- version: 1
-- grain: one row per capture of a ROCm profiler without a call that may launch device work
-- summary: The captures that hold work of the device and none of the calls that launched it.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
-- algorithm: Calls of HIP and HSA launch, and those of which the source states no API. Markers and calls of
--   RCCL have correlation ids too.

WITH _traced AS (
    SELECT DISTINCT p.capture_id AS capture_id
    FROM main.captures AS p
    INNER JOIN main.host_events AS h
        ON h.capture_id = p.capture_id
    LEFT JOIN main.call_details AS d
        ON d.capture_id = h.capture_id
        AND d.call_details_id = h.call_details_id
    WHERE p.source_kind <> 'xspace'
        AND h.correlation_id IS NOT NULL
        AND REGEXP_MATCHES(
            COALESCE(d.category, 'hip_'), '^([rR][oO][cC][mM]_)?[hH]([iI][pP]|[sS][aA])_.*$'
        )
)
SELECT p.capture_id AS capture_id
FROM main.captures AS p
LEFT JOIN _traced AS t
    ON t.capture_id = p.capture_id
WHERE p.source_kind <> 'xspace'
    AND t.capture_id IS NULL
