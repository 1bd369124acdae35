-- name: v1._report_collectives
-- version: 1
-- grain: one row per run, kind of collective, phase that it belongs to and component group
-- summary: Collectives
-- evidence: derived
-- columns:
--   run_id BIGINT: the run
--   line BIGINT: order of the rows
--   kind VARCHAR (kernel): Collective
--   launch_phase VARCHAR: Phase
--   component_group VARCHAR: Component
--   executions DOUBLE (count): Runs a step
--   mean_ms DOUBLE (ms): Mean time
--   exposed_ms DOUBLE (ms): Exposed time
--   hidden_ratio DOUBLE (ratio): Hidden by compute
-- algorithm: Summed durations, a step of a device; the name of a kernel where no HLO op is known.
--   v1.collective_executions has each.

WITH _executions AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        e.step_num AS step_num,
        COALESCE(e.kind, e.kernel_name) AS kind,
        e.launch_phase AS launch_phase,
        e.component_group AS component_group,
        e.duration_ps AS duration_ps,
        e.exposed_ps AS exposed_ps
    FROM v1.collective_executions AS e
),
_sums AS (
    SELECT
        s.run_id AS run_id,
        e.kind AS kind,
        e.launch_phase AS launch_phase,
        e.component_group AS component_group,
        COUNT(*) AS executions,
        CAST(SUM(e.duration_ps) AS DOUBLE) AS total_ps,
        CAST(SUM(e.exposed_ps) AS DOUBLE) AS exposed_total_ps
    FROM _executions AS e
    INNER JOIN main.captures AS c
        ON c.capture_id = e.capture_id
    INNER JOIN v1._run_steps AS s
        ON s.capture_id = e.capture_id
        AND s.device_id = e.device_id
        AND s.run_id = c.run_id
    WHERE s.step_num IS NULL OR s.step_num = e.step_num
    GROUP BY
        s.run_id,
        e.kind,
        e.launch_phase,
        e.component_group
)
SELECT
    s.run_id AS run_id,
    ROW_NUMBER() OVER (
        PARTITION BY s.run_id
        ORDER BY
            -s.exposed_total_ps NULLS FIRST,
            s.kind NULLS FIRST,
            s.launch_phase NULLS FIRST,
            s.component_group NULLS FIRST
    ) AS line,
    s.kind AS kind,
    s.launch_phase AS launch_phase,
    s.component_group AS component_group,
    CAST(s.executions AS DOUBLE) / NULLIF(t.device_step_count, 0) AS executions,
    s.total_ps / NULLIF(t.device_step_count, 0) / 1e9 AS mean_ms,
    s.exposed_total_ps / NULLIF(t.device_step_count, 0) / 1e9 AS exposed_ms,
    (s.total_ps - s.exposed_total_ps) / NULLIF(s.total_ps, 0) AS hidden_ratio
FROM _sums AS s
INNER JOIN v1.run_time AS t
    ON t.run_id = s.run_id
