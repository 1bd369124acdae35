-- name: v1._exclusive_events
-- version: 1
-- grain: one row per device event in the steps that summaries of its run are made of
-- summary: What each device event adds to the time in which its device is busy.
-- evidence: measured
-- columns:
--   run_id BIGINT: the run
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   step_num BIGINT: the step; NULL where the run has none and the whole capture counts
--   device_event_id BIGINT: the event
--   sum_ps BIGINT (ps): its duration in the step
--   exclusive_ps BIGINT (ps): the part of it that belongs to no other event
-- algorithm: Each moment of a step belongs to one event: to compute before a collective before a copy, and of several of
--   a class to the one that began first. So the parts of a step sum to v1.device_time's busy_ps, those of compute to
--   its compute_ps, of collectives to exposed_communication_ps, of copies to exposed_copy_ps. For
--   v1.interval_coverage each step is a device of its own: steps may overlap.

WITH _steps AS (
    SELECT
        s.run_id AS run_id,
        s.capture_id AS capture_id,
        s.device_id AS device_id,
        s.step_num AS step_num,
        ROW_NUMBER() OVER (
            PARTITION BY s.capture_id
            ORDER BY s.device_id NULLS FIRST, s.step_num NULLS FIRST
        ) AS step_rank
    FROM v1._run_steps AS s
),
_events AS (
    SELECT
        s.run_id AS run_id,
        e.capture_id AS capture_id,
        s.step_rank AS device_id,
        e.device_event_id AS device_event_id,
        CASE e.event_class WHEN 'compute' THEN 1 WHEN 'collective' THEN 2 ELSE 3 END AS class_rank,
        e.start_ps AS start_ps,
        e.end_ps AS end_ps
    FROM _steps AS s
    INNER JOIN v1._scoped_events AS e
        ON e.capture_id = s.capture_id
        AND e.device_id = s.device_id
        AND COALESCE(e.step_num, -1) = COALESCE(s.step_num, -1)
        AND (e.step_num IS NULL) = (s.step_num IS NULL)
),
_reach AS (
    SELECT
        e.run_id AS run_id,
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        e.device_event_id AS device_event_id,
        e.class_rank AS class_rank,
        e.start_ps AS first_ps,
        e.end_ps AS end_ps,
        MAX(e.end_ps) OVER (
            PARTITION BY e.capture_id, e.device_id, e.class_rank
            ORDER BY e.start_ps NULLS FIRST, e.device_event_id NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS reach_ps
    FROM _events AS e
),
_own AS (
    SELECT
        r.run_id AS run_id,
        r.capture_id AS capture_id,
        r.device_id AS device_id,
        r.device_event_id AS device_event_id,
        r.class_rank AS class_rank,
        r.end_ps - r.first_ps AS sum_ps,
        LEAST(GREATEST(r.first_ps, COALESCE(r.reach_ps, r.first_ps)), r.end_ps) AS start_ps,
        r.end_ps AS end_ps
    FROM _reach AS r
),
_compute AS (
    SELECT
        o.capture_id AS capture_id,
        o.device_id AS device_id,
        o.start_ps AS start_ps,
        o.end_ps AS end_ps
    FROM _own AS o
    WHERE o.class_rank = 1
),
_not_copies AS (
    SELECT
        o.capture_id AS capture_id,
        o.device_id AS device_id,
        o.start_ps AS start_ps,
        o.end_ps AS end_ps
    FROM _own AS o
    WHERE o.class_rank < 3
),
_collectives AS (
    SELECT
        o.capture_id AS capture_id,
        o.device_id AS device_id,
        o.device_event_id AS device_event_id,
        o.start_ps AS start_ps,
        o.end_ps AS end_ps
    FROM _own AS o
    WHERE o.class_rank = 2
),
_copies AS (
    SELECT
        o.capture_id AS capture_id,
        o.device_id AS device_id,
        o.device_event_id AS device_event_id,
        o.start_ps AS start_ps,
        o.end_ps AS end_ps
    FROM _own AS o
    WHERE o.class_rank = 3
),
_parts AS (
    SELECT
        o.capture_id AS capture_id,
        o.device_id AS device_id,
        o.device_event_id AS device_event_id,
        o.end_ps - o.start_ps AS exclusive_ps
    FROM _own AS o
    WHERE o.class_rank = 1
    UNION ALL
    SELECT
        v.capture_id AS capture_id,
        v.device_id AS device_id,
        v.label_1 AS device_event_id,
        v.uncovered_ps AS exclusive_ps
    FROM v1.interval_coverage('_collectives', '_compute', device_event_id) AS v
    UNION ALL
    SELECT
        v.capture_id AS capture_id,
        v.device_id AS device_id,
        v.label_1 AS device_event_id,
        v.uncovered_ps AS exclusive_ps
    FROM v1.interval_coverage('_copies', '_not_copies', device_event_id) AS v
)
SELECT
    o.run_id AS run_id,
    o.capture_id AS capture_id,
    s.device_id AS device_id,
    s.step_num AS step_num,
    o.device_event_id AS device_event_id,
    o.sum_ps AS sum_ps,
    p.exclusive_ps AS exclusive_ps
FROM _own AS o
INNER JOIN _parts AS p
    ON p.capture_id = o.capture_id
    AND p.device_id = o.device_id
    AND p.device_event_id = o.device_event_id
INNER JOIN _steps AS s
    ON s.capture_id = o.capture_id
    AND s.step_rank = o.device_id
