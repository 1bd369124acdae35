-- name: v1.step_spread
-- version: 1
-- grain: one row per run, kind of source, group of captures that ran at one time, and step
-- summary: How far the devices and processes of a run differ in a step, and which is the slowest.
-- evidence: derived
-- columns:
--   run_id BIGINT: the run
--   source_kind VARCHAR: kind of the captures; what two profilers saw of a run are two executions
--   reference_capture_id BIGINT: stands for the captures that ran at one time, as in v1.clock_alignment; NULL
--     where their clocks cannot be compared
--   step_num BIGINT: the step
--   device_count BIGINT (count): devices with the step complete, over all processes
--   process_count BIGINT (count): captures that these are of
--   incomplete_count BIGINT (count): devices with the step incomplete: the other columns leave them out
--   min_duration_ps BIGINT (ps): shortest device window of the step
--   max_duration_ps BIGINT (ps): longest
--   mean_duration_ps DOUBLE (ps): mean
--   spread_ps BIGINT (ps): max_duration_ps - min_duration_ps
--   spread_ratio DOUBLE (ratio): spread_ps to mean_duration_ps
--   critical_capture_id BIGINT: capture of the critical device: that with the longest window; of equals, the first
--   critical_device_id BIGINT: the critical device
--   critical_process_index INTEGER: its process
--   critical_device_ordinal BIGINT: its ordinal on its host
--   start_skew_ps BIGINT (ps): from the first start of the step on a device to the last, on one time axis; NULL
--     where the clocks cannot be compared
--   start_skew_error_ps BIGINT (ps): largest p95_residual_ps of v1.clock_alignment among the captures; NULL
--     where none was matched
--   max_duration_ms DOUBLE (ms): max_duration_ps in milliseconds
--   start_skew_us DOUBLE (us): start_skew_ps in microseconds

WITH _steps AS (
    SELECT
        c.run_id AS run_id,
        c.source_kind AS source_kind,
        c.process_index AS process_index,
        a.reference_capture_id AS reference_capture_id,
        a.p95_residual_ps AS p95_residual_ps,
        s.capture_id AS capture_id,
        s.device_id AS device_id,
        s.device_ordinal AS device_ordinal,
        s.step_num AS step_num,
        CASE WHEN s.is_complete THEN s.duration_ps END AS duration_ps,
        CASE WHEN s.is_complete THEN s.capture_id END AS complete_capture_id,
        CASE WHEN s.is_complete THEN s.start_ps + a.offset_ps END AS aligned_start_ps
    FROM v1.steps AS s
    INNER JOIN main.captures AS c
        ON c.capture_id = s.capture_id
    INNER JOIN v1.clock_alignment AS a
        ON a.capture_id = s.capture_id
),
_ranked AS (
    SELECT
        s.run_id AS run_id,
        s.source_kind AS source_kind,
        s.reference_capture_id AS reference_capture_id,
        s.p95_residual_ps AS p95_residual_ps,
        s.process_index AS process_index,
        s.capture_id AS capture_id,
        s.device_id AS device_id,
        s.device_ordinal AS device_ordinal,
        s.step_num AS step_num,
        s.duration_ps AS duration_ps,
        s.complete_capture_id AS complete_capture_id,
        s.aligned_start_ps AS aligned_start_ps,
        ROW_NUMBER() OVER (
            PARTITION BY s.run_id, s.source_kind, s.reference_capture_id, s.step_num
            ORDER BY -COALESCE(s.duration_ps, -1) NULLS FIRST, s.capture_id NULLS FIRST, s.device_id NULLS FIRST
        ) AS slow_rank
    FROM _steps AS s
),
_spread AS (
    SELECT
        r.run_id AS run_id,
        r.source_kind AS source_kind,
        r.reference_capture_id AS reference_capture_id,
        r.step_num AS step_num,
        COUNT(r.duration_ps) AS device_count,
        COUNT(DISTINCT r.complete_capture_id) AS process_count,
        COUNT(*) - COUNT(r.duration_ps) AS incomplete_count,
        MIN(r.duration_ps) AS shortest_ps,
        MAX(r.duration_ps) AS longest_ps,
        CAST(SUM(r.duration_ps) AS DOUBLE) AS total_ps,
        MIN(CASE WHEN r.slow_rank = 1 THEN r.complete_capture_id END) AS critical_capture_id,
        MIN(CASE WHEN r.slow_rank = 1 AND r.duration_ps IS NOT NULL THEN r.device_id END) AS critical_device_id,
        MIN(CASE WHEN r.slow_rank = 1 AND r.duration_ps IS NOT NULL THEN r.process_index END)
            AS critical_process_index,
        MIN(CASE WHEN r.slow_rank = 1 AND r.duration_ps IS NOT NULL THEN r.device_ordinal END)
            AS critical_device_ordinal,
        CASE
            WHEN COUNT(r.duration_ps) = COUNT(r.aligned_start_ps)
                THEN MAX(r.aligned_start_ps) - MIN(r.aligned_start_ps)
        END AS start_skew_ps,
        MAX(CASE WHEN r.duration_ps IS NOT NULL THEN r.p95_residual_ps END) AS start_skew_error_ps
    FROM _ranked AS r
    GROUP BY
        r.run_id,
        r.source_kind,
        r.reference_capture_id,
        r.step_num
)
SELECT
    s.run_id AS run_id,
    s.source_kind AS source_kind,
    s.reference_capture_id AS reference_capture_id,
    s.step_num AS step_num,
    s.device_count AS device_count,
    s.process_count AS process_count,
    s.incomplete_count AS incomplete_count,
    s.shortest_ps AS min_duration_ps,
    s.longest_ps AS max_duration_ps,
    s.total_ps / NULLIF(CAST(s.device_count AS DOUBLE), 0) AS mean_duration_ps,
    s.longest_ps - s.shortest_ps AS spread_ps,
    CAST(s.longest_ps - s.shortest_ps AS DOUBLE) * CAST(s.device_count AS DOUBLE)
        / NULLIF(s.total_ps, 0) AS spread_ratio,
    s.critical_capture_id AS critical_capture_id,
    s.critical_device_id AS critical_device_id,
    s.critical_process_index AS critical_process_index,
    s.critical_device_ordinal AS critical_device_ordinal,
    s.start_skew_ps AS start_skew_ps,
    s.start_skew_error_ps AS start_skew_error_ps,
    CAST(s.longest_ps AS DOUBLE) / 1e9 AS max_duration_ms,
    CAST(s.start_skew_ps AS DOUBLE) / 1e6 AS start_skew_us
FROM _spread AS s
