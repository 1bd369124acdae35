-- name: v1.roofline
-- version: 1
-- grain: one row per capture, device, scope, what shares a ceiling in it, evidence and memory level
-- summary: How near ops, components, phases and programs come to what their device can do, and what it would save.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   device_ordinal BIGINT: ordinal of the device on its host
--   scope VARCHAR: op, component, component_group, phase or program
--   scope_name VARCHAR: which of them
--   program_id BIGINT: the program of ops and programs, whose names repeat; else NULL
--   evidence VARCHAR: compiler (XLA's own rules), analytical (the formula of a library call), or derived: ops of both
--   memory_level VARCHAR: whose bandwidth bounds it: HBM, or network for collectives
--   unit VARCHAR: matrix or vector, by most of the FLOPs of each op; NULL without FLOPs
--   dtype VARCHAR: data type of the peak, by most of the FLOPs of each op; NULL without FLOPs or where no peak is known
--   op_count BIGINT (count): HLO ops
--   flops DOUBLE (count): of all executions in the capture; NULL for collectives
--   bytes DOUBLE (bytes): of all executions; what collectives send
--   union_ps BIGINT (ps): time with any of its events
--   intensity_flops_per_byte DOUBLE (1/bytes): flops over bytes
--   ridge_flops_per_byte DOUBLE (1/bytes): intensity from which the compute peak bounds
--   peak_flops_per_s DOUBLE (1/s): flops in the least time that their peaks allow: the peak itself where all
--     FLOPs are of one type
--   peak_bytes_per_s DOUBLE (bytes/s): bandwidth by specification
--   roof_flops_per_s DOUBLE (1/s): flops in roof_ps; NULL without FLOPs
--   achieved_flops_per_s DOUBLE (1/s): flops in union_ps
--   achieved_bytes_per_s DOUBLE (bytes/s): bytes in union_ps
--   roof_ps DOUBLE (ps): the longer of the least times of FLOPs and of bytes
--   efficiency_ratio DOUBLE (ratio): roof_ps over union_ps: with FLOPs, achieved_flops_per_s over roof_flops_per_s;
--     NULL where problem says why, and where no peak is known
--   bound_by VARCHAR: compute, or the memory level; NULL where no peak is known
--   saved_ps DOUBLE (ps): union_ps - roof_ps: time that would be saved at the roof, over all executions in the capture;
--     of collectives also what compute hides, which would save nothing: v1.collectives has the exposed part
--   saved_rank BIGINT: 1 for most time saved, of the same capture, device and scope
--   problem VARCHAR: why there is no efficiency: what is stated cannot have been done in that time
--   clipped_op_count BIGINT (count): ops whose bytes are more than the memory can move in their time; in scopes that
--     are no op they count only up to that
--   union_ms DOUBLE (ms): union_ps in milliseconds
--   saved_ms DOUBLE (ms): saved_ps in milliseconds
-- algorithm: Peaks are those of v1.device_peaks by specification; see v1._flop_peaks for which holds for which type.
--   XLA's bytes are those of all operands and results, as if nothing were cached, and more than that where a slice
--   of an array counts whole: an op may seem to move more than its memory can. FLOPs and bytes of ops that are
--   known by nothing but their kernels are missing, and so is their time; likewise starts and ends of asynchronous
--   ops of TPUs, whose work is under way between the two. Operations on integers count as XLA counts them, and have
--   no peak but in matrix units.

WITH _intervals AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        s.scope AS scope,
        s.scope_name AS scope_name,
        s.program_id AS program_id,
        s.work_class AS work_class,
        e.start_ps AS start_ps,
        e.end_ps AS end_ps
    FROM v1._event_ops AS e
    INNER JOIN v1._op_scopes AS s
        ON s.capture_id = e.capture_id
        AND s.device_id = e.device_id
        AND s.op_program_id = e.program_id
        AND s.hlo_op_name_id = e.hlo_op_name_id
),
_work AS (
    SELECT
        s.capture_id AS capture_id,
        s.device_id AS device_id,
        s.scope AS scope,
        s.scope_name AS scope_name,
        s.program_id AS program_id,
        s.work_class AS work_class,
        CASE WHEN MIN(s.evidence) = MAX(s.evidence) THEN MIN(s.evidence) ELSE 'derived' END AS joint_evidence,
        MIN(s.memory_level) AS level_name,
        MIN(s.unit) AS unit_name,
        MIN(s.dtype) AS peak_dtype,
        COUNT(*) AS op_count,
        COUNT(CASE WHEN s.is_clipped THEN 1 END) AS clipped_op_count,
        CAST(SUM(s.flops) AS DOUBLE) AS all_flops,
        CAST(SUM(s.bytes) AS DOUBLE) AS all_bytes,
        CAST(SUM(s.compute_ps) AS DOUBLE) AS least_compute_ps,
        CAST(SUM(s.memory_ps) AS DOUBLE) AS least_memory_ps,
        MIN(s.peak_bytes_per_s) AS level_bytes_per_s
    FROM v1._op_scopes AS s
    GROUP BY
        s.capture_id,
        s.device_id,
        s.scope,
        s.scope_name,
        s.program_id,
        s.work_class
),
_times AS (
    SELECT
        w.capture_id AS capture_id,
        w.device_id AS device_id,
        w.scope AS scope,
        w.scope_name AS scope_name,
        w.program_id AS program_id,
        w.joint_evidence AS evidence,
        w.level_name AS memory_level,
        w.unit_name AS unit,
        w.peak_dtype AS dtype,
        w.op_count AS op_count,
        w.clipped_op_count AS clipped_op_count,
        w.all_flops AS flops,
        w.all_bytes AS moved_bytes,
        u.union_ps AS union_ps,
        CAST(u.union_ps AS DOUBLE) AS time_ps,
        w.least_compute_ps AS compute_ps,
        w.least_memory_ps AS memory_ps,
        w.level_bytes_per_s AS peak_bytes_per_s,
        CASE
            WHEN COALESCE(w.least_compute_ps, 0) = 0 AND w.least_memory_ps IS NULL THEN NULL
            WHEN COALESCE(w.least_compute_ps, 0) >= COALESCE(w.least_memory_ps, 0) THEN w.least_compute_ps
            ELSE w.least_memory_ps
        END AS roof_ps
    FROM _work AS w
    INNER JOIN v1.interval_union('_intervals', scope_name, scope, work_class, program_id) AS u
        ON u.capture_id = w.capture_id
        AND u.device_id = w.device_id
        AND u.key_1 = w.scope_name
        AND u.key_2 = w.scope
        AND u.key_3 = w.work_class
        AND COALESCE(u.key_4, -1) = COALESCE(w.program_id, -1)
        AND (u.key_4 IS NULL) = (w.program_id IS NULL)
),
_judged AS (
    SELECT
        t.capture_id AS capture_id,
        t.device_id AS device_id,
        t.scope AS scope,
        t.scope_name AS scope_name,
        t.program_id AS program_id,
        t.evidence AS evidence,
        t.memory_level AS memory_level,
        t.unit AS unit,
        t.dtype AS dtype,
        t.op_count AS op_count,
        t.clipped_op_count AS clipped_op_count,
        t.flops AS flops,
        t.moved_bytes AS moved_bytes,
        t.union_ps AS union_ps,
        t.time_ps AS time_ps,
        t.compute_ps AS compute_ps,
        t.memory_ps AS memory_ps,
        t.peak_bytes_per_s AS peak_bytes_per_s,
        t.roof_ps AS roof_ps,
        CASE
            WHEN t.compute_ps > t.time_ps THEN 'more FLOPs than the peak allows in that time'
            WHEN t.memory_ps > t.time_ps AND t.memory_level = 'HBM'
            THEN 'more bytes than HBM moves in that time: caches served some, or a slice is counted whole'
            WHEN t.memory_ps > t.time_ps THEN 'more bytes than the links send in that time'
            WHEN t.scope <> 'op' AND t.clipped_op_count = t.op_count
            THEN 'each of its ops has more bytes than moved in its time'
        END AS problem
    FROM _times AS t
)
SELECT
    j.capture_id AS capture_id,
    j.device_id AS device_id,
    d.device_ordinal AS device_ordinal,
    j.scope AS scope,
    j.scope_name AS scope_name,
    j.program_id AS program_id,
    j.evidence AS evidence,
    j.memory_level AS memory_level,
    j.unit AS unit,
    j.dtype AS dtype,
    j.op_count AS op_count,
    j.flops AS flops,
    j.moved_bytes AS bytes,
    j.union_ps AS union_ps,
    j.flops / NULLIF(j.moved_bytes, 0) AS intensity_flops_per_byte,
    j.flops * 1e12 / NULLIF(j.compute_ps * j.peak_bytes_per_s, 0) AS ridge_flops_per_byte,
    j.flops * 1e12 / NULLIF(j.compute_ps, 0) AS peak_flops_per_s,
    j.peak_bytes_per_s AS peak_bytes_per_s,
    CASE WHEN j.flops > 0 THEN j.flops * 1e12 / NULLIF(j.roof_ps, 0) END AS roof_flops_per_s,
    j.flops * 1e12 / NULLIF(j.time_ps, 0) AS achieved_flops_per_s,
    j.moved_bytes * 1e12 / NULLIF(j.time_ps, 0) AS achieved_bytes_per_s,
    j.roof_ps AS roof_ps,
    CASE WHEN j.problem IS NULL THEN j.roof_ps / NULLIF(j.time_ps, 0) END AS efficiency_ratio,
    CASE WHEN j.compute_ps >= COALESCE(j.memory_ps, 0) AND j.compute_ps > 0 THEN 'compute'
        WHEN j.memory_ps IS NOT NULL THEN j.memory_level END AS bound_by,
    CASE WHEN j.problem IS NULL THEN j.time_ps - j.roof_ps END AS saved_ps,
    ROW_NUMBER() OVER (
        PARTITION BY j.capture_id, j.device_id, j.scope
        ORDER BY -COALESCE(CASE WHEN j.problem IS NULL THEN j.time_ps - j.roof_ps END, -1) NULLS FIRST,
            j.scope_name NULLS FIRST, j.program_id NULLS FIRST, j.unit NULLS FIRST, j.dtype NULLS FIRST,
            j.memory_level NULLS FIRST
    ) AS saved_rank,
    j.problem AS problem,
    j.clipped_op_count AS clipped_op_count,
    CAST(j.union_ps AS DOUBLE) / 1e9 AS union_ms,
    CASE WHEN j.problem IS NULL THEN (j.time_ps - j.roof_ps) / 1e9 END AS saved_ms
FROM _judged AS j
INNER JOIN main.devices AS d
    ON d.device_id = j.device_id
