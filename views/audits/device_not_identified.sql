-- name: device_not_identified
-- severity: warning
-- filter: capture_id
-- question: Is each device that worked known by kind and architecture?
-- meaning: The capture does not say what a device is. No peak can be chosen for it, so that rates have no ceiling to
--   be compared with.
-- next: Compare the run only with runs of the same machine, or profile with a newer JAX or rocprofv3, which write the
--   kind (AMD Instinct MI355X) and the architecture (gfx950, compute capability) of the device.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   device_type VARCHAR: GPU or TPU
--   device_ordinal BIGINT: ordinal of the device on its host
--   device_kind VARCHAR: what the capture calls it; NULL where it does not
--   vendor VARCHAR: its maker; NULL where unknown
--   missing VARCHAR: kind, architecture, or both

WITH _working AS (
    SELECT DISTINCT
        e.capture_id AS capture_id,
        e.device_id AS device_id
    FROM main.device_events AS e
    WHERE e.role IN ('work', 'serialized')
),
_architectures AS (
    SELECT DISTINCT a.device_id AS device_id
    FROM main.device_attributes AS a
    WHERE a.attribute = 'compute_cap_major'
        OR a.attribute = 'gfx_target_version'
        OR a.value LIKE 'gfx%'
),
_devices AS (
    SELECT
        w.capture_id AS capture_id,
        d.device_type AS device_type,
        d.device_ordinal AS device_ordinal,
        d.device_kind AS device_kind,
        d.vendor AS vendor,
        CASE WHEN d.device_kind IS NULL THEN 1 ELSE 0 END AS lacks_kind,
        CASE
            WHEN d.device_type <> 'GPU' OR a.device_id IS NOT NULL THEN 0
            WHEN COALESCE(d.device_kind, '') LIKE '%gfx%' THEN 0
            ELSE 1
        END AS lacks_architecture
    FROM _working AS w
    INNER JOIN main.devices AS d
        ON d.device_id = w.device_id
    LEFT JOIN _architectures AS a
        ON a.device_id = w.device_id
    WHERE d.device_type <> 'CPU'
)
SELECT
    r.run_name AS run_name,
    d.capture_id AS capture_id,
    d.device_type AS device_type,
    d.device_ordinal AS device_ordinal,
    d.device_kind AS device_kind,
    d.vendor AS vendor,
    CASE
        WHEN d.lacks_kind + d.lacks_architecture = 2 THEN 'kind and architecture'
        WHEN d.lacks_kind = 1 THEN 'kind'
        ELSE 'architecture'
    END AS missing
FROM _devices AS d
INNER JOIN main.captures AS c
    ON c.capture_id = d.capture_id
INNER JOIN main.runs AS r
    ON r.run_id = c.run_id
WHERE d.lacks_kind + d.lacks_architecture > 0
ORDER BY
    r.run_name,
    d.capture_id,
    d.device_ordinal
