-- name: v1._report_ratios
-- version: 1
-- grain: one row per run and ratio that has a value
-- summary: Ratios to compare with other runs and models
-- evidence: derived
-- columns:
--   run_id BIGINT: the run
--   line INTEGER: order of the rows
--   ratio VARCHAR: Ratio
--   share_ratio DOUBLE (ratio): Share
--   factor DOUBLE (factor): Factor
--   formula VARCHAR: Numerator over denominator
-- algorithm: Of summed durations in the mean device step; without communication, except where it says so.

WITH _sums AS (
    SELECT
        c.run_id AS run_id,
        CAST(SUM(CASE WHEN c.phase = 'forward' THEN c.sum_ps ELSE 0 END) AS DOUBLE) AS forward_ps,
        CAST(SUM(CASE WHEN c.phase = 'backward' THEN c.sum_ps ELSE 0 END) AS DOUBLE) AS backward_ps,
        CAST(SUM(CASE WHEN c.phase = 'remat' THEN c.sum_ps ELSE 0 END) AS DOUBLE) AS remat_ps,
        CAST(SUM(CASE WHEN c.phase = 'communication' THEN c.sum_ps ELSE 0 END) AS DOUBLE) AS communication_ps,
        CAST(SUM(CASE WHEN c.phase = 'forward' AND c.component_family = 'MoE' THEN c.sum_ps ELSE 0 END) AS DOUBLE)
            AS moe_forward_ps,
        CAST(SUM(CASE WHEN c.phase = 'backward' AND c.component_family = 'MoE' THEN c.sum_ps ELSE 0 END) AS DOUBLE)
            AS moe_backward_ps,
        CAST(SUM(CASE WHEN c.phase = 'remat' AND c.component_family = 'MoE' THEN c.sum_ps ELSE 0 END) AS DOUBLE)
            AS moe_remat_ps,
        CAST(SUM(CASE WHEN c.phase = 'forward' AND c.component_group = 'Expert MLP' THEN c.sum_ps ELSE 0 END) AS DOUBLE)
            AS expert_forward_ps,
        CAST(SUM(c.sum_ps) AS DOUBLE) AS total_ps
    FROM v1.run_components AS c
    GROUP BY c.run_id
),
_ratios AS (
    SELECT
        s.run_id AS run_id,
        v.line AS line,
        v.ratio AS ratio,
        v.value_kind AS value_kind,
        v.formula AS formula,
        CASE v.line
            WHEN 1 THEN s.communication_ps / NULLIF(s.total_ps, 0)
            WHEN 2 THEN t.hidden_ratio
            WHEN 3 THEN s.backward_ps / NULLIF(s.forward_ps, 0)
            WHEN 4 THEN (s.backward_ps + s.remat_ps) / NULLIF(s.forward_ps, 0)
            WHEN 5 THEN (s.moe_forward_ps + s.moe_backward_ps + s.moe_remat_ps)
                / NULLIF(s.forward_ps + s.backward_ps + s.remat_ps, 0)
            WHEN 6 THEN s.expert_forward_ps / NULLIF(s.moe_forward_ps, 0)
        END AS value,
        v.line IN (5, 6) AND s.moe_forward_ps + s.moe_backward_ps + s.moe_remat_ps = 0 AS has_no_experts
    FROM _sums AS s
    INNER JOIN v1.run_time AS t
        ON t.run_id = s.run_id
    CROSS JOIN (
        VALUES
            (1, 'Communication', 'percent', 'communication over summed device time'),
            (2, 'Communication hidden by compute', 'percent', 'overlap over the union of communication'),
            (3, 'Backward over forward', 'factor', 'gradient compute over forward compute'),
            (4, 'Backward and replay over forward', 'factor', 'gradient compute and replay over forward compute'),
            (5, 'MoE share of the model', 'percent', 'MoE over forward, gradient and replay compute'),
            (6, 'Expert MLP share of forward MoE', 'percent', 'Expert MLP over router, dispatch, experts and combine')
    ) AS v (line, ratio, value_kind, formula)
)
SELECT
    r.run_id AS run_id,
    r.line AS line,
    r.ratio AS ratio,
    CASE WHEN r.value_kind = 'percent' THEN r.value END AS share_ratio,
    CASE WHEN r.value_kind = 'factor' THEN r.value END AS factor,
    r.formula AS formula
FROM _ratios AS r
WHERE r.value IS NOT NULL
    AND NOT r.has_no_experts
