-- name: v1._hlo_parts
-- version: 1
-- grain: one row per module, instruction of v1._hlo_work, kind of list and part
-- summary: What instructions take, give and contain, in words that do not depend on how instructions are numbered.
-- evidence: compiler
-- columns:
--   module_id BIGINT: the module
--   owner_id BIGINT: the instruction; for groups, hlo_collectives.group_set_id
--   list_kind VARCHAR: results and operands: shapes of arrays; result_layouts and operand_layouts: these with layouts;
--     fused_opcodes, fused_ops and fused_shapes: what a fusion contains, or a reduction applies, by opcode, by opcode and
--     op_name, by opcode and shape; groups: replica groups
--   part_order BIGINT: place in the list, where it has an order of its own; else 0
--   part VARCHAR: the part, as text
-- algorithm: Of a tuple, the elements that others take out of it, also once they waited for it, so that scratch memory of
--   a library call is no part, nor are the operands that an all-gather-start passes on.
--   Operands have no order, since a compiler may swap them. What does no work is no part of a fusion.

WITH _waits AS (
    SELECT
        i.module_id AS module_id,
        i.instruction_id AS instruction_id,
        o.operand_instruction_id AS start_id
    FROM main.hlo_instructions AS i
    INNER JOIN main.hlo_operands AS o
        ON o.module_id = i.module_id
        AND o.instruction_id = i.instruction_id
        AND o.operand_index = 0
    WHERE i.opcode LIKE '%-done'
),
_taken AS (
    SELECT
        i.module_id AS module_id,
        COALESCE(w.start_id, o.operand_instruction_id) AS instruction_id,
        COALESCE(i.tuple_index, 0) AS tuple_index,
        i.shape AS shape,
        i.element_count AS element_count,
        i.shape_bytes AS shape_bytes
    FROM main.hlo_instructions AS i
    INNER JOIN main.hlo_operands AS o
        ON o.module_id = i.module_id
        AND o.instruction_id = i.instruction_id
        AND o.operand_index = 0
    LEFT JOIN _waits AS w
        ON w.module_id = i.module_id
        AND w.instruction_id = o.operand_instruction_id
    WHERE i.opcode = 'get-tuple-element'
        OR i.opcode LIKE '%-done' AND i.shape NOT LIKE '(%'
),
_elements AS (
    SELECT
        t.module_id AS module_id,
        t.instruction_id AS instruction_id,
        t.tuple_index AS tuple_index,
        MIN(t.shape) AS element_shape,
        MIN(t.element_count) AS elements,
        MIN(t.shape_bytes) AS element_bytes
    FROM _taken AS t
    GROUP BY
        t.module_id,
        t.instruction_id,
        t.tuple_index
),
_arrays AS (
    SELECT
        w.module_id AS module_id,
        w.instruction_id AS instruction_id,
        'result' AS side,
        '' AS opcode,
        '' AS op_name,
        COALESCE(e.tuple_index, 0) AS array_order,
        COALESCE(e.element_shape, w.shape) AS shape,
        COALESCE(e.elements, w.element_count) AS element_count,
        COALESCE(e.element_bytes, w.shape_bytes) AS shape_bytes
    FROM v1._hlo_work AS w
    LEFT JOIN _elements AS e
        ON e.module_id = w.module_id
        AND e.instruction_id = w.instruction_id
    UNION ALL
    SELECT
        w.module_id AS module_id,
        w.instruction_id AS instruction_id,
        'operand' AS side,
        '' AS opcode,
        '' AS op_name,
        0 AS array_order,
        i.shape AS shape,
        i.element_count AS element_count,
        i.shape_bytes AS shape_bytes
    FROM v1._hlo_work AS w
    INNER JOIN main.hlo_operands AS o
        ON o.module_id = w.module_id
        AND o.instruction_id = w.instruction_id
    INNER JOIN main.hlo_instructions AS i
        ON i.module_id = o.module_id
        AND i.instruction_id = o.operand_instruction_id
    UNION ALL
    SELECT
        c.module_id AS module_id,
        c.instruction_id AS instruction_id,
        'fused' AS side,
        i.opcode AS opcode,
        COALESCE(p.plain_op_name, '') AS op_name,
        0 AS array_order,
        i.shape AS shape,
        i.element_count AS element_count,
        i.shape_bytes AS shape_bytes
    FROM main.hlo_calls AS c
    INNER JOIN main.hlo_computations AS k
        ON k.module_id = c.module_id
        AND k.computation_id = c.computation_id
        AND k.computation_role IN ('fusion', 'reducer')
    INNER JOIN main.hlo_instructions AS i
        ON i.module_id = k.module_id
        AND i.computation_id = k.computation_id
        AND i.opcode NOT IN ('parameter', 'constant', 'tuple', 'get-tuple-element', 'bitcast')
    LEFT JOIN v1._hlo_op_names AS p
        ON p.module_id = c.module_id
        AND p.op_name_id = i.op_name_id
),
_texts AS (
    SELECT
        a.module_id AS module_id,
        a.instruction_id AS instruction_id,
        a.side AS side,
        a.opcode AS opcode,
        a.op_name AS op_name,
        a.array_order AS array_order,
        a.shape AS shape,
        CASE
            WHEN a.shape LIKE '(%'
                THEN 'tuple of ' || COALESCE(CAST(a.element_count AS VARCHAR), '?') || ' elements, '
                    || COALESCE(CAST(a.shape_bytes AS VARCHAR), '?') || ' bytes'
            ELSE COALESCE(NULLIF(REGEXP_EXTRACT(a.shape, '^([^{]*)', 1), ''), a.shape)
        END AS plain_shape
    FROM _arrays AS a
)
SELECT
    t.module_id AS module_id,
    t.instruction_id AS owner_id,
    l.list_kind AS list_kind,
    t.array_order AS part_order,
    CASE l.list_kind
        WHEN 'results' THEN t.plain_shape
        WHEN 'operands' THEN t.plain_shape
        WHEN 'fused_opcodes' THEN t.opcode
        WHEN 'fused_ops' THEN t.opcode || ' ' || t.op_name
        WHEN 'fused_shapes' THEN t.opcode || ' ' || t.plain_shape
        ELSE t.shape
    END AS part
FROM _texts AS t
INNER JOIN (
    VALUES
        ('result', 'results'),
        ('result', 'result_layouts'),
        ('operand', 'operands'),
        ('operand', 'operand_layouts'),
        ('fused', 'fused_opcodes'),
        ('fused', 'fused_ops'),
        ('fused', 'fused_shapes')
) AS l (side, list_kind)
    ON l.side = t.side
UNION ALL
SELECT
    g.module_id AS module_id,
    g.group_set_id AS owner_id,
    'groups' AS list_kind,
    ROW_NUMBER() OVER (
        PARTITION BY g.module_id, g.group_set_id
        ORDER BY g.group_index NULLS FIRST, g.member_index NULLS FIRST
    ) AS part_order,
    CASE WHEN g.member_index = 0 THEN '{' ELSE ',' END
        || CAST(g.member_id AS VARCHAR)
        || CASE
            WHEN LEAD(g.group_index) OVER (
                    PARTITION BY g.module_id, g.group_set_id
                    ORDER BY g.group_index NULLS FIRST, g.member_index NULLS FIRST
                ) = g.group_index
                THEN ''
            ELSE '}'
        END AS part
FROM main.hlo_replica_groups AS g
