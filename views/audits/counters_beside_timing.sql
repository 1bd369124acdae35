-- name: counters_beside_timing
-- severity: note
-- filter: capture_id
-- question: Are there counter passes whose durations must not be used?
-- meaning: The capture is of a counter pass, in which kernels ran one by one. Timing views leave its events out; a
--   query over main.device_events must do so too.
-- next: In queries of your own, keep role = 'work' of main.device_events, and compare counters of different passes only
--   where v1.kernel_matches finds the dispatches to be the same.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   process_index INTEGER: position of the process in the run
--   source_kind VARCHAR: format that it was read from
--   serialized_event_count BIGINT (count): dispatches and copies that ran one by one
--   device_event_count BIGINT (count): device events of the capture that are work

SELECT
    c.run_name AS run_name,
    c.capture_id AS capture_id,
    c.process_index AS process_index,
    c.source_kind AS source_kind,
    c.serialized_event_count AS serialized_event_count,
    c.device_event_count AS device_event_count
FROM v1.captures AS c
WHERE c.serialized_event_count > 0
ORDER BY
    c.run_name,
    c.capture_id
