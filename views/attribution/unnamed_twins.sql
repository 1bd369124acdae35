-- name: v1._unnamed_twins
-- version: 1
-- grain: one row per capture, run of events without an instruction and event in it that is named elsewhere
-- summary: The op of the same kernel at the same place between the same instructions, where it is named.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   sequence_id BIGINT: as in v1._unnamed_events
--   sequence_rank BIGINT: place of the event in its run
--   program_id BIGINT: program of the op
--   hlo_op_name_id BIGINT: names.name_id of its instruction
--   op_name_id BIGINT: names.name_id of the JAX name stack that the op itself carries; NULL where it carries none
-- algorithm: The place is the number of events since the one before the run, and until the one after, where both
--   are of the same kernels and instructions, and all kernels between them are those of the run, on any stream
--   of the capture. The op is of the program of either of the two, and where the kernel is of several ops
--   there, none is told. Between two runs of the same kernel, a copy for one, nothing tells which of a row it
--   is.

WITH _sequences AS (
    SELECT
        e.capture_id AS capture_id,
        e.sequence_id AS sequence_id,
        e.sequence_rank AS sequence_rank,
        e.sequence_length AS sequence_length,
        e.before_name_id AS before_name_id,
        e.before_program_id AS before_program_id,
        e.before_op_name_id AS before_op_name_id,
        e.after_name_id AS after_name_id,
        e.after_program_id AS after_program_id,
        e.after_op_name_id AS after_op_name_id,
        MIN(e.name_id) AS any_name_id
    FROM v1._unnamed_events AS e
    GROUP BY
        e.capture_id,
        e.sequence_id,
        e.sequence_rank,
        e.sequence_length,
        e.before_name_id,
        e.before_program_id,
        e.before_op_name_id,
        e.after_name_id,
        e.after_program_id,
        e.after_op_name_id
    HAVING MIN(e.name_id) = MAX(e.name_id)
),
_places AS (
    SELECT
        b.capture_id AS capture_id,
        b.track_id AS track_id,
        b.stream_rank AS stream_rank,
        s.sequence_id AS sequence_id
    FROM _sequences AS s
    INNER JOIN v1._stream_ranks AS b
        ON b.capture_id = s.capture_id
        AND b.name_id = s.before_name_id
        AND b.program_id = s.before_program_id
        AND b.hlo_op_name_id = s.before_op_name_id
    INNER JOIN v1._stream_ranks AS a
        ON a.capture_id = b.capture_id
        AND a.track_id = b.track_id
        AND a.stream_rank = b.stream_rank + s.sequence_length + 1
        AND a.name_id = s.after_name_id
        AND a.program_id = s.after_program_id
        AND a.hlo_op_name_id = s.after_op_name_id
    WHERE s.sequence_rank = 1
    GROUP BY
        b.capture_id,
        b.track_id,
        b.stream_rank,
        s.sequence_id
),
_between AS (
    SELECT
        s.capture_id AS capture_id,
        s.sequence_id AS sequence_id,
        s.sequence_rank AS sequence_rank,
        s.sequence_length AS sequence_length,
        s.before_program_id AS before_program_id,
        s.after_program_id AS after_program_id,
        s.before_name_id = s.any_name_id AND s.after_name_id = s.any_name_id AS is_in_row,
        n.program_id AS own_program_id,
        n.hlo_op_name_id AS own_hlo_op_id,
        n.op_name_id AS own_op_name_id,
        COUNT(*) OVER (PARTITION BY s.capture_id, s.sequence_id, p.track_id, p.stream_rank) AS kernel_count
    FROM _sequences AS s
    INNER JOIN _places AS p
        ON p.capture_id = s.capture_id
        AND p.sequence_id = s.sequence_id
    INNER JOIN v1._stream_ranks AS n
        ON n.capture_id = p.capture_id
        AND n.track_id = p.track_id
        AND n.stream_rank = p.stream_rank + s.sequence_rank
        AND n.name_id = s.any_name_id
)
SELECT
    b.capture_id AS capture_id,
    b.sequence_id AS sequence_id,
    b.sequence_rank AS sequence_rank,
    MIN(b.own_program_id) AS program_id,
    MIN(b.own_hlo_op_id) AS hlo_op_name_id,
    MIN(b.own_op_name_id) AS op_name_id
FROM _between AS b
WHERE b.kernel_count = b.sequence_length
    AND NOT b.is_in_row
    AND b.own_hlo_op_id IS NOT NULL
GROUP BY
    b.capture_id,
    b.sequence_id,
    b.sequence_rank
HAVING MIN(b.own_program_id) = MAX(b.own_program_id)
    AND MIN(b.own_hlo_op_id) = MAX(b.own_hlo_op_id)
    AND (
        MIN(b.own_program_id) = MIN(b.before_program_id)
        OR MIN(b.own_program_id) = MIN(b.after_program_id)
    )
