-- name: memory_near_limit
-- severity: warning
-- filter: run_name
-- question: Was a device almost out of memory?
-- meaning: An allocator had more than 95 % of its limit in use. A longer sequence, a larger batch or another version of
--   the compiler may not fit, and an allocator without room may have made programs wait or fragment its memory.
-- next: See v1.memory_timeline for when, v1.peak_buffers and v1.memory_profile for what. Raise the limit
--   (XLA_PYTHON_CLIENT_MEM_FRACTION) if it is less than the device has, or save memory by remat or sharding.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture; NULL of statistics that the run saved
--   device_ordinal BIGINT: ordinal of the device on its host
--   source VARCHAR: who says so: allocator_stats or allocator_events
--   label VARCHAR: the moment of allocator_stats, the allocator of allocator_events
--   kind VARCHAR: peak_bytes_in_use, since the process began, or total_high_water, during the capture
--   mib DOUBLE (MiB): most that was in use
--   limit_mib DOUBLE (MiB): most that the allocator may have
--   share_of_limit_ratio DOUBLE (ratio): mib over limit_mib
-- algorithm: One row for each device: the largest share.

WITH _ranked AS (
    SELECT
        m.run_id AS run_id,
        m.capture_id AS capture_id,
        m.device_ordinal AS device_ordinal,
        m.source AS source,
        m.label AS label,
        m.kind AS kind,
        m.mib AS mib,
        m.limit_bytes AS limit_bytes,
        m.share_of_limit_ratio AS share_of_limit_ratio,
        ROW_NUMBER() OVER (
            PARTITION BY m.run_id, m.device_id
            ORDER BY
                -m.share_of_limit_ratio NULLS FIRST,
                m.source NULLS FIRST,
                m.kind NULLS FIRST,
                m.label NULLS FIRST,
                m.capture_id NULLS FIRST
        ) AS place
    FROM v1.memory AS m
    WHERE m.evidence = 'measured'
        AND m.kind IN ('peak_bytes_in_use', 'total_high_water')
        AND m.share_of_limit_ratio > 95e-2
)
SELECT
    r.run_name AS run_name,
    k.capture_id AS capture_id,
    k.device_ordinal AS device_ordinal,
    k.source AS source,
    k.label AS label,
    k.kind AS kind,
    k.mib AS mib,
    CAST(k.limit_bytes AS DOUBLE) / 1048576 AS limit_mib,
    k.share_of_limit_ratio AS share_of_limit_ratio
FROM _ranked AS k
INNER JOIN main.runs AS r
    ON r.run_id = k.run_id
WHERE k.place = 1
ORDER BY
    k.share_of_limit_ratio DESC,
    r.run_name,
    k.device_ordinal
