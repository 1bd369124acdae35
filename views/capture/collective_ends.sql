-- name: v1._collective_ends
-- version: 1
-- grain: one row per capture of a run with several, step, HLO module, op, kernel and occurrence in the step
-- summary: When the collectives of each step ended, under keys that the processes of a run have in common.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   step_num BIGINT: the step
--   module_name VARCHAR: HLO module; program ids differ between processes
--   hlo_op_name_id BIGINT: names.name_id of the HLO instruction or command buffer
--   name_id BIGINT: names.name_id of the kernel or op
--   occurrence BIGINT: 1 for the first in the step on its device, in order of start
--   occurrences BIGINT (count): of the step, the same on each device that has any
--   end_ps BIGINT (ps): latest end of the occurrence among the devices
-- algorithm: A collective is over for a process when its last device is done. Where the devices of a process
--   differ in the number of occurrences, none of that step is used, since it is unknown which one is
--   missing. The start half of an asynchronous op, as TPU traces have it, ends early: it is left out.

WITH _collectives AS (
    SELECT
        o.capture_id AS capture_id,
        o.device_id AS device_id,
        o.device_event_id AS device_event_id,
        s.step_num AS step_num,
        COALESCE(n.name, m.module_name) AS module_name,
        o.hlo_op_name_id AS hlo_op_name_id,
        o.name_id AS name_id,
        o.start_ps AS start_ps,
        o.end_ps AS end_ps
    FROM v1._event_ops AS o
    INNER JOIN v1._sibling_captures AS j
        ON j.capture_id = o.capture_id
    INNER JOIN main.names AS k
        ON k.name_id = o.name_id
    INNER JOIN v1._event_steps AS s
        ON s.capture_id = o.capture_id
        AND s.device_event_id = o.device_event_id
    LEFT JOIN main.names AS n
        ON n.name_id = o.hlo_module_name_id
    LEFT JOIN main.hlo_programs AS p
        ON p.capture_id = o.capture_id
        AND p.program_id = o.program_id
    LEFT JOIN main.hlo_modules AS m
        ON m.module_id = p.module_id
    WHERE o.event_class = 'collective'
        AND NOT k.name LIKE '%-start%'
),
_numbered AS (
    SELECT
        c.capture_id AS capture_id,
        c.step_num AS step_num,
        c.module_name AS module_name,
        c.hlo_op_name_id AS hlo_op_name_id,
        c.name_id AS name_id,
        c.end_ps AS end_ps,
        ROW_NUMBER() OVER (
            PARTITION BY
                c.capture_id, c.device_id, c.step_num, c.module_name, c.hlo_op_name_id, c.name_id
            ORDER BY c.start_ps NULLS FIRST, c.device_event_id NULLS FIRST
        ) AS occurrence,
        COUNT(*) OVER (
            PARTITION BY
                c.capture_id, c.device_id, c.step_num, c.module_name, c.hlo_op_name_id, c.name_id
        ) AS occurrences
    FROM _collectives AS c
    WHERE c.module_name IS NOT NULL
        AND c.hlo_op_name_id IS NOT NULL
),
_compared AS (
    SELECT
        n.capture_id AS capture_id,
        n.step_num AS step_num,
        n.module_name AS module_name,
        n.hlo_op_name_id AS hlo_op_name_id,
        n.name_id AS name_id,
        n.end_ps AS device_end_ps,
        n.occurrence AS occurrence,
        MIN(n.occurrences) OVER (
            PARTITION BY n.capture_id, n.step_num, n.module_name, n.hlo_op_name_id, n.name_id
        ) AS fewest,
        MAX(n.occurrences) OVER (
            PARTITION BY n.capture_id, n.step_num, n.module_name, n.hlo_op_name_id, n.name_id
        ) AS most
    FROM _numbered AS n
)
SELECT
    c.capture_id AS capture_id,
    c.step_num AS step_num,
    c.module_name AS module_name,
    c.hlo_op_name_id AS hlo_op_name_id,
    c.name_id AS name_id,
    c.occurrence AS occurrence,
    c.most AS occurrences,
    MAX(c.device_end_ps) AS end_ps
FROM _compared AS c
WHERE c.fewest = c.most
GROUP BY
    c.capture_id,
    c.step_num,
    c.module_name,
    c.hlo_op_name_id,
    c.name_id,
    c.occurrence,
    c.most
