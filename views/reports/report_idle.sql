-- name: v1._report_idle
-- version: 1
-- grain: one row per run and cause of idle time
-- summary: Idle time
-- evidence: derived
-- columns:
--   run_id BIGINT: the run
--   line BIGINT: order of the rows
--   cause VARCHAR: Cause
--   gaps DOUBLE (count): Gaps a step
--   mean_ms DOUBLE (ms): Mean time
--   longest_ms DOUBLE (ms): Longest gap
--   share_ratio DOUBLE (ratio): Share of the window
-- algorithm: Gaps in the window of a step where its device has no work of it. v1.idle_gaps has each, and says what the
--   causes mean.

WITH _gaps AS (
    SELECT
        s.run_id AS run_id,
        g.cause AS cause,
        COUNT(*) AS gaps,
        CAST(SUM(g.duration_ps) AS DOUBLE) AS idle_ps,
        CAST(MAX(g.duration_ps) AS DOUBLE) AS longest_ps
    FROM v1._run_steps AS s
    INNER JOIN v1.idle_gaps AS g
        ON g.capture_id = s.capture_id
        AND g.device_id = s.device_id
        AND COALESCE(g.step_num, -1) = COALESCE(s.step_num, -1)
        AND (g.step_num IS NULL) = (s.step_num IS NULL)
    GROUP BY
        s.run_id,
        g.cause
)
SELECT
    g.run_id AS run_id,
    ROW_NUMBER() OVER (
        PARTITION BY g.run_id
        ORDER BY -g.idle_ps NULLS FIRST, g.cause NULLS FIRST
    ) AS line,
    g.cause AS cause,
    CAST(g.gaps AS DOUBLE) / NULLIF(t.device_step_count, 0) AS gaps,
    g.idle_ps / NULLIF(t.device_step_count, 0) / 1e9 AS mean_ms,
    g.longest_ps / 1e9 AS longest_ms,
    g.idle_ps / NULLIF(t.device_step_count, 0) / NULLIF(t.window_ps, 0) AS share_ratio
FROM _gaps AS g
INNER JOIN v1.run_time AS t
    ON t.run_id = g.run_id
