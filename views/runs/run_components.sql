-- name: v1.run_components
-- version: 1
-- grain: one row per run, phase, phase of launch and component
-- summary: Device time of each component within each phase, in the mean device step of a run.
-- evidence: derived
-- columns:
--   run_id BIGINT: the run
--   run_name VARCHAR: its name
--   phase VARCHAR: communication, remat, backward, forward, update or unattributed
--   launch_phase VARCHAR: of communication, the phase that it belongs to; else the same as phase
--   component_family VARCHAR: groups that are told together: MoE, Layer norms, ...
--   component_group VARCHAR: box of the model's map: Attention, Expert MLP, ...
--   component VARCHAR: deepest named scope, or unattributed
--   sum_ps DOUBLE (ps): summed durations, a step of a device: mean over all of v1.run_time
--   share_ratio DOUBLE (ratio): over the sum of the phase
--   sum_ms DOUBLE (ms): sum_ps in milliseconds

WITH _counts AS (
    SELECT
        s.run_id AS run_id,
        COUNT(*) AS device_steps
    FROM v1._run_steps AS s
    GROUP BY s.run_id
),
_components AS (
    SELECT
        s.run_id AS run_id,
        e.phase AS phase,
        e.launch_phase AS launch_phase,
        e.component_group AS component_group,
        e.component AS component,
        CAST(SUM(e.end_ps - e.start_ps) AS BIGINT) AS component_ps
    FROM v1._run_steps AS s
    INNER JOIN v1._phased_events AS e
        ON e.capture_id = s.capture_id
        AND e.device_id = s.device_id
        AND COALESCE(e.step_num, -1) = COALESCE(s.step_num, -1)
        AND (e.step_num IS NULL) = (s.step_num IS NULL)
    GROUP BY
        s.run_id,
        e.phase,
        e.launch_phase,
        e.component_group,
        e.component
),
_totals AS (
    SELECT
        c.run_id AS run_id,
        c.phase AS phase,
        c.launch_phase AS launch_phase,
        c.component_group AS component_group,
        c.component AS component,
        c.component_ps AS component_ps,
        CAST(SUM(c.component_ps) OVER (PARTITION BY c.run_id, c.phase) AS BIGINT) AS phase_ps
    FROM _components AS c
)
SELECT
    t.run_id AS run_id,
    r.run_name AS run_name,
    t.phase AS phase,
    t.launch_phase AS launch_phase,
    COALESCE(f.component_family, t.component_group) AS component_family,
    t.component_group AS component_group,
    t.component AS component,
    CAST(t.component_ps AS DOUBLE) / NULLIF(c.device_steps, 0) AS sum_ps,
    CAST(t.component_ps AS DOUBLE) / NULLIF(CAST(t.phase_ps AS DOUBLE), 0) AS share_ratio,
    CAST(t.component_ps AS DOUBLE) / NULLIF(c.device_steps, 0) / 1e9 AS sum_ms
FROM _totals AS t
INNER JOIN _counts AS c
    ON c.run_id = t.run_id
INNER JOIN main.runs AS r
    ON r.run_id = t.run_id
LEFT JOIN main.component_families AS f
    ON f.component_group = t.component_group
