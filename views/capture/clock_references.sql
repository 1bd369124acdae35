-- name: v1._clock_references
-- version: 1
-- grain: one row per capture with a wall clock
-- summary: Which capture of its run each capture is aligned with, and the distance of their wall clocks.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   reference_capture_id BIGINT: of those that ran together, the one with the lowest process_index, then the
--     lowest capture_id; itself for one that ran alone
--   is_comparable BOOLEAN: its collectives may be those of the reference: both ran at the same time, and they
--     are not two captures of one process
--   start_offset_ps BIGINT (ps): origin of the capture less that of its reference; NULL beyond 104 days, which
--     no BIGINT of picoseconds holds
-- algorithm: A capture lasts from its origin to the end of its last device event. Captures of one run that
--   overlap, directly or through others, ran together.

WITH _ends AS (
    SELECT
        e.capture_id AS capture_id,
        MAX(e.end_ps) AS last_end_ps
    FROM main.device_events AS e
    INNER JOIN v1._sibling_captures AS s
        ON s.capture_id = e.capture_id
    WHERE e.role = 'work'
    GROUP BY e.capture_id
),
_spans AS (
    SELECT
        c.run_id AS run_id,
        c.capture_id AS capture_id,
        c.process_index AS process_index,
        CASE WHEN c.process_index IS NULL THEN 1 ELSE 0 END AS is_unnumbered,
        c.origin_unix_ns AS origin_unix_ns,
        -- As doubles, since picoseconds of the wall clock exceed a BIGINT; whether two captures overlap does
        -- not depend on the 256 ns that this costs.
        CAST(c.origin_unix_ns AS DOUBLE) AS start_ns,
        CAST(c.origin_unix_ns AS DOUBLE) + CAST(GREATEST(COALESCE(e.last_end_ps, 0), 0) AS DOUBLE) / 1e3
            AS end_ns
    FROM main.captures AS c
    LEFT JOIN _ends AS e
        ON e.capture_id = c.capture_id
    WHERE c.origin_unix_ns IS NOT NULL
        AND c.source_kind <> 'hlo'
),
_ordered AS (
    SELECT
        s.run_id AS run_id,
        s.capture_id AS capture_id,
        s.process_index AS process_index,
        s.is_unnumbered AS is_unnumbered,
        s.origin_unix_ns AS origin_unix_ns,
        s.start_ns AS start_ns,
        s.end_ns AS end_ns,
        MAX(s.end_ns) OVER (
            PARTITION BY s.run_id
            ORDER BY s.start_ns NULLS FIRST, s.capture_id NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        ) AS end_before_ns
    FROM _spans AS s
),
_together AS (
    SELECT
        o.run_id AS run_id,
        o.capture_id AS capture_id,
        o.process_index AS process_index,
        o.is_unnumbered AS is_unnumbered,
        o.origin_unix_ns AS origin_unix_ns,
        o.start_ns AS start_ns,
        o.end_ns AS end_ns,
        CAST(SUM(CASE WHEN o.start_ns > o.end_before_ns THEN 1 ELSE 0 END) OVER (
            PARTITION BY o.run_id
            ORDER BY o.start_ns NULLS FIRST, o.capture_id NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT) AS group_number
    FROM _ordered AS o
),
_ranked AS (
    SELECT
        t.run_id AS run_id,
        t.group_number AS group_number,
        t.capture_id AS capture_id,
        t.process_index AS process_index,
        t.origin_unix_ns AS origin_unix_ns,
        t.start_ns AS start_ns,
        t.end_ns AS end_ns,
        ROW_NUMBER() OVER (
            PARTITION BY t.run_id, t.group_number
            ORDER BY t.is_unnumbered NULLS FIRST, t.process_index NULLS FIRST, t.capture_id NULLS FIRST
        ) AS reference_rank
    FROM _together AS t
)
SELECT
    c.capture_id AS capture_id,
    r.capture_id AS reference_capture_id,
    c.capture_id <> r.capture_id
    AND c.start_ns <= r.end_ns
    AND r.start_ns <= c.end_ns
    AND (c.process_index IS NULL OR r.process_index IS NULL OR c.process_index <> r.process_index)
        AS is_comparable,
    CASE
        WHEN ABS(c.start_ns - r.start_ns) < 9e15 THEN (c.origin_unix_ns - r.origin_unix_ns) * 1000
    END AS start_offset_ps
FROM _ranked AS c
INNER JOIN _ranked AS r
    ON r.run_id = c.run_id
    AND r.group_number = c.group_number
    AND r.reference_rank = 1
