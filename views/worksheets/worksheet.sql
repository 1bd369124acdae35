-- name: v1.worksheet
-- version: 1
-- grain: one row per capture (so per process) and component group, on the critical device of the capture
-- summary: The component ledger: what each part of the model is in the program, what it should and does compute and
--   move in an update, and how long that takes.
-- evidence: derived
-- columns:
--   run_id BIGINT: the run
--   capture_id BIGINT: the capture
--   device_id BIGINT: the critical device: of those of the capture, the one whose steps take longest together, or
--     without steps, which has most work
--   device_ordinal BIGINT: its ordinal on its host
--   updates BIGINT (count): steps of the device, over which all amounts are divided; NULL for none: the amounts are
--     those of the capture
--   component VARCHAR: component group, as in v1.component_time
--   scopes VARCHAR: named scopes of it, up to three, with most time first
--   scope_count BIGINT (count): named scopes of it
--   hlo_ops VARCHAR: HLO ops of it, up to three, with most time first
--   op_count BIGINT (count): HLO ops of it
--   main_shapes VARCHAR: local shapes of the first of hlo_ops: result <- operands, up to three
--   dtype VARCHAR: data type in which most of the FLOPs are computed; NULL without FLOPs
--   partition_count BIGINT (count): devices that the program of the first op is partitioned over
--   executions DOUBLE (count): executions of the first of hlo_ops in an update
--   union_ps DOUBLE (ps): time of an update with any of its events
--   communication_ps DOUBLE (ps): part of union_ps with a collective of it
--   share_ratio DOUBLE (ratio): union_ps over the window of the device; where streams overlap or the device idles, the
--     shares do not add up to 1
--   useful_flops DOUBLE (count): of one device, by the declared model; NULL for what it does not declare
--   executed_flops DOUBLE (count): of one device, by the compiler's account and the formulas of library calls
--   replayed_flops DOUBLE (count): part of executed_flops in rematerialized forward work
--   executed_useful_ratio DOUBLE (ratio): executed_flops over useful_flops: above 1 by replay, padding and
--     capacity, and what the model does not count
--   hbm_bytes DOUBLE (bytes): by XLA's account, of each op no more than memory moves in its time
--   hbm_bytes_evidence VARCHAR: compiler
--   communication_bytes DOUBLE (bytes): that the device sends in collectives of it
--   intensity_flops_per_byte DOUBLE (1/bytes): executed_flops over hbm_bytes
--   roof_ps DOUBLE (ps): least time of executed_flops and hbm_bytes, each op at the peaks of its types
--   efficiency_ratio DOUBLE (ratio): roof_ps over the time with any event of it that is no collective; NULL above 1
--   network_efficiency_ratio DOUBLE (ratio): least time of communication_bytes over communication_ps; NULL above 1
--   provenance VARCHAR: where each of these comes from
--   union_ms DOUBLE (ms): union_ps in milliseconds
-- algorithm: Amounts of the programs that are the step (v1._step_executables). The least time of a group is the sum
--   over its ops, each bound by compute or memory, not that of the group as a whole. Components of the declared model
--   belong to groups: both attention terms to Attention, routed and shared experts to Expert MLP. Bytes by counters
--   are those of v1.kernel_roofline, by kernel and HLO op.

WITH _events AS (
    SELECT
        p.capture_id AS capture_id,
        p.device_id AS device_id,
        p.step_num AS step_num,
        p.component_group AS component_group,
        p.phase AS phase,
        p.start_ps AS start_ps,
        p.end_ps AS end_ps
    FROM v1._phased_events AS p
    INNER JOIN v1._critical_devices AS c
        ON c.capture_id = p.capture_id
        AND c.device_id = p.device_id
        AND (c.updates IS NULL) = (p.step_num IS NULL)
),
_times AS (
    SELECT
        u.capture_id AS capture_id,
        u.key_1 AS component_group,
        CAST(SUM(u.union_ps) AS DOUBLE) AS any_ps,
        CAST(SUM(u.union_1_ps) AS DOUBLE) AS working_ps,
        CAST(SUM(u.union_2_ps) AS DOUBLE) AS sending_ps
    FROM v1.interval_exclusive(
        '_events', CASE WHEN phase = 'communication' THEN 2 ELSE 1 END, component_group, step_num
    ) AS u
    GROUP BY
        u.capture_id,
        u.key_1
),
_declared AS (
    SELECT
        m.run_id AS run_id,
        v.component_group AS component_group,
        CAST(SUM(m.useful_flops) AS DOUBLE) AS group_flops
    FROM v1.model_flops AS m
    INNER JOIN (
        VALUES
            ('attention_projections', 'Attention'), ('attention_core', 'Attention'), ('mlp', 'MLP'),
            ('router', 'Router'), ('experts_selected', 'Expert MLP'), ('shared_experts', 'Expert MLP'),
            ('lm_head', 'LM head')
    ) AS v (component, component_group)
        ON v.component = m.component
    GROUP BY
        m.run_id,
        v.component_group
),
_updates AS (
    SELECT
        p.run_id AS run_id,
        t.capture_id AS capture_id,
        c.device_id AS device_id,
        c.updates AS updates,
        c.windows_ps AS windows_ps,
        c.divisor AS divisor,
        t.component_group AS component_group,
        t.any_ps / NULLIF(c.divisor, 0) AS union_ps,
        t.working_ps / NULLIF(c.divisor, 0) AS working_ps,
        t.sending_ps / NULLIF(c.divisor, 0) AS sending_ps,
        m.group_flops / NULLIF(CAST(q.devices AS DOUBLE), 0) AS useful_flops,
        w.executed_flops / NULLIF(c.divisor, 0) AS executed_flops,
        w.replayed_flops / NULLIF(c.divisor, 0) AS replayed_flops,
        w.hbm_bytes / NULLIF(c.divisor, 0) AS hbm_bytes,
        w.sent_bytes / NULLIF(c.divisor, 0) AS sent_bytes,
        w.roof_ps / NULLIF(c.divisor, 0) AS roof_ps,
        w.sending_roof_ps / NULLIF(c.divisor, 0) AS sending_roof_ps,
        w.dtype AS dtype
    FROM _times AS t
    INNER JOIN v1._critical_devices AS c
        ON c.capture_id = t.capture_id
    INNER JOIN main.captures AS p
        ON p.capture_id = t.capture_id
    LEFT JOIN v1._component_work AS w
        ON w.capture_id = t.capture_id
        AND w.component_group = t.component_group
    LEFT JOIN v1.model_dimensions AS q
        ON q.run_id = p.run_id
    LEFT JOIN _declared AS m
        ON m.run_id = p.run_id
        AND m.component_group = t.component_group
)
SELECT
    u.run_id AS run_id,
    u.capture_id AS capture_id,
    u.device_id AS device_id,
    d.device_ordinal AS device_ordinal,
    u.updates AS updates,
    u.component_group AS component,
    l.scopes AS scopes,
    l.scope_count AS scope_count,
    l.hlo_ops AS hlo_ops,
    l.op_count AS op_count,
    l.main_shapes AS main_shapes,
    u.dtype AS dtype,
    l.partition_count AS partition_count,
    CAST(l.executions AS DOUBLE) / NULLIF(u.divisor, 0) AS executions,
    u.union_ps AS union_ps,
    u.sending_ps AS communication_ps,
    u.union_ps * u.divisor / NULLIF(u.windows_ps, 0) AS share_ratio,
    u.useful_flops AS useful_flops,
    u.executed_flops AS executed_flops,
    u.replayed_flops AS replayed_flops,
    u.executed_flops / NULLIF(u.useful_flops, 0) AS executed_useful_ratio,
    u.hbm_bytes AS hbm_bytes,
    CASE WHEN u.hbm_bytes IS NOT NULL THEN 'compiler' END AS hbm_bytes_evidence,
    u.sent_bytes AS communication_bytes,
    u.executed_flops / NULLIF(u.hbm_bytes, 0) AS intensity_flops_per_byte,
    u.roof_ps AS roof_ps,
    CASE WHEN u.roof_ps <= u.working_ps THEN u.roof_ps / NULLIF(u.working_ps, 0) END AS efficiency_ratio,
    CASE WHEN u.sending_roof_ps <= u.sending_ps THEN u.sending_roof_ps / NULLIF(u.sending_ps, 0) END
        AS network_efficiency_ratio,
    'time: trace; useful FLOPs: declared model; executed FLOPs and bytes: optimized HLO, library formulas; '
    || 'communication bytes: HLO shapes and replica groups; peaks: v1.device_peaks' AS provenance,
    u.union_ps / 1e9 AS union_ms
FROM _updates AS u
INNER JOIN main.devices AS d
    ON d.device_id = u.device_id
LEFT JOIN v1._component_labels AS l
    ON l.capture_id = u.capture_id
    AND l.component_group = u.component_group
