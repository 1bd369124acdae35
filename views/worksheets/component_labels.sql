-- name: v1._component_labels
-- version: 1
-- grain: one row per capture and component group with ops, on the critical device of the capture
-- summary: Scopes, ops and shapes by which a component group is known, those with most time first.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   component_group VARCHAR: the group
--   scopes VARCHAR: named scopes, up to three
--   scope_count BIGINT (count): all of them
--   hlo_ops VARCHAR: HLO ops, up to three
--   op_count BIGINT (count): all of them
--   main_shapes VARCHAR: local shapes of the first op: result <- operands, up to three
--   partition_count BIGINT (count): devices that the program of the first op is partitioned over; NULL where unknown
--   executions BIGINT (count): executions of the first op in the capture

WITH _ops AS (
    SELECT
        r.capture_id AS capture_id,
        k.component_group AS component_group,
        k.component AS component,
        h.name AS hlo_op,
        r.program_id AS program_id,
        r.module_id AS module_id,
        r.instruction_id AS instruction_id,
        r.executions AS executions,
        r.sum_ps AS sum_ps,
        ROW_NUMBER() OVER (
            PARTITION BY r.capture_id, k.component_group
            ORDER BY -r.sum_ps NULLS FIRST, r.program_id NULLS FIRST, r.hlo_op_name_id NULLS FIRST
        ) AS op_rank
    FROM v1._op_runs AS r
    INNER JOIN v1._critical_devices AS c
        ON c.capture_id = r.capture_id
        AND c.device_id = r.device_id
    INNER JOIN v1._step_executables AS x
        ON x.capture_id = r.capture_id
        AND x.program_id = r.program_id
        AND x.is_step_program
    INNER JOIN v1._op_components AS k
        ON k.capture_id = r.capture_id
        AND k.device_id = r.device_id
        AND k.program_id = r.program_id
        AND k.hlo_op_name_id = r.hlo_op_name_id
    INNER JOIN main.names AS h
        ON h.name_id = r.hlo_op_name_id
),
_scopes AS (
    SELECT
        o.capture_id AS capture_id,
        o.component_group AS component_group,
        o.component AS component,
        ROW_NUMBER() OVER (
            PARTITION BY o.capture_id, o.component_group
            ORDER BY -CAST(SUM(o.sum_ps) AS BIGINT) NULLS FIRST, o.component NULLS FIRST
        ) AS scope_rank
    FROM _ops AS o
    GROUP BY
        o.capture_id,
        o.component_group,
        o.component
),
_scope_texts AS (
    SELECT
        s.capture_id AS capture_id,
        s.component_group AS component_group,
        COUNT(*) AS scope_count,
        MIN(CASE WHEN s.scope_rank = 1 THEN s.component END)
        || COALESCE(', ' || MIN(CASE WHEN s.scope_rank = 2 THEN s.component END), '')
        || COALESCE(', ' || MIN(CASE WHEN s.scope_rank = 3 THEN s.component END), '') AS scopes
    FROM _scopes AS s
    GROUP BY
        s.capture_id,
        s.component_group
),
_op_texts AS (
    SELECT
        o.capture_id AS capture_id,
        o.component_group AS component_group,
        COUNT(*) AS op_count,
        MIN(CASE WHEN o.op_rank = 1 THEN o.hlo_op END)
        || COALESCE(', ' || MIN(CASE WHEN o.op_rank = 2 THEN o.hlo_op END), '')
        || COALESCE(', ' || MIN(CASE WHEN o.op_rank = 3 THEN o.hlo_op END), '') AS hlo_ops
    FROM _ops AS o
    GROUP BY
        o.capture_id,
        o.component_group
),
_operands AS (
    SELECT
        o.module_id AS module_id,
        o.instruction_id AS instruction_id,
        MIN(CASE WHEN o.operand_index = 0 THEN i.shape END)
        || COALESCE(', ' || MIN(CASE WHEN o.operand_index = 1 THEN i.shape END), '')
        || COALESCE(', ' || MIN(CASE WHEN o.operand_index = 2 THEN i.shape END), '') AS shapes
    FROM main.hlo_operands AS o
    INNER JOIN main.hlo_instructions AS i
        ON i.module_id = o.module_id
        AND i.instruction_id = o.operand_instruction_id
    GROUP BY
        o.module_id,
        o.instruction_id
)
SELECT
    o.capture_id AS capture_id,
    o.component_group AS component_group,
    s.scopes AS scopes,
    s.scope_count AS scope_count,
    t.hlo_ops AS hlo_ops,
    t.op_count AS op_count,
    i.shape || COALESCE(' <- ' || p.shapes, '') AS main_shapes,
    m.partition_count AS partition_count,
    o.executions AS executions
FROM _ops AS o
INNER JOIN _scope_texts AS s
    ON s.capture_id = o.capture_id
    AND s.component_group = o.component_group
INNER JOIN _op_texts AS t
    ON t.capture_id = o.capture_id
    AND t.component_group = o.component_group
LEFT JOIN main.hlo_modules AS m
    ON m.module_id = o.module_id
LEFT JOIN main.hlo_instructions AS i
    ON i.module_id = o.module_id
    AND i.instruction_id = o.instruction_id
LEFT JOIN _operands AS p
    ON p.module_id = o.module_id
    AND p.instruction_id = o.instruction_id
WHERE o.op_rank = 1
