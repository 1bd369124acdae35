-- name: v1._memory_metrics
-- version: 1
-- grain: one row per run, kind of memory and evidence
-- summary: The most memory in use on the worst device of a run, as planned and as measured, and what was planned.
-- evidence: compiler or measured
-- columns:
--   run_id BIGINT: the run
--   metric VARCHAR: as in v1.metrics
--   scope VARCHAR: likewise
--   value DOUBLE: likewise
--   unit VARCHAR: likewise
--   polarity VARCHAR: likewise
--   evidence VARCHAR: likewise
--   timing VARCHAR: likewise
--   statistic VARCHAR: likewise
--   samples BIGINT (count): likewise
-- algorithm: memory_peak of the compiler is the peak of the largest program in program order; measured, what the allocator
--   had in use at most since the process began. planned_memory is the memory of the step program by kind, as v1.memory has
--   it for buffer_assignment. Memory of the host is not in it.

WITH _figures AS (
    SELECT
        m.run_id AS run_id,
        CASE
            WHEN m.source = 'buffer_assignment' AND m.kind <> 'peak' THEN 'planned_memory'
            ELSE 'memory_peak'
        END AS metric,
        CASE WHEN m.source = 'buffer_assignment' AND m.kind <> 'peak' THEN m.kind ELSE '' END AS scope,
        m.evidence AS evidence,
        m.bytes AS device_bytes,
        m.device_id AS device_id
    FROM v1.memory AS m
    LEFT JOIN v1._step_executables AS x
        ON x.capture_id = m.capture_id
        AND x.program_id = m.program_id
    WHERE m.bytes > 0
        AND (
            m.source = 'buffer_assignment' AND (m.kind = 'peak' OR x.is_step_program)
            OR m.source = 'memory_analysis' AND m.kind = 'peak_memory'
            OR m.source IN ('allocator_stats', 'allocator_events') AND m.kind = 'peak_bytes_in_use'
        )
        AND COALESCE(m.memory_space, 0) = 0
),
_most AS (
    SELECT
        f.run_id AS run_id,
        f.metric AS metric,
        f.scope AS scope,
        f.evidence AS evidence,
        MAX(f.device_bytes) AS most_bytes,
        COUNT(DISTINCT f.device_id) AS devices
    FROM _figures AS f
    GROUP BY
        f.run_id,
        f.metric,
        f.scope,
        f.evidence
)
SELECT
    m.run_id AS run_id,
    m.metric AS metric,
    m.scope AS scope,
    CAST(m.most_bytes AS DOUBLE) AS value,
    'bytes' AS unit,
    CASE WHEN m.scope IN ('alias', 'argument') THEN 'none' ELSE 'lower' END AS polarity,
    m.evidence AS evidence,
    CAST(NULL AS VARCHAR) AS timing,
    'maximum' AS statistic,
    m.devices AS samples
FROM _most AS m
