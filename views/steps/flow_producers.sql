-- name: v1._flow_producers
-- version: 1
-- grain: one row per flow and host event that hands its work over
-- summary: Where and when work is handed over, and which taken-up work its thread was at by then.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   flow_type BIGINT: type of the flow
--   flow_id BIGINT: id of the flow within its type
--   track_id BIGINT: the thread
--   start_ps BIGINT (ps): start of the event that hands it over
--   carrier_type BIGINT: type of the flow that the thread had taken up by then; NULL for none
--   carrier_id BIGINT: id of that flow
--   carrier_start_ps BIGINT (ps): since when
-- algorithm: Of the ranges of the thread that take up work and are open, the last to begin counts, or where that
--   has ended, the last to end, as in v1._launch_links. A range begins a group of its own in the order by
--   running maxima, so that the group has its values, and no join is needed. Work from an unknown place is not
--   counted as taken up.

WITH _flows AS (
    SELECT
        f.capture_id AS capture_id,
        f.producer_type AS flow_type,
        f.producer_id AS flow_id,
        h.track_id AS track_id,
        h.host_event_id AS host_event_id,
        h.start_ps AS start_ps,
        h.end_ps AS end_ps,
        1 AS is_point
    FROM main.host_flows AS f
    INNER JOIN main.host_events AS h
        ON h.capture_id = f.capture_id
        AND h.host_event_id = f.host_event_id
    WHERE f.producer_id IS NOT NULL
    UNION ALL
    SELECT
        c.capture_id AS capture_id,
        c.flow_type AS flow_type,
        c.flow_id AS flow_id,
        c.track_id AS track_id,
        c.host_event_id AS host_event_id,
        c.start_ps AS start_ps,
        c.end_ps AS end_ps,
        0 AS is_point
    FROM v1._flow_takers AS c
),
_ranked AS (
    SELECT
        f.capture_id AS capture_id,
        f.flow_type AS flow_type,
        f.flow_id AS flow_id,
        f.track_id AS track_id,
        f.start_ps AS start_ps,
        f.end_ps AS end_ps,
        f.is_point AS is_point,
        CASE
            WHEN f.is_point = 0 THEN ROW_NUMBER() OVER (
                PARTITION BY f.capture_id, f.track_id
                ORDER BY f.start_ps NULLS FIRST, f.end_ps NULLS FIRST, f.host_event_id NULLS FIRST,
                    f.is_point NULLS FIRST
            )
        END AS start_rank,
        CASE
            WHEN f.is_point = 0 THEN ROW_NUMBER() OVER (
                PARTITION BY f.capture_id, f.track_id
                ORDER BY f.end_ps NULLS FIRST, f.start_ps NULLS FIRST, f.host_event_id NULLS FIRST,
                    f.is_point NULLS FIRST
            )
        END AS end_rank
    FROM _flows AS f
),
_open AS (
    SELECT
        r.capture_id AS capture_id,
        r.flow_type AS flow_type,
        r.flow_id AS flow_id,
        r.track_id AS track_id,
        r.start_ps AS start_ps,
        r.end_ps AS end_ps,
        r.is_point AS is_point,
        r.start_rank AS start_rank,
        r.end_rank AS end_rank,
        MAX(r.start_rank) OVER (
            PARTITION BY r.capture_id, r.track_id
            ORDER BY r.start_ps NULLS FIRST, r.is_point NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS last_begun,
        MAX(r.end_rank) OVER (
            PARTITION BY r.capture_id, r.track_id
            ORDER BY r.start_ps NULLS FIRST, r.is_point NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS last_ended
    FROM _ranked AS r
),
_found AS (
    SELECT
        o.capture_id AS capture_id,
        o.flow_type AS flow_type,
        o.flow_id AS flow_id,
        o.track_id AS track_id,
        o.start_ps AS start_ps,
        o.is_point AS is_point,
        MAX(CASE WHEN o.start_rank = o.last_begun THEN o.end_ps END)
            OVER (PARTITION BY o.capture_id, o.track_id, o.last_begun) AS begun_end_ps,
        MAX(CASE WHEN o.start_rank = o.last_begun THEN o.start_ps END)
            OVER (PARTITION BY o.capture_id, o.track_id, o.last_begun) AS begun_start_ps,
        MAX(CASE WHEN o.start_rank = o.last_begun THEN o.flow_type END)
            OVER (PARTITION BY o.capture_id, o.track_id, o.last_begun) AS begun_type,
        MAX(CASE WHEN o.start_rank = o.last_begun THEN o.flow_id END)
            OVER (PARTITION BY o.capture_id, o.track_id, o.last_begun) AS begun_id,
        MAX(CASE WHEN o.end_rank = o.last_ended THEN o.end_ps END)
            OVER (PARTITION BY o.capture_id, o.track_id, o.last_ended) AS ended_end_ps,
        MAX(CASE WHEN o.end_rank = o.last_ended THEN o.start_ps END)
            OVER (PARTITION BY o.capture_id, o.track_id, o.last_ended) AS ended_start_ps,
        MAX(CASE WHEN o.end_rank = o.last_ended THEN o.flow_type END)
            OVER (PARTITION BY o.capture_id, o.track_id, o.last_ended) AS ended_type,
        MAX(CASE WHEN o.end_rank = o.last_ended THEN o.flow_id END)
            OVER (PARTITION BY o.capture_id, o.track_id, o.last_ended) AS ended_id
    FROM _open AS o
)
SELECT DISTINCT
    f.capture_id AS capture_id,
    f.flow_type AS flow_type,
    f.flow_id AS flow_id,
    f.track_id AS track_id,
    f.start_ps AS start_ps,
    CASE
        WHEN f.begun_end_ps > f.start_ps THEN f.begun_type
        WHEN f.ended_end_ps > f.start_ps THEN f.ended_type
    END AS carrier_type,
    CASE
        WHEN f.begun_end_ps > f.start_ps THEN f.begun_id
        WHEN f.ended_end_ps > f.start_ps THEN f.ended_id
    END AS carrier_id,
    CASE
        WHEN f.begun_end_ps > f.start_ps THEN f.begun_start_ps
        WHEN f.ended_end_ps > f.start_ps THEN f.ended_start_ps
    END AS carrier_start_ps
FROM _found AS f
WHERE f.is_point = 1
