-- name: v1._rccl_host_calls
-- version: 1
-- grain: one row per host call of RCCL that communicates, or forms groups of calls or communicators
-- summary: Calls of RCCL, the call around each, and what is launched together.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   host_event_id BIGINT: the call
--   correlation_id BIGINT: its id; NULL where it has none
--   name_id BIGINT: names.name_id of the function
--   function_role VARCHAR: communicates, group_start, group_end, forms or splits
--   kind VARCHAR: what it communicates; NULL where unknown
--   is_per_rank BOOLEAN: whether its count is of each rank; NULL where the count tells no payload
--   track_id BIGINT: the thread
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end
--   is_nested BOOLEAN: made inside of another call of RCCL on its thread, for which it works
--   unit_place BIGINT: with track_id, which calls the library launches together: those of a group up to the end
--     of the outermost, else one call with those inside of it; increases with time on the thread
-- algorithm: Calls on a thread nest. The first to begin of those that overlap encloses the others. Starts of
--   groups less ends, never below none, are the groups open at a call; the end that leaves none open launches.
--   A group that the trace cuts off at its end is launched by none of its calls: each is a unit of its own.

WITH _calls AS (
    SELECT
        h.capture_id AS capture_id,
        h.host_event_id AS host_event_id,
        h.correlation_id AS correlation_id,
        h.name_id AS name_id,
        f.function_role AS function_role,
        f.kind AS kind,
        f.is_per_rank AS is_per_rank,
        h.track_id AS track_id,
        h.start_ps AS start_ps,
        h.end_ps AS end_ps,
        ROW_NUMBER() OVER (
            PARTITION BY h.capture_id, h.track_id
            ORDER BY h.start_ps NULLS FIRST, -h.end_ps NULLS FIRST, h.host_event_id NULLS FIRST
        ) AS place,
        COALESCE(
            MAX(h.end_ps) OVER (
                PARTITION BY h.capture_id, h.track_id
                ORDER BY h.start_ps NULLS FIRST, -h.end_ps NULLS FIRST, h.host_event_id NULLS FIRST
                ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
            ) > h.start_ps,
            FALSE
        ) AS is_nested
    FROM main.host_events AS h
    INNER JOIN main.names AS n
        ON n.name_id = h.name_id
    INNER JOIN v1._rccl_functions AS f
        ON f.function_name = n.name
),
_opened AS (
    SELECT
        c.capture_id AS capture_id,
        c.host_event_id AS host_event_id,
        c.correlation_id AS correlation_id,
        c.name_id AS name_id,
        c.function_role AS function_role,
        c.kind AS kind,
        c.is_per_rank AS is_per_rank,
        c.track_id AS track_id,
        c.start_ps AS start_ps,
        c.end_ps AS end_ps,
        c.place AS place,
        c.is_nested AS is_nested,
        CAST(SUM(CASE
            WHEN c.is_nested THEN 0
            WHEN c.function_role = 'group_start' THEN 1
            WHEN c.function_role = 'group_end' THEN -1
            ELSE 0
        END) OVER (
            PARTITION BY c.capture_id, c.track_id
            ORDER BY c.place NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT) AS opened
    FROM _calls AS c
),
_floored AS (
    SELECT
        o.capture_id AS capture_id,
        o.host_event_id AS host_event_id,
        o.correlation_id AS correlation_id,
        o.name_id AS name_id,
        o.function_role AS function_role,
        o.kind AS kind,
        o.is_per_rank AS is_per_rank,
        o.track_id AS track_id,
        o.start_ps AS start_ps,
        o.end_ps AS end_ps,
        o.place AS place,
        o.is_nested AS is_nested,
        o.opened AS opened,
        MIN(o.opened) OVER (
            PARTITION BY o.capture_id, o.track_id
            ORDER BY o.place NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS lowest
    FROM _opened AS o
),
_closed AS (
    SELECT
        f.capture_id AS capture_id,
        f.host_event_id AS host_event_id,
        f.correlation_id AS correlation_id,
        f.name_id AS name_id,
        f.function_role AS function_role,
        f.kind AS kind,
        f.is_per_rank AS is_per_rank,
        f.track_id AS track_id,
        f.start_ps AS start_ps,
        f.end_ps AS end_ps,
        f.place AS place,
        f.is_nested AS is_nested,
        f.opened > LEAST(f.lowest, 0) AS is_in_group,
        MIN(CASE
            WHEN f.function_role = 'group_end' AND NOT f.is_nested AND f.opened <= LEAST(f.lowest, 0)
            THEN f.place
        END) OVER (
            PARTITION BY f.capture_id, f.track_id
            ORDER BY f.place NULLS FIRST
            ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        ) AS next_close
    FROM _floored AS f
),
_units AS (
    SELECT
        c.capture_id AS capture_id,
        c.host_event_id AS host_event_id,
        c.correlation_id AS correlation_id,
        c.name_id AS name_id,
        c.function_role AS function_role,
        c.kind AS kind,
        c.is_per_rank AS is_per_rank,
        c.track_id AS track_id,
        c.start_ps AS start_ps,
        c.end_ps AS end_ps,
        c.is_nested AS is_nested,
        MAX(CASE
            WHEN c.is_nested THEN NULL
            WHEN c.is_in_group THEN COALESCE(c.next_close, c.place)
            ELSE c.place
        END) OVER (
            PARTITION BY c.capture_id, c.track_id
            ORDER BY c.place NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS unit_place
    FROM _closed AS c
)
SELECT
    u.capture_id AS capture_id,
    u.host_event_id AS host_event_id,
    u.correlation_id AS correlation_id,
    u.name_id AS name_id,
    u.function_role AS function_role,
    u.kind AS kind,
    u.is_per_rank AS is_per_rank,
    u.track_id AS track_id,
    u.start_ps AS start_ps,
    u.end_ps AS end_ps,
    u.is_nested AS is_nested,
    u.unit_place AS unit_place
FROM _units AS u
