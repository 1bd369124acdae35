-- name: peak_unknown
-- severity: note
-- filter: run_name
-- question: Is there a peak to compare rates with?
-- meaning: No peak of FLOPs or of memory bandwidth is known for a kind of device. Rates of its ops are not checked
--   against a ceiling, and there is no efficiency.
-- next: Load a peak that rocprof-compute measured with the run (roofline.csv). Do not take the bandwidth that the
--   trace itself states: on ROCm it is half of the truth.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: NULL: the whole run
--   device_kind VARCHAR: kind of the devices
--   device_count BIGINT (count): devices of that kind
--   missing VARCHAR: FLOPs, bandwidth, or both

WITH _kinds AS (
    SELECT
        d.run_id AS run_id,
        d.device_kind AS device_kind,
        COUNT(*) AS device_count
    FROM main.devices AS d
    WHERE d.device_type <> 'CPU'
        AND d.device_kind IS NOT NULL
    GROUP BY
        d.run_id,
        d.device_kind
),
_known AS (
    SELECT
        k.run_id AS run_id,
        k.device_kind AS device_kind,
        MAX(CASE WHEN p.quantity LIKE '%flops_per_s' THEN 1 ELSE 0 END) AS has_flops,
        MAX(CASE WHEN p.quantity = 'bytes_per_s' AND p.memory_level = 'HBM' THEN 1 ELSE 0 END) AS has_bytes
    FROM _kinds AS k
    INNER JOIN main.device_peaks AS p
        ON k.device_kind LIKE p.device_pattern
    LEFT JOIN main.captures AS c
        ON c.capture_id = p.capture_id
    WHERE COALESCE(c.run_id, k.run_id) = k.run_id
    GROUP BY
        k.run_id,
        k.device_kind
)
SELECT
    r.run_name AS run_name,
    CAST(NULL AS BIGINT) AS capture_id,
    k.device_kind AS device_kind,
    k.device_count AS device_count,
    CASE
        WHEN COALESCE(n.has_flops, 0) + COALESCE(n.has_bytes, 0) = 0 THEN 'FLOPs and bandwidth'
        WHEN COALESCE(n.has_flops, 0) = 0 THEN 'FLOPs'
        ELSE 'bandwidth'
    END AS missing
FROM _kinds AS k
INNER JOIN main.runs AS r
    ON r.run_id = k.run_id
LEFT JOIN _known AS n
    ON n.run_id = k.run_id
    AND n.device_kind = k.device_kind
WHERE COALESCE(n.has_flops, 0) = 0
    OR COALESCE(n.has_bytes, 0) = 0
ORDER BY
    r.run_name,
    k.device_kind
