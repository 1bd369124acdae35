-- name: v1._report_run
-- version: 1
-- grain: one row per run and fact
-- summary: The run
-- evidence: derived
-- columns:
--   run_id BIGINT: the run
--   line INTEGER: order of the rows
--   fact VARCHAR: Fact
--   value VARCHAR: Value

WITH _captures AS (
    SELECT
        c.run_id AS run_id,
        COUNT(*) AS captures,
        MIN(c.device_kind) AS first_kind,
        MAX(c.device_kind) AS last_kind,
        CAST(SUM(c.problem_count) AS BIGINT) AS problems
    FROM v1.captures AS c
    GROUP BY c.run_id
),
_left_out AS (
    SELECT
        c.run_id AS run_id,
        COUNT(*) AS captures
    FROM v1.captures AS c
    LEFT JOIN (SELECT DISTINCT s.capture_id AS capture_id FROM v1._run_steps AS s) AS k
        ON k.capture_id = c.capture_id
    WHERE c.device_event_count > 0
        AND k.capture_id IS NULL
    GROUP BY c.run_id
)
SELECT
    r.run_id AS run_id,
    v.line AS line,
    v.fact AS fact,
    CASE v.line
        WHEN 1 THEN r.commit_sha
        WHEN 2 THEN CASE
            WHEN c.first_kind = c.last_kind THEN CAST(t.device_count AS VARCHAR) || ' x ' || c.first_kind
            WHEN t.device_count = 1 THEN '1 device'
            ELSE CAST(t.device_count AS VARCHAR) || ' devices'
        END
        WHEN 3 THEN CAST(c.captures AS VARCHAR)
        WHEN 4 THEN CASE
            WHEN t.is_whole_capture AND t.device_step_count = 1 THEN 'the whole capture: there is no complete step'
            WHEN t.is_whole_capture THEN 'the whole capture of each device: there is no complete step'
            WHEN t.device_step_count = 1 THEN '1 complete step of a device'
            ELSE CAST(t.device_step_count AS VARCHAR) || ' complete steps of devices'
        END
        WHEN 5 THEN CAST(l.captures AS VARCHAR) || ' with device work and no complete step'
        WHEN 6 THEN CAST(c.problems AS VARCHAR)
    END AS value
FROM main.runs AS r
INNER JOIN _captures AS c
    ON c.run_id = r.run_id
INNER JOIN v1.run_time AS t
    ON t.run_id = r.run_id
LEFT JOIN _left_out AS l
    ON l.run_id = r.run_id
CROSS JOIN (
    VALUES
        (1, 'Commit'),
        (2, 'Devices'),
        (3, 'Captures'),
        (4, 'Means are of'),
        (5, 'Captures left out'),
        (6, 'Problems at ingest')
) AS v (line, fact)
WHERE (v.line <> 1 OR r.commit_sha IS NOT NULL)
    AND (v.line <> 5 OR l.captures IS NOT NULL)
