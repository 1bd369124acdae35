-- name: v1._unnumbered_members
-- version: 1
-- grain: one row per capture, sequence of kernels of a graph without numbered nodes and member: kernel or thunk
-- summary: The kernels of such graphs beside the thunks of their command buffers, cut where names tell the pair.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   sequence_id BIGINT: as in v1._unnumbered_kernels
--   segment_number BIGINT: part of the sequence that is aligned by itself
--   program_id BIGINT: the program
--   module_id BIGINT: module of the program
--   is_thunk BIGINT: 0 for a kernel, 1 for a thunk
--   member_order BIGINT: order among those of its kind: sequence_rank of a kernel, node_position of a thunk
--   member_kind VARCHAR: as in v1._thunk_members and v1._kernel_kinds; unknown for a kernel of several names
--   thunk_index BIGINT: the thunk; of a kernel that XLA made, the first thunk that it is named after
--   shape VARCHAR: result of that thunk's instruction
--   known_thunk_index BIGINT: the thunk of a kernel that its name tells; NULL for others and for thunks
--   is_sure BOOLEAN: the name tells it by itself, wherever it stands
--   is_orderly BOOLEAN: all graphs of the program ran in the order of their thunks, as far as names tell
-- algorithm: XLA runs one kernel for all fusions of equal code and names it after the first of them. So a kernel
--   whose name occurs once in each launch of the buffer, and once among the names of the thunks that it may
--   record, belongs to the thunk of that name. Each such pair begins a segment. Should the capture have lost
--   events, the kernel could still be that of a later thunk with a result of the same shape and a name that
--   no kernel has: without such a thunk the pair is sure. After the last pair, a thunk that runs without the
--   graph at times is beyond the end. Where pairs are not in order, or a launch spreads over streams, branches
--   of the graph ran beside each other: of its buffer only sure pairs are kept. Programs of which less than
--   half of the kernels that XLA made have the name of a thunk of their buffer number their buffers in some
--   other way: they are left out.

WITH _sequences AS (
    SELECT
        k.capture_id AS capture_id,
        k.program_id AS program_id,
        k.buffer_name_id AS buffer_name_id,
        k.sequence_id AS sequence_id,
        k.sequence_rank AS sequence_rank,
        CASE WHEN MIN(k.name_id) = MAX(k.name_id) THEN MIN(k.name_id) END AS any_name_id,
        MIN(CASE WHEN k.is_one_stream THEN 1 ELSE 0 END) AS ran_on_one_stream
    FROM v1._unnumbered_kernels AS k
    GROUP BY
        k.capture_id,
        k.program_id,
        k.buffer_name_id,
        k.sequence_id,
        k.sequence_rank
),
_members AS (
    SELECT
        s.capture_id AS capture_id,
        s.program_id AS program_id,
        s.buffer_name_id AS buffer_name_id,
        s.sequence_id AS sequence_id,
        s.ran_on_one_stream AS is_one_stream,
        p.module_id AS module_id,
        0 AS is_thunk,
        s.sequence_rank AS member_order,
        CASE WHEN m.kernel_name_id IS NOT NULL THEN 'kernel' ELSE COALESCE(k.kernel_kind, 'unknown') END
            AS member_kind,
        m.kernel_name_id AS made_name_id,
        m.thunk_index AS thunk_index,
        m.shape AS shape,
        FALSE AS is_launched
    FROM _sequences AS s
    INNER JOIN main.hlo_programs AS p
        ON p.capture_id = s.capture_id
        AND p.program_id = s.program_id
    LEFT JOIN v1._kernel_kinds AS k
        ON k.name_id = s.any_name_id
    LEFT JOIN v1._made_kernels AS m
        ON m.module_id = p.module_id
        AND m.kernel_name_id = k.made_name_id
    UNION ALL
    SELECT
        s.capture_id AS capture_id,
        s.program_id AS program_id,
        s.buffer_name_id AS buffer_name_id,
        s.sequence_id AS sequence_id,
        s.ran_on_one_stream AS is_one_stream,
        t.module_id AS module_id,
        1 AS is_thunk,
        t.node_position AS member_order,
        t.member_kind AS member_kind,
        t.kernel_name_id AS made_name_id,
        t.thunk_index AS thunk_index,
        t.shape AS shape,
        t.is_launched AS is_launched
    FROM _sequences AS s
    INNER JOIN v1._unnumbered_thunks AS t
        ON t.capture_id = s.capture_id
        AND t.program_id = s.program_id
        AND t.buffer_name_id = s.buffer_name_id
    WHERE s.sequence_rank = 1
),
_named AS (
    SELECT
        m.capture_id AS capture_id,
        m.program_id AS program_id,
        m.buffer_name_id AS buffer_name_id,
        m.sequence_id AS sequence_id,
        m.is_one_stream AS is_one_stream,
        m.module_id AS module_id,
        m.is_thunk AS is_thunk,
        m.member_order AS member_order,
        m.member_kind AS member_kind,
        m.made_name_id AS made_name_id,
        m.thunk_index AS thunk_index,
        m.shape AS shape,
        m.is_launched AS is_launched,
        CAST(SUM(1 - m.is_thunk) OVER (PARTITION BY m.capture_id, m.sequence_id, m.made_name_id) AS BIGINT)
            AS kernel_count,
        CAST(SUM(m.is_thunk) OVER (PARTITION BY m.capture_id, m.sequence_id, m.made_name_id) AS BIGINT)
            AS thunk_count,
        MAX(CASE WHEN m.is_thunk = 1 THEN m.member_order END) OVER (
            PARTITION BY m.capture_id, m.sequence_id, m.made_name_id
        ) AS thunk_order,
        MAX(CASE WHEN m.is_thunk = 1 THEN m.thunk_index END) OVER (
            PARTITION BY m.capture_id, m.sequence_id, m.made_name_id
        ) AS named_thunk_index
    FROM _members AS m
),
_rivals AS (
    SELECT
        n.capture_id AS capture_id,
        n.program_id AS program_id,
        n.buffer_name_id AS buffer_name_id,
        n.sequence_id AS sequence_id,
        n.is_one_stream AS is_one_stream,
        n.module_id AS module_id,
        n.is_thunk AS is_thunk,
        n.member_order AS member_order,
        n.member_kind AS member_kind,
        n.made_name_id AS made_name_id,
        n.thunk_index AS thunk_index,
        n.shape AS shape,
        n.is_launched AS is_launched,
        n.thunk_count AS thunk_count,
        n.named_thunk_index AS named_thunk_index,
        CASE
            WHEN n.made_name_id IS NOT NULL
                AND n.thunk_count = 1
                AND n.kernel_count = 1
                AND MAX(n.kernel_count) OVER (
                    PARTITION BY n.capture_id, n.program_id, n.buffer_name_id, n.made_name_id
                ) = 1
                THEN n.thunk_order
        END AS pair_order,
        MAX(CASE WHEN n.is_thunk = 1 AND n.member_kind = 'kernel' AND n.kernel_count = 0 THEN n.thunk_index END)
            OVER (PARTITION BY n.capture_id, n.sequence_id, n.shape) AS last_rival_index
    FROM _named AS n
),
_cut AS (
    SELECT
        r.capture_id AS capture_id,
        r.sequence_id AS sequence_id,
        r.program_id AS program_id,
        r.buffer_name_id AS buffer_name_id,
        r.module_id AS module_id,
        r.is_thunk AS is_thunk,
        r.member_order AS member_order,
        r.member_kind AS member_kind,
        r.thunk_index AS thunk_index,
        r.shape AS shape,
        r.is_launched AS is_launched,
        r.named_thunk_index AS named_thunk_index,
        r.pair_order AS pair_order,
        r.last_rival_index IS NULL OR r.last_rival_index < r.named_thunk_index AS has_no_rival,
        COUNT(r.pair_order) OVER (
            PARTITION BY r.capture_id, r.sequence_id, r.is_thunk
            ORDER BY r.member_order NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS pairs_so_far,
        CASE
            WHEN r.is_one_stream = 0 THEN 1
            WHEN r.pair_order < MAX(r.pair_order) OVER (
                PARTITION BY r.capture_id, r.sequence_id, r.is_thunk
                ORDER BY r.member_order NULLS FIRST
                ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
            ) THEN 1
            ELSE 0
        END AS is_late,
        MAX(r.pair_order) OVER (PARTITION BY r.capture_id, r.sequence_id) AS last_pair_order,
        CAST(SUM(CASE WHEN r.is_thunk = 0 AND r.made_name_id IS NOT NULL THEN 1 ELSE 0 END) OVER (
            PARTITION BY r.capture_id, r.program_id
        ) AS BIGINT) AS made_count,
        CAST(SUM(
            CASE WHEN r.is_thunk = 0 AND r.made_name_id IS NOT NULL AND r.thunk_count > 0 THEN 1 ELSE 0 END
        ) OVER (PARTITION BY r.capture_id, r.program_id) AS BIGINT) AS named_count
    FROM _rivals AS r
),
_kept AS (
    SELECT
        c.capture_id AS capture_id,
        c.sequence_id AS sequence_id,
        c.program_id AS program_id,
        c.module_id AS module_id,
        c.is_thunk AS is_thunk,
        c.member_order AS member_order,
        c.member_kind AS member_kind,
        c.thunk_index AS thunk_index,
        c.shape AS shape,
        c.named_thunk_index AS named_thunk_index,
        c.pair_order AS pair_order,
        c.has_no_rival AS has_no_rival,
        c.pairs_so_far AS pairs_so_far,
        MAX(c.is_late) OVER (PARTITION BY c.capture_id, c.program_id, c.buffer_name_id) = 1 AS is_reordered,
        MAX(c.is_late) OVER (PARTITION BY c.capture_id, c.program_id) = 0 AS is_orderly,
        MIN(
            CASE
                WHEN c.is_launched AND (c.last_pair_order IS NULL OR c.member_order > c.last_pair_order)
                    THEN c.member_order
            END
        ) OVER (PARTITION BY c.capture_id, c.sequence_id) AS end_order
    FROM _cut AS c
    WHERE c.made_count > 0
        AND 2 * c.named_count >= c.made_count
)
SELECT
    k.capture_id AS capture_id,
    k.sequence_id AS sequence_id,
    CASE WHEN k.is_reordered THEN k.named_thunk_index ELSE k.pairs_so_far END AS segment_number,
    k.program_id AS program_id,
    k.module_id AS module_id,
    CAST(k.is_thunk AS BIGINT) AS is_thunk,
    k.member_order AS member_order,
    k.member_kind AS member_kind,
    k.thunk_index AS thunk_index,
    k.shape AS shape,
    CASE WHEN k.is_thunk = 0 AND k.pair_order IS NOT NULL THEN k.named_thunk_index END AS known_thunk_index,
    k.is_thunk = 0 AND k.pair_order IS NOT NULL AND k.has_no_rival AS is_sure,
    k.is_orderly AS is_orderly
FROM _kept AS k
WHERE (NOT k.is_reordered OR k.pair_order IS NOT NULL AND k.has_no_rival)
    AND (k.is_thunk = 0 OR k.end_order IS NULL OR k.member_order < k.end_order)
