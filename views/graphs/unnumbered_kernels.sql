-- name: v1._unnumbered_kernels
-- version: 1
-- grain: one row per event of a graph whose nodes the capture does not number
-- summary: Kernels of such graphs in the order in which each launch ran them.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   device_event_id BIGINT: the event
--   program_id BIGINT: the program
--   buffer_name_id BIGINT: names.name_id of the command buffer
--   name_id BIGINT: names.name_id of the kernel
--   sequence_id BIGINT: number in the capture of what the launch ran; launches that ran the same share it
--   sequence_rank BIGINT: place of the event in its launch, from 1 on
--   is_one_stream BOOLEAN: all of the launch ran on one stream
-- algorithm: HIP graphs are such graphs, as far as is known: no capture of one was at hand. All kernels of a
--   launch share the correlation id of its call. Were a producer to write hip_graph_node_id, which numbers
--   nodes as CUDA's stat does, its graphs would not be here. Two launches ran the same where the sums of
--   their name ids, weighted by place, are equal; v1._unnumbered_members leaves out places where they differ
--   all the same.

WITH _buffers AS (
    SELECT
        o.capture_id AS capture_id,
        o.op_id AS op_id,
        o.program_id AS program_id,
        o.hlo_op_name_id AS hlo_op_name_id
    FROM main.ops AS o
    INNER JOIN main.names AS b
        ON b.name_id = o.hlo_op_name_id
    WHERE o.graph_node_index IS NULL
        AND b.name LIKE 'command_buffer%'
),
_ranked AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_event_id AS device_event_id,
        e.device_id AS device_id,
        e.correlation_id AS correlation_id,
        e.track_id AS track_id,
        e.name_id AS name_id,
        b.program_id AS program_id,
        b.hlo_op_name_id AS hlo_op_name_id,
        ROW_NUMBER() OVER (
            PARTITION BY e.capture_id, e.device_id, e.correlation_id, b.program_id, b.hlo_op_name_id
            ORDER BY e.start_ps NULLS FIRST, e.device_event_id NULLS FIRST
        ) AS sequence_rank
    FROM main.device_events AS e
    INNER JOIN _buffers AS b
        ON b.capture_id = e.capture_id
        AND b.op_id = e.op_id
    WHERE e.role = 'work'
        AND e.correlation_id IS NOT NULL
),
_launches AS (
    SELECT
        r.capture_id AS capture_id,
        r.device_event_id AS device_event_id,
        r.name_id AS name_id,
        r.program_id AS program_id,
        r.hlo_op_name_id AS hlo_op_name_id,
        r.sequence_rank AS sequence_rank,
        COUNT(*) OVER (
            PARTITION BY r.capture_id, r.device_id, r.correlation_id, r.program_id, r.hlo_op_name_id
        ) AS launch_length,
        CAST(SUM(r.sequence_rank * r.name_id) OVER (
            PARTITION BY r.capture_id, r.device_id, r.correlation_id, r.program_id, r.hlo_op_name_id
        ) AS BIGINT) AS first_sum,
        CAST(SUM(MOD(r.sequence_rank * r.sequence_rank, 10007) * r.name_id) OVER (
            PARTITION BY r.capture_id, r.device_id, r.correlation_id, r.program_id, r.hlo_op_name_id
        ) AS BIGINT) AS second_sum,
        MIN(r.track_id) OVER (
            PARTITION BY r.capture_id, r.device_id, r.correlation_id, r.program_id, r.hlo_op_name_id
        ) = MAX(r.track_id) OVER (
            PARTITION BY r.capture_id, r.device_id, r.correlation_id, r.program_id, r.hlo_op_name_id
        ) AS is_one_stream
    FROM _ranked AS r
)
SELECT
    l.capture_id AS capture_id,
    l.device_event_id AS device_event_id,
    l.program_id AS program_id,
    l.hlo_op_name_id AS buffer_name_id,
    l.name_id AS name_id,
    RANK() OVER (
        PARTITION BY l.capture_id
        ORDER BY
            l.program_id NULLS FIRST,
            l.hlo_op_name_id NULLS FIRST,
            l.launch_length NULLS FIRST,
            l.is_one_stream NULLS FIRST,
            l.first_sum NULLS FIRST,
            l.second_sum NULLS FIRST
    ) AS sequence_id,
    l.sequence_rank AS sequence_rank,
    l.is_one_stream AS is_one_stream
FROM _launches AS l
