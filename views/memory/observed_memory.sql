-- name: v1._observed_memory
-- version: 1
-- grain: one row per figure of v1.memory that is not of the buffers of a program
-- summary: What compiled.memory_analysis(), the allocators, captures and memory profiles say, in one shape.
-- evidence: compiler or measured
-- columns:
--   run_id BIGINT: the run
--   capture_id BIGINT: the capture; NULL where it is not from one
--   device_id BIGINT: the device; NULL where none is told
--   memory_space BIGINT: 0 for the device's own memory, 5 for the host's; NULL where unknown
--   source VARCHAR: memory_analysis, allocator_stats, allocator_events, runtime_events or memory_profile
--   label VARCHAR: when or of what
--   kind VARCHAR: what is meant
--   bytes BIGINT (bytes): amount
--   is_lower_bound BOOLEAN: what was allocated before the capture is not in it
--   own_limit_bytes BIGINT (bytes): limit of the allocator that it is of; NULL where not told
--   evidence VARCHAR: compiler or measured

WITH _series AS (
    SELECT
        c.run_id AS run_id,
        t.capture_id AS capture_id,
        t.device_id AS device_id,
        t.memory_space AS memory_space,
        t.source AS source,
        t.allocator AS allocator,
        t.is_lower_bound AS is_lower_bound,
        MAX(t.live_bytes) AS high_water,
        MAX(t.reserved_bytes) AS reserved_high_water,
        MAX(t.live_bytes + t.reserved_bytes) AS total_high_water,
        MAX(t.lifetime_peak_bytes) AS lifetime_peak,
        MAX(t.limit_bytes) AS own_limit_bytes
    FROM v1.memory_timeline AS t
    INNER JOIN main.captures AS c
        ON c.capture_id = t.capture_id
    GROUP BY
        c.run_id,
        t.capture_id,
        t.device_id,
        t.memory_space,
        t.source,
        t.allocator,
        t.is_lower_bound
),
_kinds AS (
    SELECT k.kind AS kind
    FROM (
        VALUES
            ('high_water'), ('reserved_high_water'), ('total_high_water'), ('peak_bytes_in_use')
    ) AS k (kind)
),
_events AS (
    SELECT
        s.run_id AS run_id,
        s.capture_id AS capture_id,
        s.device_id AS device_id,
        s.memory_space AS memory_space,
        s.source || '_events' AS source,
        s.allocator AS label,
        k.kind AS kind,
        CASE k.kind
            WHEN 'high_water' THEN s.high_water
            WHEN 'reserved_high_water' THEN s.reserved_high_water
            WHEN 'total_high_water' THEN s.total_high_water
            ELSE s.lifetime_peak
        END AS bytes,
        s.is_lower_bound AS is_lower_bound,
        s.own_limit_bytes AS own_limit_bytes
    FROM _series AS s
    CROSS JOIN _kinds AS k
),
_profiles AS (
    SELECT
        s.run_id AS run_id,
        s.artifact_id AS artifact_id,
        s.device_id AS device_id,
        s.device_label AS device_label,
        s.kind AS kind,
        CAST(SUM(s.size_bytes) AS BIGINT) AS bytes
    FROM main.memory_profile_samples AS s
    GROUP BY
        s.run_id,
        s.artifact_id,
        s.device_id,
        s.device_label,
        s.kind
)
SELECT
    m.run_id AS run_id,
    CAST(NULL AS BIGINT) AS capture_id,
    m.device_id AS device_id,
    CAST(CASE WHEN m.kind LIKE 'host_%' THEN 5 ELSE 0 END AS BIGINT) AS memory_space,
    CASE m.evidence WHEN 'compiler' THEN 'memory_analysis' ELSE 'allocator_stats' END AS source,
    CASE m.evidence WHEN 'compiler' THEN a.path || ', ' || m.sample_label ELSE m.sample_label END AS label,
    CASE WHEN m.evidence = 'compiler' AND m.kind = 'output' THEN 'output_and_alias' ELSE m.kind END AS kind,
    m.bytes AS bytes,
    FALSE AS is_lower_bound,
    CAST(NULL AS BIGINT) AS own_limit_bytes,
    m.evidence AS evidence
FROM main.memory_samples AS m
INNER JOIN main.artifacts AS a
    ON a.artifact_id = m.artifact_id
WHERE m.kind NOT LIKE 'num_%'
UNION ALL
SELECT
    e.run_id AS run_id,
    e.capture_id AS capture_id,
    e.device_id AS device_id,
    e.memory_space AS memory_space,
    e.source AS source,
    e.label AS label,
    e.kind AS kind,
    e.bytes AS bytes,
    e.is_lower_bound AS is_lower_bound,
    e.own_limit_bytes AS own_limit_bytes,
    'measured' AS evidence
FROM _events AS e
WHERE e.bytes IS NOT NULL
UNION ALL
SELECT
    p.run_id AS run_id,
    CAST(NULL AS BIGINT) AS capture_id,
    p.device_id AS device_id,
    CAST(NULL AS BIGINT) AS memory_space,
    'memory_profile' AS source,
    a.path || COALESCE(', ' || p.device_label, '') AS label,
    p.kind AS kind,
    p.bytes AS bytes,
    FALSE AS is_lower_bound,
    CAST(NULL AS BIGINT) AS own_limit_bytes,
    'measured' AS evidence
FROM _profiles AS p
INNER JOIN main.artifacts AS a
    ON a.artifact_id = p.artifact_id
