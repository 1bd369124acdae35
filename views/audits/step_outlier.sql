-- name: step_outlier
-- severity: warning
-- filter: capture_id
-- question: Are the steps alike?
-- meaning: A complete step took more than twice as long as half of the others of its device, and does not come back
--   with a period. A mean over steps describes none of them.
-- next: Report the median, or leave the step out (tracewh steps). v1.idle_gaps and v1.device_time with its step_num say
--   what it did or waited for; v1.step_classes says whether XLA compiled in it.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   device_ordinal BIGINT: ordinal of the device on its host
--   step_num BIGINT: the step
--   step_class VARCHAR: as in v1.step_classes
--   duration_ms DOUBLE (ms): window of the step
--   median_ms DOUBLE (ms): of the complete steps of the device; of an even number, the lower of the middle two
--   ratio DOUBLE (ratio): duration_ms / median_ms

WITH _ranked AS (
    SELECT
        s.capture_id AS capture_id,
        s.device_id AS device_id,
        s.device_ordinal AS device_ordinal,
        s.step_num AS step_num,
        s.step_class AS step_class,
        s.period_steps AS period_steps,
        s.duration_ps AS duration_ps,
        ROW_NUMBER() OVER (
            PARTITION BY s.capture_id, s.device_id
            ORDER BY s.duration_ps NULLS FIRST, s.step_num NULLS FIRST
        ) AS duration_rank,
        COUNT(*) OVER (PARTITION BY s.capture_id, s.device_id) AS step_count
    FROM v1.step_classes AS s
    WHERE s.step_class <> 'incomplete'
),
_medians AS (
    SELECT
        r.capture_id AS capture_id,
        r.device_ordinal AS device_ordinal,
        r.step_num AS step_num,
        r.step_class AS step_class,
        r.period_steps AS period_steps,
        r.duration_ps AS duration_ps,
        MAX(CASE WHEN 2 * r.duration_rank BETWEEN r.step_count AND r.step_count + 1 THEN r.duration_ps END)
            OVER (PARTITION BY r.capture_id, r.device_id) AS median_ps
    FROM _ranked AS r
    WHERE r.step_count >= 3
)
SELECT
    r.run_name AS run_name,
    m.capture_id AS capture_id,
    m.device_ordinal AS device_ordinal,
    m.step_num AS step_num,
    m.step_class AS step_class,
    CAST(m.duration_ps AS DOUBLE) / 1e9 AS duration_ms,
    CAST(m.median_ps AS DOUBLE) / 1e9 AS median_ms,
    CAST(m.duration_ps AS DOUBLE) / NULLIF(CAST(m.median_ps AS DOUBLE), 0) AS ratio
FROM _medians AS m
INNER JOIN main.captures AS c
    ON c.capture_id = m.capture_id
INNER JOIN main.runs AS r
    ON r.run_id = c.run_id
WHERE m.duration_ps > 2 * m.median_ps
    AND m.period_steps IS NULL
ORDER BY
    ratio DESC,
    r.run_name,
    m.capture_id,
    m.device_ordinal,
    m.step_num
