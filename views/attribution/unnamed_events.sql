-- name: v1._unnamed_events
-- version: 1
-- grain: one row per device event on a stream of a ROCm capture that names no instruction, between two that do
-- summary: Events without an instruction in runs of such events, with the instructions before and after the run.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   device_event_id BIGINT: the event
--   name_id BIGINT: names.name_id of the kernel or copy
--   sequence_id BIGINT: number in the capture of the run; runs of the same kernels between the same instructions
--     share it
--   sequence_rank BIGINT: place of the event in its run, from 1 on
--   sequence_length BIGINT (count): events of the run
--   before_name_id BIGINT: names.name_id of the kernel before the run
--   before_program_id BIGINT: its program
--   before_op_name_id BIGINT: names.name_id of its instruction
--   after_name_id BIGINT: names.name_id of the kernel after the run
--   after_program_id BIGINT: its program
--   after_op_name_id BIGINT: names.name_id of its instruction
-- algorithm: A run is what lies between two events of a stream that name an instruction. What comes before the
--   first or after the last such event, and streams without any, tell no place. Two runs are the same where the
--   sums of their name ids, weighted by place, are equal; readers leave out places where they differ all the
--   same.

WITH _unnamed AS (
    SELECT
        s.capture_id AS capture_id,
        s.device_event_id AS device_event_id,
        s.track_id AS track_id,
        s.stream_rank AS stream_rank,
        s.name_id AS name_id,
        s.stream_rank - ROW_NUMBER() OVER (
            PARTITION BY s.capture_id, s.track_id
            ORDER BY s.stream_rank NULLS FIRST
        ) AS rank_before
    FROM v1._stream_ranks AS s
    WHERE s.hlo_op_name_id IS NULL
),
_runs AS (
    SELECT
        u.capture_id AS capture_id,
        u.device_event_id AS device_event_id,
        u.track_id AS track_id,
        u.name_id AS name_id,
        MIN(u.stream_rank) OVER (PARTITION BY u.capture_id, u.track_id, u.rank_before) AS first_rank,
        COUNT(*) OVER (PARTITION BY u.capture_id, u.track_id, u.rank_before) AS sequence_length,
        ROW_NUMBER() OVER (
            PARTITION BY u.capture_id, u.track_id, u.rank_before
            ORDER BY u.stream_rank NULLS FIRST
        ) AS sequence_rank
    FROM _unnamed AS u
),
_between AS (
    SELECT
        r.capture_id AS capture_id,
        r.device_event_id AS device_event_id,
        r.name_id AS name_id,
        r.sequence_rank AS sequence_rank,
        r.sequence_length AS sequence_length,
        b.name_id AS before_name_id,
        b.program_id AS before_program_id,
        b.hlo_op_name_id AS before_op_name_id,
        a.name_id AS after_name_id,
        a.program_id AS after_program_id,
        a.hlo_op_name_id AS after_op_name_id,
        CAST(SUM(r.sequence_rank * r.name_id) OVER (
            PARTITION BY r.capture_id, r.track_id, r.first_rank
        ) AS BIGINT) AS first_sum,
        CAST(SUM(MOD(r.sequence_rank * r.sequence_rank, 10007) * r.name_id) OVER (
            PARTITION BY r.capture_id, r.track_id, r.first_rank
        ) AS BIGINT) AS second_sum
    FROM _runs AS r
    INNER JOIN v1._stream_ranks AS b
        ON b.capture_id = r.capture_id
        AND b.track_id = r.track_id
        AND b.stream_rank = r.first_rank - 1
    INNER JOIN v1._stream_ranks AS a
        ON a.capture_id = r.capture_id
        AND a.track_id = r.track_id
        AND a.stream_rank = r.first_rank + r.sequence_length
    WHERE b.program_id IS NOT NULL
        AND a.program_id IS NOT NULL
)
SELECT
    b.capture_id AS capture_id,
    b.device_event_id AS device_event_id,
    b.name_id AS name_id,
    RANK() OVER (
        PARTITION BY b.capture_id
        ORDER BY
            b.before_name_id NULLS FIRST,
            b.before_program_id NULLS FIRST,
            b.before_op_name_id NULLS FIRST,
            b.after_name_id NULLS FIRST,
            b.after_program_id NULLS FIRST,
            b.after_op_name_id NULLS FIRST,
            b.sequence_length NULLS FIRST,
            b.first_sum NULLS FIRST,
            b.second_sum NULLS FIRST
    ) AS sequence_id,
    b.sequence_rank AS sequence_rank,
    b.sequence_length AS sequence_length,
    b.before_name_id AS before_name_id,
    b.before_program_id AS before_program_id,
    b.before_op_name_id AS before_op_name_id,
    b.after_name_id AS after_name_id,
    b.after_program_id AS after_program_id,
    b.after_op_name_id AS after_op_name_id
FROM _between AS b
