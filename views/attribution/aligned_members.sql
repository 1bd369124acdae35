-- name: v1._aligned_members
-- version: 1
-- grain: one row per capture, kind of sequence, sequence and kernel in it whose thunk is found
-- summary: The instruction of each kernel of a sequence, by the order of kernels and thunks.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   is_graph BOOLEAN: a sequence of v1._unnumbered_kernels, else one of v1._unnamed_events
--   sequence_id BIGINT: the sequence
--   sequence_rank BIGINT: the kernel's place in it
--   program_id BIGINT: the program
--   module_id BIGINT: module of the program
--   instruction_id BIGINT: the instruction of its thunk
-- algorithm: A memset belongs to what follows it, an epilogue to what it follows; the rest are heads, as are the
--   thunks. Each head that XLA made is a group, and heads of one other kind in a row are one. Where a library
--   call is the only thunk between two kernels that XLA made, and there is a kernel of a library there, all heads
--   there are of its kind, copies as well. A segment agrees where its groups of kernels and of thunks agree in
--   number and kinds, where each kernel that XLA made has the name of its thunk or that of an earlier one with
--   a result of the same shape (XLA runs one kernel for all fusions of equal code), and where what is known is
--   found. In it, a group with as many heads as thunks has one each where the program is orderly, a group with
--   one thunk belongs to it whole, and any other is left out. So is a thunk that runs different kernels of
--   XLA's in different sequences. Sure pairs stay where the segment does not agree.

WITH _members AS (
    SELECT
        g.capture_id AS capture_id,
        TRUE AS is_graph,
        g.sequence_id AS sequence_id,
        g.segment_number AS segment_number,
        g.module_id AS module_id,
        g.is_thunk AS is_thunk,
        g.member_order AS member_order,
        g.member_kind AS member_kind,
        g.thunk_index AS thunk_index,
        g.shape AS shape,
        g.known_thunk_index AS known_thunk_index,
        g.is_sure AS is_sure,
        g.is_orderly AS is_orderly,
        g.program_id AS program_id
    FROM v1._unnumbered_members AS g
    UNION ALL
    SELECT
        r.capture_id AS capture_id,
        FALSE AS is_graph,
        r.sequence_id AS sequence_id,
        0 AS segment_number,
        r.module_id AS module_id,
        r.is_thunk AS is_thunk,
        r.member_order AS member_order,
        r.member_kind AS member_kind,
        r.thunk_index AS thunk_index,
        r.shape AS shape,
        r.known_thunk_index AS known_thunk_index,
        FALSE AS is_sure,
        TRUE AS is_orderly,
        r.program_id AS program_id
    FROM v1._unnamed_members AS r
),
_parts AS (
    SELECT
        m.capture_id AS capture_id,
        m.is_graph AS is_graph,
        m.sequence_id AS sequence_id,
        RANK() OVER (
            PARTITION BY m.capture_id
            ORDER BY m.is_graph NULLS FIRST, m.sequence_id NULLS FIRST, m.segment_number NULLS FIRST
        ) AS part_id,
        m.program_id AS program_id,
        m.module_id AS module_id,
        m.is_thunk AS is_thunk,
        m.member_order AS member_order,
        m.member_kind AS member_kind,
        CASE WHEN m.member_kind IN ('memset', 'epilogue') THEN 0 ELSE 1 END AS is_head,
        CASE WHEN m.member_kind = 'kernel' THEN 1 ELSE 0 END AS is_made,
        CASE WHEN m.is_thunk = 1 AND m.member_kind <> 'kernel' THEN 1 ELSE 0 END AS is_other_thunk,
        CASE
            WHEN m.member_kind IN ('library', 'attention_forward', 'attention_backward') THEN 1
            ELSE 0
        END AS is_call,
        m.known_thunk_index AS known_thunk_index,
        m.is_sure AS is_sure,
        m.is_orderly AS is_orderly,
        m.thunk_index AS thunk_index,
        m.shape AS shape
    FROM _members AS m
),
_numbered AS (
    SELECT
        p.capture_id AS capture_id,
        p.is_graph AS is_graph,
        p.sequence_id AS sequence_id,
        p.part_id AS part_id,
        p.program_id AS program_id,
        p.module_id AS module_id,
        p.is_thunk AS is_thunk,
        p.member_order AS member_order,
        p.member_kind AS member_kind,
        p.is_head AS is_head,
        p.is_other_thunk AS is_other_thunk,
        p.is_call AS is_call,
        p.known_thunk_index AS known_thunk_index,
        p.is_sure AS is_sure,
        p.is_orderly AS is_orderly,
        p.thunk_index AS thunk_index,
        p.shape AS shape,
        CAST(SUM(p.is_head) OVER (
            PARTITION BY p.capture_id, p.part_id, p.is_thunk
            ORDER BY p.member_order NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT) + CASE WHEN p.member_kind = 'memset' THEN 1 ELSE 0 END AS head_number,
        CAST(SUM(p.is_made) OVER (
            PARTITION BY p.capture_id, p.part_id, p.is_thunk
            ORDER BY p.member_order NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT) AS gap_number
    FROM _parts AS p
),
_kinds AS (
    SELECT
        n.capture_id AS capture_id,
        n.is_graph AS is_graph,
        n.sequence_id AS sequence_id,
        n.part_id AS part_id,
        n.program_id AS program_id,
        n.module_id AS module_id,
        n.is_thunk AS is_thunk,
        n.member_order AS member_order,
        n.is_head AS is_head,
        n.known_thunk_index AS known_thunk_index,
        n.is_sure AS is_sure,
        n.is_orderly AS is_orderly,
        n.thunk_index AS thunk_index,
        n.shape AS shape,
        n.head_number AS head_number,
        CASE
            WHEN n.member_kind NOT IN ('copy', 'library', 'attention_forward', 'attention_backward')
                THEN n.member_kind
            WHEN CAST(SUM(n.is_other_thunk) OVER (PARTITION BY n.capture_id, n.part_id, n.gap_number) AS BIGINT) = 1
                AND MAX(CASE WHEN n.is_thunk = 0 AND n.is_call = 1 THEN 1 ELSE 0 END) OVER (
                    PARTITION BY n.capture_id, n.part_id, n.gap_number
                ) = 1
                THEN COALESCE(
                    MAX(CASE WHEN n.is_thunk = 1 AND n.is_call = 1 THEN n.member_kind END) OVER (
                        PARTITION BY n.capture_id, n.part_id, n.gap_number
                    ),
                    n.member_kind
                )
            ELSE n.member_kind
        END AS group_kind
    FROM _numbered AS n
),
_changes AS (
    SELECT
        k.capture_id AS capture_id,
        k.is_graph AS is_graph,
        k.sequence_id AS sequence_id,
        k.part_id AS part_id,
        k.program_id AS program_id,
        k.module_id AS module_id,
        k.is_thunk AS is_thunk,
        k.member_order AS member_order,
        k.is_head AS is_head,
        k.known_thunk_index AS known_thunk_index,
        k.is_sure AS is_sure,
        k.is_orderly AS is_orderly,
        k.thunk_index AS thunk_index,
        k.shape AS shape,
        k.head_number AS head_number,
        k.group_kind AS group_kind,
        CASE
            WHEN k.group_kind <> 'kernel'
                AND k.group_kind = LAG(k.group_kind) OVER (
                    PARTITION BY k.capture_id, k.part_id, k.is_thunk, k.is_head
                    ORDER BY k.member_order NULLS FIRST
                )
                THEN 0
            ELSE 1
        END AS is_first_of_group
    FROM _kinds AS k
),
_grouped AS (
    SELECT
        c.capture_id AS capture_id,
        c.is_graph AS is_graph,
        c.sequence_id AS sequence_id,
        c.part_id AS part_id,
        c.program_id AS program_id,
        c.module_id AS module_id,
        c.is_thunk AS is_thunk,
        c.member_order AS member_order,
        c.is_head AS is_head,
        c.known_thunk_index AS known_thunk_index,
        c.is_sure AS is_sure,
        c.is_orderly AS is_orderly,
        c.thunk_index AS thunk_index,
        c.shape AS shape,
        c.head_number AS head_number,
        c.group_kind AS group_kind,
        CAST(SUM(c.is_first_of_group) OVER (
            PARTITION BY c.capture_id, c.part_id, c.is_thunk, c.is_head
            ORDER BY c.member_order NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT) AS group_number
    FROM _changes AS c
),
_ranked AS (
    SELECT
        g.capture_id AS capture_id,
        g.is_graph AS is_graph,
        g.sequence_id AS sequence_id,
        g.part_id AS part_id,
        g.program_id AS program_id,
        g.module_id AS module_id,
        g.is_thunk AS is_thunk,
        g.member_order AS member_order,
        g.is_head AS is_head,
        g.known_thunk_index AS known_thunk_index,
        g.is_sure AS is_sure,
        g.is_orderly AS is_orderly,
        g.thunk_index AS thunk_index,
        g.shape AS shape,
        g.head_number AS head_number,
        g.group_kind AS group_kind,
        g.group_number AS group_number,
        ROW_NUMBER() OVER (
            PARTITION BY g.capture_id, g.part_id, g.is_thunk, g.is_head, g.group_number
            ORDER BY g.member_order NULLS FIRST
        ) AS group_rank,
        CAST(SUM(g.is_thunk) OVER (PARTITION BY g.capture_id, g.part_id, g.is_head, g.group_number) AS BIGINT)
            AS thunk_count,
        CAST(SUM(1 - g.is_thunk) OVER (PARTITION BY g.capture_id, g.part_id, g.is_head, g.group_number) AS BIGINT)
            AS kernel_count,
        MIN(g.group_kind) OVER (PARTITION BY g.capture_id, g.part_id, g.is_head, g.group_number)
            = MAX(g.group_kind) OVER (PARTITION BY g.capture_id, g.part_id, g.is_head, g.group_number)
            AS is_one_kind
    FROM _grouped AS g
),
_met AS (
    SELECT
        r.capture_id AS capture_id,
        r.is_graph AS is_graph,
        r.sequence_id AS sequence_id,
        r.part_id AS part_id,
        r.program_id AS program_id,
        r.module_id AS module_id,
        r.is_thunk AS is_thunk,
        r.member_order AS member_order,
        r.is_head AS is_head,
        r.known_thunk_index AS known_thunk_index,
        r.is_sure AS is_sure,
        r.thunk_index AS thunk_index,
        r.shape AS shape,
        r.head_number AS head_number,
        r.group_kind AS group_kind,
        r.group_number AS group_number,
        CASE
            WHEN r.thunk_count = 0 OR r.kernel_count = 0 OR NOT r.is_one_kind THEN 'none'
            WHEN r.thunk_count = 1 THEN 'whole'
            WHEN r.thunk_count = r.kernel_count AND r.is_orderly THEN 'each'
            ELSE 'ambiguous'
        END AS meeting,
        CASE WHEN r.thunk_count = 1 THEN 1 ELSE r.group_rank END AS meeting_rank
    FROM _ranked AS r
),
_found AS (
    SELECT
        m.capture_id AS capture_id,
        m.is_graph AS is_graph,
        m.sequence_id AS sequence_id,
        m.part_id AS part_id,
        m.program_id AS program_id,
        m.module_id AS module_id,
        m.is_thunk AS is_thunk,
        m.member_order AS member_order,
        m.is_head AS is_head,
        m.known_thunk_index AS known_thunk_index,
        m.is_sure AS is_sure,
        m.thunk_index AS thunk_index,
        m.shape AS shape,
        m.head_number AS head_number,
        m.group_kind AS group_kind,
        m.meeting AS meeting,
        MAX(CASE WHEN m.is_thunk = 1 THEN m.thunk_index END) OVER (
            PARTITION BY m.capture_id, m.part_id, m.is_head, m.group_number, m.meeting_rank
        ) AS found_thunk_index,
        MAX(CASE WHEN m.is_thunk = 1 THEN m.shape END) OVER (
            PARTITION BY m.capture_id, m.part_id, m.is_head, m.group_number, m.meeting_rank
        ) AS found_shape
    FROM _met AS m
),
_agreed AS (
    SELECT
        f.capture_id AS capture_id,
        f.is_graph AS is_graph,
        f.sequence_id AS sequence_id,
        f.program_id AS program_id,
        f.module_id AS module_id,
        f.is_thunk AS is_thunk,
        f.member_order AS member_order,
        f.is_head AS is_head,
        f.known_thunk_index AS known_thunk_index,
        f.is_sure AS is_sure,
        f.thunk_index AS thunk_index,
        f.group_kind AS group_kind,
        MIN(
            CASE
                WHEN f.is_head = 0 THEN 1
                WHEN f.meeting = 'none' THEN 0
                WHEN f.is_thunk = 1 OR f.meeting = 'ambiguous' THEN 1
                WHEN f.known_thunk_index <> f.found_thunk_index THEN 0
                WHEN f.group_kind = 'kernel'
                    AND (f.thunk_index > f.found_thunk_index OR f.shape <> f.found_shape)
                    THEN 0
                ELSE 1
            END
        ) OVER (PARTITION BY f.capture_id, f.part_id) AS is_agreed,
        MAX(CASE WHEN f.is_head = 1 THEN f.group_kind END) OVER (
            PARTITION BY f.capture_id, f.part_id, f.is_thunk, f.head_number
        ) AS head_kind,
        MAX(CASE WHEN f.is_head = 1 AND f.meeting <> 'ambiguous' THEN f.found_thunk_index END) OVER (
            PARTITION BY f.capture_id, f.part_id, f.is_thunk, f.head_number
        ) AS head_thunk_index
    FROM _found AS f
),
_told AS (
    SELECT
        a.capture_id AS capture_id,
        a.is_graph AS is_graph,
        a.sequence_id AS sequence_id,
        a.program_id AS program_id,
        a.module_id AS module_id,
        a.member_order AS member_order,
        a.thunk_index AS thunk_index,
        a.group_kind AS group_kind,
        CASE WHEN a.is_agreed = 1 THEN a.head_thunk_index ELSE a.known_thunk_index END AS told_thunk_index
    FROM _agreed AS a
    WHERE a.is_thunk = 0
        AND (a.is_agreed = 1 OR a.is_sure)
        AND (a.is_head = 1 OR a.head_kind <> 'kernel')
),
_same AS (
    SELECT
        t.capture_id AS capture_id,
        t.is_graph AS is_graph,
        t.sequence_id AS sequence_id,
        t.program_id AS program_id,
        t.module_id AS module_id,
        t.member_order AS member_order,
        t.told_thunk_index AS told_thunk_index,
        MIN(CASE WHEN t.group_kind = 'kernel' THEN t.thunk_index END) OVER (
            PARTITION BY t.capture_id, t.program_id, t.told_thunk_index
        ) AS first_named_index,
        MAX(CASE WHEN t.group_kind = 'kernel' THEN t.thunk_index END) OVER (
            PARTITION BY t.capture_id, t.program_id, t.told_thunk_index
        ) AS last_named_index
    FROM _told AS t
)
SELECT
    s.capture_id AS capture_id,
    s.is_graph AS is_graph,
    s.sequence_id AS sequence_id,
    s.member_order AS sequence_rank,
    s.program_id AS program_id,
    s.module_id AS module_id,
    h.instruction_id AS instruction_id
FROM _same AS s
INNER JOIN main.hlo_thunks AS h
    ON h.module_id = s.module_id
    AND h.thunk_index = s.told_thunk_index
WHERE s.first_named_index IS NULL
    OR s.first_named_index = s.last_named_index
