-- name: v1._step_annotations
-- version: 1
-- grain: one row per annotation of a training step
-- summary: The step annotations that count as training steps, in their order by start and by end.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   track_id BIGINT: the thread
--   start_rank BIGINT: position in the capture by start
--   end_rank BIGINT: position in the capture by end
--   step_num BIGINT: the step
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end
-- algorithm: A capture may annotate more than training: evaluation steps have numbers of their own. The name
--   with the most annotated time is the training step; of equals, the first name seen.

WITH _names AS (
    SELECT
        s.capture_id AS capture_id,
        s.name_id AS name_id,
        CAST(SUM(s.end_ps - s.start_ps) AS BIGINT) AS total_ps
    FROM main.steps AS s
    GROUP BY
        s.capture_id,
        s.name_id
),
_ranked AS (
    SELECT
        n.capture_id AS capture_id,
        n.name_id AS name_id,
        ROW_NUMBER() OVER (
            PARTITION BY n.capture_id
            ORDER BY -n.total_ps NULLS FIRST, n.name_id NULLS FIRST
        ) AS name_rank
    FROM _names AS n
)
SELECT
    s.capture_id AS capture_id,
    s.track_id AS track_id,
    ROW_NUMBER() OVER (
        PARTITION BY s.capture_id
        ORDER BY s.start_ps NULLS FIRST, s.end_ps NULLS FIRST, s.step_id NULLS FIRST
    ) AS start_rank,
    ROW_NUMBER() OVER (
        PARTITION BY s.capture_id
        ORDER BY s.end_ps NULLS FIRST, s.start_ps NULLS FIRST, s.step_id NULLS FIRST
    ) AS end_rank,
    s.step_num AS step_num,
    s.start_ps AS start_ps,
    s.end_ps AS end_ps
FROM main.steps AS s
INNER JOIN _ranked AS r
    ON r.capture_id = s.capture_id
    AND r.name_id = s.name_id
    AND r.name_rank = 1
