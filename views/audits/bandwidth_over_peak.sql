-- name: bandwidth_over_peak
-- severity: note
-- filter: capture_id
-- question: Do the compiler's bytes ask for more bandwidth than there is?
-- meaning: The bytes that the compiler counts for an op, in its time, exceed the bandwidth of the memory, or of the
--   links. They are no such traffic: caches served a part, or the op reads less of an array than the rules count.
-- next: Do not call the op memory-bound on these bytes. Take bytes from counters (v1.counters) for it, or use the
--   bandwidth of the cache level that serves it.
-- evidence: derived
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   device_ordinal BIGINT: ordinal of the device on its host
--   program_id BIGINT: the program
--   hlo_op VARCHAR: HLO instruction
--   memory_level VARCHAR: HBM, or network for collectives
--   union_ms DOUBLE (ms): time with any of its events
--   gbytes_per_s DOUBLE (GB/s): compiler's bytes in that time
--   peak_gbytes_per_s DOUBLE (GB/s): bandwidth of the level
--   efficiency_ratio DOUBLE (ratio): rate over peak
-- algorithm: A device without a specified bandwidth has no rows; see peak_unknown.

SELECT
    n.run_name AS run_name,
    r.capture_id AS capture_id,
    r.device_ordinal AS device_ordinal,
    r.program_id AS program_id,
    r.scope_name AS hlo_op,
    r.memory_level AS memory_level,
    r.union_ms AS union_ms,
    r.achieved_bytes_per_s / 1e9 AS gbytes_per_s,
    r.peak_bytes_per_s / 1e9 AS peak_gbytes_per_s,
    r.achieved_bytes_per_s / NULLIF(r.peak_bytes_per_s, 0) AS efficiency_ratio
FROM v1.roofline AS r
INNER JOIN main.captures AS c
    ON c.capture_id = r.capture_id
INNER JOIN main.runs AS n
    ON n.run_id = c.run_id
WHERE r.scope = 'op'
    AND r.achieved_bytes_per_s > r.peak_bytes_per_s
ORDER BY
    efficiency_ratio DESC,
    n.run_name,
    r.capture_id,
    r.device_ordinal,
    r.program_id,
    r.scope_name
