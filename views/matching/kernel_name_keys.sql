-- name: v1._kernel_name_keys
-- version: 1
-- grain: one row per row of v1._matching_devices, side, kernel name and symbol
-- summary: What the name of each kernel is matched by.
-- evidence: derived
-- columns:
--   run_id BIGINT: the run
--   xspace_capture_id BIGINT: the XSpace capture
--   rocm_capture_id BIGINT: the capture of a ROCm profiler
--   xspace_device_id BIGINT: the device in the XSpace capture
--   rocm_device_id BIGINT: the device in the ROCm capture
--   device_ordinal BIGINT: ordinal of the device in the XSpace capture
--   rocm_device_ordinal BIGINT: ordinal of the device in the ROCm capture
--   is_rocm INTEGER: 1 for a kernel of the ROCm capture, 0 for one of the XSpace
--   name_id BIGINT: names.name_id of the kernel
--   symbol_name_id BIGINT: names.name_id of its symbol; NULL where unknown
--   key_level INTEGER: 1 for the plain name, 2 for the stable name
--   key_name_id BIGINT: with key_level, tells the kernels that are called the same; a name of one of them
--   stable_name VARCHAR: the kernel's stable name
--   matched_by VARCHAR: of a kernel of the ROCm capture: full_name, symbol_name or stable_name; NULL of others
--   is_shape_compared BOOLEAN: grid and block are known of all kernels with the key, on both sides
-- algorithm: A kernel of the ROCm capture has its plain name, else the plain name of its symbol, if the XSpace
--   has a kernel of that plain name. Kernels that find none so, on either side, have their stable name.

WITH _texts AS (
    SELECT
        m.run_id AS run_id,
        m.xspace_capture_id AS xspace_capture_id,
        m.rocm_capture_id AS rocm_capture_id,
        m.xspace_device_id AS xspace_device_id,
        m.rocm_device_id AS rocm_device_id,
        m.device_ordinal AS device_ordinal,
        m.rocm_device_ordinal AS rocm_device_ordinal,
        0 AS is_rocm,
        k.name_id AS name_id,
        k.symbol_name_id AS symbol_name_id,
        k.has_shape AS has_shape,
        1 AS text_rank,
        n.plain_name AS plain_name,
        n.stable_name AS stable_name
    FROM v1._matching_devices AS m
    INNER JOIN v1._kernels_seen AS k
        ON k.capture_id = m.xspace_capture_id
        AND k.device_id = m.xspace_device_id
    INNER JOIN v1._stable_kernel_names AS n
        ON n.name_id = k.name_id
    UNION ALL
    SELECT
        m.run_id AS run_id,
        m.xspace_capture_id AS xspace_capture_id,
        m.rocm_capture_id AS rocm_capture_id,
        m.xspace_device_id AS xspace_device_id,
        m.rocm_device_id AS rocm_device_id,
        m.device_ordinal AS device_ordinal,
        m.rocm_device_ordinal AS rocm_device_ordinal,
        1 AS is_rocm,
        k.name_id AS name_id,
        k.symbol_name_id AS symbol_name_id,
        k.has_shape AS has_shape,
        1 AS text_rank,
        n.plain_name AS plain_name,
        n.stable_name AS stable_name
    FROM v1._matching_devices AS m
    INNER JOIN v1._kernels_seen AS k
        ON k.capture_id = m.rocm_capture_id
        AND k.device_id = m.rocm_device_id
    INNER JOIN v1._stable_kernel_names AS n
        ON n.name_id = k.name_id
    UNION ALL
    SELECT
        m.run_id AS run_id,
        m.xspace_capture_id AS xspace_capture_id,
        m.rocm_capture_id AS rocm_capture_id,
        m.xspace_device_id AS xspace_device_id,
        m.rocm_device_id AS rocm_device_id,
        m.device_ordinal AS device_ordinal,
        m.rocm_device_ordinal AS rocm_device_ordinal,
        1 AS is_rocm,
        k.name_id AS name_id,
        k.symbol_name_id AS symbol_name_id,
        k.has_shape AS has_shape,
        2 AS text_rank,
        n.plain_name AS plain_name,
        CAST(NULL AS VARCHAR) AS stable_name
    FROM v1._matching_devices AS m
    INNER JOIN v1._kernels_seen AS k
        ON k.capture_id = m.rocm_capture_id
        AND k.device_id = m.rocm_device_id
    INNER JOIN v1._stable_kernel_names AS n
        ON n.name_id = k.symbol_name_id
),
_met AS (
    SELECT
        t.run_id AS run_id,
        t.xspace_capture_id AS xspace_capture_id,
        t.rocm_capture_id AS rocm_capture_id,
        t.xspace_device_id AS xspace_device_id,
        t.rocm_device_id AS rocm_device_id,
        t.device_ordinal AS device_ordinal,
        t.rocm_device_ordinal AS rocm_device_ordinal,
        t.is_rocm AS is_rocm,
        t.name_id AS name_id,
        t.symbol_name_id AS symbol_name_id,
        t.has_shape AS has_shape,
        t.text_rank AS text_rank,
        t.plain_name AS plain_name,
        t.stable_name AS stable_name,
        MIN(t.is_rocm) OVER (
            PARTITION BY
                t.run_id, t.xspace_capture_id, t.rocm_capture_id, t.xspace_device_id, t.rocm_device_id,
                t.plain_name
        ) AS first_side,
        MAX(t.is_rocm) OVER (
            PARTITION BY
                t.run_id, t.xspace_capture_id, t.rocm_capture_id, t.xspace_device_id, t.rocm_device_id,
                t.plain_name
        ) AS last_side
    FROM _texts AS t
),
_best AS (
    SELECT
        m.run_id AS run_id,
        m.xspace_capture_id AS xspace_capture_id,
        m.rocm_capture_id AS rocm_capture_id,
        m.xspace_device_id AS xspace_device_id,
        m.rocm_device_id AS rocm_device_id,
        m.device_ordinal AS device_ordinal,
        m.rocm_device_ordinal AS rocm_device_ordinal,
        m.is_rocm AS is_rocm,
        m.name_id AS name_id,
        m.symbol_name_id AS symbol_name_id,
        m.has_shape AS has_shape,
        MIN(CASE WHEN m.first_side = 0 AND m.last_side = 1 THEN m.text_rank END) AS met_rank,
        MIN(CASE WHEN m.first_side = 0 AND m.last_side = 1 AND m.text_rank = 1 THEN m.plain_name END)
            AS full_text,
        MIN(CASE WHEN m.first_side = 0 AND m.last_side = 1 AND m.text_rank = 2 THEN m.plain_name END)
            AS symbol_text,
        MIN(m.stable_name) AS stable_text
    FROM _met AS m
    GROUP BY
        m.run_id,
        m.xspace_capture_id,
        m.rocm_capture_id,
        m.xspace_device_id,
        m.rocm_device_id,
        m.device_ordinal,
        m.rocm_device_ordinal,
        m.is_rocm,
        m.name_id,
        m.symbol_name_id,
        m.has_shape
),
_keys AS (
    SELECT
        b.run_id AS run_id,
        b.xspace_capture_id AS xspace_capture_id,
        b.rocm_capture_id AS rocm_capture_id,
        b.xspace_device_id AS xspace_device_id,
        b.rocm_device_id AS rocm_device_id,
        b.device_ordinal AS device_ordinal,
        b.rocm_device_ordinal AS rocm_device_ordinal,
        b.is_rocm AS is_rocm,
        b.name_id AS name_id,
        b.symbol_name_id AS symbol_name_id,
        b.has_shape AS has_shape,
        CASE WHEN b.met_rank IS NULL THEN 2 ELSE 1 END AS key_level,
        COALESCE(b.full_text, b.symbol_text, b.stable_text) AS key_text,
        b.stable_text AS stable_name,
        CASE
            WHEN b.is_rocm = 0 THEN NULL
            WHEN b.met_rank = 1 THEN 'full_name'
            WHEN b.met_rank = 2 THEN 'symbol_name'
            ELSE 'stable_name'
        END AS matched_by
    FROM _best AS b
)
SELECT
    k.run_id AS run_id,
    k.xspace_capture_id AS xspace_capture_id,
    k.rocm_capture_id AS rocm_capture_id,
    k.xspace_device_id AS xspace_device_id,
    k.rocm_device_id AS rocm_device_id,
    k.device_ordinal AS device_ordinal,
    k.rocm_device_ordinal AS rocm_device_ordinal,
    k.is_rocm AS is_rocm,
    k.name_id AS name_id,
    k.symbol_name_id AS symbol_name_id,
    k.key_level AS key_level,
    MIN(CASE WHEN k.is_rocm = 0 OR k.key_level = 2 THEN k.name_id END) OVER (
        PARTITION BY
            k.run_id, k.xspace_capture_id, k.rocm_capture_id, k.xspace_device_id, k.rocm_device_id,
            k.key_level, k.key_text
    ) AS key_name_id,
    k.stable_name AS stable_name,
    k.matched_by AS matched_by,
    MIN(k.has_shape) OVER (
        PARTITION BY
            k.run_id, k.xspace_capture_id, k.rocm_capture_id, k.xspace_device_id, k.rocm_device_id,
            k.key_level, k.key_text
    ) = 1 AS is_shape_compared
FROM _keys AS k
