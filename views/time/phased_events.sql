-- name: v1._phased_events
-- version: 1
-- grain: one row per device event and scope: its step, and its whole capture (step_num NULL)
-- summary: Phase and component of device events, once for their step and once for the capture.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   step_num BIGINT: the step; NULL for the whole capture
--   device_event_id BIGINT: the event
--   phase VARCHAR: communication, remat, backward, forward, update, what a user's rule gives, or unattributed
--   launch_phase VARCHAR: the same, but of communication the phase that its op_name tells
--   component VARCHAR: deepest named scope, or unattributed
--   component_group VARCHAR: what the rules make of the component, or unattributed
--   start_ps BIGINT (ps): start
--   end_ps BIGINT (ps): end
-- algorithm: As in v1.attribution.

WITH _classes AS (
    SELECT
        o.rule_scope AS rule_scope,
        o.op_name_id AS op_name_id,
        o.phase AS phase,
        o.component AS component,
        o.component_group AS component_group,
        o.is_loop_scope AS is_loop_scope
    FROM main.op_name_classes AS o
)
SELECT
    e.capture_id AS capture_id,
    e.device_id AS device_id,
    e.step_num AS step_num,
    e.device_event_id AS device_event_id,
    CASE
        WHEN e.event_class = 'collective' THEN 'communication'
        ELSE COALESCE(c.phase, 'unattributed')
    END AS phase,
    COALESCE(c.phase, 'unattributed') AS launch_phase,
    COALESCE(n.component, c.component, 'unattributed') AS component,
    COALESCE(n.component_group, c.component_group, 'unattributed') AS component_group,
    e.start_ps AS start_ps,
    e.end_ps AS end_ps
FROM v1._scoped_events AS e
LEFT JOIN v1._capture_rule_scopes AS r
    ON r.capture_id = e.capture_id
LEFT JOIN _classes AS c
    ON c.rule_scope = COALESCE(r.rule_scope, 0)
    AND c.op_name_id = e.op_name_id
LEFT JOIN _classes AS n
    ON n.rule_scope = COALESCE(r.rule_scope, 0)
    AND n.op_name_id = CASE WHEN c.component IS NULL OR c.is_loop_scope THEN e.neighbour_op_name_id END
