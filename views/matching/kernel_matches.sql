-- name: v1.kernel_matches
-- version: 1
-- grain: one row per pair of captures of a run, device, and kernel that both, or one of them, have
-- summary: Which kernel of an XSpace is which of a ROCm profiler's capture of the same program, run again.
-- evidence: derived
-- columns:
--   run_id BIGINT: the run that both captures belong to
--   xspace_capture_id BIGINT: the XSpace capture
--   rocm_capture_id BIGINT: the capture of a ROCm profiler (rocpd, JSON, CSV, RPD)
--   device_ordinal BIGINT: ordinal of the device in the XSpace capture
--   rocm_device_ordinal BIGINT: ordinal of the device in the ROCm capture
--   step_num BIGINT: the step; NULL outside the steps
--   kernel_name VARCHAR: name in the XSpace; of a kernel that only the ROCm capture has, its name there
--   rocm_kernel_name VARCHAR: name in the ROCm capture; NULL where it lacks the kernel
--   stable_name VARCHAR: the function's own name, without template arguments, parameters, namespaces and .kd
--   grid VARCHAR: blocks as x,y,z; NULL where shapes are not compared
--   block VARCHAR: threads of a block as x,y,z; NULL where shapes are not compared
--   occurrence BIGINT: 1 for the first of its name and shape in its scope, by start
--   occurrence_scope VARCHAR: step; outside_steps (before, between and after the steps); capture (where the two
--     have no step in common: the whole capture counts as one)
--   xspace_device_event_id BIGINT: the kernel in the XSpace capture; NULL for none
--   rocm_device_event_id BIGINT: the kernel in the ROCm capture; NULL for none
--   match_status VARCHAR: matched; ambiguous (both have the name and shape in the scope, but not equally often:
--     which one is missing is unknown, so that the nth of both need not be the same); only_xspace; only_rocm
--   matched_by VARCHAR: full_name (but for .kd and [clone .kd]); symbol_name (the XSpace has the name of the
--     symbol in the code object); stable_name; NULL where only one of the two has it
--   is_shape_compared BOOLEAN: false where one side lacks the grid or block of a kernel of that name, so that
--     kernels of the name are matched whatever their shapes
--   xspace_count BIGINT (count): kernels of the name and shape in the scope in the XSpace capture
--   rocm_count BIGINT (count): those in the ROCm capture
--   rocm_dispatch_id BIGINT: number of the dispatch in the ROCm capture
--   rocm_role VARCHAR: work; serialized, of a run that counted, whose times tell nothing; NULL for none
--   xspace_start_ps BIGINT (ps): start in the XSpace capture
--   xspace_duration_ps BIGINT (ps): duration in the XSpace capture
--   rocm_start_ps BIGINT (ps): start in the ROCm capture, which has a clock of its own; NULL for serialized work
--   rocm_duration_ps BIGINT (ps): duration in the ROCm capture; NULL for serialized work
-- algorithm: Each side numbers its kernels of one name and shape in each step; equal numbers are one kernel. A
--   kernel that was run again for more counters counts once. The two sides are rows of one list that is grouped
--   by the number, so that nothing is compared pairwise. A query that names both captures reads no others.

WITH _rows AS (
    SELECT
        k.run_id AS run_id,
        k.xspace_capture_id AS xspace_capture_id,
        k.rocm_capture_id AS rocm_capture_id,
        k.xspace_device_id AS xspace_device_id,
        k.rocm_device_id AS rocm_device_id,
        k.device_ordinal AS device_ordinal,
        k.rocm_device_ordinal AS rocm_device_ordinal,
        0 AS is_rocm,
        k.key_level AS key_level,
        k.key_name_id AS key_name_id,
        k.stable_name AS stable_name,
        k.matched_by AS matched_by,
        k.is_shape_compared AS is_shape_compared,
        CASE WHEN k.is_shape_compared THEN l.grid END AS grid,
        CASE WHEN k.is_shape_compared THEN l.block END AS block,
        s.step_num AS step_num,
        e.device_event_id AS device_event_id,
        e.name_id AS name_id,
        CAST(NULL AS BIGINT) AS dispatch_id,
        e.role AS role,
        e.start_ps AS start_ps,
        e.end_ps AS end_ps
    FROM v1._kernel_name_keys AS k
    INNER JOIN main.device_events AS e
        ON e.capture_id = k.xspace_capture_id
        AND e.device_id = k.xspace_device_id
        AND e.name_id = k.name_id
    LEFT JOIN v1._launch_shapes AS l
        ON l.capture_id = e.capture_id
        AND l.launch_details_id = e.launch_details_id
    LEFT JOIN v1._event_steps AS s
        ON s.capture_id = e.capture_id
        AND s.device_event_id = e.device_event_id
    WHERE k.is_rocm = 0
        AND e.kind = 'kernel'
        AND e.role = 'work'
    UNION ALL
    SELECT
        k.run_id AS run_id,
        k.xspace_capture_id AS xspace_capture_id,
        k.rocm_capture_id AS rocm_capture_id,
        k.xspace_device_id AS xspace_device_id,
        k.rocm_device_id AS rocm_device_id,
        k.device_ordinal AS device_ordinal,
        k.rocm_device_ordinal AS rocm_device_ordinal,
        1 AS is_rocm,
        k.key_level AS key_level,
        k.key_name_id AS key_name_id,
        k.stable_name AS stable_name,
        k.matched_by AS matched_by,
        k.is_shape_compared AS is_shape_compared,
        CASE WHEN k.is_shape_compared THEN l.grid END AS grid,
        CASE WHEN k.is_shape_compared THEN l.block END AS block,
        COALESCE(s.step_num, c.step_num) AS step_num,
        e.device_event_id AS device_event_id,
        e.name_id AS name_id,
        e.dispatch_id AS dispatch_id,
        e.role AS role,
        e.start_ps AS start_ps,
        e.end_ps AS end_ps
    FROM main.device_events AS e
    LEFT JOIN v1._launch_shapes AS l
        ON l.capture_id = e.capture_id
        AND l.launch_details_id = e.launch_details_id
    INNER JOIN v1._kernel_name_keys AS k
        ON k.rocm_capture_id = e.capture_id
        AND k.rocm_device_id = e.device_id
        AND k.name_id = e.name_id
        AND COALESCE(k.symbol_name_id, -1) = COALESCE(l.symbol_name_id, -1)
    LEFT JOIN v1._event_steps AS s
        ON s.capture_id = e.capture_id
        AND s.device_event_id = e.device_event_id
    LEFT JOIN v1._launch_steps AS c
        ON c.capture_id = e.capture_id
        AND c.correlation_id = CASE WHEN e.role = 'serialized' THEN e.correlation_id END
    WHERE k.is_rocm = 1
        AND e.kind = 'kernel'
        AND e.role IN ('work', 'serialized')
        AND NOT COALESCE(l.is_repeated, FALSE)
),
_stepped AS (
    SELECT
        r.run_id AS run_id,
        r.xspace_capture_id AS xspace_capture_id,
        r.rocm_capture_id AS rocm_capture_id,
        r.xspace_device_id AS xspace_device_id,
        r.rocm_device_id AS rocm_device_id,
        r.device_ordinal AS device_ordinal,
        r.rocm_device_ordinal AS rocm_device_ordinal,
        r.is_rocm AS is_rocm,
        r.key_level AS key_level,
        r.key_name_id AS key_name_id,
        r.stable_name AS stable_name,
        r.matched_by AS matched_by,
        r.is_shape_compared AS is_shape_compared,
        r.grid AS grid,
        r.block AS block,
        r.step_num AS step_num,
        r.device_event_id AS device_event_id,
        r.name_id AS name_id,
        r.dispatch_id AS dispatch_id,
        r.role AS role,
        r.start_ps AS start_ps,
        r.end_ps AS end_ps,
        CASE
            WHEN r.step_num IS NULL THEN 0
            ELSE MAX(r.is_rocm) OVER (
                PARTITION BY
                    r.run_id, r.xspace_capture_id, r.rocm_capture_id, r.xspace_device_id, r.rocm_device_id,
                    r.step_num
            ) - MIN(r.is_rocm) OVER (
                PARTITION BY
                    r.run_id, r.xspace_capture_id, r.rocm_capture_id, r.xspace_device_id, r.rocm_device_id,
                    r.step_num
            )
        END AS is_common_step
    FROM _rows AS r
),
_scoped AS (
    SELECT
        s.run_id AS run_id,
        s.xspace_capture_id AS xspace_capture_id,
        s.rocm_capture_id AS rocm_capture_id,
        s.xspace_device_id AS xspace_device_id,
        s.rocm_device_id AS rocm_device_id,
        s.device_ordinal AS device_ordinal,
        s.rocm_device_ordinal AS rocm_device_ordinal,
        s.is_rocm AS is_rocm,
        s.key_level AS key_level,
        s.key_name_id AS key_name_id,
        s.stable_name AS stable_name,
        s.matched_by AS matched_by,
        s.is_shape_compared AS is_shape_compared,
        s.grid AS grid,
        s.block AS block,
        s.step_num AS step_num,
        s.device_event_id AS device_event_id,
        s.name_id AS name_id,
        s.dispatch_id AS dispatch_id,
        s.role AS role,
        s.start_ps AS start_ps,
        s.end_ps AS end_ps,
        MAX(s.is_common_step) OVER (
            PARTITION BY
                s.run_id, s.xspace_capture_id, s.rocm_capture_id, s.xspace_device_id, s.rocm_device_id
        ) AS has_common_step
    FROM _stepped AS s
),
_numbered AS (
    SELECT
        s.run_id AS run_id,
        s.xspace_capture_id AS xspace_capture_id,
        s.rocm_capture_id AS rocm_capture_id,
        s.xspace_device_id AS xspace_device_id,
        s.rocm_device_id AS rocm_device_id,
        s.device_ordinal AS device_ordinal,
        s.rocm_device_ordinal AS rocm_device_ordinal,
        s.is_rocm AS is_rocm,
        s.key_level AS key_level,
        s.key_name_id AS key_name_id,
        s.stable_name AS stable_name,
        s.matched_by AS matched_by,
        s.is_shape_compared AS is_shape_compared,
        s.grid AS grid,
        s.block AS block,
        s.step_num AS step_num,
        s.has_common_step AS has_common_step,
        CASE WHEN s.has_common_step = 1 THEN s.step_num END AS scope_step,
        s.device_event_id AS device_event_id,
        s.name_id AS name_id,
        s.dispatch_id AS dispatch_id,
        s.role AS role,
        s.start_ps AS start_ps,
        s.end_ps AS end_ps,
        ROW_NUMBER() OVER (
            PARTITION BY
                s.run_id, s.xspace_capture_id, s.rocm_capture_id, s.xspace_device_id, s.rocm_device_id,
                s.key_level, s.key_name_id, s.grid, s.block,
                CASE WHEN s.has_common_step = 1 THEN s.step_num END, s.is_rocm
            ORDER BY s.start_ps NULLS FIRST, s.device_event_id NULLS FIRST
        ) AS occurrence
    FROM _scoped AS s
),
_paired AS (
    SELECT
        n.run_id AS run_id,
        n.xspace_capture_id AS xspace_capture_id,
        n.rocm_capture_id AS rocm_capture_id,
        n.xspace_device_id AS xspace_device_id,
        n.rocm_device_id AS rocm_device_id,
        n.device_ordinal AS device_ordinal,
        n.rocm_device_ordinal AS rocm_device_ordinal,
        n.key_level AS key_level,
        n.key_name_id AS key_name_id,
        n.is_shape_compared AS is_shape_compared,
        n.grid AS grid,
        n.block AS block,
        n.scope_step AS scope_step,
        n.has_common_step AS has_common_step,
        n.occurrence AS occurrence,
        MIN(n.step_num) AS any_step,
        MAX(n.matched_by) AS any_matched_by,
        MIN(CASE WHEN n.is_rocm = 0 THEN n.stable_name END) AS xspace_stable_name,
        MIN(CASE WHEN n.is_rocm = 1 THEN n.stable_name END) AS rocm_stable_name,
        CAST(SUM(1 - n.is_rocm) AS BIGINT) AS in_xspace,
        CAST(SUM(n.is_rocm) AS BIGINT) AS in_rocm,
        MIN(CASE WHEN n.is_rocm = 0 THEN n.name_id END) AS xspace_name_id,
        MIN(CASE WHEN n.is_rocm = 1 THEN n.name_id END) AS rocm_name_id,
        MIN(CASE WHEN n.is_rocm = 0 THEN n.device_event_id END) AS xspace_device_event_id,
        MIN(CASE WHEN n.is_rocm = 1 THEN n.device_event_id END) AS rocm_device_event_id,
        MIN(CASE WHEN n.is_rocm = 1 THEN n.dispatch_id END) AS rocm_dispatch_id,
        MIN(CASE WHEN n.is_rocm = 1 THEN n.role END) AS rocm_role,
        MIN(CASE WHEN n.is_rocm = 0 THEN n.start_ps END) AS xspace_start_ps,
        MIN(CASE WHEN n.is_rocm = 0 THEN n.end_ps END) AS xspace_end_ps,
        MIN(CASE WHEN n.is_rocm = 1 AND n.role = 'work' THEN n.start_ps END) AS rocm_start_ps,
        MIN(CASE WHEN n.is_rocm = 1 AND n.role = 'work' THEN n.end_ps END) AS rocm_end_ps
    FROM _numbered AS n
    GROUP BY
        n.run_id,
        n.xspace_capture_id,
        n.rocm_capture_id,
        n.xspace_device_id,
        n.rocm_device_id,
        n.device_ordinal,
        n.rocm_device_ordinal,
        n.key_level,
        n.key_name_id,
        n.is_shape_compared,
        n.grid,
        n.block,
        n.scope_step,
        n.has_common_step,
        n.occurrence
),
_counted AS (
    SELECT
        p.run_id AS run_id,
        p.xspace_capture_id AS xspace_capture_id,
        p.rocm_capture_id AS rocm_capture_id,
        p.device_ordinal AS device_ordinal,
        p.rocm_device_ordinal AS rocm_device_ordinal,
        COALESCE(p.xspace_stable_name, p.rocm_stable_name) AS stable_name,
        p.is_shape_compared AS is_shape_compared,
        p.grid AS grid,
        p.block AS block,
        p.any_step AS step_num,
        p.scope_step AS scope_step,
        p.has_common_step AS has_common_step,
        p.occurrence AS occurrence,
        p.xspace_name_id AS xspace_name_id,
        p.rocm_name_id AS rocm_name_id,
        p.xspace_device_event_id AS xspace_device_event_id,
        p.rocm_device_event_id AS rocm_device_event_id,
        p.rocm_dispatch_id AS rocm_dispatch_id,
        p.rocm_role AS rocm_role,
        p.xspace_start_ps AS xspace_start_ps,
        p.xspace_end_ps AS xspace_end_ps,
        p.rocm_start_ps AS rocm_start_ps,
        p.rocm_end_ps AS rocm_end_ps,
        MAX(p.any_matched_by) OVER (
            PARTITION BY
                p.run_id, p.xspace_capture_id, p.rocm_capture_id, p.xspace_device_id, p.rocm_device_id,
                p.key_level, p.key_name_id, p.grid, p.block, p.scope_step
        ) AS matched_by,
        CAST(SUM(p.in_xspace) OVER (
            PARTITION BY
                p.run_id, p.xspace_capture_id, p.rocm_capture_id, p.xspace_device_id, p.rocm_device_id,
                p.key_level, p.key_name_id, p.grid, p.block, p.scope_step
        ) AS BIGINT) AS xspace_count,
        CAST(SUM(p.in_rocm) OVER (
            PARTITION BY
                p.run_id, p.xspace_capture_id, p.rocm_capture_id, p.xspace_device_id, p.rocm_device_id,
                p.key_level, p.key_name_id, p.grid, p.block, p.scope_step
        ) AS BIGINT) AS rocm_count
    FROM _paired AS p
)
SELECT
    c.run_id AS run_id,
    c.xspace_capture_id AS xspace_capture_id,
    c.rocm_capture_id AS rocm_capture_id,
    c.device_ordinal AS device_ordinal,
    c.rocm_device_ordinal AS rocm_device_ordinal,
    c.step_num AS step_num,
    COALESCE(x.name, r.name) AS kernel_name,
    r.name AS rocm_kernel_name,
    c.stable_name AS stable_name,
    c.grid AS grid,
    c.block AS block,
    c.occurrence AS occurrence,
    CASE
        WHEN c.has_common_step = 0 THEN 'capture'
        WHEN c.scope_step IS NULL THEN 'outside_steps'
        ELSE 'step'
    END AS occurrence_scope,
    c.xspace_device_event_id AS xspace_device_event_id,
    c.rocm_device_event_id AS rocm_device_event_id,
    CASE
        WHEN c.rocm_count = 0 THEN 'only_xspace'
        WHEN c.xspace_count = 0 THEN 'only_rocm'
        WHEN c.xspace_count = c.rocm_count THEN 'matched'
        ELSE 'ambiguous'
    END AS match_status,
    CASE WHEN c.xspace_count > 0 AND c.rocm_count > 0 THEN c.matched_by END AS matched_by,
    c.is_shape_compared AS is_shape_compared,
    c.xspace_count AS xspace_count,
    c.rocm_count AS rocm_count,
    c.rocm_dispatch_id AS rocm_dispatch_id,
    c.rocm_role AS rocm_role,
    c.xspace_start_ps AS xspace_start_ps,
    c.xspace_end_ps - c.xspace_start_ps AS xspace_duration_ps,
    c.rocm_start_ps AS rocm_start_ps,
    c.rocm_end_ps - c.rocm_start_ps AS rocm_duration_ps
FROM _counted AS c
LEFT JOIN main.names AS x
    ON x.name_id = c.xspace_name_id
LEFT JOIN main.names AS r
    ON r.name_id = c.rocm_name_id
