-- name: v1._program_metrics
-- version: 1
-- grain: one row per run and metric
-- summary: Size of the optimized step program of a run, and the work of a device in an update.
-- evidence: compiler or analytical
-- columns:
--   run_id BIGINT: the run
--   metric VARCHAR: as in v1.metrics
--   scope VARCHAR: likewise
--   value DOUBLE: likewise
--   unit VARCHAR: likewise
--   polarity VARCHAR: likewise
--   evidence VARCHAR: likewise
--   timing VARCHAR: likewise
--   statistic VARCHAR: likewise
--   samples BIGINT (count): likewise
-- algorithm: hlo_instructions are those that a run of the program executes at least once, so that the body of a fusion is
--   one; hlo_fusions, hlo_custom_calls and hlo_collectives are some of them. A run with several step programs has the
--   sum. Where its captures differ, the largest.

WITH _programs AS (
    SELECT
        c.run_id AS run_id,
        c.capture_id AS capture_id,
        p.module_id AS module_id
    FROM v1._step_executables AS x
    INNER JOIN main.captures AS c
        ON c.capture_id = x.capture_id
    INNER JOIN main.hlo_programs AS p
        ON p.capture_id = x.capture_id
        AND p.program_id = x.program_id
    WHERE x.is_step_program
),
_counts AS (
    SELECT
        p.run_id AS run_id,
        p.capture_id AS capture_id,
        COUNT(*) AS instructions,
        COUNT(CASE WHEN i.opcode = 'fusion' THEN 1 END) AS fusions,
        COUNT(CASE WHEN i.opcode = 'custom-call' THEN 1 END) AS custom_calls,
        COUNT(CASE WHEN NOT l.is_done THEN 1 END) AS collectives
    FROM _programs AS p
    INNER JOIN main.hlo_computations AS k
        ON k.module_id = p.module_id
        AND k.computation_role IN ('entry', 'while_body', 'while_condition', 'branch', 'call', 'async')
    INNER JOIN main.hlo_instructions AS i
        ON i.module_id = k.module_id
        AND i.computation_id = k.computation_id
    LEFT JOIN main.hlo_collectives AS l
        ON l.module_id = i.module_id
        AND l.instruction_id = i.instruction_id
    WHERE k.executions IS NULL
        OR k.executions > 0
    GROUP BY
        p.run_id,
        p.capture_id
),
_largest AS (
    SELECT
        c.run_id AS run_id,
        MAX(c.instructions) AS most_instructions,
        MAX(c.fusions) AS most_fusions,
        MAX(c.custom_calls) AS most_custom_calls,
        MAX(c.collectives) AS most_collectives
    FROM _counts AS c
    GROUP BY c.run_id
),
_useful AS (
    SELECT
        m.run_id AS run_id,
        m.useful_flops AS useful_flops
    FROM v1.model_flops AS m
    WHERE m.component = 'total'
),
_values AS (
    SELECT
        l.run_id AS run_id,
        m.metric AS metric,
        CAST(
            CASE m.metric
                WHEN 'hlo_instructions' THEN l.most_instructions
                WHEN 'hlo_fusions' THEN l.most_fusions
                WHEN 'hlo_custom_calls' THEN l.most_custom_calls
                ELSE l.most_collectives
            END AS DOUBLE
        ) AS value,
        'count' AS unit,
        'none' AS polarity,
        'compiler' AS evidence,
        CAST(1 AS BIGINT) AS samples
    FROM _largest AS l
    CROSS JOIN (
        VALUES ('hlo_instructions'), ('hlo_fusions'), ('hlo_custom_calls'), ('hlo_collectives')
    ) AS m (metric)
    UNION ALL
    SELECT
        x.run_id AS run_id,
        m.metric AS metric,
        CASE m.metric WHEN 'executed_flops' THEN x.device_flops ELSE x.device_bytes END AS value,
        CASE m.metric WHEN 'executed_flops' THEN 'count' ELSE 'bytes' END AS unit,
        'lower' AS polarity,
        'compiler' AS evidence,
        x.device_count AS samples
    FROM v1._executed_flops AS x
    CROSS JOIN (VALUES ('executed_flops'), ('bytes_accessed')) AS m (metric)
    UNION ALL
    SELECT
        u.run_id AS run_id,
        'useful_flops' AS metric,
        u.useful_flops AS value,
        'count' AS unit,
        'none' AS polarity,
        'analytical' AS evidence,
        CAST(1 AS BIGINT) AS samples
    FROM _useful AS u
)
SELECT
    v.run_id AS run_id,
    v.metric AS metric,
    '' AS scope,
    v.value AS value,
    v.unit AS unit,
    v.polarity AS polarity,
    v.evidence AS evidence,
    CAST(NULL AS VARCHAR) AS timing,
    'total' AS statistic,
    v.samples AS samples
FROM _values AS v
WHERE v.value IS NOT NULL
