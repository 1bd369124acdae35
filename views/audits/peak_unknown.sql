-- name: peak_unknown
-- severity: note
-- filter: run_name
-- question: Is there a peak to compare rates with?
-- meaning: No peak of FLOPs or of memory bandwidth is known for devices: their kind is an unknown one, or can be several
--   products that differ, or they are parts of a device of which no capture says what they reach. Rates of their ops
--   are not checked against a ceiling, and there is no efficiency. Devices without a kind are in device_not_identified.
-- next: Add what a data sheet or a benchmark says (tracewh peaks add), or load the roofline.csv that rocprof-compute
--   measured with the run. Do not take the bandwidth that the trace itself states: on ROCm it is half of the truth.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: NULL: the whole run
--   device_kind VARCHAR: kind of the devices
--   device_count BIGINT (count): devices of that kind of which it is unknown
--   missing VARCHAR: FLOPs, bandwidth, or both

WITH _known AS (
    SELECT
        p.device_id AS device_id,
        MAX(CASE WHEN p.quantity <> 'bytes_per_s' THEN 1 ELSE 0 END) AS has_flops,
        MAX(CASE WHEN p.memory_level = 'HBM' THEN 1 ELSE 0 END) AS has_bytes
    FROM v1.device_peaks AS p
    GROUP BY p.device_id
),
_missing AS (
    SELECT
        d.run_id AS run_id,
        d.device_kind AS device_kind,
        CASE
            WHEN COALESCE(k.has_flops, 0) + COALESCE(k.has_bytes, 0) = 0 THEN 'FLOPs and bandwidth'
            WHEN COALESCE(k.has_flops, 0) = 0 THEN 'FLOPs'
            WHEN COALESCE(k.has_bytes, 0) = 0 THEN 'bandwidth'
        END AS missing
    FROM main.devices AS d
    LEFT JOIN _known AS k
        ON k.device_id = d.device_id
    WHERE d.device_type <> 'CPU'
        AND d.device_kind IS NOT NULL
)
SELECT
    r.run_name AS run_name,
    CAST(NULL AS BIGINT) AS capture_id,
    m.device_kind AS device_kind,
    COUNT(*) AS device_count,
    m.missing AS missing
FROM _missing AS m
INNER JOIN main.runs AS r
    ON r.run_id = m.run_id
WHERE m.missing IS NOT NULL
GROUP BY
    r.run_name,
    m.device_kind,
    m.missing
ORDER BY
    r.run_name,
    m.device_kind,
    m.missing
