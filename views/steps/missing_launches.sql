-- name: v1._missing_launches
-- version: 1
-- grain: one row per capture and step some of whose launches have no device work
-- summary: How many launches of a step the trace shows no work of.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   step_num BIGINT: the step
--   missing_launch_count BIGINT (count): launches of the step in v1.unmatched_calls, except those that were
--     recorded into a graph and collectives whose work has no id

WITH _launches AS (
    SELECT DISTINCT
        u.capture_id AS capture_id,
        u.correlation_id AS correlation_id
    FROM v1.unmatched_calls AS u
    WHERE u.cause NOT IN ('stream_capture', 'collective_without_id')
)
SELECT
    s.capture_id AS capture_id,
    s.step_num AS step_num,
    COUNT(*) AS missing_launch_count
FROM v1._launch_links AS s
INNER JOIN _launches AS l
    ON l.capture_id = s.capture_id
    AND l.correlation_id = s.correlation_id
GROUP BY
    s.capture_id,
    s.step_num
