-- name: v1._report_components
-- version: 1
-- grain: one row per run, table and component of it, and one for the total of each table
-- summary: Components
-- evidence: derived
-- columns:
--   run_id BIGINT: the run
--   section_line INTEGER: order of the tables
--   section VARCHAR: title of the table
--   line BIGINT: order of the rows
--   component VARCHAR: Component
--   mean_ms DOUBLE (ms): Mean device time
--   share_ratio DOUBLE (ratio): Share of the phase
-- algorithm: Summed durations, a step of a device, without communication. Forward work is told by the boxes of the
--   model's map, gradients and replay by families of them.

WITH _sections AS (
    SELECT
        v.section_line AS section_line,
        v.phase AS phase,
        v.section AS section
    FROM (
        VALUES
            (1, 'forward', 'Forward map'),
            (2, 'backward', 'Backward map'),
            (3, 'remat', 'Replayed components'),
            (4, 'update', 'Loss, gradient accumulation and optimizer'),
            (6, 'unattributed', 'Unattributed work')
    ) AS v (section_line, phase, section)
),
_named AS (
    SELECT
        c.run_id AS run_id,
        COALESCE(s.section_line, 5) AS section_line,
        COALESCE(s.section, c.phase) AS section,
        CASE
            WHEN c.phase IN ('backward', 'remat') THEN c.component_family
            WHEN c.phase = 'unattributed' THEN c.component
            ELSE c.component_group
        END AS component,
        c.sum_ms AS part_ms,
        c.share_ratio AS part_share
    FROM v1.run_components AS c
    LEFT JOIN _sections AS s
        ON s.phase = c.phase
    WHERE c.phase <> 'communication'
),
_rows AS (
    SELECT
        n.run_id AS run_id,
        n.section_line AS section_line,
        n.section AS section,
        n.component AS component,
        CAST(SUM(n.part_ms) AS DOUBLE) AS mean_ms,
        CAST(SUM(n.part_share) AS DOUBLE) AS phase_share
    FROM _named AS n
    GROUP BY
        n.run_id,
        n.section_line,
        n.section,
        n.component
)
SELECT
    r.run_id AS run_id,
    r.section_line AS section_line,
    r.section AS section,
    ROW_NUMBER() OVER (
        PARTITION BY r.run_id, r.section_line, r.section
        ORDER BY -r.mean_ms NULLS FIRST, r.component NULLS FIRST
    ) AS line,
    r.component AS component,
    r.mean_ms AS mean_ms,
    r.phase_share AS share_ratio
FROM _rows AS r
UNION ALL
SELECT
    n.run_id AS run_id,
    n.section_line AS section_line,
    n.section AS section,
    1000000 AS line,
    'Total' AS component,
    CAST(SUM(n.part_ms) AS DOUBLE) AS mean_ms,
    CAST(SUM(n.part_share) AS DOUBLE) AS share_ratio
FROM _named AS n
GROUP BY
    n.run_id,
    n.section_line,
    n.section
