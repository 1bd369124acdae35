-- name: v1.reconciliation
-- version: 1
-- grain: one row per capture, device, step and ledger, and the same for the whole capture with step_num NULL
-- summary: Whether every ledger of device time adds up, to the picosecond, and what is unattributed.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   device_ordinal BIGINT: ordinal of the device on its host
--   step_num BIGINT: the step; NULL for the whole capture
--   ledger VARCHAR: window (compute, exposed communication, exposed copies and idle time make the window);
--     classes (the unions of compute and communication without their overlap, and exposed copies, make the busy
--     time); idle_gaps (the gaps make the idle time); phases (the sums of the phases make the summed durations
--     of the events); components (within each phase, the sums of the components make that of the phase); steps
--     (only of the whole capture: the events of the steps and those outside make all events, by summed
--     duration); unattributed (expected to be 0: summed duration without a phase)
--   expected_ps BIGINT (ps): what the parts should make
--   actual_ps BIGINT (ps): what they make
--   difference_ps BIGINT (ps): actual_ps - expected_ps; of components, the sizes of the differences within
--     phases together
--   is_exact BOOLEAN: a difference is an error; not so of unattributed, which is what the rules do not place
-- algorithm: Reads v1.device_time, the gaps of v1.idle_gaps, v1.phase_time and v1.component_time once each.

WITH _device_ledgers AS (
    SELECT v.ledger AS ledger
    FROM (VALUES ('window'), ('classes'), ('idle_gaps')) AS v (ledger)
),
_phase_ledgers AS (
    SELECT v.ledger AS ledger
    FROM (VALUES ('phases'), ('components'), ('unattributed')) AS v (ledger)
),
_event_ledgers AS (
    SELECT v.ledger AS ledger
    FROM (VALUES ('phases'), ('steps')) AS v (ledger)
),
_gap_sums AS (
    SELECT
        g.capture_id AS capture_id,
        g.device_id AS device_id,
        g.step_num AS step_num,
        CAST(SUM(g.end_ps - g.start_ps) AS BIGINT) AS gaps_ps
    FROM v1._idle_spans AS g
    GROUP BY
        g.capture_id,
        g.device_id,
        g.step_num
),
_event_sums AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        CAST(SUM(e.end_ps - e.start_ps) AS BIGINT) AS events_ps
    FROM main.device_events AS e
    WHERE e.role = 'work'
    GROUP BY
        e.capture_id,
        e.device_id
),
_step_sums AS (
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        s.step_num AS step_num,
        CAST(SUM(e.end_ps - e.start_ps) AS BIGINT) AS events_ps,
        CAST(SUM(s.end_ps - s.start_ps) AS BIGINT) AS inside_ps
    FROM main.device_events AS e
    LEFT JOIN v1._event_steps AS s
        ON s.capture_id = e.capture_id
        AND s.device_event_id = e.device_event_id
    WHERE e.role = 'work'
    GROUP BY
        e.capture_id,
        e.device_id,
        s.step_num
),
_amounts AS (
    SELECT
        t.capture_id AS capture_id,
        t.device_id AS device_id,
        t.step_num AS step_num,
        l.ledger AS ledger,
        CAST(NULL AS VARCHAR) AS phase,
        CASE
            WHEN l.ledger = 'window' THEN t.window_ps
            WHEN l.ledger = 'classes' THEN t.busy_ps
            ELSE t.idle_ps
        END AS planned_ps,
        CASE
            WHEN l.ledger = 'window'
            THEN t.compute_ps + t.exposed_communication_ps + t.exposed_copy_ps + t.idle_ps
            WHEN l.ledger = 'classes'
            THEN t.compute_ps + t.communication_ps - t.overlap_ps + t.exposed_copy_ps
            ELSE 0
        END AS found_ps
    FROM v1.device_time AS t
    CROSS JOIN _device_ledgers AS l
    UNION ALL
    SELECT
        g.capture_id AS capture_id,
        g.device_id AS device_id,
        g.step_num AS step_num,
        'idle_gaps' AS ledger,
        CAST(NULL AS VARCHAR) AS phase,
        CAST(0 AS BIGINT) AS planned_ps,
        g.gaps_ps AS found_ps
    FROM _gap_sums AS g
    UNION ALL
    SELECT
        p.capture_id AS capture_id,
        p.device_id AS device_id,
        p.step_num AS step_num,
        l.ledger AS ledger,
        CASE WHEN l.ledger = 'components' THEN p.phase END AS phase,
        CASE WHEN l.ledger = 'components' THEN p.sum_ps ELSE 0 END AS planned_ps,
        CASE
            WHEN l.ledger = 'phases' OR l.ledger = 'unattributed' AND p.phase = 'unattributed' THEN p.sum_ps
            ELSE 0
        END AS found_ps
    FROM v1.phase_time AS p
    CROSS JOIN _phase_ledgers AS l
    UNION ALL
    SELECT
        c.capture_id AS capture_id,
        c.device_id AS device_id,
        c.step_num AS step_num,
        'components' AS ledger,
        c.phase AS phase,
        CAST(0 AS BIGINT) AS planned_ps,
        c.sum_ps AS found_ps
    FROM v1.component_time AS c
    UNION ALL
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        CAST(NULL AS BIGINT) AS step_num,
        l.ledger AS ledger,
        CAST(NULL AS VARCHAR) AS phase,
        e.events_ps AS planned_ps,
        CAST(0 AS BIGINT) AS found_ps
    FROM _event_sums AS e
    CROSS JOIN _event_ledgers AS l
    UNION ALL
    SELECT
        e.capture_id AS capture_id,
        e.device_id AS device_id,
        CASE WHEN l.ledger = 'phases' THEN e.step_num END AS step_num,
        l.ledger AS ledger,
        CAST(NULL AS VARCHAR) AS phase,
        CASE WHEN l.ledger = 'phases' THEN e.inside_ps ELSE 0 END AS planned_ps,
        CASE WHEN l.ledger = 'phases' THEN 0 ELSE e.events_ps END AS found_ps
    FROM _step_sums AS e
    CROSS JOIN _event_ledgers AS l
    WHERE l.ledger = 'steps'
        OR e.step_num IS NOT NULL
),
_sums AS (
    SELECT
        a.capture_id AS capture_id,
        a.device_id AS device_id,
        a.step_num AS step_num,
        a.ledger AS ledger,
        a.phase AS phase,
        CAST(SUM(a.planned_ps) AS BIGINT) AS planned_sum_ps,
        CAST(SUM(a.found_ps) AS BIGINT) AS found_sum_ps
    FROM _amounts AS a
    GROUP BY
        a.capture_id,
        a.device_id,
        a.step_num,
        a.ledger,
        a.phase
),
_ledgers AS (
    SELECT
        s.capture_id AS capture_id,
        s.device_id AS device_id,
        s.step_num AS step_num,
        s.ledger AS ledger,
        CAST(SUM(s.planned_sum_ps) AS BIGINT) AS expected_ps,
        CAST(SUM(s.found_sum_ps) AS BIGINT) AS actual_ps,
        CAST(SUM(CASE
            WHEN s.ledger = 'components' THEN ABS(s.found_sum_ps - s.planned_sum_ps)
            ELSE s.found_sum_ps - s.planned_sum_ps
        END) AS BIGINT) AS difference_ps
    FROM _sums AS s
    GROUP BY
        s.capture_id,
        s.device_id,
        s.step_num,
        s.ledger
)
SELECT
    l.capture_id AS capture_id,
    l.device_id AS device_id,
    d.device_ordinal AS device_ordinal,
    l.step_num AS step_num,
    l.ledger AS ledger,
    l.expected_ps AS expected_ps,
    l.actual_ps AS actual_ps,
    l.difference_ps AS difference_ps,
    l.ledger <> 'unattributed' AS is_exact
FROM _ledgers AS l
INNER JOIN main.devices AS d
    ON d.device_id = l.device_id
