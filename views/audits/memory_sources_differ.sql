-- name: memory_sources_differ
-- severity: note
-- filter: run_name
-- question: Does the saved memory analysis belong to the program that ran?
-- meaning: compiled.memory_analysis(), as the run saved it, and the buffers of the HLO in the capture differ by more than
--   1 % in a kind that is the same in both. One of them is of another compilation.
-- next: Trust the buffers of the HLO (source buffer_assignment of v1.memory), which came with the events. Save
--   memory_analysis.json again from the compiled step that is profiled.
-- evidence: compiler
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: NULL: the whole run
--   label VARCHAR: file of the analysis
--   kind VARCHAR: argument, alias or temporary; what is a peak differs between backends
--   analysis_bytes BIGINT (bytes): by the analysis
--   module_name VARCHAR: module of the run whose buffers come nearest
--   buffer_bytes BIGINT (bytes): by these
--   difference_ratio DOUBLE (ratio): their difference over the larger
-- algorithm: The analysis does not name its program. It is compared with the module that the config calls hlo_module
--   or tracewh.record noted, where a capture has that, else with the one of the run that comes nearest.

WITH _named AS (
    SELECT
        p.run_id AS run_id,
        MAX(p.value) AS module_name
    FROM main.run_params AS p
    WHERE p.param IN ('hlo_module', 'record.hlo_module')
    GROUP BY p.run_id
),
_modules AS (
    SELECT
        m.run_id AS run_id,
        m.module_name AS module_name,
        m.kind AS kind,
        m.bytes AS bytes,
        CASE WHEN n.module_name IS NULL THEN 0 ELSE 1 END AS is_named
    FROM v1.memory AS m
    LEFT JOIN _named AS n
        ON n.run_id = m.run_id
        AND n.module_name = m.module_name
    WHERE m.source = 'buffer_assignment'
        AND m.memory_space = 0
        AND m.kind IN ('argument', 'alias', 'temporary')
        AND m.bytes IS NOT NULL
),
_compared AS (
    SELECT
        a.run_id AS run_id,
        a.label AS label,
        m.kind AS kind,
        a.bytes AS analysis_bytes,
        m.module_name AS module_name,
        m.bytes AS buffer_bytes,
        m.is_named AS is_named,
        CAST(ABS(a.bytes - m.bytes) AS DOUBLE) / NULLIF(GREATEST(a.bytes, m.bytes), 0) AS difference_ratio
    FROM v1.memory AS a
    INNER JOIN _modules AS m
        ON m.run_id = a.run_id
        AND m.kind = a.kind
    WHERE a.source = 'memory_analysis'
),
_ranked AS (
    SELECT
        c.run_id AS run_id,
        c.label AS label,
        c.kind AS kind,
        c.analysis_bytes AS analysis_bytes,
        c.module_name AS module_name,
        c.buffer_bytes AS buffer_bytes,
        c.difference_ratio AS difference_ratio,
        ROW_NUMBER() OVER (
            PARTITION BY c.run_id, c.label, c.kind
            ORDER BY
                -c.is_named NULLS FIRST,
                COALESCE(c.difference_ratio, 0) NULLS FIRST,
                c.module_name NULLS FIRST,
                c.buffer_bytes NULLS FIRST
        ) AS place
    FROM _compared AS c
)
SELECT
    r.run_name AS run_name,
    CAST(NULL AS BIGINT) AS capture_id,
    k.label AS label,
    k.kind AS kind,
    k.analysis_bytes AS analysis_bytes,
    k.module_name AS module_name,
    k.buffer_bytes AS buffer_bytes,
    k.difference_ratio AS difference_ratio
FROM _ranked AS k
INNER JOIN main.runs AS r
    ON r.run_id = k.run_id
WHERE k.place = 1
    AND k.difference_ratio > 1e-2
ORDER BY
    r.run_name,
    k.label,
    k.kind
