-- name: v1._group_parts
-- version: 1
-- grain: one row per group of runs, phase, component, op and kernel in their device steps, and one for idle time
-- summary: What the mean device step of a group of runs consists of; every run counts the same.
-- evidence: derived
-- columns:
--   group_name VARCHAR: as in v1.run_groups
--   phase VARCHAR: as in v1._step_parts
--   component_group VARCHAR: likewise
--   component VARCHAR: likewise
--   op_family VARCHAR: likewise
--   opcode VARCHAR: likewise
--   op VARCHAR: likewise
--   kernel VARCHAR: likewise
--   exclusive_ps DOUBLE (ps): mean over runs of a device step's
--   sum_ps DOUBLE (ps): likewise
--   event_count DOUBLE (count): likewise
--   run_count BIGINT (count): runs that have the part
--   group_run_count BIGINT (count): runs of the group with device work

WITH _runs AS (
    SELECT
        g.group_name AS group_name,
        COUNT(*) AS runs
    FROM v1.run_groups AS g
    INNER JOIN main.step_parts AS p
        ON p.run_id = g.run_id
    -- Each run with device work has one such row.
    WHERE p.phase = 'idle'
    GROUP BY g.group_name
),
_sums AS (
    SELECT
        g.group_name AS group_name,
        p.phase AS phase,
        p.component_group AS component_group,
        p.component AS component,
        p.op_family AS op_family,
        p.opcode AS opcode,
        p.op AS op,
        p.kernel AS kernel,
        CAST(SUM(CAST(p.exclusive_ps AS DOUBLE) / NULLIF(p.device_steps, 0)) AS DOUBLE) AS total_exclusive_ps,
        CAST(SUM(CAST(p.sum_ps AS DOUBLE) / NULLIF(p.device_steps, 0)) AS DOUBLE) AS total_sum_ps,
        CAST(SUM(CAST(p.event_count AS DOUBLE) / NULLIF(p.device_steps, 0)) AS DOUBLE) AS total_count,
        COUNT(*) AS part_runs
    FROM v1.run_groups AS g
    INNER JOIN main.step_parts AS p
        ON p.run_id = g.run_id
    GROUP BY
        g.group_name,
        p.phase,
        p.component_group,
        p.component,
        p.op_family,
        p.opcode,
        p.op,
        p.kernel
)
SELECT
    s.group_name AS group_name,
    s.phase AS phase,
    s.component_group AS component_group,
    s.component AS component,
    s.op_family AS op_family,
    s.opcode AS opcode,
    s.op AS op,
    s.kernel AS kernel,
    s.total_exclusive_ps / NULLIF(r.runs, 0) AS exclusive_ps,
    s.total_sum_ps / NULLIF(r.runs, 0) AS sum_ps,
    s.total_count / NULLIF(r.runs, 0) AS event_count,
    s.part_runs AS run_count,
    r.runs AS group_run_count
FROM _sums AS s
INNER JOIN _runs AS r
    ON r.group_name = s.group_name
