-- name: v1._stream_ranks
-- version: 1
-- grain: one row per device event of a ROCm capture in which streams name only some of their instructions
-- summary: The events of each stream in their order, with the instruction that each names.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   device_event_id BIGINT: the event
--   track_id BIGINT: its stream
--   stream_rank BIGINT: its place on the stream, from 1 on
--   name_id BIGINT: names.name_id of the kernel or copy
--   program_id BIGINT: program that it names; NULL where it names none
--   hlo_op_name_id BIGINT: names.name_id of the instruction that it names; NULL where it names none
--   op_name_id BIGINT: names.name_id of the JAX name stack that it carries; NULL where it carries none
-- algorithm: ROCm's collector loses the annotation of a launch whose correlation id two calls share. That is
--   known of no other, so that captures of others have no rows; nor have those without HLO, and those without a
--   stream on which some events name their instruction and some do not.

WITH _streams AS (
    SELECT
        e.capture_id AS capture_id,
        e.track_id AS track_id
    FROM main.captures AS c
    INNER JOIN main.device_events AS e
        ON e.capture_id = c.capture_id
    LEFT JOIN main.ops AS o
        ON o.capture_id = e.capture_id
        AND o.op_id = e.op_id
    WHERE c.platform = 'rocm'
        AND e.role = 'work'
    GROUP BY
        e.capture_id,
        e.track_id
    HAVING COUNT(o.hlo_op_name_id) > 0
        AND COUNT(o.hlo_op_name_id) < COUNT(*)
),
_captures AS (
    SELECT DISTINCT
        s.capture_id AS capture_id
    FROM _streams AS s
    INNER JOIN main.hlo_programs AS p
        ON p.capture_id = s.capture_id
)
SELECT
    e.capture_id AS capture_id,
    e.device_event_id AS device_event_id,
    e.track_id AS track_id,
    ROW_NUMBER() OVER (
        PARTITION BY e.capture_id, e.track_id
        ORDER BY e.start_ps NULLS FIRST, e.device_event_id NULLS FIRST
    ) AS stream_rank,
    e.name_id AS name_id,
    o.program_id AS program_id,
    o.hlo_op_name_id AS hlo_op_name_id,
    o.op_name_id AS op_name_id
FROM main.device_events AS e
INNER JOIN _captures AS c
    ON c.capture_id = e.capture_id
LEFT JOIN main.ops AS o
    ON o.capture_id = e.capture_id
    AND o.op_id = e.op_id
WHERE e.role = 'work'
