-- name: v1._event_links
-- version: 1
-- grain: one row per device event that belongs to a step
-- summary: The step of each device event, whether or not the user left the step out.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   device_event_id BIGINT: the event
--   device_id BIGINT: its device
--   step_num BIGINT: the step
--   found_rank INTEGER: 1 to 3 as in v1._launch_links, 2 also for an op of a program execution that the
--     step started; 4 for an event without a launch that began in the device window of the step, unless it was
--     launched before the capture began: its correlation id is below all of those of the capture's calls
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end, at most the end of the step's window for rank 4
-- algorithm: A device event may name its execution of a program. On a TPU only the time ties an op to one: the
--   executions of a device do not overlap, so an op belongs to the last that began on its device, if that has not
--   ended.

WITH _points AS (
    SELECT
        r.capture_id AS capture_id,
        r.device_id AS device_id,
        r.start_ps AS start_ps,
        0 AS is_point,
        r.run_rank AS run_rank,
        CAST(NULL AS BIGINT) AS device_event_id
    FROM v1._module_runs AS r
    UNION ALL
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        e.start_ps AS start_ps,
        1 AS is_point,
        CAST(NULL AS BIGINT) AS run_rank,
        e.device_event_id AS device_event_id
    FROM main.device_events AS e
    INNER JOIN v1._module_runs AS r
        ON r.capture_id = e.capture_id
        AND r.device_id = e.device_id
        AND r.run_rank = 1
    WHERE e.role = 'work'
),
_open AS (
    SELECT
        p.capture_id AS capture_id,
        p.device_id AS device_id,
        p.start_ps AS start_ps,
        p.is_point AS is_point,
        p.device_event_id AS device_event_id,
        MAX(p.run_rank) OVER (
            PARTITION BY p.capture_id, p.device_id
            ORDER BY p.start_ps NULLS FIRST, p.is_point NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS last_begun
    FROM _points AS p
),
_module_steps AS (
    SELECT
        o.capture_id AS capture_id,
        o.device_event_id AS device_event_id,
        x.step_num AS step_num
    FROM _open AS o
    INNER JOIN v1._module_runs AS r
        ON r.capture_id = o.capture_id
        AND r.device_id = o.device_id
        AND r.run_rank = o.last_begun
        AND r.end_ps > o.start_ps
    INNER JOIN v1._execution_steps AS x
        ON x.capture_id = r.capture_id
        AND x.device_id = r.device_id
        AND x.execution_id = r.execution_id
    WHERE o.is_point = 1
),
_links AS (
    SELECT
        s.capture_id AS capture_id,
        CASE WHEN s.device_event_id IS NULL THEN 0 ELSE 1 END AS is_on_host,
        COALESCE(s.device_event_id, s.correlation_id) AS link_id,
        s.step_num AS step_num,
        s.found_rank AS found_rank
    FROM v1._launch_links AS s
),
_events AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_event_id AS device_event_id,
        e.device_id AS device_id,
        e.start_ps AS start_ps,
        e.end_ps AS end_ps,
        e.correlation_id AS correlation_id,
        e.execution_id AS execution_id,
        CASE WHEN t.track_kind = 'thread' THEN 1 ELSE 0 END AS is_on_host,
        CASE WHEN t.track_kind = 'thread' THEN e.device_event_id ELSE e.correlation_id END AS link_id
    FROM main.device_events AS e
    LEFT JOIN main.tracks AS t
        ON t.capture_id = e.capture_id
        AND t.track_id = e.track_id
    WHERE e.role = 'work'
),
_work AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_event_id AS device_event_id,
        e.device_id AS device_id,
        e.start_ps AS start_ps,
        e.end_ps AS end_ps,
        CASE
            WHEN l.found_rank <= 2 THEN l.step_num
            ELSE COALESCE(x.step_num, m.step_num, l.step_num)
        END AS step_num,
        CASE
            WHEN l.found_rank <= 2 THEN l.found_rank
            WHEN x.step_num IS NOT NULL OR m.step_num IS NOT NULL THEN 2
            ELSE l.found_rank
        END AS found_rank,
        e.correlation_id AS correlation_id
    FROM _events AS e
    LEFT JOIN _links AS l
        ON l.capture_id = e.capture_id
        AND l.is_on_host = e.is_on_host
        AND l.link_id = e.link_id
    LEFT JOIN v1._execution_steps AS x
        ON x.capture_id = e.capture_id
        AND x.execution_id = e.execution_id
        AND x.device_id IS NULL
    LEFT JOIN _module_steps AS m
        ON m.capture_id = e.capture_id
        AND m.device_event_id = e.device_event_id
),
_windows AS (
    SELECT
        w.capture_id AS capture_id,
        w.device_id AS device_id,
        w.step_num AS step_num,
        MIN(w.start_ps) AS window_start_ps,
        MAX(w.end_ps) AS window_end_ps
    FROM _work AS w
    WHERE w.step_num IS NOT NULL
    GROUP BY
        w.capture_id,
        w.device_id,
        w.step_num
),
_first_calls AS (
    SELECT
        h.capture_id AS capture_id,
        MIN(h.correlation_id) AS first_id
    FROM main.host_events AS h
    WHERE h.correlation_id IS NOT NULL
    GROUP BY h.capture_id
),
_unlinked AS (
    SELECT
        w.capture_id AS capture_id,
        w.device_event_id AS device_event_id,
        w.device_id AS device_id,
        w.start_ps AS start_ps,
        w.end_ps AS end_ps,
        MIN(d.step_num) AS window_step
    FROM _work AS w
    INNER JOIN _windows AS d
        ON d.capture_id = w.capture_id
        AND d.device_id = w.device_id
        AND w.start_ps >= d.window_start_ps
        AND w.start_ps < d.window_end_ps
    LEFT JOIN main.host_events AS h
        ON h.capture_id = w.capture_id
        AND h.correlation_id = w.correlation_id
    LEFT JOIN _first_calls AS c
        ON c.capture_id = w.capture_id
    WHERE w.step_num IS NULL
        AND h.host_event_id IS NULL
        AND (w.correlation_id IS NULL OR c.first_id IS NULL OR w.correlation_id > c.first_id)
    GROUP BY
        w.capture_id,
        w.device_event_id,
        w.device_id,
        w.start_ps,
        w.end_ps
)
SELECT
    w.capture_id AS capture_id,
    w.device_event_id AS device_event_id,
    w.device_id AS device_id,
    w.step_num AS step_num,
    w.found_rank AS found_rank,
    w.start_ps AS start_ps,
    w.end_ps AS end_ps
FROM _work AS w
WHERE w.step_num IS NOT NULL
UNION ALL
SELECT
    u.capture_id AS capture_id,
    u.device_event_id AS device_event_id,
    u.device_id AS device_id,
    u.window_step AS step_num,
    4 AS found_rank,
    u.start_ps AS start_ps,
    CASE WHEN u.end_ps > d.window_end_ps THEN d.window_end_ps ELSE u.end_ps END AS end_ps
FROM _unlinked AS u
INNER JOIN _windows AS d
    ON d.capture_id = u.capture_id
    AND d.device_id = u.device_id
    AND d.step_num = u.window_step
