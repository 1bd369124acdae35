-- name: v1.memory
-- version: 1
-- grain: one row per run, source, label, capture, device, program, memory space and kind
-- summary: What takes memory on each device and how much was in use, each figure with what it is and who says so.
-- evidence: compiler or measured
-- columns:
--   run_id BIGINT: the run
--   capture_id BIGINT: the capture; NULL where the figure is not from one
--   device_id BIGINT: the device; NULL where no event tells which ran the program, of memory_analysis, which holds for
--     each, and of host memory
--   device_ordinal BIGINT: its ordinal on its host; NULL without a device
--   program_id BIGINT: the program; NULL but of buffer_assignment
--   module_name VARCHAR: name of its HLO module; NULL but of buffer_assignment
--   memory_space BIGINT: 0 for the device's own memory, 5 for the host's, else a space of the backend; NULL where
--     unknown, as of memory_profile
--   source VARCHAR: buffer_assignment (of the optimized HLO), memory_analysis (compiled.memory_analysis(), as the run
--     saved it), allocator_stats (device.memory_stats(), as saved), allocator_events and runtime_events (maxima of
--     v1.memory_timeline) or memory_profile (totals of v1.memory_profile)
--   label VARCHAR: when or of what: the moment of allocator_stats, the allocator of events, else the file; NULL of
--     buffer_assignment
--   kind VARCHAR: what is meant, by source: see algorithm
--   bytes BIGINT (bytes): amount on one device; NULL where the module lacks what would tell it
--   evidence VARCHAR: compiler (planned) or measured
--   is_worst_device BOOLEAN: it takes some, and no device of the run more of this kind, in this space, by this source,
--     for any program at any time; limits and free memory are no use of memory, and have FALSE
--   is_lower_bound BOOLEAN: what was allocated before the capture began is not in it
--   limit_bytes BIGINT (bytes): most that the allocator may have; NULL where unknown, and of host memory
--   share_of_limit_ratio DOUBLE (ratio): bytes over limit_bytes
--   mib DOUBLE (MiB): bytes in mebibytes
-- algorithm: Kinds overlap and devices are apart: no two rows add up but where this says so.
--   buffer_assignment: argument, output, constant, temporary and thread_local add up to all allocations. alias is the
--   part of argument that outputs take over; output is what outputs need besides. temporary is memory for
--   intermediate results as it was laid out, heap_peak what of them is live at once in program order, peak is
--   argument + output + constant + heap_peak, and reserved, with temporary in its place, must be free to run.
--   memory_analysis: argument, alias and temporary as above; output_and_alias is all that outputs take;
--   peak_memory and peak_unpadded_heap are peak, total_allocation is reserved + thread_local; other names are the
--   file's, without _in_bytes.
--   allocator_stats: the allocator's own names: bytes_in_use now, peak_bytes_in_use since the process began, bytes_limit
--   what it may have, pool_bytes what it took from the device.
--   allocator_events, runtime_events: high_water is the most that was in use at once during the capture,
--   reserved_high_water the most that was set aside for programs besides (on TPU), total_high_water the most of both
--   together; peak_bytes_in_use as above.
--   memory_profile: buffer (arrays that the program held when it was saved) and executable (code).

WITH _ran AS (
    SELECT DISTINCT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        o.program_id AS program_id
    FROM main.device_events AS e
    INNER JOIN main.ops AS o
        ON o.capture_id = e.capture_id
        AND o.op_id = e.op_id
    WHERE e.role = 'work'
),
_amounts AS (
    SELECT
        c.run_id AS run_id,
        p.capture_id AS capture_id,
        r.device_id AS device_id,
        p.program_id AS program_id,
        p.module_id AS module_id,
        s.memory_space AS memory_space,
        s.kind AS kind,
        s.bytes AS bytes
    FROM main.hlo_programs AS p
    INNER JOIN main.captures AS c
        ON c.capture_id = p.capture_id
    INNER JOIN v1._static_memory AS s
        ON s.module_id = p.module_id
    LEFT JOIN _ran AS r
        ON r.capture_id = p.capture_id
        AND r.program_id = p.program_id
),
_figures AS (
    SELECT
        a.run_id AS run_id,
        a.capture_id AS capture_id,
        a.device_id AS device_id,
        a.program_id AS program_id,
        a.module_id AS module_id,
        a.memory_space AS memory_space,
        'buffer_assignment' AS source,
        CAST(NULL AS VARCHAR) AS label,
        a.kind AS kind,
        a.bytes AS bytes,
        'compiler' AS evidence,
        FALSE AS is_lower_bound,
        CAST(NULL AS BIGINT) AS own_limit_bytes
    FROM _amounts AS a
    UNION ALL
    SELECT
        o.run_id AS run_id,
        o.capture_id AS capture_id,
        o.device_id AS device_id,
        CAST(NULL AS BIGINT) AS program_id,
        CAST(NULL AS BIGINT) AS module_id,
        o.memory_space AS memory_space,
        o.source AS source,
        o.label AS label,
        o.kind AS kind,
        o.bytes AS bytes,
        o.evidence AS evidence,
        o.is_lower_bound AS is_lower_bound,
        o.own_limit_bytes AS own_limit_bytes
    FROM v1._observed_memory AS o
),
_compared AS (
    SELECT
        f.run_id AS run_id,
        f.capture_id AS capture_id,
        f.device_id AS device_id,
        f.program_id AS program_id,
        f.module_id AS module_id,
        f.memory_space AS memory_space,
        f.source AS source,
        f.label AS label,
        f.kind AS kind,
        f.bytes AS bytes,
        f.evidence AS evidence,
        f.is_lower_bound AS is_lower_bound,
        f.own_limit_bytes AS own_limit_bytes,
        f.kind NOT IN ('bytes_limit', 'bytes_reservable_limit', 'largest_free_block_bytes') AS is_use,
        MAX(f.bytes) OVER (PARTITION BY f.run_id, f.source, f.memory_space, f.kind) AS most_bytes
    FROM _figures AS f
),
_limited AS (
    SELECT
        c.run_id AS run_id,
        c.capture_id AS capture_id,
        c.device_id AS device_id,
        d.device_ordinal AS device_ordinal,
        c.program_id AS program_id,
        c.module_id AS module_id,
        c.memory_space AS memory_space,
        c.source AS source,
        c.label AS label,
        c.kind AS kind,
        c.bytes AS bytes,
        c.evidence AS evidence,
        COALESCE(c.is_use AND c.bytes = c.most_bytes AND c.bytes > 0, FALSE) AS is_worst_device,
        c.is_lower_bound AS is_lower_bound,
        CASE WHEN c.memory_space = 0 THEN COALESCE(c.own_limit_bytes, l.limit_bytes) END AS limit_bytes
    FROM _compared AS c
    LEFT JOIN main.devices AS d
        ON d.device_id = c.device_id
    LEFT JOIN v1._memory_limits AS l
        ON l.run_id = c.run_id
        AND l.device_id = c.device_id
)
SELECT
    l.run_id AS run_id,
    l.capture_id AS capture_id,
    l.device_id AS device_id,
    l.device_ordinal AS device_ordinal,
    l.program_id AS program_id,
    m.module_name AS module_name,
    l.memory_space AS memory_space,
    l.source AS source,
    l.label AS label,
    l.kind AS kind,
    l.bytes AS bytes,
    l.evidence AS evidence,
    l.is_worst_device AS is_worst_device,
    l.is_lower_bound AS is_lower_bound,
    l.limit_bytes AS limit_bytes,
    CAST(l.bytes AS DOUBLE) / NULLIF(l.limit_bytes, 0) AS share_of_limit_ratio,
    CAST(l.bytes AS DOUBLE) / 1048576 AS mib
FROM _limited AS l
LEFT JOIN main.hlo_modules AS m
    ON m.module_id = l.module_id
