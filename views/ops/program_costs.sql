-- name: v1.program_costs
-- version: 1
-- grain: one row per capture and program
-- summary: What one run of a program costs by the compiler's account, with loop bodies as often as they run.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   program_id BIGINT: the program
--   module_name VARCHAR: name of its HLO module
--   flops DOUBLE (count): floating-point operations of one run, library calls included
--   library_flops DOUBLE (count): those of them that library calls do, by a formula for each
--   transcendentals DOUBLE (count): exponentials and the like; not part of flops
--   bytes_accessed DOUBLE (bytes): read and written by XLA's rules, an upper bound (see v1.op_stats)
--   executed_instructions DOUBLE (count): instructions that one run executes
--   instruction_count BIGINT (count): instructions of the module that a run executes at least once
--   unknown_flops_count BIGINT (count): those of them without FLOPs, which the sum lacks
--   unknown_loop_count BIGINT (count): instructions in a loop or branch whose executions are not known, which
--     all sums lack
-- algorithm: Bodies of fusions and reducers are part of the instruction that calls them; a loop, a branch and
--   an async-start cost nothing themselves, what they run counts where it is.

WITH _executed AS (
    SELECT
        i.module_id AS module_id,
        k.executions AS executions,
        c.flops AS flops,
        c.transcendentals AS transcendentals,
        c.bytes_accessed AS bytes_accessed,
        c.cost_evidence AS cost_evidence
    FROM main.hlo_instructions AS i
    INNER JOIN main.hlo_computations AS k
        ON k.module_id = i.module_id
        AND k.computation_id = i.computation_id
        AND k.computation_role IN ('entry', 'while_body', 'while_condition', 'branch', 'call', 'async')
    LEFT JOIN main.hlo_costs AS c
        ON c.module_id = i.module_id
        AND c.instruction_id = i.instruction_id
),
_modules AS (
    SELECT
        e.module_id AS module_id,
        CAST(SUM(CAST(e.executions AS DOUBLE) * CAST(e.flops AS DOUBLE)) AS DOUBLE) AS run_flops,
        CAST(SUM(CASE
            WHEN e.cost_evidence = 'analytical' THEN CAST(e.executions AS DOUBLE) * CAST(e.flops AS DOUBLE)
        END) AS DOUBLE) AS library_flops,
        CAST(SUM(CAST(e.executions AS DOUBLE) * CAST(e.transcendentals AS DOUBLE)) AS DOUBLE)
            AS run_transcendentals,
        CAST(SUM(CAST(e.executions AS DOUBLE) * CAST(e.bytes_accessed AS DOUBLE)) AS DOUBLE)
            AS run_bytes_accessed,
        CAST(SUM(CAST(e.executions AS DOUBLE)) AS DOUBLE) AS executed_instructions,
        COUNT(CASE WHEN e.executions > 0 THEN 1 END) AS instruction_count,
        COUNT(CASE WHEN e.executions > 0 AND e.flops IS NULL THEN 1 END) AS unknown_flops_count,
        COUNT(CASE WHEN e.executions IS NULL THEN 1 END) AS unknown_loop_count
    FROM _executed AS e
    GROUP BY e.module_id
)
SELECT
    p.capture_id AS capture_id,
    p.program_id AS program_id,
    m.module_name AS module_name,
    COALESCE(s.run_flops, 0) AS flops,
    COALESCE(s.library_flops, 0) AS library_flops,
    COALESCE(s.run_transcendentals, 0) AS transcendentals,
    COALESCE(s.run_bytes_accessed, 0) AS bytes_accessed,
    COALESCE(s.executed_instructions, 0) AS executed_instructions,
    COALESCE(s.instruction_count, 0) AS instruction_count,
    COALESCE(s.unknown_flops_count, 0) AS unknown_flops_count,
    COALESCE(s.unknown_loop_count, 0) AS unknown_loop_count
FROM main.hlo_programs AS p
INNER JOIN main.hlo_modules AS m
    ON m.module_id = p.module_id
LEFT JOIN _modules AS s
    ON s.module_id = p.module_id
