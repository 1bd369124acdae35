-- name: v1.step_change_levels
-- version: 1
-- grain: one row per pair of groups of runs, level and part of the device step at this level
-- summary: v1.step_changes from the whole down: the step, its phases, their components, their ops, and the kernels of these.
-- evidence: derived
-- columns:
--   base_group VARCHAR: group of v1.run_groups to compare with
--   head_group VARCHAR: group that is compared
--   level INTEGER: 0 for the whole step, 1 phase, 2 component, 3 op, 4 kernel
--   phase VARCHAR: NULL above its level
--   component VARCHAR: NULL above its level
--   op VARCHAR: NULL above its level
--   kernel VARCHAR: NULL above its level
--   base_ps DOUBLE (ps): exclusive time in the mean device step of base
--   head_ps DOUBLE (ps): likewise of head
--   change_ps DOUBLE (ps): head_ps - base_ps; those of one level sum to that of the step
--   share_ratio DOUBLE (ratio): change_ps over that of the step; NULL where that is 0
--   base_events DOUBLE (count): events in the mean device step of base
--   head_events DOUBLE (count): likewise of head
-- algorithm: Idle time is a phase without parts, and has a row at each level. Ask for one pair with
--   WHERE base_group = ... AND head_group = ...

WITH _leaves AS (
    SELECT
        c.base_group AS base_group,
        c.head_group AS head_group,
        l.level AS level,
        CASE WHEN l.level >= 1 THEN c.phase END AS phase,
        CASE WHEN l.level >= 2 THEN c.component END AS component,
        CASE WHEN l.level >= 3 THEN c.op END AS op,
        CASE WHEN l.level >= 4 THEN c.kernel END AS kernel,
        c.base_ps AS leaf_base_ps,
        c.head_ps AS leaf_head_ps,
        c.base_events AS leaf_base_events,
        c.head_events AS leaf_head_events
    FROM v1.step_changes AS c
    CROSS JOIN (VALUES (0), (1), (2), (3), (4)) AS l (level)
),
_parts AS (
    SELECT
        p.base_group AS base_group,
        p.head_group AS head_group,
        p.level AS level,
        p.phase AS phase,
        p.component AS component,
        p.op AS op,
        p.kernel AS kernel,
        CAST(SUM(p.leaf_base_ps) AS DOUBLE) AS base_ps,
        CAST(SUM(p.leaf_head_ps) AS DOUBLE) AS head_ps,
        CAST(SUM(p.leaf_base_events) AS DOUBLE) AS base_events,
        CAST(SUM(p.leaf_head_events) AS DOUBLE) AS head_events
    FROM _leaves AS p
    GROUP BY
        p.base_group,
        p.head_group,
        p.level,
        p.phase,
        p.component,
        p.op,
        p.kernel
)
SELECT
    p.base_group AS base_group,
    p.head_group AS head_group,
    p.level AS level,
    p.phase AS phase,
    p.component AS component,
    p.op AS op,
    p.kernel AS kernel,
    p.base_ps AS base_ps,
    p.head_ps AS head_ps,
    p.head_ps - p.base_ps AS change_ps,
    (p.head_ps - p.base_ps) / NULLIF(
        CAST(SUM(CASE WHEN p.level = 0 THEN p.head_ps - p.base_ps END) OVER (
            PARTITION BY p.base_group, p.head_group
        ) AS DOUBLE), 0
    ) AS share_ratio,
    p.base_events AS base_events,
    p.head_events AS head_events
FROM _parts AS p
