-- name: v1._report_period
-- version: 1
-- grain: one row per run and quantity that is known
-- summary: From step to step
-- evidence: derived
-- columns:
--   run_id BIGINT: the run
--   line INTEGER: order of the rows
--   quantity VARCHAR: Quantity
--   time_ms DOUBLE (ms): Time
--   share_ratio DOUBLE (ratio): Share of the period
--   samples BIGINT (count): Samples
-- algorithm: A period is from the start of a step to the start of the next on the same device, both complete; it holds
--   what the window of a step leaves out, the time between steps. Idle is all of it in which the device runs nothing.
--   Means of these.

WITH _neighbours AS (
    SELECT
        s.capture_id AS capture_id,
        s.device_id AS device_id,
        s.start_ps AS start_ps,
        s.gap_before_ps AS gap_before_ps,
        s.is_complete AS is_complete,
        LAG(s.start_ps) OVER (
            PARTITION BY s.capture_id, s.device_id
            ORDER BY s.start_ps NULLS FIRST, s.step_num NULLS FIRST
        ) AS start_before_ps,
        LAG(s.end_ps) OVER (
            PARTITION BY s.capture_id, s.device_id
            ORDER BY s.start_ps NULLS FIRST, s.step_num NULLS FIRST
        ) AS end_before_ps,
        LAG(CASE WHEN s.is_complete THEN 1 ELSE 0 END) OVER (
            PARTITION BY s.capture_id, s.device_id
            ORDER BY s.start_ps NULLS FIRST, s.step_num NULLS FIRST
        ) AS complete_before
    FROM v1.steps AS s
),
_periods AS (
    SELECT
        n.capture_id AS capture_id,
        n.device_id AS device_id,
        n.start_before_ps AS start_ps,
        n.start_ps AS end_ps,
        n.gap_before_ps AS gap_before_ps
    FROM _neighbours AS n
    WHERE n.is_complete
        AND n.complete_before = 1
        -- Else a step that the user left out is between them.
        AND n.start_ps - n.end_before_ps = n.gap_before_ps
),
_work AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        e.start_ps AS start_ps,
        e.end_ps AS end_ps
    FROM main.device_events AS e
    WHERE e.role = 'work'
),
_sums AS (
    SELECT
        c.run_id AS run_id,
        COUNT(*) AS samples,
        CAST(SUM(v.label_1) AS DOUBLE) AS total_gap_ps,
        CAST(SUM(v.end_ps - v.start_ps) AS DOUBLE) AS total_period_ps,
        CAST(SUM(v.uncovered_ps) AS DOUBLE) AS total_idle_ps
    FROM v1.interval_coverage('_periods', '_work', gap_before_ps) AS v
    INNER JOIN main.captures AS c
        ON c.capture_id = v.capture_id
    GROUP BY c.run_id
)
SELECT
    s.run_id AS run_id,
    v.line AS line,
    v.quantity AS quantity,
    CASE v.line WHEN 1 THEN s.total_gap_ps WHEN 2 THEN s.total_period_ps ELSE s.total_idle_ps END
        / NULLIF(s.samples, 0) / 1e9 AS time_ms,
    CASE v.line WHEN 1 THEN s.total_gap_ps WHEN 2 THEN s.total_period_ps ELSE s.total_idle_ps END
        / NULLIF(s.total_period_ps, 0) AS share_ratio,
    s.samples AS samples
FROM _sums AS s
CROSS JOIN (
    VALUES
        (1, 'Time between steps'),
        (2, 'Step period (start to start)'),
        (3, 'Device idle in the period')
) AS v (line, quantity)
