-- name: v1.kernel_changes
-- version: 1
-- grain: one row per pair of groups of runs and kernel of an op that only one of them runs, or pair of these
-- summary: Kernels that appeared, vanished, were renamed or replaced by another for the same op.
-- evidence: derived
-- columns:
--   base_group VARCHAR: group of v1.run_groups to compare with
--   head_group VARCHAR: group that is compared
--   change VARCHAR: appeared; vanished; for the same op, with as many events: renamed (only namespaces, return type or the
--     suffix of a compiler's copy differ) or other_fusion (both are fusions of XLA, named after what they fuse);
--     else retuned: the op runs another kernel
--   phase VARCHAR: phase of the op
--   component VARCHAR: its component
--   op VARCHAR: the op, as in v1.step_changes
--   base_kernel VARCHAR: kernel in base; NULL where it appeared
--   head_kernel VARCHAR: kernel in head; NULL where it vanished
--   base_sum_ps DOUBLE (ps): its durations in the mean device step of base; 0 where it appeared
--   head_sum_ps DOUBLE (ps): likewise of head
--   change_ps DOUBLE (ps): head_sum_ps - base_sum_ps
--   base_events DOUBLE (count): events in the mean device step of base
--   head_events DOUBLE (count): likewise of head
--   base_runs BIGINT (count): runs of base in which base_kernel ran for the op: autotuning may choose others in others
--   head_runs BIGINT (count): likewise of head_kernel
-- algorithm: Numbers that XLA gives to kernels of its own are no part of their names. Kernels of an op that only one side runs are paired in the order of their durations, longest first.

WITH _kernels AS (
    SELECT
        c.base_group AS base_group,
        c.head_group AS head_group,
        c.phase AS phase,
        c.component AS component,
        c.op AS op,
        c.kernel AS kernel,
        MIN(CASE WHEN c.opcode <> 'custom-call' AND c.kernel LIKE '%fusion%' THEN 1 ELSE 0 END) AS is_made,
        CAST(SUM(c.base_sum_ps) AS DOUBLE) AS base_ps,
        CAST(SUM(c.head_sum_ps) AS DOUBLE) AS head_ps,
        CAST(SUM(c.base_events) AS DOUBLE) AS base_count,
        CAST(SUM(c.head_events) AS DOUBLE) AS head_count,
        MAX(c.base_runs) AS base_run_count,
        MAX(c.head_runs) AS head_run_count
    FROM v1.step_changes AS c
    WHERE c.phase <> 'idle'
    GROUP BY
        c.base_group,
        c.head_group,
        c.phase,
        c.component,
        c.op,
        c.kernel
),
_plain AS (
    SELECT
        k.base_group AS base_group,
        k.head_group AS head_group,
        k.phase AS phase,
        k.component AS component,
        k.op AS op,
        k.kernel AS kernel,
        k.is_made AS is_made,
        k.base_ps AS base_ps,
        k.head_ps AS head_ps,
        k.base_count AS base_count,
        k.head_count AS head_count,
        k.base_run_count AS base_run_count,
        k.head_run_count AS head_run_count,
        COALESCE(
            NULLIF(REGEXP_EXTRACT(
                k.kernel, '^(.*[^ ])( *.clone [^ ]*|[.]kd|[.](llvm|cold|part|isra|constprop)[.0-9]*)$', 1
            ), ''),
            k.kernel
        ) AS plain_name
    FROM _kernels AS k
    WHERE (k.base_count = 0) <> (k.head_count = 0)
),
_ranked AS (
    SELECT
        k.base_group AS base_group,
        k.head_group AS head_group,
        k.phase AS phase,
        k.component AS component,
        k.op AS op,
        k.kernel AS kernel,
        k.is_made AS is_made,
        k.base_ps AS base_ps,
        k.head_ps AS head_ps,
        k.base_count AS base_count,
        k.head_count AS head_count,
        k.base_run_count AS base_run_count,
        k.head_run_count AS head_run_count,
        CASE WHEN k.base_count = 0 THEN 1 ELSE 0 END AS is_new,
        ROW_NUMBER() OVER (
            PARTITION BY
                k.base_group, k.head_group, k.phase, k.component, k.op, CASE WHEN k.base_count = 0 THEN 1 ELSE 0 END
            ORDER BY -(k.base_ps + k.head_ps) NULLS FIRST, k.kernel NULLS FIRST
        ) AS place,
        COALESCE(
            NULLIF(REGEXP_EXTRACT(k.plain_name, '^[^(<]*[ :]([^ :(<]+.*)$', 1), ''), k.plain_name
        ) AS function_text
    FROM _plain AS k
),
_paired AS (
    SELECT
        r.base_group AS base_group,
        r.head_group AS head_group,
        r.phase AS phase,
        r.component AS component,
        r.op AS op,
        r.place AS place,
        MAX(CASE WHEN r.is_new = 0 THEN r.kernel END) AS base_kernel,
        MAX(CASE WHEN r.is_new = 1 THEN r.kernel END) AS head_kernel,
        MIN(r.is_made) AS are_made,
        COUNT(DISTINCT r.function_text) AS functions,
        CAST(SUM(r.base_ps) AS DOUBLE) AS base_sum_ps,
        CAST(SUM(r.head_ps) AS DOUBLE) AS head_sum_ps,
        CAST(SUM(r.base_count) AS DOUBLE) AS base_events,
        CAST(SUM(r.head_count) AS DOUBLE) AS head_events,
        MAX(r.base_run_count) AS base_runs,
        MAX(r.head_run_count) AS head_runs
    FROM _ranked AS r
    GROUP BY
        r.base_group,
        r.head_group,
        r.phase,
        r.component,
        r.op,
        r.place
)
SELECT
    p.base_group AS base_group,
    p.head_group AS head_group,
    CASE
        WHEN p.base_kernel IS NULL THEN 'appeared'
        WHEN p.head_kernel IS NULL THEN 'vanished'
        WHEN p.functions = 1 THEN 'renamed'
        WHEN p.are_made = 1 AND p.base_events = p.head_events THEN 'other_fusion'
        ELSE 'retuned'
    END AS change,
    p.phase AS phase,
    p.component AS component,
    p.op AS op,
    p.base_kernel AS base_kernel,
    p.head_kernel AS head_kernel,
    p.base_sum_ps AS base_sum_ps,
    p.head_sum_ps AS head_sum_ps,
    p.head_sum_ps - p.base_sum_ps AS change_ps,
    p.base_events AS base_events,
    p.head_events AS head_events,
    p.base_runs AS base_runs,
    p.head_runs AS head_runs
FROM _paired AS p
