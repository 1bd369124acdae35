-- name: bandwidth_over_peak
-- severity: note
-- filter: capture_id
-- question: Do the compiler's bytes ask for more bandwidth than the memory has?
-- meaning: The bytes that the compiler counts for an op, in its time, exceed the bandwidth of the memory. They are no
--   memory traffic: caches served a part, or the op reads less of an array than the rules count.
-- next: Do not call the op memory-bound on these bytes. Take bytes from counters (v1.counters) for it, or use the
--   bandwidth of the cache level that serves it.
-- evidence: derived
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   device_ordinal BIGINT: ordinal of the device on its host
--   hlo_op VARCHAR: HLO instruction
--   opcode VARCHAR: HLO opcode
--   union_ms DOUBLE (ms): time with any of its events
--   gbytes_per_s DOUBLE (GB/s): compiler's bytes in that time
--   peak_gbytes_per_s DOUBLE (GB/s): bandwidth of the device's memory
--   efficiency_ratio DOUBLE (ratio): rate over peak
--   peak_source VARCHAR: what the peak comes from
-- algorithm: Specified bandwidths count before others, since a measured one is not a limit. A device without one has
--   no rows; see peak_unknown.

WITH _peaks AS (
    SELECT
        c.capture_id AS capture_id,
        d.device_id AS device_id,
        p.value AS peak,
        p.peak_kind || ': ' || p.source AS peak_source,
        ROW_NUMBER() OVER (
            PARTITION BY c.capture_id, d.device_id
            ORDER BY
                CASE p.peak_kind WHEN 'spec' THEN 1 ELSE 2 END NULLS FIRST,
                p.value DESC NULLS FIRST,
                p.source NULLS FIRST
        ) AS peak_rank
    FROM main.captures AS c
    INNER JOIN main.devices AS d
        ON d.run_id = c.run_id
    INNER JOIN main.device_peaks AS p
        ON d.device_kind LIKE p.device_pattern
        AND COALESCE(p.capture_id, c.capture_id) = c.capture_id
    WHERE p.quantity = 'bytes_per_s'
        AND p.memory_level = 'HBM'
)
SELECT
    r.run_name AS run_name,
    o.capture_id AS capture_id,
    o.device_ordinal AS device_ordinal,
    o.hlo_op AS hlo_op,
    o.opcode AS opcode,
    o.union_ms AS union_ms,
    o.bytes_per_s / 1e9 AS gbytes_per_s,
    p.peak / 1e9 AS peak_gbytes_per_s,
    o.bytes_per_s / NULLIF(p.peak, 0) AS efficiency_ratio,
    p.peak_source AS peak_source
FROM v1.op_stats AS o
INNER JOIN _peaks AS p
    ON p.capture_id = o.capture_id
    AND p.device_id = o.device_id
    AND p.peak_rank = 1
INNER JOIN main.captures AS c
    ON c.capture_id = o.capture_id
INNER JOIN main.runs AS r
    ON r.run_id = c.run_id
WHERE o.bytes_per_s > p.peak
ORDER BY
    efficiency_ratio DESC,
    r.run_name,
    o.capture_id,
    o.device_ordinal,
    o.hlo_op
