-- name: v1.collective_agreement
-- version: 1
-- grain: one row per pair of captures of a run and matched kernel that communicates
-- summary: Payload of each collective by its HLO, against that of the calls of RCCL behind the same kernel.
-- evidence: derived
-- columns:
--   run_id BIGINT: the run that both captures belong to
--   xspace_capture_id BIGINT: the XSpace capture
--   rocm_capture_id BIGINT: the capture of a ROCm profiler
--   device_ordinal BIGINT: ordinal of the device in the XSpace capture
--   step_num BIGINT: the step; NULL outside the steps
--   xspace_device_event_id BIGINT: the kernel in the XSpace capture
--   rocm_device_event_id BIGINT: the kernel in the ROCm capture
--   kernel_name VARCHAR: name in the XSpace
--   program_id BIGINT: the program; NULL where the event names none
--   hlo_op VARCHAR: HLO instruction; NULL where none is known
--   hlo_kind VARCHAR: all-reduce, ..., of the instruction; NULL where it is in no module at hand
--   hlo_payload_bytes BIGINT (bytes): of one execution, per device; NULL where unknown
--   rccl_kind VARCHAR: that of all calls of the kernel; send-recv for sends and receives; several; NULL where no
--     call is known
--   rccl_call_count BIGINT (count): calls that the kernel carries out; 0 where none is known
--   rccl_payload_bytes BIGINT (bytes): of the calls together; of sends and receives, what is sent, or where
--     nothing is, received; NULL where unknown
--   link_source VARCHAR: how the calls were found: correlation; name_and_time; NULL for none
--   agreement VARCHAR: equal; different; hlo_unknown; rccl_unknown (no call, or a payload that its arguments do
--     not tell)

WITH _calls AS (
    SELECT
        c.capture_id AS capture_id,
        c.device_event_id AS device_event_id,
        MIN(c.link_source) AS any_link_source,
        COUNT(*) AS call_count,
        MIN(CASE WHEN c.kind IN ('send', 'recv') THEN 'send-recv' ELSE COALESCE(c.kind, 'unknown') END)
            AS lowest_kind,
        MAX(CASE WHEN c.kind IN ('send', 'recv') THEN 'send-recv' ELSE COALESCE(c.kind, 'unknown') END)
            AS highest_kind,
        CAST(SUM(CASE WHEN c.kind = 'send' THEN 1 ELSE 0 END) AS BIGINT) AS sends,
        CAST(SUM(CASE WHEN c.kind = 'recv' THEN c.payload_bytes ELSE 0 END) AS BIGINT) AS received_bytes,
        CAST(SUM(CASE WHEN c.kind = 'recv' THEN 0 ELSE c.payload_bytes END) AS BIGINT) AS other_bytes,
        CAST(SUM(CASE WHEN c.payload_bytes IS NULL THEN 1 ELSE 0 END) AS BIGINT) AS unknown_count
    FROM v1.rccl_calls AS c
    WHERE c.device_event_id IS NOT NULL
        AND c.kernel_count = 1
        AND NOT c.is_nested
    GROUP BY
        c.capture_id,
        c.device_event_id
),
_compared AS (
    SELECT
        m.run_id AS run_id,
        m.xspace_capture_id AS xspace_capture_id,
        m.rocm_capture_id AS rocm_capture_id,
        m.device_ordinal AS device_ordinal,
        m.step_num AS step_num,
        m.xspace_device_event_id AS xspace_device_event_id,
        m.rocm_device_event_id AS rocm_device_event_id,
        m.kernel_name AS kernel_name,
        o.program_id AS program_id,
        o.hlo_op_name_id AS hlo_op_name_id,
        h.collective_kind AS hlo_kind,
        CASE WHEN NOT h.is_done THEN h.payload_bytes END AS hlo_payload_bytes,
        CASE
            WHEN c.lowest_kind = c.highest_kind THEN NULLIF(c.lowest_kind, 'unknown')
            WHEN c.lowest_kind IS NOT NULL THEN 'several'
        END AS rccl_kind,
        COALESCE(c.call_count, 0) AS rccl_call_count,
        CASE
            WHEN c.unknown_count > 0 THEN NULL
            WHEN c.sends > 0 THEN c.other_bytes
            ELSE c.other_bytes + c.received_bytes
        END AS rccl_payload_bytes,
        c.any_link_source AS link_source
    FROM v1.kernel_matches AS m
    INNER JOIN v1._event_ops AS o
        ON o.capture_id = m.xspace_capture_id
        AND o.device_event_id = m.xspace_device_event_id
        AND o.event_class = 'collective'
    LEFT JOIN v1._instructions AS i
        ON i.capture_id = o.capture_id
        AND i.program_id = o.program_id
        AND i.name_id = o.hlo_op_name_id
    LEFT JOIN main.hlo_collectives AS h
        ON h.module_id = i.module_id
        AND h.instruction_id = i.instruction_id
    LEFT JOIN _calls AS c
        ON c.capture_id = m.rocm_capture_id
        AND c.device_event_id = m.rocm_device_event_id
    WHERE m.match_status = 'matched'
)
SELECT
    c.run_id AS run_id,
    c.xspace_capture_id AS xspace_capture_id,
    c.rocm_capture_id AS rocm_capture_id,
    c.device_ordinal AS device_ordinal,
    c.step_num AS step_num,
    c.xspace_device_event_id AS xspace_device_event_id,
    c.rocm_device_event_id AS rocm_device_event_id,
    c.kernel_name AS kernel_name,
    c.program_id AS program_id,
    n.name AS hlo_op,
    c.hlo_kind AS hlo_kind,
    c.hlo_payload_bytes AS hlo_payload_bytes,
    c.rccl_kind AS rccl_kind,
    c.rccl_call_count AS rccl_call_count,
    c.rccl_payload_bytes AS rccl_payload_bytes,
    c.link_source AS link_source,
    CASE
        WHEN c.hlo_payload_bytes IS NULL THEN 'hlo_unknown'
        WHEN c.rccl_payload_bytes IS NULL THEN 'rccl_unknown'
        WHEN c.hlo_payload_bytes = c.rccl_payload_bytes THEN 'equal'
        ELSE 'different'
    END AS agreement
FROM _compared AS c
LEFT JOIN main.names AS n
    ON n.name_id = c.hlo_op_name_id
