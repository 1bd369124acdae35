-- name: v1._counted_devices
-- version: 1
-- grain: one row per device that some capture describes
-- summary: What counters need to know of a device; the captures of a run describe one device alike.
-- evidence: measured
-- columns:
--   device_id BIGINT: the device
--   architecture VARCHAR: gfx942 and the like, which decides its formulas; NULL where no capture tells
--   die_count DOUBLE (count): accelerator dies (XCC) that work as this device; NULL where no capture tells

SELECT
    a.device_id AS device_id,
    MIN(CASE
        WHEN a.attribute = 'name' THEN NULLIF(REGEXP_EXTRACT(a.value, '^(gfx[0-9a-f]+)', 1), '')
    END) AS architecture,
    MIN(CASE
        WHEN a.attribute = 'num_xcc' AND REGEXP_MATCHES(a.value, '^[0-9]{1,9}$') THEN CAST(a.value AS DOUBLE)
    END) AS die_count
FROM main.device_attributes AS a
WHERE a.attribute IN ('name', 'num_xcc')
GROUP BY a.device_id
