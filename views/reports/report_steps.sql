-- name: v1._report_steps
-- version: 1
-- grain: one row per run, use of steps and range of step numbers; the sixth range and those after it are one row
-- summary: The steps
-- evidence: derived
-- columns:
--   run_id BIGINT: the run
--   line BIGINT: order of the rows
--   steps VARCHAR: Steps
--   device_steps BIGINT (count): On devices
--   step_use VARCHAR: Use
--   marked_by VARCHAR: Marked by
-- algorithm: A step counts once for each device that worked on it. The command tracewh steps has each of them, and
--   changes what marks a step.

WITH _found AS (
    SELECT
        c.run_id AS run_id,
        s.capture_id AS capture_id,
        s.step_num AS step_num,
        s.mark_source AS mark_source,
        s.step_name AS step_name,
        CASE WHEN s.is_complete THEN 1 WHEN s.is_cut THEN 2 ELSE 3 END AS use_line
    FROM v1.steps AS s
    INNER JOIN main.captures AS c
        ON c.capture_id = s.capture_id
),
_worked AS (
    SELECT DISTINCT
        f.capture_id AS capture_id,
        f.step_num AS step_num
    FROM _found AS f
),
_uses AS (
    SELECT
        f.run_id AS run_id,
        f.step_num AS step_num,
        f.mark_source AS mark_source,
        f.step_name AS step_name,
        f.use_line AS use_line,
        1 AS on_devices
    FROM _found AS f
    UNION ALL
    SELECT
        c.run_id AS run_id,
        a.step_num AS step_num,
        a.mark_source AS mark_source,
        n.name AS step_name,
        CASE WHEN a.is_chosen = 1 THEN 4 ELSE 5 END AS use_line,
        0 AS on_devices
    FROM v1._step_names AS a
    INNER JOIN main.captures AS c
        ON c.capture_id = a.capture_id
    INNER JOIN main.names AS n
        ON n.name_id = a.name_id
    LEFT JOIN _worked AS w
        ON w.capture_id = a.capture_id
        AND w.step_num = a.step_num
    WHERE w.step_num IS NULL
),
_steps AS (
    SELECT
        u.run_id AS run_id,
        u.use_line AS use_line,
        u.mark_source AS mark_source,
        u.step_num AS step_num,
        CAST(SUM(u.on_devices) AS BIGINT) AS step_devices,
        MIN(u.step_name) AS step_low_name,
        MAX(u.step_name) AS step_high_name
    FROM _uses AS u
    GROUP BY
        u.run_id,
        u.use_line,
        u.mark_source,
        u.step_num
),
_numbered AS (
    SELECT
        s.run_id AS run_id,
        s.use_line AS use_line,
        s.mark_source AS mark_source,
        s.step_num AS step_num,
        s.step_devices AS step_devices,
        s.step_low_name AS step_low_name,
        s.step_high_name AS step_high_name,
        -- The same for numbers that follow each other.
        s.step_num - ROW_NUMBER() OVER (
            PARTITION BY s.run_id, s.use_line, s.mark_source
            ORDER BY s.step_num NULLS FIRST
        ) AS range_key
    FROM _steps AS s
),
_ranges AS (
    SELECT
        n.run_id AS run_id,
        n.use_line AS use_line,
        n.mark_source AS mark_source,
        MIN(n.step_num) AS range_first,
        MAX(n.step_num) AS range_last,
        CAST(SUM(n.step_devices) AS BIGINT) AS range_devices,
        MIN(n.step_low_name) AS range_low_name,
        MAX(n.step_high_name) AS range_high_name,
        ROW_NUMBER() OVER (
            PARTITION BY n.run_id, n.use_line, n.mark_source
            ORDER BY MIN(n.step_num) NULLS FIRST
        ) AS range_rank
    FROM _numbered AS n
    GROUP BY
        n.run_id,
        n.use_line,
        n.mark_source,
        n.range_key
),
_placed AS (
    SELECT
        r.run_id AS run_id,
        r.use_line AS use_line,
        r.mark_source AS mark_source,
        LEAST(r.range_rank, 6) AS range_line,
        r.range_first AS range_first,
        r.range_last AS range_last,
        r.range_devices AS range_devices,
        r.range_low_name AS range_low_name,
        r.range_high_name AS range_high_name
    FROM _ranges AS r
),
_shown AS (
    SELECT
        p.run_id AS run_id,
        p.use_line AS use_line,
        p.mark_source AS mark_source,
        p.range_line AS range_line,
        COUNT(*) AS ranges,
        MIN(p.range_first) AS first_step,
        MAX(p.range_last) AS last_step,
        CAST(SUM(p.range_devices) AS BIGINT) AS device_steps,
        MIN(p.range_low_name) AS first_name,
        MAX(p.range_high_name) AS last_name
    FROM _placed AS p
    GROUP BY
        p.run_id,
        p.use_line,
        p.mark_source,
        p.range_line
)
SELECT
    s.run_id AS run_id,
    ROW_NUMBER() OVER (
        PARTITION BY s.run_id
        ORDER BY s.use_line NULLS FIRST, s.mark_source NULLS FIRST, s.range_line NULLS FIRST
    ) AS line,
    CASE
        WHEN s.ranges > 1
        THEN CAST(s.ranges AS VARCHAR) || ' ranges from ' || CAST(s.first_step AS VARCHAR) || ' to '
            || CAST(s.last_step AS VARCHAR)
        WHEN s.first_step = s.last_step THEN CAST(s.first_step AS VARCHAR)
        ELSE CAST(s.first_step AS VARCHAR) || '-' || CAST(s.last_step AS VARCHAR)
    END AS steps,
    s.device_steps AS device_steps,
    CASE s.use_line
        WHEN 1 THEN CASE WHEN x.first_step IS NULL THEN 'averaged' ELSE 'averaged, chosen by --steps' END
        WHEN 2 THEN 'left out: cut by the start or the end of the capture'
        WHEN 3 THEN 'left out: work that it launched is not in the capture'
        WHEN 4 THEN 'left out: no device worked on it'
        ELSE 'left out by --steps'
    END AS step_use,
    CASE s.mark_source
        WHEN 'annotation' THEN 'step annotation'
        WHEN 'marker' THEN 'your marker'
        ELSE 'runs of the program'
    END || CASE WHEN s.first_name = s.last_name THEN ' ' || s.first_name ELSE '' END AS marked_by
FROM _shown AS s
LEFT JOIN main.step_choices AS x
    ON x.run_id = s.run_id
