-- name: v1._rccl_links
-- version: 1
-- grain: one row per kernel of RCCL whose calls are known
-- summary: The calls that each kernel of RCCL carries out, and how they were found.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   device_event_id BIGINT: the kernel
--   device_id BIGINT: its device
--   name_id BIGINT: names.name_id of the kernel
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end
--   role VARCHAR: work; serialized, of a run that counted, whose times tell nothing
--   unit_track_id BIGINT: with unit_place, the calls in v1._rccl_host_calls
--   unit_place BIGINT: see unit_track_id
--   link_source VARCHAR: correlation; name_and_time

SELECT
    k.capture_id AS capture_id,
    k.device_event_id AS device_event_id,
    k.device_id AS device_id,
    k.name_id AS name_id,
    k.start_ps AS start_ps,
    k.end_ps AS end_ps,
    k.role AS role,
    COALESCE(k.unit_track_id, n.unit_track_id) AS unit_track_id,
    COALESCE(k.unit_place, n.unit_place) AS unit_place,
    CASE WHEN k.unit_place IS NOT NULL THEN 'correlation' ELSE 'name_and_time' END AS link_source
FROM v1._rccl_kernels AS k
LEFT JOIN v1._rccl_nth_kernels AS n
    ON n.capture_id = k.capture_id
    AND n.device_event_id = k.device_event_id
WHERE k.unit_place IS NOT NULL
    OR n.unit_place IS NOT NULL
