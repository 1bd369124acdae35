-- name: v1._executed_flops
-- version: 1
-- grain: one row per run with complete steps whose ops have costs
-- summary: FLOPs that a device executes in an update, and bytes that it accesses, by the compiler's account of the ops
--   that ran.
-- evidence: compiler
-- columns:
--   run_id BIGINT: the run
--   device_flops DOUBLE (count): FLOPs of one device in one update, the mean over devices
--   device_bytes DOUBLE (bytes): bytes that these ops access on one device in one update, as if nothing were cached
--   device_count BIGINT (count): devices that the mean is of
--   unknown_ops BIGINT (count): custom calls that ran and have no FLOPs, which the sum lacks
-- algorithm: The FLOPs of v1.op_stats in the programs that are the step, over the steps of the capture. A capture that
--   begins or ends within a step is left out, since work of a part of a step would be in the sum.

WITH _steps AS (
    SELECT
        s.capture_id AS capture_id,
        s.device_id AS device_id,
        COUNT(*) AS steps
    FROM v1.steps AS s
    GROUP BY
        s.capture_id,
        s.device_id
    HAVING MIN(CASE WHEN s.is_complete THEN 1 ELSE 0 END) = 1
),
_devices AS (
    SELECT
        o.capture_id AS capture_id,
        o.device_id AS device_id,
        CAST(SUM(o.flops) AS DOUBLE) AS capture_flops,
        CAST(SUM(o.bytes_accessed) AS DOUBLE) AS capture_bytes,
        COUNT(CASE WHEN o.flops IS NULL AND o.opcode = 'custom-call' THEN 1 END) AS unknown_count
    FROM v1.op_stats AS o
    INNER JOIN v1._step_executables AS p
        ON p.capture_id = o.capture_id
        AND p.program_id = o.program_id
    WHERE p.is_step_program
    GROUP BY
        o.capture_id,
        o.device_id
)
SELECT
    c.run_id AS run_id,
    CAST(SUM(d.capture_flops / NULLIF(s.steps, 0)) AS DOUBLE) / NULLIF(COUNT(*), 0) AS device_flops,
    CAST(SUM(d.capture_bytes / NULLIF(s.steps, 0)) AS DOUBLE) / NULLIF(COUNT(*), 0) AS device_bytes,
    COUNT(*) AS device_count,
    MAX(d.unknown_count) AS unknown_ops
FROM _devices AS d
INNER JOIN _steps AS s
    ON s.capture_id = d.capture_id
    AND s.device_id = d.device_id
INNER JOIN main.captures AS c
    ON c.capture_id = d.capture_id
WHERE d.capture_flops > 0
GROUP BY c.run_id
