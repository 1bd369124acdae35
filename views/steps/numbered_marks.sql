-- name: v1._numbered_marks
-- version: 1
-- grain: one row per mark of a step by the user's word, or execution of the step program
-- summary: Marks that are no annotations, with the number of their step.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   host_event_id BIGINT: the host event; NULL for an execution that the device tells
--   track_id BIGINT: its thread
--   device_id BIGINT: device of an execution; NULL for one of all devices
--   execution_id BIGINT: the runtime's number of the execution
--   name_id BIGINT: names.name_id of the text that matches, or of the program
--   step_num BIGINT: the step
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end
--   mark_source VARCHAR: marker or program_run
-- algorithm: The stated numbers count where each mark of the capture states one, unless all are one number at
--   the end of a name that comes again. Otherwise the steps are 0, 1, ... in their order: a mark
--   inside another of its thread is left out; marks of different threads that overlap, directly or through
--   others, are one group; groups follow one another, and in a group the kth of each thread is one
--   step. So neither devices that run apart nor a pool of threads make two steps of one. Devices count as
--   threads here. A stated number that comes again later is left out, as in v1._step_annotations. The
--   rows are kept in main.numbered_marks.

WITH _marks AS (
    SELECT
        m.capture_id AS capture_id,
        m.host_event_id AS host_event_id,
        m.track_id AS track_id,
        CAST(NULL AS BIGINT) AS device_id,
        CAST(NULL AS BIGINT) AS execution_id,
        m.name_id AS name_id,
        m.track_id AS lane_id,
        m.host_event_id AS tie,
        m.stated_num AS stated_num,
        m.is_certain AS is_certain,
        m.start_ps AS start_ps,
        m.end_ps AS end_ps,
        'marker' AS mark_source
    FROM v1._marked_events AS m
    UNION ALL
    SELECT
        r.capture_id AS capture_id,
        r.host_event_id AS host_event_id,
        r.track_id AS track_id,
        r.device_id AS device_id,
        r.execution_id AS execution_id,
        r.name_id AS name_id,
        COALESCE(r.track_id, r.device_id, 0) AS lane_id,
        COALESCE(r.host_event_id, r.execution_id) AS tie,
        CAST(NULL AS BIGINT) AS stated_num,
        0 AS is_certain,
        r.start_ps AS start_ps,
        r.end_ps AS end_ps,
        'program_run' AS mark_source
    FROM v1._program_runs AS r
),
_nested AS (
    SELECT
        m.capture_id AS capture_id,
        m.host_event_id AS host_event_id,
        m.track_id AS track_id,
        m.device_id AS device_id,
        m.execution_id AS execution_id,
        m.name_id AS name_id,
        m.lane_id AS lane_id,
        m.tie AS tie,
        m.stated_num AS stated_num,
        m.is_certain AS is_certain,
        m.start_ps AS start_ps,
        m.end_ps AS end_ps,
        m.mark_source AS mark_source,
        CASE
            WHEN m.end_ps <= MAX(m.end_ps) OVER (
                PARTITION BY m.capture_id, m.lane_id
                ORDER BY m.start_ps NULLS FIRST, -m.end_ps NULLS FIRST, m.tie NULLS FIRST
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            )
                AND m.execution_id IS NULL
                THEN 1
            ELSE 0
        END AS is_inner
    FROM _marks AS m
),
_begun AS (
    SELECT
        n.capture_id AS capture_id,
        n.host_event_id AS host_event_id,
        n.track_id AS track_id,
        n.device_id AS device_id,
        n.execution_id AS execution_id,
        n.name_id AS name_id,
        n.lane_id AS lane_id,
        n.tie AS tie,
        n.stated_num AS stated_num,
        n.is_certain AS is_certain,
        n.start_ps AS start_ps,
        n.end_ps AS end_ps,
        n.mark_source AS mark_source,
        n.is_inner AS is_inner,
        CASE
            WHEN n.start_ps < MAX(n.end_ps) OVER (
                PARTITION BY n.capture_id, n.is_inner
                ORDER BY n.start_ps NULLS FIRST, -n.end_ps NULLS FIRST, n.lane_id NULLS FIRST,
                    n.tie NULLS FIRST
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            )
                THEN 0
            ELSE 1
        END AS begins_group
    FROM _nested AS n
),
_grouped AS (
    SELECT
        b.capture_id AS capture_id,
        b.host_event_id AS host_event_id,
        b.track_id AS track_id,
        b.device_id AS device_id,
        b.execution_id AS execution_id,
        b.name_id AS name_id,
        b.lane_id AS lane_id,
        b.tie AS tie,
        b.stated_num AS stated_num,
        b.is_certain AS is_certain,
        b.start_ps AS start_ps,
        b.end_ps AS end_ps,
        b.mark_source AS mark_source,
        b.is_inner AS is_inner,
        CAST(SUM(b.begins_group) OVER (
            PARTITION BY b.capture_id, b.is_inner
            ORDER BY b.start_ps NULLS FIRST, -b.end_ps NULLS FIRST, b.lane_id NULLS FIRST, b.tie NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT) AS group_num
    FROM _begun AS b
),
_ranked AS (
    SELECT
        g.capture_id AS capture_id,
        g.host_event_id AS host_event_id,
        g.track_id AS track_id,
        g.device_id AS device_id,
        g.execution_id AS execution_id,
        g.name_id AS name_id,
        g.lane_id AS lane_id,
        g.stated_num AS stated_num,
        g.is_certain AS is_certain,
        g.start_ps AS start_ps,
        g.end_ps AS end_ps,
        g.mark_source AS mark_source,
        g.is_inner AS is_inner,
        g.group_num AS group_num,
        ROW_NUMBER() OVER (
            PARTITION BY g.capture_id, g.is_inner, g.group_num, g.lane_id
            ORDER BY g.start_ps NULLS FIRST, -g.end_ps NULLS FIRST, g.tie NULLS FIRST
        ) AS lane_rank
    FROM _grouped AS g
),
_first AS (
    SELECT
        r.capture_id AS capture_id,
        r.host_event_id AS host_event_id,
        r.track_id AS track_id,
        r.device_id AS device_id,
        r.execution_id AS execution_id,
        r.name_id AS name_id,
        r.lane_id AS lane_id,
        r.stated_num AS stated_num,
        r.is_certain AS is_certain,
        r.start_ps AS start_ps,
        r.end_ps AS end_ps,
        r.mark_source AS mark_source,
        r.is_inner AS is_inner,
        r.group_num AS group_num,
        r.lane_rank AS lane_rank,
        CASE
            WHEN ROW_NUMBER() OVER (
                PARTITION BY r.capture_id, r.is_inner, r.group_num, r.lane_rank
                ORDER BY r.lane_id NULLS FIRST
            ) = 1
                THEN 1
            ELSE 0
        END AS is_first
    FROM _ranked AS r
),
_ordered AS (
    SELECT
        f.capture_id AS capture_id,
        f.host_event_id AS host_event_id,
        f.track_id AS track_id,
        f.device_id AS device_id,
        f.execution_id AS execution_id,
        f.name_id AS name_id,
        f.stated_num AS stated_num,
        f.start_ps AS start_ps,
        f.end_ps AS end_ps,
        f.mark_source AS mark_source,
        f.is_inner AS is_inner,
        MIN(CASE WHEN f.stated_num IS NULL THEN 0 ELSE 1 END) OVER (PARTITION BY f.capture_id) AS all_state,
        MIN(f.is_certain) OVER (PARTITION BY f.capture_id) AS all_certain,
        MIN(f.stated_num) OVER (PARTITION BY f.capture_id) AS lowest_num,
        MAX(f.stated_num) OVER (PARTITION BY f.capture_id) AS highest_num,
        CAST(SUM(CASE WHEN f.is_inner = 0 THEN f.is_first ELSE 0 END) OVER (PARTITION BY f.capture_id)
            AS BIGINT) AS step_count,
        CAST(SUM(f.is_first) OVER (
            PARTITION BY f.capture_id, f.is_inner
            ORDER BY f.group_num NULLS FIRST, f.lane_rank NULLS FIRST, f.lane_id NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT) AS step_rank
    FROM _first AS f
),
_numbered AS (
    SELECT
        o.capture_id AS capture_id,
        o.host_event_id AS host_event_id,
        o.track_id AS track_id,
        o.device_id AS device_id,
        o.execution_id AS execution_id,
        o.name_id AS name_id,
        o.start_ps AS start_ps,
        o.end_ps AS end_ps,
        o.mark_source AS mark_source,
        o.is_inner AS is_inner,
        CASE
            WHEN o.all_state = 1 AND (
                o.all_certain = 1 OR o.lowest_num < o.highest_num OR o.step_count = 1
            )
                THEN o.stated_num
        END AS kept_num,
        o.step_rank - 1 AS order_num
    FROM _ordered AS o
),
_spread AS (
    SELECT
        n.capture_id AS capture_id,
        n.host_event_id AS host_event_id,
        n.track_id AS track_id,
        n.device_id AS device_id,
        n.execution_id AS execution_id,
        n.name_id AS name_id,
        n.start_ps AS start_ps,
        n.end_ps AS end_ps,
        n.mark_source AS mark_source,
        COALESCE(n.kept_num, n.order_num) AS step_num,
        CASE
            WHEN n.kept_num IS NULL THEN 0
            WHEN n.start_ps >= MAX(n.end_ps) OVER (
                PARTITION BY n.capture_id, n.kept_num
                ORDER BY n.start_ps NULLS FIRST, n.end_ps NULLS FIRST, n.host_event_id NULLS FIRST
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            )
                THEN 1
            ELSE 0
        END AS is_apart
    FROM _numbered AS n
    WHERE n.kept_num IS NOT NULL
        OR n.is_inner = 0
),
_kept AS (
    SELECT
        s.capture_id AS capture_id,
        s.host_event_id AS host_event_id,
        s.track_id AS track_id,
        s.device_id AS device_id,
        s.execution_id AS execution_id,
        s.name_id AS name_id,
        s.step_num AS step_num,
        s.start_ps AS start_ps,
        s.end_ps AS end_ps,
        s.mark_source AS mark_source,
        MAX(s.is_apart) OVER (
            PARTITION BY s.capture_id, s.step_num
            ORDER BY s.start_ps NULLS FIRST, s.end_ps NULLS FIRST, s.host_event_id NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS is_later
    FROM _spread AS s
)
SELECT
    k.capture_id AS capture_id,
    k.host_event_id AS host_event_id,
    k.track_id AS track_id,
    k.device_id AS device_id,
    k.execution_id AS execution_id,
    k.name_id AS name_id,
    k.step_num AS step_num,
    k.start_ps AS start_ps,
    k.end_ps AS end_ps,
    k.mark_source AS mark_source
FROM _kept AS k
WHERE k.is_later = 0
