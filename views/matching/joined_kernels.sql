-- name: v1.joined_kernels
-- version: 1
-- grain: one row per pair of captures of a run, device, HLO op, kernel and launch shape
-- summary: HLO op and name stack of an XSpace's kernels beside their times in a ROCm profiler's capture.
-- evidence: derived
-- columns:
--   run_id BIGINT: the run that both captures belong to
--   xspace_capture_id BIGINT: the XSpace capture
--   rocm_capture_id BIGINT: the capture of a ROCm profiler
--   device_ordinal BIGINT: ordinal of the device in the XSpace capture
--   program_id BIGINT: the program; NULL outside a program, and for kernels that only the ROCm capture has
--   hlo_op VARCHAR: HLO instruction; NULL where none is known
--   op_name VARCHAR: JAX name stack; NULL where none is known
--   component VARCHAR: deepest named scope of the op_name, or unattributed
--   kernel_name VARCHAR: name in the XSpace; of a kernel that only the ROCm capture has, its name there
--   rocm_kernel_name VARCHAR: name in the ROCm capture; NULL where it lacks the kernel
--   grid VARCHAR: blocks as x,y,z; NULL where shapes are not compared
--   block VARCHAR: threads of a block as x,y,z; NULL where shapes are not compared
--   matched_count BIGINT (count): kernels that both captures have
--   ambiguous_count BIGINT (count): rows of v1.kernel_matches of which it is unknown which kernel is which
--   only_xspace_count BIGINT (count): kernels that only the XSpace has
--   only_rocm_count BIGINT (count): kernels that only the ROCm capture has
--   xspace_sum_ps BIGINT (ps): time of the matched kernels in the XSpace capture
--   rocm_sum_ps BIGINT (ps): time of the same kernels in the ROCm capture; NULL for serialized work
--   rocm_ratio DOUBLE (ratio): rocm_sum_ps to xspace_sum_ps
--   first_dispatch_id BIGINT: lowest number of a matched dispatch
--   last_dispatch_id BIGINT: highest number of a matched dispatch

WITH _matches AS (
    SELECT
        m.run_id AS run_id,
        m.xspace_capture_id AS xspace_capture_id,
        m.rocm_capture_id AS rocm_capture_id,
        m.device_ordinal AS device_ordinal,
        o.program_id AS program_id,
        o.hlo_op_name_id AS hlo_op_name_id,
        o.op_name_id AS op_name_id,
        m.kernel_name AS kernel_name,
        m.rocm_kernel_name AS rocm_kernel_name,
        m.grid AS grid,
        m.block AS block,
        m.match_status AS match_status,
        m.xspace_duration_ps AS xspace_duration_ps,
        m.rocm_duration_ps AS rocm_duration_ps,
        m.rocm_dispatch_id AS rocm_dispatch_id
    FROM v1.kernel_matches AS m
    LEFT JOIN v1._event_ops AS o
        ON o.capture_id = m.xspace_capture_id
        AND o.device_event_id = m.xspace_device_event_id
),
_sums AS (
    SELECT
        m.run_id AS run_id,
        m.xspace_capture_id AS xspace_capture_id,
        m.rocm_capture_id AS rocm_capture_id,
        m.device_ordinal AS device_ordinal,
        m.program_id AS program_id,
        m.hlo_op_name_id AS hlo_op_name_id,
        m.op_name_id AS op_name_id,
        m.kernel_name AS kernel_name,
        m.grid AS grid,
        m.block AS block,
        MIN(m.rocm_kernel_name) AS any_rocm_kernel_name,
        CAST(SUM(CASE WHEN m.match_status = 'matched' THEN 1 ELSE 0 END) AS BIGINT) AS matched_count,
        CAST(SUM(CASE WHEN m.match_status = 'ambiguous' THEN 1 ELSE 0 END) AS BIGINT) AS ambiguous_count,
        CAST(SUM(CASE WHEN m.match_status = 'only_xspace' THEN 1 ELSE 0 END) AS BIGINT) AS only_xspace_count,
        CAST(SUM(CASE WHEN m.match_status = 'only_rocm' THEN 1 ELSE 0 END) AS BIGINT) AS only_rocm_count,
        CAST(SUM(CASE WHEN m.match_status = 'matched' THEN m.xspace_duration_ps END) AS BIGINT)
            AS xspace_sum_ps,
        CAST(SUM(CASE WHEN m.match_status = 'matched' THEN m.rocm_duration_ps END) AS BIGINT) AS rocm_sum_ps,
        MIN(CASE WHEN m.match_status = 'matched' THEN m.rocm_dispatch_id END) AS first_dispatch_id,
        MAX(CASE WHEN m.match_status = 'matched' THEN m.rocm_dispatch_id END) AS last_dispatch_id
    FROM _matches AS m
    GROUP BY
        m.run_id,
        m.xspace_capture_id,
        m.rocm_capture_id,
        m.device_ordinal,
        m.program_id,
        m.hlo_op_name_id,
        m.op_name_id,
        m.kernel_name,
        m.grid,
        m.block
)
SELECT
    s.run_id AS run_id,
    s.xspace_capture_id AS xspace_capture_id,
    s.rocm_capture_id AS rocm_capture_id,
    s.device_ordinal AS device_ordinal,
    s.program_id AS program_id,
    h.name AS hlo_op,
    o.name AS op_name,
    COALESCE(c.component, 'unattributed') AS component,
    s.kernel_name AS kernel_name,
    s.any_rocm_kernel_name AS rocm_kernel_name,
    s.grid AS grid,
    s.block AS block,
    s.matched_count AS matched_count,
    s.ambiguous_count AS ambiguous_count,
    s.only_xspace_count AS only_xspace_count,
    s.only_rocm_count AS only_rocm_count,
    s.xspace_sum_ps AS xspace_sum_ps,
    s.rocm_sum_ps AS rocm_sum_ps,
    CAST(s.rocm_sum_ps AS DOUBLE) / NULLIF(CAST(s.xspace_sum_ps AS DOUBLE), 0) AS rocm_ratio,
    s.first_dispatch_id AS first_dispatch_id,
    s.last_dispatch_id AS last_dispatch_id
FROM _sums AS s
LEFT JOIN main.names AS h
    ON h.name_id = s.hlo_op_name_id
LEFT JOIN main.names AS o
    ON o.name_id = s.op_name_id
LEFT JOIN v1._capture_rule_scopes AS r
    ON r.capture_id = s.xspace_capture_id
LEFT JOIN main.op_name_classes AS c
    ON c.rule_scope = COALESCE(r.rule_scope, 0)
    AND c.op_name_id = s.op_name_id
