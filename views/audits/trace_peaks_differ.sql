-- name: trace_peaks_differ
-- severity: note
-- filter: capture_id
-- question: Are the peaks that the trace states those of the device?
-- meaning: The bandwidth or the FLOPs that the profiler wrote for a device differ from the specified peak by more than
--   a tenth. A roofline drawn with them, as XProf does, is wrong. ROCm's tracers state half of the bandwidth.
-- next: Use the peaks of v1.device_peaks, and recompute efficiencies that came from the trace's own.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   device_kind VARCHAR: kind of the device
--   device_count BIGINT (count): devices of which the trace says so
--   attribute VARCHAR: what the trace calls it
--   stated DOUBLE: what the trace states, in the unit of the peak
--   specified DOUBLE: the peak
--   stated_over_specified_ratio DOUBLE (ratio): stated / specified
--   peak_source VARCHAR: what the peak comes from

SELECT
    r.run_name AS run_name,
    p.capture_id AS capture_id,
    p.device_kind AS device_kind,
    COUNT(*) AS device_count,
    p.trace_attribute AS attribute,
    p.trace_value AS stated,
    p.value AS specified,
    p.trace_ratio AS stated_over_specified_ratio,
    p.source AS peak_source
FROM v1.device_peaks AS p
INNER JOIN main.captures AS c
    ON c.capture_id = p.capture_id
INNER JOIN main.runs AS r
    ON r.run_id = c.run_id
WHERE p.peak_kind = 'spec'
    AND p.trace_ratio NOT BETWEEN 9e-1 AND 11e-1
GROUP BY
    r.run_name,
    p.capture_id,
    p.device_kind,
    p.trace_attribute,
    p.trace_value,
    p.value,
    p.trace_ratio,
    p.source
ORDER BY
    r.run_name,
    p.capture_id,
    p.device_kind,
    p.trace_attribute,
    p.trace_value
