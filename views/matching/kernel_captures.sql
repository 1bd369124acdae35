-- name: v1._kernel_captures
-- version: 1
-- grain: one row per capture of an XSpace or a ROCm profiler and device that ran kernels in it
-- summary: The captures whose kernels can be matched, with the process that each is of.
-- evidence: measured
-- columns:
--   run_id BIGINT: the run
--   capture_id BIGINT: the capture
--   profile VARCHAR: xspace; rocm; rocm_counters, of a run that counted per dispatch
--   hostname VARCHAR: host of the process; '' where unknown
--   process_index INTEGER: position of the process in its run; 0 where unknown
--   device_id BIGINT: the device
--   device_ordinal BIGINT: ordinal of the device on its host
--   device_count BIGINT (count): devices that ran kernels in the capture

WITH _devices AS (
    SELECT
        k.capture_id AS capture_id,
        k.device_id AS device_id,
        MAX(k.is_serialized) AS any_serialized
    FROM v1._kernels_seen AS k
    GROUP BY
        k.capture_id,
        k.device_id
)
SELECT
    c.run_id AS run_id,
    c.capture_id AS capture_id,
    CASE
        WHEN c.source_kind = 'xspace' THEN 'xspace'
        WHEN MAX(d.any_serialized) OVER (PARTITION BY c.run_id, c.capture_id) = 1 THEN 'rocm_counters'
        ELSE 'rocm'
    END AS profile,
    COALESCE(c.hostname, '') AS hostname,
    COALESCE(c.process_index, 0) AS process_index,
    d.device_id AS device_id,
    v.device_ordinal AS device_ordinal,
    COUNT(*) OVER (PARTITION BY c.run_id, c.capture_id) AS device_count
FROM main.captures AS c
INNER JOIN _devices AS d
    ON d.capture_id = c.capture_id
INNER JOIN main.devices AS v
    ON v.device_id = d.device_id
WHERE c.source_kind IN ('xspace', 'rocpd', 'rocprof_json', 'rocprof_csv', 'rpd')
