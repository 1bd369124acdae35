-- name: v1._program_calls
-- version: 1
-- grain: one row per host event around launches of the step program
-- summary: Calls of the step program, in captures whose devices tell no executions.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   host_event_id BIGINT: the host event
--   track_id BIGINT: its thread
--   name_id BIGINT: names.name_id of the program
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end
-- algorithm: The first that the capture has: calls of the jitted function from Python (PjitFunction); host events
--   that XLA puts around the launches of a program on one device (NAME:XLA GPU module). They have the name of the
--   program alone. Where that is the name of several, those count in which work of the program is launched: on
--   their thread, or, where none is, on any thread, since some tracers put launches on threads of their own. Where
--   none is either, all of that name count.

WITH _host_names AS (
    SELECT DISTINCT
        h.capture_id AS capture_id,
        h.name_id AS name_id,
        p.name_id AS program_name_id,
        p.program_name AS program_name,
        p.program_id AS program_id
    FROM v1._step_programs AS p
    INNER JOIN main.host_events AS h
        ON h.capture_id = p.capture_id
    WHERE p.has_module_runs = 0
        AND p.has_executions = 0
),
_kinds AS (
    SELECT
        h.capture_id AS capture_id,
        h.name_id AS name_id,
        h.program_name_id AS program_name_id,
        h.program_id AS program_id,
        CASE
            WHEN 'jit_' || NULLIF(REGEXP_EXTRACT(n.name, '^PjitFunction[(]([^()]*)[)]$', 1), '') = h.program_name
                THEN 1
            WHEN 'jit_' || NULLIF(REGEXP_EXTRACT(n.name, '^PjitFunction[(]jit[(]([^()]*)[)][)]$', 1), '')
                = h.program_name
                THEN 1
            WHEN n.name = h.program_name || ':XLA GPU module' THEN 2
        END AS kind
    FROM _host_names AS h
    INNER JOIN main.names AS n
        ON n.name_id = h.name_id
),
_calls AS (
    SELECT
        h.capture_id AS capture_id,
        h.host_event_id AS host_event_id,
        h.track_id AS track_id,
        k.program_name_id AS program_name_id,
        k.program_id AS program_id,
        k.kind AS kind,
        h.start_ps AS start_ps,
        h.end_ps AS end_ps
    FROM _kinds AS k
    INNER JOIN main.host_events AS h
        ON h.capture_id = k.capture_id
        AND h.name_id = k.name_id
    WHERE k.kind IS NOT NULL
),
_launches AS (
    SELECT DISTINCT
        h.capture_id AS capture_id,
        h.track_id AS track_id,
        h.start_ps AS start_ps
    FROM v1._step_programs AS p
    INNER JOIN main.device_events AS e
        ON e.capture_id = p.capture_id
        AND e.role = 'work'
    INNER JOIN main.ops AS o
        ON o.capture_id = e.capture_id
        AND o.op_id = e.op_id
        AND o.hlo_module_name_id = p.name_id
        AND o.program_id = p.program_id
    INNER JOIN main.host_events AS h
        ON h.capture_id = e.capture_id
        AND h.correlation_id = e.correlation_id
    WHERE p.has_module_runs = 0
        AND p.has_executions = 0
),
_points AS (
    SELECT
        c.capture_id AS capture_id,
        c.track_id AS track_id,
        c.host_event_id AS host_event_id,
        c.start_ps AS at_ps,
        1 AS point_order
    FROM _calls AS c
    WHERE c.program_id IS NOT NULL
    UNION ALL
    SELECT
        l.capture_id AS capture_id,
        l.track_id AS track_id,
        CAST(NULL AS BIGINT) AS host_event_id,
        l.start_ps AS at_ps,
        2 AS point_order
    FROM _launches AS l
    UNION ALL
    SELECT
        d.capture_id AS capture_id,
        d.track_id AS track_id,
        d.host_event_id AS host_event_id,
        d.end_ps AS at_ps,
        3 AS point_order
    FROM _calls AS d
    WHERE d.program_id IS NOT NULL
),
_counted AS (
    SELECT
        p.capture_id AS capture_id,
        p.host_event_id AS host_event_id,
        p.point_order AS point_order,
        CAST(SUM(CASE WHEN p.point_order = 2 THEN 1 ELSE 0 END) OVER (
            PARTITION BY p.capture_id, p.track_id
            ORDER BY p.at_ps NULLS FIRST, p.point_order NULLS FIRST, p.host_event_id NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT) AS before_on_thread,
        CAST(SUM(CASE WHEN p.point_order = 2 THEN 1 ELSE 0 END) OVER (
            PARTITION BY p.capture_id
            ORDER BY p.at_ps NULLS FIRST, p.point_order NULLS FIRST, p.host_event_id NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT) AS before_on_any
    FROM _points AS p
),
_held AS (
    SELECT
        c.capture_id AS capture_id,
        c.host_event_id AS host_event_id,
        MAX(CASE WHEN c.point_order = 3 THEN c.before_on_thread END)
            - MAX(CASE WHEN c.point_order = 1 THEN c.before_on_thread END) AS thread_count,
        MAX(CASE WHEN c.point_order = 3 THEN c.before_on_any END)
            - MAX(CASE WHEN c.point_order = 1 THEN c.before_on_any END) AS any_count
    FROM _counted AS c
    WHERE c.host_event_id IS NOT NULL
    GROUP BY
        c.capture_id,
        c.host_event_id
),
_ranked AS (
    SELECT
        c.capture_id AS capture_id,
        c.host_event_id AS host_event_id,
        c.track_id AS track_id,
        c.program_name_id AS program_name_id,
        c.start_ps AS start_ps,
        c.end_ps AS end_ps,
        CASE
            WHEN h.thread_count > 0 THEN c.kind
            WHEN h.any_count > 0 THEN 2 + c.kind
            ELSE 4 + c.kind
        END AS call_rank
    FROM _calls AS c
    LEFT JOIN _held AS h
        ON h.capture_id = c.capture_id
        AND h.host_event_id = c.host_event_id
),
_first AS (
    SELECT
        r.capture_id AS capture_id,
        r.host_event_id AS host_event_id,
        r.track_id AS track_id,
        r.program_name_id AS program_name_id,
        r.start_ps AS start_ps,
        r.end_ps AS end_ps,
        r.call_rank AS call_rank,
        MIN(r.call_rank) OVER (PARTITION BY r.capture_id) AS first_rank
    FROM _ranked AS r
)
SELECT
    f.capture_id AS capture_id,
    f.host_event_id AS host_event_id,
    f.track_id AS track_id,
    f.program_name_id AS name_id,
    f.start_ps AS start_ps,
    f.end_ps AS end_ps
FROM _first AS f
WHERE f.call_rank = f.first_rank
