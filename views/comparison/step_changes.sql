-- name: v1.step_changes
-- version: 1
-- grain: one row per pair of groups of runs, phase, component, op and kernel in the device steps of either, and one for idle
--   time
-- summary: What each part of the device step adds to the change in its time: the changes sum to that of the window.
-- evidence: derived
-- columns:
--   base_group VARCHAR: group of v1.run_groups to compare with
--   head_group VARCHAR: group that is compared
--   phase VARCHAR: as in v1.attribution; idle for the time without device work
--   component_group VARCHAR: as in v1.attribution; '' of idle time
--   component VARCHAR: as in v1.attribution; '' of idle time
--   op_family VARCHAR: primitive that the op_name ends in, else the HLO opcode, else what the event is
--   opcode VARCHAR: HLO opcode; '' where none is known
--   op VARCHAR: op_name, else the HLO instruction without the number in its name; '' where none is known
--   kernel VARCHAR: kernel, copy or op, without the number that XLA gives to a kernel of its own
--   base_ps DOUBLE (ps): exclusive time in the mean device step of base; 0 where it has no such part
--   head_ps DOUBLE (ps): likewise of head
--   change_ps DOUBLE (ps): head_ps - base_ps
--   base_sum_ps DOUBLE (ps): durations in the mean device step of base, whatever runs at the same time
--   head_sum_ps DOUBLE (ps): likewise of head
--   base_events DOUBLE (count): events in the mean device step of base
--   head_events DOUBLE (count): likewise of head
--   base_runs BIGINT (count): runs of base that have the part; the compiler chooses some kernels anew for each run
--   head_runs BIGINT (count): likewise of head
-- algorithm: Each moment of a step belongs to one event (compute before collectives before copies, then whichever began
--   first), or is idle. Means are over the complete device steps of a run, and then over runs. Ask for one pair with
--   WHERE base_group = ... AND head_group = ...

WITH _sides AS (
    SELECT
        m.group_name AS base_group,
        n.group_name AS head_group,
        m.phase AS phase,
        m.component_group AS component_group,
        m.component AS component,
        m.op_family AS op_family,
        m.opcode AS opcode,
        m.op AS op,
        m.kernel AS kernel,
        m.exclusive_ps AS base_exclusive_ps,
        m.sum_ps AS base_sum_ps,
        m.event_count AS base_event_count,
        m.run_count AS base_run_count,
        CAST(0 AS DOUBLE) AS head_exclusive_ps,
        CAST(0 AS DOUBLE) AS head_sum_ps,
        CAST(0 AS DOUBLE) AS head_event_count,
        CAST(0 AS BIGINT) AS head_run_count
    FROM v1._group_parts AS m
    CROSS JOIN v1._group_names AS n
    UNION ALL
    SELECT
        n.group_name AS base_group,
        m.group_name AS head_group,
        m.phase AS phase,
        m.component_group AS component_group,
        m.component AS component,
        m.op_family AS op_family,
        m.opcode AS opcode,
        m.op AS op,
        m.kernel AS kernel,
        CAST(0 AS DOUBLE) AS base_exclusive_ps,
        CAST(0 AS DOUBLE) AS base_sum_ps,
        CAST(0 AS DOUBLE) AS base_event_count,
        CAST(0 AS BIGINT) AS base_run_count,
        m.exclusive_ps AS head_exclusive_ps,
        m.sum_ps AS head_sum_ps,
        m.event_count AS head_event_count,
        m.run_count AS head_run_count
    FROM v1._group_parts AS m
    CROSS JOIN v1._group_names AS n
),
_pairs AS (
    SELECT
        s.base_group AS base_group,
        s.head_group AS head_group,
        s.phase AS phase,
        s.component_group AS component_group,
        s.component AS component,
        s.op_family AS op_family,
        s.opcode AS opcode,
        s.op AS op,
        s.kernel AS kernel,
        CAST(SUM(s.base_exclusive_ps) AS DOUBLE) AS base_ps,
        CAST(SUM(s.head_exclusive_ps) AS DOUBLE) AS head_ps,
        CAST(SUM(s.base_sum_ps) AS DOUBLE) AS base_duration_ps,
        CAST(SUM(s.head_sum_ps) AS DOUBLE) AS head_duration_ps,
        CAST(SUM(s.base_event_count) AS DOUBLE) AS base_events,
        CAST(SUM(s.head_event_count) AS DOUBLE) AS head_events,
        CAST(SUM(s.base_run_count) AS BIGINT) AS base_runs,
        CAST(SUM(s.head_run_count) AS BIGINT) AS head_runs
    FROM _sides AS s
    GROUP BY
        s.base_group,
        s.head_group,
        s.phase,
        s.component_group,
        s.component,
        s.op_family,
        s.opcode,
        s.op,
        s.kernel
)
SELECT
    p.base_group AS base_group,
    p.head_group AS head_group,
    p.phase AS phase,
    p.component_group AS component_group,
    p.component AS component,
    p.op_family AS op_family,
    p.opcode AS opcode,
    p.op AS op,
    p.kernel AS kernel,
    p.base_ps AS base_ps,
    p.head_ps AS head_ps,
    p.head_ps - p.base_ps AS change_ps,
    p.base_duration_ps AS base_sum_ps,
    p.head_duration_ps AS head_sum_ps,
    p.base_events AS base_events,
    p.head_events AS head_events,
    p.base_runs AS base_runs,
    p.head_runs AS head_runs
FROM _pairs AS p
