-- name: v1._aligned_events
-- version: 1
-- grain: one row per device event whose instruction its place alone tells
-- summary: The HLO instruction of events that name none, by the order in which a program runs its thunks.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   device_event_id BIGINT: the event
--   program_id BIGINT: program that ran it
--   hlo_op_name_id BIGINT: names.name_id of the HLO instruction
--   op_name_id BIGINT: names.name_id of the JAX name stack; NULL where none is known
--   opcode VARCHAR: HLO opcode; NULL where the instruction is not in a module at hand
--   op_name_source VARCHAR: as in v1._event_ops
--   neighbour_op_name_id BIGINT: as in v1._event_ops
--   is_collective BOOLEAN: the instruction communicates, or waits for what communicates
--   attribution_source VARCHAR: graph_order for an event of a graph without numbered nodes, else order
-- algorithm: Events of such graphs name their command buffer: v1._aligned_members lays its thunks beside the
--   kernels of each launch. An event of a ROCm capture that names nothing is placed in either of two ways: the
--   thunks between its named neighbours are as many as the events there, one by one in kind and name
--   (v1._aligned_members); or elsewhere in the capture the same kernel at the same place between the same
--   neighbours does name its instruction (v1._unnamed_twins). Where both tell, and differ, neither is taken.
--   What lies between no such neighbours is of no known program: copies that a host call makes outside of any,
--   for one.

WITH _told AS (
    SELECT
        a.capture_id AS capture_id,
        a.is_graph AS is_graph,
        a.sequence_id AS sequence_id,
        a.sequence_rank AS sequence_rank,
        a.program_id AS program_id,
        n.name_id AS hlo_op_name_id,
        NULL AS own_op_name_id
    FROM v1._aligned_members AS a
    INNER JOIN main.hlo_instructions AS n
        ON n.module_id = a.module_id
        AND n.instruction_id = a.instruction_id
    UNION ALL
    SELECT
        t.capture_id AS capture_id,
        FALSE AS is_graph,
        t.sequence_id AS sequence_id,
        t.sequence_rank AS sequence_rank,
        t.program_id AS program_id,
        t.hlo_op_name_id AS hlo_op_name_id,
        t.op_name_id AS own_op_name_id
    FROM v1._unnamed_twins AS t
),
_agreed AS (
    SELECT
        t.capture_id AS capture_id,
        t.is_graph AS is_graph,
        t.sequence_id AS sequence_id,
        t.sequence_rank AS sequence_rank,
        MIN(t.program_id) AS any_program_id,
        MIN(t.hlo_op_name_id) AS any_op_id,
        MIN(t.own_op_name_id) AS any_op_name_id
    FROM _told AS t
    GROUP BY
        t.capture_id,
        t.is_graph,
        t.sequence_id,
        t.sequence_rank
    HAVING MIN(t.program_id) = MAX(t.program_id)
        AND MIN(t.hlo_op_name_id) = MAX(t.hlo_op_name_id)
),
_events AS (
    SELECT
        k.capture_id AS capture_id,
        k.device_event_id AS device_event_id,
        TRUE AS is_graph,
        k.sequence_id AS sequence_id,
        k.sequence_rank AS sequence_rank
    FROM v1._unnumbered_kernels AS k
    UNION ALL
    SELECT
        e.capture_id AS capture_id,
        e.device_event_id AS device_event_id,
        FALSE AS is_graph,
        e.sequence_id AS sequence_id,
        e.sequence_rank AS sequence_rank
    FROM v1._unnamed_events AS e
)
SELECT
    e.capture_id AS capture_id,
    e.device_event_id AS device_event_id,
    a.any_program_id AS program_id,
    a.any_op_id AS hlo_op_name_id,
    COALESCE(i.op_name_id, a.any_op_name_id) AS op_name_id,
    i.opcode AS opcode,
    CASE
        WHEN i.op_name_id IS NOT NULL THEN i.op_name_source
        WHEN a.any_op_name_id IS NOT NULL THEN 'event'
    END AS op_name_source,
    i.neighbour_op_name_id AS neighbour_op_name_id,
    COALESCE(i.is_collective, FALSE) AS is_collective,
    CASE WHEN e.is_graph THEN 'graph_order' ELSE 'order' END AS attribution_source
FROM _events AS e
INNER JOIN _agreed AS a
    ON a.capture_id = e.capture_id
    AND a.is_graph = e.is_graph
    AND a.sequence_id = e.sequence_id
    AND a.sequence_rank = e.sequence_rank
LEFT JOIN v1._instructions AS i
    ON i.capture_id = a.capture_id
    AND i.program_id = a.any_program_id
    AND i.name_id = a.any_op_id
WHERE i.name_id IS NOT NULL
    OR a.any_op_name_id IS NOT NULL
