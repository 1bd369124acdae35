-- name: v1._step_annotations
-- version: 1
-- grain: one row per annotation of a training step
-- summary: The step annotations that count as training steps.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   track_id BIGINT: the thread
--   name_id BIGINT: names.name_id of the annotation
--   step_num BIGINT: the step
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end
--   is_repeated BOOLEAN: its number was there before: it counts as no step
-- algorithm: A capture may annotate more than training: evaluation steps have numbers of their own. The name
--   with the most annotated time is the training step; of equals, the first name seen. Annotations of one
--   number that overlap are one step on several threads. A number that comes again later, as after a
--   restart of the loop, does not count: two steps must not become one.

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
),
_training AS (
    SELECT
        s.capture_id AS capture_id,
        s.step_id AS step_id,
        s.step_num AS step_num,
        s.name_id AS name_id,
        s.track_id AS track_id,
        s.start_ps AS start_ps,
        s.end_ps AS end_ps,
        CASE
            WHEN s.start_ps >= MAX(s.end_ps) OVER (
                PARTITION BY s.capture_id, s.name_id, s.step_num
                ORDER BY s.start_ps NULLS FIRST, s.step_id NULLS FIRST
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            )
                THEN 1
            ELSE 0
        END AS is_apart
    FROM main.steps AS s
    INNER JOIN _ranked AS r
        ON r.capture_id = s.capture_id
        AND r.name_id = s.name_id
        AND r.name_rank = 1
)
SELECT
    t.capture_id AS capture_id,
    t.track_id AS track_id,
    t.name_id AS name_id,
    t.step_num AS step_num,
    t.start_ps AS start_ps,
    t.end_ps AS end_ps,
    MAX(t.is_apart) OVER (
        PARTITION BY t.capture_id, t.step_num
        ORDER BY t.start_ps NULLS FIRST, t.step_id NULLS FIRST
        ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
    ) = 1 AS is_repeated
FROM _training AS t
