-- name: v1._collective_bytes
-- version: 1
-- grain: one row per module and instruction that communicates
-- summary: What one execution of a collective moves.
-- evidence: compiler
-- columns:
--   module_id BIGINT: the module
--   instruction_id BIGINT: the instruction
--   collective_kind VARCHAR: all-reduce, all-gather, ..., without -start and -done
--   group_size BIGINT (count): devices that communicate with each other; NULL where unknown or different
--   payload_bytes BIGINT (bytes): per device: of an all-gather the result, else the operands; NULL where unknown,
--     and for what only waits for the end of another op (-done)
--   bus_bytes DOUBLE (bytes): what each device sends for it at best: the payload times (n-1)/n for n devices,
--     twice that for all-reduce, all of it for a permutation; NULL where unknown and for several kinds in one
--   unknown_reason VARCHAR: why groups or payload are NULL

WITH _payloads AS (
    SELECT
        c.module_id AS module_id,
        c.instruction_id AS instruction_id,
        c.collective_kind AS collective_kind,
        c.group_size AS group_size,
        CASE WHEN NOT c.is_done THEN c.payload_bytes END AS payload_bytes,
        CASE
            WHEN c.collective_kind IN ('all-gather', 'reduce-scatter', 'all-to-all', 'ragged-all-to-all')
            THEN CAST(c.group_size - 1 AS DOUBLE) / NULLIF(CAST(c.group_size AS DOUBLE), 0)
            WHEN c.collective_kind = 'all-reduce'
            THEN 2 * CAST(c.group_size - 1 AS DOUBLE) / NULLIF(CAST(c.group_size AS DOUBLE), 0)
            WHEN c.collective_kind IN ('collective-permute', 'collective-broadcast', 'send', 'recv') THEN 1e0
        END AS bus_factor,
        c.unknown_reason AS unknown_reason
    FROM main.hlo_collectives AS c
)
SELECT
    p.module_id AS module_id,
    p.instruction_id AS instruction_id,
    p.collective_kind AS collective_kind,
    p.group_size AS group_size,
    p.payload_bytes AS payload_bytes,
    CAST(p.payload_bytes AS DOUBLE) * p.bus_factor AS bus_bytes,
    p.unknown_reason AS unknown_reason
FROM _payloads AS p
