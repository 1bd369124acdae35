-- name: v1._kernel_name_classes
-- version: 1
-- grain: one row per name in the warehouse
-- summary: Which event class the name of a device event tells, where it tells one.
-- evidence: derived
-- columns:
--   name_id BIGINT: names.name_id
--   event_class VARCHAR: collective or copy; NULL where the name tells neither
-- algorithm: Collectives are the kernels of NCCL, RCCL and MSCCL, and HLO ops named for a collective
--   opcode. Copies are the kernels that the ROCm runtime and CUDA graphs run in place of a copy, and HLO
--   copies.

SELECT
    n.name_id AS name_id,
    CASE
        WHEN REGEXP_MATCHES(n.name, '^(void )?(nccl|rccl|msccl)[A-Z_p].*$') THEN 'collective'
        WHEN REGEXP_MATCHES(
            n.name,
            '^%?(all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute|collective-broadcast|send|recv)(-start|-done)?([.](clone|remat[0-9]*|[0-9]+))*$'
        ) THEN 'collective'
        WHEN REGEXP_MATCHES(n.name, '^__amd_rocclr_(copy|fill)[A-Za-z0-9_]*([.]kd)?$') THEN 'copy'
        WHEN REGEXP_MATCHES(n.name, '^%?(async-)?copy(-start|-done)?([.](clone|remat[0-9]*|[0-9]+))*$') THEN 'copy'
        WHEN REGEXP_MATCHES(n.name, '^mem(cpy|set)[0-9]+(_[a-z]+)?$') THEN 'copy'
    END AS event_class
FROM main.names AS n
