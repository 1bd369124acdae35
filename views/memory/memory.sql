-- name: v1.memory
-- version: 1
-- grain: one row per run, capture, device, program, memory space and kind
-- summary: Memory that each program takes on each device that ran it, by what it is for.
-- evidence: compiler
-- columns:
--   run_id BIGINT: the run
--   capture_id BIGINT: the capture
--   device_id BIGINT: a device that ran the program; NULL where no event tells
--   device_ordinal BIGINT: its ordinal on its host; NULL where no event tells
--   program_id BIGINT: the program
--   module_name VARCHAR: name of its HLO module
--   memory_space BIGINT: 0 for the device's own memory, 5 for the host's, else a space of the backend
--   kind VARCHAR: argument, alias, output, constant, temporary, thread_local, heap_peak, peak or reserved
--   bytes BIGINT (bytes): amount on one device; NULL where the module lacks what would tell it
--   evidence VARCHAR: compiler
--   is_worst_device BOOLEAN: it takes some, and no device of the run more of this kind, in this space, for
--     any program
--   mib DOUBLE (MiB): bytes in mebibytes
-- algorithm: argument, output, constant, temporary and thread_local add up to all allocations. alias is the part
--   of argument that outputs take over; output is what outputs need besides. temporary is memory for
--   intermediate results as it was laid out, heap_peak what of them is live at once in program order, peak is
--   argument + output + constant + heap_peak, and reserved, with temporary in its place, must be free to run.

WITH _ran AS (
    SELECT DISTINCT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        o.program_id AS program_id
    FROM main.device_events AS e
    INNER JOIN main.ops AS o
        ON o.capture_id = e.capture_id
        AND o.op_id = e.op_id
    WHERE e.role = 'work'
),
_amounts AS (
    SELECT
        c.run_id AS run_id,
        p.capture_id AS capture_id,
        r.device_id AS device_id,
        p.program_id AS program_id,
        p.module_id AS module_id,
        s.memory_space AS memory_space,
        s.kind AS kind,
        s.bytes AS bytes
    FROM main.hlo_programs AS p
    INNER JOIN main.captures AS c
        ON c.capture_id = p.capture_id
    INNER JOIN v1._static_memory AS s
        ON s.module_id = p.module_id
    LEFT JOIN _ran AS r
        ON r.capture_id = p.capture_id
        AND r.program_id = p.program_id
),
_compared AS (
    SELECT
        a.run_id AS run_id,
        a.capture_id AS capture_id,
        a.device_id AS device_id,
        a.program_id AS program_id,
        a.module_id AS module_id,
        a.memory_space AS memory_space,
        a.kind AS kind,
        a.bytes AS bytes,
        MAX(a.bytes) OVER (PARTITION BY a.run_id, a.memory_space, a.kind) AS most_bytes
    FROM _amounts AS a
)
SELECT
    a.run_id AS run_id,
    a.capture_id AS capture_id,
    a.device_id AS device_id,
    d.device_ordinal AS device_ordinal,
    a.program_id AS program_id,
    m.module_name AS module_name,
    a.memory_space AS memory_space,
    a.kind AS kind,
    a.bytes AS bytes,
    'compiler' AS evidence,
    COALESCE(a.bytes = a.most_bytes AND a.bytes > 0, FALSE) AS is_worst_device,
    CAST(a.bytes AS DOUBLE) / 1048576 AS mib
FROM _compared AS a
INNER JOIN main.hlo_modules AS m
    ON m.module_id = a.module_id
LEFT JOIN main.devices AS d
    ON d.device_id = a.device_id
