-- name: v1.collective_skew
-- version: 1
-- grain: one row per device event that communicates
-- summary: How long each device waited in each collective for the last one of its group in the same capture.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   device_ordinal BIGINT: ordinal of the device on its host
--   step_num BIGINT: the step; NULL outside the steps
--   device_event_id BIGINT: the event
--   kernel_name VARCHAR: name of the kernel or op
--   program_id BIGINT: program that ran it; NULL outside a program
--   hlo_op VARCHAR: HLO instruction; NULL where none is known
--   kind VARCHAR: all-reduce, all-gather, ...; NULL where the instruction is not in a module at hand
--   component VARCHAR: component, as in v1.attribution
--   occurrence BIGINT: which execution in the step, as in v1.collective_executions
--   group_index BIGINT: group of the device, as in main.hlo_replica_groups; NULL where unknown
--   device_count BIGINT (count): devices of the group that this capture has; NULL where not comparable
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end
--   wait_ps BIGINT (ps): from its start to that of the last device of the group, or to its own end if that is
--     earlier; NULL where not comparable
--   start_skew_ps BIGINT (ps): latest start less earliest start in the group; NULL where not comparable
--   end_skew_ps BIGINT (ps): latest end less earliest end; small where the devices are rightly compared, except
--     for kinds that not all leave together; NULL where not comparable
--   is_last BOOLEAN: no device of the group started later, so that the others waited for this one; NULL where not
--     comparable
--   wait_us DOUBLE (us): wait_ps in microseconds
-- algorithm: The n-th execution of an op in a step is the same one on each device, if all that have it have it
--   equally often in the step. Where one group holds all devices of the module, all are compared. Of several,
--   member k is the k-th device of the capture by ordinal, as long as there are as many members as devices that
--   ran it; that is how JAX numbers them unless its mesh reorders them, which end_skew_ps shows. Not
--   comparable are permutations, groups that are not known and executions that no other device has. Devices of
--   other captures have other clocks: see v1.clock_alignment.

WITH _executions AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        e.device_ordinal AS device_ordinal,
        e.step_num AS step_num,
        e.device_event_id AS device_event_id,
        e.kernel_name AS kernel_name,
        e.program_id AS program_id,
        e.hlo_op AS hlo_op,
        e.kind AS kind,
        e.component AS component,
        e.module_id AS module_id,
        e.group_set_id AS group_set_id,
        e.occurrence AS occurrence,
        e.start_ps AS start_ps,
        e.end_ps AS end_ps,
        COUNT(*) OVER (
            PARTITION BY e.capture_id, e.step_num, e.program_id, e.hlo_op, e.kernel_name, e.device_id
        ) AS device_executions
    FROM v1.collective_executions AS e
),
_placed AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        e.device_ordinal AS device_ordinal,
        e.step_num AS step_num,
        e.device_event_id AS device_event_id,
        e.kernel_name AS kernel_name,
        e.program_id AS program_id,
        e.hlo_op AS hlo_op,
        e.kind AS kind,
        e.component AS component,
        e.module_id AS module_id,
        e.group_set_id AS group_set_id,
        e.occurrence AS occurrence,
        e.start_ps AS start_ps,
        e.end_ps AS end_ps,
        MIN(e.device_executions) OVER (
            PARTITION BY e.capture_id, e.step_num, e.program_id, e.hlo_op, e.kernel_name
        ) AS fewest,
        MAX(e.device_executions) OVER (
            PARTITION BY e.capture_id, e.step_num, e.program_id, e.hlo_op, e.kernel_name
        ) AS most,
        ROW_NUMBER() OVER (
            PARTITION BY e.capture_id, e.step_num, e.program_id, e.hlo_op, e.kernel_name, e.occurrence
            ORDER BY e.device_ordinal NULLS FIRST, e.device_id NULLS FIRST
        ) - 1 AS position,
        COUNT(*) OVER (
            PARTITION BY e.capture_id, e.step_num, e.program_id, e.hlo_op, e.kernel_name, e.occurrence
        ) AS devices
    FROM _executions AS e
),
_group_sets AS (
    SELECT
        g.module_id AS module_id,
        g.group_set_id AS group_set_id,
        COUNT(DISTINCT g.group_index) AS group_count,
        COUNT(*) AS member_count
    FROM main.hlo_replica_groups AS g
    GROUP BY
        g.module_id,
        g.group_set_id
),
_grouped AS (
    SELECT
        p.capture_id AS capture_id,
        p.device_id AS device_id,
        p.device_ordinal AS device_ordinal,
        p.step_num AS step_num,
        p.device_event_id AS device_event_id,
        p.kernel_name AS kernel_name,
        p.program_id AS program_id,
        p.hlo_op AS hlo_op,
        p.kind AS kind,
        p.component AS component,
        p.occurrence AS occurrence,
        p.start_ps AS start_ps,
        p.end_ps AS end_ps,
        CASE
            WHEN p.fewest < p.most OR p.kind IN ('collective-permute', 'send', 'recv') THEN NULL
            WHEN s.group_count = 1 THEN 0
            ELSE g.group_index
        END AS group_index
    FROM _placed AS p
    LEFT JOIN _group_sets AS s
        ON s.module_id = p.module_id
        AND s.group_set_id = p.group_set_id
    LEFT JOIN main.hlo_replica_groups AS g
        ON g.module_id = p.module_id
        AND g.group_set_id = p.group_set_id
        AND g.member_id = p.position
        AND s.member_count = p.devices
        AND s.group_count > 1
        AND NOT p.kind IN ('collective-permute', 'send', 'recv')
),
_compared AS (
    SELECT
        g.capture_id AS capture_id,
        g.device_id AS device_id,
        g.device_ordinal AS device_ordinal,
        g.step_num AS step_num,
        g.device_event_id AS device_event_id,
        g.kernel_name AS kernel_name,
        g.program_id AS program_id,
        g.hlo_op AS hlo_op,
        g.kind AS kind,
        g.component AS component,
        g.occurrence AS occurrence,
        g.group_index AS group_index,
        g.start_ps AS start_ps,
        g.end_ps AS end_ps,
        COUNT(*) OVER (
            PARTITION BY
                g.capture_id, g.step_num, g.program_id, g.hlo_op, g.kernel_name, g.occurrence, g.group_index
        ) AS devices,
        MIN(g.start_ps) OVER (
            PARTITION BY
                g.capture_id, g.step_num, g.program_id, g.hlo_op, g.kernel_name, g.occurrence, g.group_index
        ) AS first_start_ps,
        MAX(g.start_ps) OVER (
            PARTITION BY
                g.capture_id, g.step_num, g.program_id, g.hlo_op, g.kernel_name, g.occurrence, g.group_index
        ) AS last_start_ps,
        MIN(g.end_ps) OVER (
            PARTITION BY
                g.capture_id, g.step_num, g.program_id, g.hlo_op, g.kernel_name, g.occurrence, g.group_index
        ) AS first_end_ps,
        MAX(g.end_ps) OVER (
            PARTITION BY
                g.capture_id, g.step_num, g.program_id, g.hlo_op, g.kernel_name, g.occurrence, g.group_index
        ) AS last_end_ps
    FROM _grouped AS g
),
_skews AS (
    SELECT
        c.capture_id AS capture_id,
        c.device_id AS device_id,
        c.device_ordinal AS device_ordinal,
        c.step_num AS step_num,
        c.device_event_id AS device_event_id,
        c.kernel_name AS kernel_name,
        c.program_id AS program_id,
        c.hlo_op AS hlo_op,
        c.kind AS kind,
        c.component AS component,
        c.occurrence AS occurrence,
        c.group_index AS group_index,
        c.devices AS devices,
        c.start_ps AS start_ps,
        c.end_ps AS end_ps,
        c.first_start_ps AS first_start_ps,
        c.last_start_ps AS last_start_ps,
        c.first_end_ps AS first_end_ps,
        c.last_end_ps AS last_end_ps,
        c.group_index IS NOT NULL AND c.devices > 1 AS is_comparable
    FROM _compared AS c
)
SELECT
    s.capture_id AS capture_id,
    s.device_id AS device_id,
    s.device_ordinal AS device_ordinal,
    s.step_num AS step_num,
    s.device_event_id AS device_event_id,
    s.kernel_name AS kernel_name,
    s.program_id AS program_id,
    s.hlo_op AS hlo_op,
    s.kind AS kind,
    s.component AS component,
    s.occurrence AS occurrence,
    s.group_index AS group_index,
    CASE WHEN s.is_comparable THEN s.devices END AS device_count,
    s.start_ps AS start_ps,
    s.end_ps AS end_ps,
    CASE
        WHEN s.is_comparable AND s.last_start_ps < s.end_ps THEN s.last_start_ps - s.start_ps
        WHEN s.is_comparable THEN s.end_ps - s.start_ps
    END AS wait_ps,
    CASE WHEN s.is_comparable THEN s.last_start_ps - s.first_start_ps END AS start_skew_ps,
    CASE WHEN s.is_comparable THEN s.last_end_ps - s.first_end_ps END AS end_skew_ps,
    CASE WHEN s.is_comparable THEN s.start_ps = s.last_start_ps END AS is_last,
    CASE
        WHEN s.is_comparable AND s.last_start_ps < s.end_ps
        THEN CAST(s.last_start_ps - s.start_ps AS DOUBLE) / 1e6
        WHEN s.is_comparable THEN CAST(s.end_ps - s.start_ps AS DOUBLE) / 1e6
    END AS wait_us
FROM _skews AS s
