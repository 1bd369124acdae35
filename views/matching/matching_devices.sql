-- name: v1._matching_devices
-- version: 1
-- grain: one row per XSpace capture, ROCm capture of the same run, and device that both saw
-- summary: Which captures of a run are of the same process, run once with each profiler.
-- evidence: derived
-- columns:
--   run_id BIGINT: the run
--   xspace_capture_id BIGINT: the XSpace capture
--   rocm_capture_id BIGINT: the capture of a ROCm profiler
--   xspace_device_id BIGINT: the device in the XSpace capture
--   rocm_device_id BIGINT: the device in the ROCm capture
--   device_ordinal BIGINT: ordinal of the device in the XSpace capture
--   rocm_device_ordinal BIGINT: ordinal of the device in the ROCm capture
-- algorithm: Processes are numbered by host and position: those with an XSpace, those that a ROCm profiler
--   traced, and those in which it counted, each for themselves. Where there are as many with an XSpace as of the
--   others, a process goes with the one of its number, else each with each. Devices go by ordinal; the only
--   device of a capture goes with the only one of the other.

WITH _processes AS (
    SELECT DISTINCT
        c.run_id AS run_id,
        c.profile AS profile,
        c.hostname AS hostname,
        c.process_index AS process_index
    FROM v1._kernel_captures AS c
),
_numbered AS (
    SELECT
        p.run_id AS run_id,
        p.profile AS profile,
        p.hostname AS hostname,
        p.process_index AS process_index,
        ROW_NUMBER() OVER (
            PARTITION BY p.run_id, p.profile
            ORDER BY p.hostname NULLS FIRST, p.process_index NULLS FIRST
        ) AS process_number,
        COUNT(*) OVER (PARTITION BY p.run_id, p.profile) AS process_count
    FROM _processes AS p
)
SELECT
    x.run_id AS run_id,
    x.capture_id AS xspace_capture_id,
    r.capture_id AS rocm_capture_id,
    x.device_id AS xspace_device_id,
    r.device_id AS rocm_device_id,
    x.device_ordinal AS device_ordinal,
    r.device_ordinal AS rocm_device_ordinal
FROM v1._kernel_captures AS x
INNER JOIN _numbered AS y
    ON y.run_id = x.run_id
    AND y.profile = x.profile
    AND y.hostname = x.hostname
    AND y.process_index = x.process_index
INNER JOIN v1._kernel_captures AS r
    ON r.run_id = x.run_id
    AND (
        r.device_ordinal = x.device_ordinal
        OR (r.device_count = 1 AND x.device_count = 1)
    )
INNER JOIN _numbered AS s
    ON s.run_id = r.run_id
    AND s.profile = r.profile
    AND s.hostname = r.hostname
    AND s.process_index = r.process_index
    AND (
        s.process_count <> y.process_count
        OR s.process_number = y.process_number
    )
WHERE x.profile = 'xspace'
    AND r.profile <> 'xspace'
