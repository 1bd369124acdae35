-- name: v1._device_products
-- version: 1
-- grain: one row per device, and product that it can be
-- summary: Which products a device can be by what captures say of it, and which part of one it is.
-- evidence: derived
-- columns:
--   device_id BIGINT: the device
--   product VARCHAR: device_products.product
--   product_count BIGINT (count): products that the device can be
--   core_ratio DOUBLE (ratio): its cores over those of a whole device; NULL where that is unknown
--   memory_ratio DOUBLE (ratio): share of the memory's bandwidth that it reaches; NULL where that is unknown
-- algorithm: A product remains unless its pattern, cores, clock or memory contradict what any capture of the run says
--   of the device. Parts of MI300 and MI350 have an equal share of the cores. In the mode NPS1 each reaches all of the
--   memory, in NPS2, NPS4 and NPS8 one part in 2, 4 and 8; which mode it is, only some captures say, and without it
--   the bandwidth of a part is unknown. A MIG instance has the cores that the capture says, and eighths of the memory,
--   and of its bandwidth, by its size. A TPU without megacore is one TensorCore with its share of the chip's memory.

WITH _facts AS (
    SELECT
        a.device_id AS device_id,
        MAX(CASE
            WHEN a.attribute IN ('core_count', 'cu_count') AND REGEXP_MATCHES(a.value, '^[1-9][0-9]{0,8}$')
                THEN CAST(a.value AS BIGINT)
        END) AS core_count,
        MAX(CASE
            WHEN NOT REGEXP_MATCHES(a.value, '^[1-9][0-9]{0,8}$') THEN NULL
            WHEN a.attribute = 'clock_rate' THEN CAST(a.value AS BIGINT)
            WHEN a.attribute = 'max_engine_clk_fcompute' THEN 1000 * CAST(a.value AS BIGINT)
        END) AS clock_khz,
        MAX(CASE
            WHEN a.attribute = 'memory_size' AND REGEXP_MATCHES(a.value, '^[1-9][0-9]{0,14}$')
                THEN CAST(a.value AS BIGINT)
        END) AS memory_bytes,
        MAX(CASE
            WHEN a.attribute = 'memory_partition' AND REGEXP_MATCHES(a.value, '^NPS[1248]$')
                THEN CAST(NULLIF(REGEXP_EXTRACT(a.value, '^NPS([1248])$', 1), '') AS BIGINT)
        END) AS memory_parts,
        MAX(CASE
            WHEN a.attribute = 'has_megacore' AND a.value = '1' THEN 2
            WHEN a.attribute = 'has_megacore' AND a.value = '0' THEN 1
        END) AS tensor_cores
    FROM main.device_attributes AS a
    GROUP BY a.device_id
),
_parts AS (
    SELECT
        v.part_kind AS part_kind,
        v.part_count AS part_count
    FROM (
        VALUES
            ('xcd8', 1),
            ('xcd8', 2),
            ('xcd8', 4),
            ('xcd8', 8),
            ('xcd6', 1),
            ('xcd6', 3),
            ('xcd6', 6)
    ) AS v (part_kind, part_count)
),
_described AS (
    SELECT
        d.device_id AS device_id,
        q.product AS product,
        q.core_count AS product_cores,
        q.memory_bytes AS product_bytes,
        q.clock_mhz AS product_mhz,
        CASE
            WHEN q.part_kind = 'mig' AND d.device_kind NOT LIKE '% MIG %' THEN 'whole'
            WHEN q.part_kind LIKE 'xcd%' THEN 'xcd'
            ELSE COALESCE(q.part_kind, 'whole')
        END AS part_kind,
        p.part_count AS part_count,
        f.core_count AS core_count,
        f.clock_khz AS clock_khz,
        f.memory_bytes AS memory_bytes,
        f.memory_parts AS memory_parts,
        f.tensor_cores AS tensor_cores
    FROM main.devices AS d
    INNER JOIN main.device_products AS q
        ON d.device_kind LIKE q.device_pattern
    LEFT JOIN _facts AS f
        ON f.device_id = d.device_id
    LEFT JOIN _parts AS p
        ON p.part_kind = q.part_kind
        AND p.part_count * f.core_count = q.core_count
),
_possible AS (
    SELECT
        d.device_id AS device_id,
        d.product AS product,
        d.product_bytes AS product_bytes,
        d.part_kind AS part_kind,
        d.part_count AS part_count,
        d.memory_bytes AS memory_bytes,
        d.memory_parts AS memory_parts,
        CASE d.part_kind
            WHEN 'whole' THEN 1e0
            WHEN 'xcd' THEN 1e0 / NULLIF(d.part_count, 0)
            WHEN 'core' THEN CAST(d.tensor_cores AS DOUBLE) / NULLIF(d.product_cores, 0)
            ELSE CAST(d.core_count AS DOUBLE) / NULLIF(d.product_cores, 0)
        END AS core_ratio
    FROM _described AS d
    WHERE (
            d.core_count IS NULL
            OR d.part_kind = 'xcd' AND d.part_count IS NOT NULL
            OR d.part_kind = 'mig' AND d.core_count <= d.product_cores
            OR d.part_kind IN ('whole', 'core') AND d.core_count = d.product_cores
        )
        AND COALESCE(d.clock_khz, 1000 * d.product_mhz, 0) = COALESCE(1000 * d.product_mhz, d.clock_khz, 0)
        AND (
            d.memory_bytes IS NULL
            OR d.part_kind = 'xcd' AND d.part_count IS NULL
            OR d.part_kind = 'mig' AND 10 * d.memory_bytes <= 11 * d.product_bytes
            OR 10 * d.memory_bytes BETWEEN 9 * d.product_bytes AND 11 * d.product_bytes
            OR 10 * d.part_count * d.memory_bytes BETWEEN 9 * d.product_bytes AND 11 * d.product_bytes
        )
)
SELECT
    p.device_id AS device_id,
    p.product AS product,
    COUNT(*) OVER (PARTITION BY p.device_id) AS product_count,
    p.core_ratio AS core_ratio,
    CASE
        WHEN p.part_kind IN ('whole', 'core') THEN p.core_ratio
        WHEN p.part_kind = 'xcd' AND p.part_count = 1 THEN 1e0
        WHEN p.part_kind = 'xcd' THEN 1e0 / NULLIF(p.memory_parts, 0)
        ELSE CAST(
            16 * p.memory_bytes + p.product_bytes
            - MOD(16 * p.memory_bytes + p.product_bytes, NULLIF(2 * p.product_bytes, 0)) AS DOUBLE
        ) / NULLIF(16 * p.product_bytes, 0)
    END AS memory_ratio
FROM _possible AS p
