-- name: v1.step_payloads
-- version: 1
-- grain: one row per pair of captures of a run, step and kind of communication
-- summary: Payload of all collectives of a step by their HLO, against that of all calls of RCCL in it.
-- evidence: derived
-- columns:
--   run_id BIGINT: the run that both captures belong to
--   xspace_capture_id BIGINT: the XSpace capture
--   rocm_capture_id BIGINT: the capture of a ROCm profiler
--   step_num BIGINT: the step, by its number in both
--   kind VARCHAR: all-reduce, all-gather, reduce-scatter, ...; exchange for what sends and receives can carry
--     out: all-to-all, ragged-all-to-all, collective-permute, send; unknown
--   hlo_executions DOUBLE (count): executions of HLO collectives, on all devices
--   hlo_payload_bytes DOUBLE (bytes): their payload; NULL where one is unknown
--   rccl_call_count BIGINT (count): calls of RCCL, without the nested and the receives
--   rccl_payload_bytes DOUBLE (bytes): their payload; NULL where one is unknown
--   rccl_ratio DOUBLE (ratio): rccl_payload_bytes to hlo_payload_bytes
--   agreement VARCHAR: equal; different; hlo_unknown; rccl_unknown; only_hlo (no call of RCCL); only_rccl (no
--     collective in HLO at hand)
-- algorithm: What a send sends its receive receives: the receives are left out on both sides. An execution of an
--   op may be several kernels: each counts as its part. Both captures must be of the same devices.

WITH _pairs AS (
    SELECT DISTINCT
        m.run_id AS run_id,
        m.xspace_capture_id AS xspace_capture_id,
        m.rocm_capture_id AS rocm_capture_id
    FROM v1._matching_devices AS m
),
_rows AS (
    SELECT
        p.run_id AS run_id,
        p.xspace_capture_id AS xspace_capture_id,
        p.rocm_capture_id AS rocm_capture_id,
        s.step_num AS step_num,
        h.collective_kind AS kind,
        0 AS is_rccl,
        CAST(r.executions AS DOUBLE) / NULLIF(CAST(r.kernel_count AS DOUBLE), 0) AS part,
        CAST(h.payload_bytes AS DOUBLE) AS payload_bytes
    FROM _pairs AS p
    INNER JOIN v1._event_ops AS o
        ON o.capture_id = p.xspace_capture_id
        AND o.event_class = 'collective'
    INNER JOIN v1._event_steps AS s
        ON s.capture_id = o.capture_id
        AND s.device_event_id = o.device_event_id
    INNER JOIN v1._op_runs AS r
        ON r.capture_id = o.capture_id
        AND r.device_id = o.device_id
        AND r.program_id = o.program_id
        AND r.hlo_op_name_id = o.hlo_op_name_id
    INNER JOIN main.hlo_collectives AS h
        ON h.module_id = r.module_id
        AND h.instruction_id = r.instruction_id
        AND NOT h.is_done
    UNION ALL
    SELECT
        p.run_id AS run_id,
        p.xspace_capture_id AS xspace_capture_id,
        p.rocm_capture_id AS rocm_capture_id,
        c.step_num AS step_num,
        c.kind AS kind,
        1 AS is_rccl,
        1e0 AS part,
        CAST(c.payload_bytes AS DOUBLE) AS payload_bytes
    FROM _pairs AS p
    INNER JOIN v1.rccl_calls AS c
        ON c.capture_id = p.rocm_capture_id
    WHERE c.step_num IS NOT NULL
        AND NOT c.is_nested
),
_kinds AS (
    SELECT
        r.run_id AS run_id,
        r.xspace_capture_id AS xspace_capture_id,
        r.rocm_capture_id AS rocm_capture_id,
        r.step_num AS step_num,
        CASE
            WHEN r.kind IN ('all-to-all', 'ragged-all-to-all', 'collective-permute', 'send') THEN 'exchange'
            ELSE COALESCE(r.kind, 'unknown')
        END AS kind,
        r.is_rccl AS is_rccl,
        r.part AS part,
        r.payload_bytes AS payload_bytes
    FROM _rows AS r
    WHERE COALESCE(r.kind, '') <> 'recv'
),
_sums AS (
    SELECT
        k.run_id AS run_id,
        k.xspace_capture_id AS xspace_capture_id,
        k.rocm_capture_id AS rocm_capture_id,
        k.step_num AS step_num,
        k.kind AS kind,
        CAST(SUM(CASE WHEN k.is_rccl = 0 THEN k.part ELSE 0e0 END) AS DOUBLE) AS hlo_executions,
        CAST(SUM(CASE WHEN k.is_rccl = 0 THEN k.part * k.payload_bytes END) AS DOUBLE) AS hlo_sum,
        CAST(SUM(CASE WHEN k.is_rccl = 0 THEN 1 ELSE 0 END) AS BIGINT) AS hlo_count,
        CAST(SUM(CASE WHEN k.is_rccl = 0 AND k.payload_bytes IS NULL THEN 1 ELSE 0 END) AS BIGINT)
            AS hlo_unknown,
        CAST(SUM(CASE WHEN k.is_rccl = 1 THEN k.payload_bytes END) AS DOUBLE) AS rccl_sum,
        CAST(SUM(k.is_rccl) AS BIGINT) AS rccl_count,
        CAST(SUM(CASE WHEN k.is_rccl = 1 AND k.payload_bytes IS NULL THEN 1 ELSE 0 END) AS BIGINT)
            AS rccl_unknown
    FROM _kinds AS k
    GROUP BY
        k.run_id,
        k.xspace_capture_id,
        k.rocm_capture_id,
        k.step_num,
        k.kind
)
SELECT
    s.run_id AS run_id,
    s.xspace_capture_id AS xspace_capture_id,
    s.rocm_capture_id AS rocm_capture_id,
    s.step_num AS step_num,
    s.kind AS kind,
    s.hlo_executions AS hlo_executions,
    CASE WHEN s.hlo_unknown = 0 THEN s.hlo_sum END AS hlo_payload_bytes,
    s.rccl_count AS rccl_call_count,
    CASE WHEN s.rccl_unknown = 0 THEN s.rccl_sum END AS rccl_payload_bytes,
    CASE WHEN s.hlo_unknown = 0 AND s.rccl_unknown = 0 THEN s.rccl_sum / NULLIF(s.hlo_sum, 0) END
        AS rccl_ratio,
    CASE
        WHEN s.rccl_count = 0 THEN 'only_hlo'
        WHEN s.hlo_count = 0 THEN 'only_rccl'
        WHEN s.hlo_unknown > 0 THEN 'hlo_unknown'
        WHEN s.rccl_unknown > 0 THEN 'rccl_unknown'
        -- Parts of executions may not add up to a whole number in doubles.
        WHEN ABS(s.hlo_sum - s.rccl_sum) < 5e-1 THEN 'equal'
        ELSE 'different'
    END AS agreement
FROM _sums AS s
