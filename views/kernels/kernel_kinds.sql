-- name: v1._kernel_kinds
-- version: 1
-- grain: one row per name in the warehouse
-- summary: What kind of work a kernel does by its name, for libraries and runtimes.
-- evidence: derived
-- columns:
--   name_id BIGINT: names.name_id
--   made_name_id BIGINT: names.name_id of the same name without what a code object adds: .kd, [clone .kd]; its own
--     where no such name is stored
--   kernel_kind VARCHAR: memset, copy, collective, attention_forward, attention_backward, epilogue (of a library,
--     that ends the work of the kernel before it) or library; also library for a kernel that a compiler made

SELECT
    s.name_id AS name_id,
    COALESCE(m.name_id, s.name_id) AS made_name_id,
    CASE
        WHEN REGEXP_MATCHES(s.plain_name, '^([Mm]emset|__amd_rocclr_fill).*$') THEN 'memset'
        WHEN REGEXP_MATCHES(s.plain_name, '^([Mm]emcpy|__amd_rocclr_copy|Copy[A-Z][a-z]+To[A-Z]).*$') THEN 'copy'
        WHEN REGEXP_MATCHES(s.plain_name, '^(void )?(nccl|rccl|msccl).*$') THEN 'collective'
        WHEN REGEXP_MATCHES(
            s.plain_name, '^.*(bprop|dot_do_o|convert_dq|fmha_reduce_head|([fF]mha|[aA]ttn|[fF]lash).*[bB]wd).*$'
        ) THEN 'attention_backward'
        WHEN REGEXP_MATCHES(s.plain_name, '^.*(fprop|([fF]mha|[aA]ttn|[fF]lash).*[fF]wd).*$')
            THEN 'attention_forward'
        WHEN REGEXP_MATCHES(s.plain_name, '^.*(splitK|SplitK|split_k|PostGSU).*$') THEN 'epilogue'
        ELSE 'library'
    END AS kernel_kind
FROM v1._stable_kernel_names AS s
LEFT JOIN main.names AS m
    ON m.name = s.plain_name
