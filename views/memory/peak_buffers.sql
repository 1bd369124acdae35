-- name: v1.peak_buffers
-- version: 1
-- grain: one row per capture, program and piece of memory that is in use at the peak
-- summary: What lies in memory when a program uses most of it, and which op made it.
-- evidence: compiler
-- columns:
--   capture_id BIGINT: the capture
--   program_id BIGINT: the program
--   memory_space BIGINT: 0 for the device's own memory, 5 for the host's, else a space of the backend
--   allocation_kind VARCHAR: parameter, constant, output, thread_local or temporary; NULL without a place
--   allocation_index BIGINT: the compiler's number of the allocation; NULL where the value has no place
--   offset_bytes BIGINT (bytes): where in the allocation
--   bytes BIGINT (bytes): size; the sum over a program is its peak, where v1.memory knows that
--   buffer_count BIGINT (count): values that share the piece, as an output written in place of its operand
--   hlo_op VARCHAR: instruction that made the largest of them, of equals the first; NULL where it is not in
--     the module
--   opcode VARCHAR: its HLO opcode
--   shape VARCHAR: its shape, in the form of HLO text
--   shape_index VARCHAR: which part of that, a tuple, the value is: {2}; {} for all of it
--   op_name VARCHAR: its JAX name stack; NULL where none is known
--   component VARCHAR: deepest named scope of the op_name, or unattributed
--   phase VARCHAR: remat, backward, forward, update or unattributed
--   source_file VARCHAR: Python source that traced it; NULL where unknown
--   source_line BIGINT: line in it
--   mib DOUBLE (MiB): bytes in mebibytes

WITH _at_peak AS (
    SELECT
        b.module_id AS module_id,
        b.buffer_id AS buffer_id,
        b.instruction_id AS instruction_id,
        b.shape_index AS shape_index,
        b.memory_space AS memory_space,
        b.allocation_index AS allocation_index,
        b.offset_bytes AS offset_bytes,
        b.bytes AS bytes,
        b.live_from AS live_from,
        CASE WHEN b.allocation_index IS NULL THEN b.buffer_id END AS unplaced_buffer_id
    FROM main.hlo_logical_buffers AS b
    WHERE b.is_live_at_peak
),
_live AS (
    SELECT
        b.module_id AS module_id,
        b.buffer_id AS buffer_id,
        b.instruction_id AS instruction_id,
        b.shape_index AS shape_index,
        b.memory_space AS memory_space,
        b.allocation_index AS allocation_index,
        b.offset_bytes AS offset_bytes,
        b.bytes AS bytes,
        ROW_NUMBER() OVER (
            PARTITION BY b.module_id, b.allocation_index, b.offset_bytes, b.unplaced_buffer_id
            ORDER BY b.bytes DESC NULLS FIRST, COALESCE(b.live_from, 0) NULLS FIRST, b.buffer_id NULLS FIRST
        ) AS place,
        COUNT(*) OVER (
            PARTITION BY b.module_id, b.allocation_index, b.offset_bytes, b.unplaced_buffer_id
        ) AS buffer_count
    FROM _at_peak AS b
)
SELECT
    p.capture_id AS capture_id,
    p.program_id AS program_id,
    l.memory_space AS memory_space,
    a.allocation_kind AS allocation_kind,
    l.allocation_index AS allocation_index,
    l.offset_bytes AS offset_bytes,
    l.bytes AS bytes,
    l.buffer_count AS buffer_count,
    h.name AS hlo_op,
    i.opcode AS opcode,
    i.shape AS shape,
    l.shape_index AS shape_index,
    n.name AS op_name,
    COALESCE(c.component, 'unattributed') AS component,
    COALESCE(c.phase, 'unattributed') AS phase,
    i.source_file AS source_file,
    i.source_line AS source_line,
    CAST(l.bytes AS DOUBLE) / 1048576 AS mib
FROM main.hlo_programs AS p
INNER JOIN _live AS l
    ON l.module_id = p.module_id
    AND l.place = 1
LEFT JOIN main.hlo_buffers AS a
    ON a.module_id = l.module_id
    AND a.allocation_index = l.allocation_index
LEFT JOIN main.hlo_instructions AS i
    ON i.module_id = l.module_id
    AND i.instruction_id = l.instruction_id
LEFT JOIN main.names AS h
    ON h.name_id = i.name_id
LEFT JOIN main.names AS n
    ON n.name_id = i.op_name_id
LEFT JOIN v1._capture_rule_scopes AS r
    ON r.capture_id = p.capture_id
LEFT JOIN main.op_name_classes AS c
    ON c.rule_scope = COALESCE(r.rule_scope, 0)
    AND c.op_name_id = i.op_name_id
