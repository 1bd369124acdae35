-- name: v1._step_parts
-- version: 1
-- grain: one row per run, phase, component, op and kernel in its device steps, and one for idle time
-- summary: What the device steps of a run consist of: the parts sum to their windows, exactly.
-- evidence: measured
-- columns:
--   run_id BIGINT: the run
--   phase VARCHAR: as in v1.attribution; idle for the time without device work
--   component_group VARCHAR: as in v1.attribution; '' of idle time
--   component VARCHAR: as in v1.attribution; '' of idle time
--   op_family VARCHAR: primitive that the op_name ends in, else the HLO opcode, else what the event is; '' of idle time
--   opcode VARCHAR: HLO opcode; '' where none is known
--   op VARCHAR: op_name, else the HLO instruction without the number in its name; '' where none is known
--   kernel VARCHAR: kernel, copy or op, without the number that XLA gives to a kernel of its own; '' of idle time
--   exclusive_ps BIGINT (ps): v1._exclusive_events, all device steps together; of idle time, that
--   sum_ps BIGINT (ps): durations in these steps; of idle time, that
--   event_count BIGINT (count): events in these steps; 0 of idle time
--   device_steps BIGINT (count): steps of devices that are summed up
-- algorithm: Names are those that stay when a program is compiled again. A fusion with several op_names has them all in
--   one; of these the last tells the primitive.

WITH _counted AS (
    SELECT
        x.run_id AS run_id,
        p.phase AS phase,
        p.component_group AS component_group,
        p.component AS component,
        o.op_name_id AS op_name_id,
        o.hlo_op_name_id AS hlo_op_name_id,
        o.opcode AS opcode,
        o.event_class AS event_class,
        o.name_id AS name_id,
        CAST(SUM(x.exclusive_ps) AS BIGINT) AS part_ps,
        CAST(SUM(x.sum_ps) AS BIGINT) AS duration_ps,
        COUNT(*) AS events
    FROM v1._exclusive_events AS x
    INNER JOIN v1._phased_events AS p
        ON p.capture_id = x.capture_id
        AND p.device_event_id = x.device_event_id
        AND COALESCE(p.step_num, -1) = COALESCE(x.step_num, -1)
        AND (p.step_num IS NULL) = (x.step_num IS NULL)
    INNER JOIN v1._event_ops AS o
        ON o.capture_id = x.capture_id
        AND o.device_event_id = x.device_event_id
    GROUP BY
        x.run_id,
        p.phase,
        p.component_group,
        p.component,
        o.op_name_id,
        o.hlo_op_name_id,
        o.opcode,
        o.event_class,
        o.name_id
),
_named AS (
    SELECT
        c.run_id AS run_id,
        c.phase AS phase,
        c.component_group AS component_group,
        c.component AS component,
        COALESCE(
            NULLIF(REGEXP_EXTRACT(n.name, '([^/;]+)$', 1), ''),
            c.opcode,
            c.event_class
        ) AS op_family,
        COALESCE(c.opcode, '') AS opcode,
        COALESCE(n.name, NULLIF(REGEXP_EXTRACT(h.name, '^(.*[^.0-9])[.0-9]*$', 1), ''), '') AS op,
        CASE
            WHEN c.opcode IS NULL OR c.opcode = 'custom-call' OR c.event_class <> 'compute' THEN k.name
            ELSE COALESCE(NULLIF(REGEXP_EXTRACT(k.name, '^([A-Za-z_][A-Za-z0-9_]*[A-Za-z])[._]*[0-9]+$', 1), ''), k.name)
        END AS kernel,
        c.part_ps AS part_ps,
        c.duration_ps AS duration_ps,
        c.events AS events
    FROM _counted AS c
    INNER JOIN main.names AS k
        ON k.name_id = c.name_id
    LEFT JOIN main.names AS n
        ON n.name_id = c.op_name_id
    LEFT JOIN main.names AS h
        ON h.name_id = c.hlo_op_name_id
),
_parts AS (
    SELECT
        n.run_id AS run_id,
        n.phase AS phase,
        n.component_group AS component_group,
        n.component AS component,
        n.op_family AS op_family,
        n.opcode AS opcode,
        n.op AS op,
        n.kernel AS kernel,
        CAST(SUM(n.part_ps) AS BIGINT) AS exclusive_ps,
        CAST(SUM(n.duration_ps) AS BIGINT) AS sum_ps,
        CAST(SUM(n.events) AS BIGINT) AS event_count
    FROM _named AS n
    GROUP BY
        n.run_id,
        n.phase,
        n.component_group,
        n.component,
        n.op_family,
        n.opcode,
        n.op,
        n.kernel
),
_windows AS (
    SELECT
        s.run_id AS run_id,
        COUNT(*) AS device_steps,
        CAST(SUM(t.idle_ps) AS BIGINT) AS rest_ps
    FROM v1._run_steps AS s
    INNER JOIN v1.device_time AS t
        ON t.capture_id = s.capture_id
        AND t.device_id = s.device_id
        AND COALESCE(t.step_num, -1) = COALESCE(s.step_num, -1)
        AND (t.step_num IS NULL) = (s.step_num IS NULL)
    GROUP BY s.run_id
)
SELECT
    p.run_id AS run_id,
    p.phase AS phase,
    p.component_group AS component_group,
    p.component AS component,
    p.op_family AS op_family,
    p.opcode AS opcode,
    p.op AS op,
    p.kernel AS kernel,
    p.exclusive_ps AS exclusive_ps,
    p.sum_ps AS sum_ps,
    p.event_count AS event_count,
    w.device_steps AS device_steps
FROM _parts AS p
INNER JOIN _windows AS w
    ON w.run_id = p.run_id
UNION ALL
SELECT
    w.run_id AS run_id,
    'idle' AS phase,
    '' AS component_group,
    '' AS component,
    '' AS op_family,
    '' AS opcode,
    '' AS op,
    '' AS kernel,
    w.rest_ps AS exclusive_ps,
    w.rest_ps AS sum_ps,
    CAST(0 AS BIGINT) AS event_count,
    w.device_steps AS device_steps
FROM _windows AS w
