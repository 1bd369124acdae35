-- name: v1._unnamed_members
-- version: 1
-- grain: one row per capture, run of events without an instruction and member: event or thunk
-- summary: Events without an instruction between two of one execution, beside the thunks between these.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   sequence_id BIGINT: as in v1._unnamed_events
--   program_id BIGINT: the program
--   module_id BIGINT: module of the program
--   is_thunk BIGINT: 0 for an event, 1 for a thunk
--   member_order BIGINT: order among those of its kind; of an event its sequence_rank, 0 of the one before the run
--   member_kind VARCHAR: as in v1._thunk_members and v1._kernel_kinds; unknown for an event of several names
--   thunk_index BIGINT: the thunk; of a kernel that XLA made, the first thunk that it is named after
--   shape VARCHAR: result of that thunk's instruction
--   known_thunk_index BIGINT: the thunk of the events before and after the run; NULL for others and for thunks
-- algorithm: The events before and after a run are of one execution where both are of one program and
--   computation and the thunk of the first comes before that of the second. Both are members as well: a library
--   call that they belong to may have launched kernels of the run. An instruction with several thunks tells no
--   place, nor does one on a stream of its own, which not all thunks of a kind share.

WITH _sequences AS (
    SELECT
        e.capture_id AS capture_id,
        e.sequence_id AS sequence_id,
        e.sequence_rank AS sequence_rank,
        e.sequence_length AS sequence_length,
        e.before_program_id AS program_id,
        e.before_op_name_id AS before_op_name_id,
        e.after_op_name_id AS after_op_name_id,
        CASE WHEN MIN(e.name_id) = MAX(e.name_id) THEN MIN(e.name_id) END AS any_name_id
    FROM v1._unnamed_events AS e
    WHERE e.before_program_id = e.after_program_id
    GROUP BY
        e.capture_id,
        e.sequence_id,
        e.sequence_rank,
        e.sequence_length,
        e.before_program_id,
        e.before_op_name_id,
        e.after_op_name_id
),
_places AS (
    SELECT
        t.module_id AS module_id,
        i.name_id AS name_id,
        MIN(t.computation_id) AS any_computation_id,
        MIN(t.node_position) AS any_position,
        MIN(t.thunk_index) AS any_thunk_index,
        MIN(t.member_kind) AS any_kind,
        MIN(t.shape) AS any_shape
    FROM v1._thunk_members AS t
    INNER JOIN main.hlo_instructions AS i
        ON i.module_id = t.module_id
        AND i.instruction_id = t.instruction_id
    GROUP BY
        t.module_id,
        i.name_id
    HAVING COUNT(*) = 1
        AND MAX(CASE WHEN t.is_beside THEN 1 ELSE 0 END) = 0
),
_spans AS (
    SELECT
        s.capture_id AS capture_id,
        s.sequence_id AS sequence_id,
        s.sequence_rank AS sequence_rank,
        s.sequence_length AS sequence_length,
        s.any_name_id AS any_name_id,
        s.program_id AS program_id,
        p.module_id AS module_id,
        b.any_computation_id AS computation_id,
        b.any_position AS before_position,
        b.any_thunk_index AS before_thunk_index,
        b.any_kind AS before_kind,
        b.any_shape AS before_shape,
        a.any_position AS after_position,
        a.any_thunk_index AS after_thunk_index,
        a.any_kind AS after_kind,
        a.any_shape AS after_shape
    FROM _sequences AS s
    INNER JOIN main.hlo_programs AS p
        ON p.capture_id = s.capture_id
        AND p.program_id = s.program_id
    INNER JOIN _places AS b
        ON b.module_id = p.module_id
        AND b.name_id = s.before_op_name_id
    INNER JOIN _places AS a
        ON a.module_id = p.module_id
        AND a.name_id = s.after_op_name_id
        AND a.any_computation_id = b.any_computation_id
        AND a.any_position > b.any_position
)
SELECT
    s.capture_id AS capture_id,
    s.sequence_id AS sequence_id,
    s.program_id AS program_id,
    s.module_id AS module_id,
    CAST(0 AS BIGINT) AS is_thunk,
    s.sequence_rank AS member_order,
    CASE WHEN m.kernel_name_id IS NOT NULL THEN 'kernel' ELSE COALESCE(k.kernel_kind, 'unknown') END
        AS member_kind,
    m.thunk_index AS thunk_index,
    m.shape AS shape,
    NULL AS known_thunk_index
FROM _spans AS s
LEFT JOIN v1._kernel_kinds AS k
    ON k.name_id = s.any_name_id
LEFT JOIN v1._made_kernels AS m
    ON m.module_id = s.module_id
    AND m.kernel_name_id = k.made_name_id
UNION ALL
SELECT
    s.capture_id AS capture_id,
    s.sequence_id AS sequence_id,
    s.program_id AS program_id,
    s.module_id AS module_id,
    0 AS is_thunk,
    0 AS member_order,
    s.before_kind AS member_kind,
    s.before_thunk_index AS thunk_index,
    s.before_shape AS shape,
    s.before_thunk_index AS known_thunk_index
FROM _spans AS s
WHERE s.sequence_rank = 1
UNION ALL
SELECT
    s.capture_id AS capture_id,
    s.sequence_id AS sequence_id,
    s.program_id AS program_id,
    s.module_id AS module_id,
    0 AS is_thunk,
    s.sequence_length + 1 AS member_order,
    s.after_kind AS member_kind,
    s.after_thunk_index AS thunk_index,
    s.after_shape AS shape,
    s.after_thunk_index AS known_thunk_index
FROM _spans AS s
WHERE s.sequence_rank = 1
UNION ALL
SELECT
    s.capture_id AS capture_id,
    s.sequence_id AS sequence_id,
    s.program_id AS program_id,
    s.module_id AS module_id,
    1 AS is_thunk,
    t.node_position AS member_order,
    t.member_kind AS member_kind,
    t.thunk_index AS thunk_index,
    t.shape AS shape,
    NULL AS known_thunk_index
FROM _spans AS s
INNER JOIN v1._thunk_members AS t
    ON t.module_id = s.module_id
    AND t.computation_id = s.computation_id
    AND t.node_position >= s.before_position
    AND t.node_position <= s.after_position
    AND NOT t.is_beside
WHERE s.sequence_rank = 1
