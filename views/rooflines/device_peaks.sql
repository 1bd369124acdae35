-- name: v1.device_peaks
-- version: 1
-- grain: one row per capture, device, quantity, memory level, dtype and kind of peak
-- summary: What each device can do at most, as it is partitioned: FLOPs per dtype, bandwidth per memory level.
-- evidence: measured, analytical
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: a device that the capture describes
--   device_ordinal BIGINT: ordinal of the device on its host
--   device_kind VARCHAR: kind of the device
--   product VARCHAR: the product that it is; NULL where it can be several, or is unknown
--   quantity VARCHAR: matrix_flops_per_s (dense), vector_flops_per_s or bytes_per_s
--   memory_level VARCHAR: of a bandwidth: HBM, MALL, L2, L1, L0, LDS (shared memory) or network (all links, one way)
--   dtype VARCHAR: of a rate: bf16, fp8, ...
--   peak_kind VARCHAR: spec, achievable or measured
--   value DOUBLE: operations or bytes per second of this device
--   scale_ratio DOUBLE (ratio): this device over what the source states the peak of; 1 for a whole device
--   clock_mhz DOUBLE (MHz): clock at which the peak holds; NULL where the source does not say
--   origin VARCHAR: run_user (a user's, for the run), capture (measured with it), run (measured with another capture of
--     the run), user (a user's, for every run) or reference (shipped)
--   peak_id BIGINT: device_peaks.peak_id
--   source VARCHAR: where the peak comes from
--   stated_on VARCHAR: date of the source; NULL where it bears none
--   trace_attribute VARCHAR: what the capture calls the same peak of the device; NULL where it states none
--   trace_value DOUBLE: what it states, in the unit of value
--   trace_ratio DOUBLE (ratio): trace_value / value
-- algorithm: Of several peaks for one row the origins count in the order above, then a pattern without wildcards, then
--   a pattern that others embrace, then the highest value. Shipped peaks need a product: a device that can be several
--   has those in which all agree. They shrink with the part of a product that a device is: rates, LDS and the L2 of AMD
--   by its cores; HBM, MALL and the L2 of NVIDIA by its share of the memory, which in AMD's mode NPS1 is all of it
--   for each part, so parts that work at once compete for it; a part has no network row, because links are shared.
--   Peaks of users and measured ones hold for the device as it is. An unknown device has no rows: see the audit
--   peak_unknown.

WITH _stated AS (
    SELECT
        a.capture_id AS capture_id,
        a.device_id AS device_id,
        MAX(CASE WHEN a.attribute IN ('memory_bandwidth', 'peak_hbm_bw_gigabytes_per_second') THEN a.attribute END)
            AS bandwidth_attribute,
        MAX(CASE
            WHEN NOT REGEXP_MATCHES(a.value, '^[0-9]{1,17}([.][0-9]{1,15})?$') THEN NULL
            WHEN a.attribute = 'memory_bandwidth' THEN CAST(a.value AS DOUBLE)
            WHEN a.attribute = 'peak_hbm_bw_gigabytes_per_second' THEN 1e9 * CAST(a.value AS DOUBLE)
        END) AS bandwidth,
        MAX(CASE
            WHEN a.attribute = 'peak_teraflops_per_second'
                AND REGEXP_MATCHES(a.value, '^[0-9]{1,17}([.][0-9]{1,15})?$')
                THEN 1e12 * CAST(a.value AS DOUBLE)
        END) AS flops
    FROM main.device_attributes AS a
    GROUP BY
        a.capture_id,
        a.device_id
),
_names AS (
    SELECT
        d.device_id AS device_id,
        d.run_id AS run_id,
        d.device_kind AS device_name
    FROM main.devices AS d
    WHERE d.device_kind IS NOT NULL
    UNION ALL
    SELECT
        d.device_id AS device_id,
        d.run_id AS run_id,
        q.product AS device_name
    FROM main.devices AS d
    INNER JOIN v1._device_products AS q
        ON q.device_id = d.device_id
    WHERE q.product_count = 1
        AND q.product <> d.device_kind
),
_broader AS (
    SELECT
        p.device_pattern AS device_pattern,
        COUNT(DISTINCT w.device_pattern) AS broader_count
    FROM main.device_peaks AS p
    INNER JOIN main.device_peaks AS w
        ON p.device_pattern LIKE w.device_pattern
    WHERE p.peak_id > 1000
        AND w.peak_id > 1000
        AND p.device_pattern <> w.device_pattern
    GROUP BY p.device_pattern
),
_scaled AS (
    SELECT
        q.device_id AS device_id,
        q.product_count AS product_count,
        p.quantity AS quantity,
        p.memory_level AS memory_level,
        p.dtype AS dtype,
        p.peak_kind AS peak_kind,
        p.peak_id AS peak_id,
        p.value AS value,
        CASE
            WHEN p.memory_level = 'network' AND q.core_ratio < 1 THEN NULL
            WHEN p.memory_level = 'network' OR p.core_count IS NOT NULL THEN q.core_ratio
            ELSE q.memory_ratio
        END AS scale_ratio
    FROM v1._device_products AS q
    INNER JOIN main.device_peaks AS p
        ON p.device_pattern = q.product
    WHERE p.peak_id <= 1000
),
_reference AS (
    SELECT
        s.device_id AS device_id,
        MIN(s.peak_id) AS agreed_peak_id,
        MIN(s.scale_ratio) AS agreed_ratio
    FROM _scaled AS s
    GROUP BY
        s.device_id,
        s.product_count,
        s.quantity,
        s.memory_level,
        s.dtype,
        s.peak_kind
    HAVING COUNT(s.scale_ratio) = s.product_count
        AND MIN(s.value * s.scale_ratio) = MAX(s.value * s.scale_ratio)
),
_known AS (
    SELECT
        r.device_id AS device_id,
        r.agreed_peak_id AS peak_id,
        r.agreed_ratio AS scale_ratio,
        CAST(NULL AS BIGINT) AS measuring_capture_id,
        'reference' AS origin,
        0 AS broader_count
    FROM _reference AS r
    UNION ALL
    SELECT
        n.device_id AS device_id,
        p.peak_id AS peak_id,
        1e0 AS scale_ratio,
        p.capture_id AS measuring_capture_id,
        CASE
            WHEN p.capture_id IS NOT NULL THEN 'run'
            WHEN p.run_id IS NOT NULL THEN 'run_user'
            ELSE 'user'
        END AS origin,
        CASE WHEN p.device_pattern = n.device_name THEN 1000000 ELSE COALESCE(b.broader_count, 0) END
            AS broader_count
    FROM main.device_peaks AS p
    INNER JOIN _names AS n
        ON n.device_name LIKE p.device_pattern
    LEFT JOIN main.captures AS c
        ON c.capture_id = p.capture_id
    LEFT JOIN _broader AS b
        ON b.device_pattern = p.device_pattern
    WHERE p.peak_id > 1000
        AND COALESCE(p.run_id, c.run_id, n.run_id) = n.run_id
),
_ordered AS (
    SELECT
        k.peak_id AS peak_id,
        k.scale_ratio AS scale_ratio,
        k.broader_count AS broader_count,
        s.capture_id AS capture_id,
        s.device_id AS device_id,
        s.bandwidth_attribute AS bandwidth_attribute,
        s.bandwidth AS bandwidth,
        s.flops AS flops,
        CASE WHEN k.measuring_capture_id = s.capture_id THEN 'capture' ELSE k.origin END AS origin,
        CASE
            WHEN k.origin = 'run_user' THEN 1
            WHEN k.measuring_capture_id = s.capture_id THEN 2
            WHEN k.origin = 'run' THEN 3
            WHEN k.origin = 'user' THEN 4
            ELSE 5
        END AS origin_order
    FROM _stated AS s
    INNER JOIN _known AS k
        ON k.device_id = s.device_id
),
_ranked AS (
    SELECT
        o.capture_id AS capture_id,
        o.device_id AS device_id,
        p.quantity AS quantity,
        p.memory_level AS memory_level,
        p.dtype AS dtype,
        p.peak_kind AS peak_kind,
        p.value * o.scale_ratio AS value,
        o.scale_ratio AS scale_ratio,
        p.clock_mhz AS clock_mhz,
        o.origin AS origin,
        p.peak_id AS peak_id,
        p.source AS source,
        CAST(p.stated_on AS VARCHAR) AS stated_on,
        CASE
            WHEN p.memory_level = 'HBM' THEN o.bandwidth_attribute
            WHEN p.quantity = 'matrix_flops_per_s' AND p.dtype = 'bf16' AND o.flops > 0
                THEN 'peak_teraflops_per_second'
        END AS trace_attribute,
        CASE
            WHEN p.memory_level = 'HBM' THEN NULLIF(o.bandwidth, 0)
            WHEN p.quantity = 'matrix_flops_per_s' AND p.dtype = 'bf16' THEN NULLIF(o.flops, 0)
        END AS trace_value,
        ROW_NUMBER() OVER (
            PARTITION BY o.capture_id, o.device_id, p.quantity, p.memory_level, p.dtype, p.peak_kind
            ORDER BY
                o.origin_order NULLS FIRST,
                o.broader_count DESC NULLS FIRST,
                p.value DESC NULLS FIRST,
                p.peak_id NULLS FIRST
        ) AS peak_rank
    FROM _ordered AS o
    INNER JOIN main.device_peaks AS p
        ON p.peak_id = o.peak_id
)
SELECT
    r.capture_id AS capture_id,
    r.device_id AS device_id,
    d.device_ordinal AS device_ordinal,
    d.device_kind AS device_kind,
    q.product AS product,
    r.quantity AS quantity,
    r.memory_level AS memory_level,
    r.dtype AS dtype,
    r.peak_kind AS peak_kind,
    r.value AS value,
    r.scale_ratio AS scale_ratio,
    r.clock_mhz AS clock_mhz,
    r.origin AS origin,
    r.peak_id AS peak_id,
    r.source AS source,
    r.stated_on AS stated_on,
    CASE WHEN r.trace_value IS NOT NULL THEN r.trace_attribute END AS trace_attribute,
    r.trace_value AS trace_value,
    r.trace_value / NULLIF(r.value, 0) AS trace_ratio
FROM _ranked AS r
INNER JOIN main.devices AS d
    ON d.device_id = r.device_id
LEFT JOIN v1._device_products AS q
    ON q.device_id = r.device_id
    AND q.product_count = 1
WHERE r.peak_rank = 1
