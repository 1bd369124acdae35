-- name: v1._op_components
-- version: 1
-- grain: one row per capture, device, program and HLO op with device events
-- summary: Phase and component of each op, as v1.attribution has them for its events.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   program_id BIGINT: the program
--   hlo_op_name_id BIGINT: names.name_id of the HLO op
--   launch_phase VARCHAR: remat, backward, forward, update or unattributed, by the op_name
--   component VARCHAR: deepest named scope, or unattributed
--   component_group VARCHAR: what the rules make of the component, or unattributed

SELECT
    c.capture_id AS capture_id,
    c.device_id AS device_id,
    c.program_id AS program_id,
    c.hlo_op_name_id AS hlo_op_name_id,
    COALESCE(k.phase, 'unattributed') AS launch_phase,
    COALESCE(n.component, k.component, 'unattributed') AS component,
    COALESCE(n.component_group, k.component_group, 'unattributed') AS component_group
FROM v1._op_runs AS c
LEFT JOIN v1._capture_rule_scopes AS r
    ON r.capture_id = c.capture_id
LEFT JOIN main.op_name_classes AS k
    ON k.rule_scope = COALESCE(r.rule_scope, 0)
    AND k.op_name_id = c.op_name_id
LEFT JOIN main.op_name_classes AS n
    ON n.rule_scope = COALESCE(r.rule_scope, 0)
    AND n.op_name_id = CASE WHEN k.component IS NULL OR k.is_loop_scope THEN c.neighbour_op_name_id END
