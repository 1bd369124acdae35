-- name: unattributed_time
-- severity: warning
-- filter: capture_id
-- question: How much device time of the steps has no phase?
-- meaning: More than 5 % of the device time of the steps is in no phase: it is missing from forward, backward, remat
--   and update. The rows are the kernels with most of it.
-- next: By reason. no rule: give the scope in op_name (v1.attribution) a phase with tracewh rules add. no HLO op: put
--   the optimized HLO of the program beside the capture and ingest the run again. no name stack, and
--   copy: the compiler, or the runtime, tells no more; leave the time unattributed and say how much it is.
-- evidence: derived
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   without_phase_ratio DOUBLE (ratio): part of the capture's device time in steps that has no phase
--   reason VARCHAR: no rule, for the segments of the name stack; no name stack, of the op; no HLO op; copy, that no
--     op asked for
--   kernel_name VARCHAR: a kernel
--   attribution_source VARCHAR: how its HLO op was found; none where it was not
--   sum_ms DOUBLE (ms): sum of their durations
--   share_ratio DOUBLE (ratio): sum_ms in the capture's device time in steps
-- algorithm: Of captures that are an XSpace, or of which any work but communication has a phase: a ROCm profiler's own
--   capture knows no phases. Kernels below a thousandth of device time are left out.

WITH _events AS (
    SELECT
        a.capture_id AS capture_id,
        a.phase AS phase,
        CASE
            WHEN a.op_name IS NOT NULL THEN 'no rule'
            WHEN a.event_class = 'copy' AND a.hlo_op IS NULL THEN 'copy'
            WHEN a.hlo_op IS NOT NULL AND a.opcode IS NOT NULL THEN 'no name stack'
            ELSE 'no HLO op'
        END AS reason,
        a.kernel_name AS kernel_name,
        a.attribution_source AS attribution_source,
        a.end_ps - a.start_ps AS duration_ps
    FROM v1.attribution AS a
    WHERE a.step_num IS NOT NULL
),
_kernels AS (
    SELECT
        e.capture_id AS capture_id,
        e.phase AS phase,
        e.reason AS reason,
        e.kernel_name AS kernel_name,
        e.attribution_source AS attribution_source,
        CAST(SUM(e.duration_ps) AS BIGINT) AS sum_ps
    FROM _events AS e
    GROUP BY
        e.capture_id,
        e.phase,
        e.reason,
        e.kernel_name,
        e.attribution_source
),
_totals AS (
    SELECT
        k.capture_id AS capture_id,
        k.phase AS phase,
        k.reason AS reason,
        k.kernel_name AS kernel_name,
        k.attribution_source AS attribution_source,
        k.sum_ps AS sum_ps,
        CAST(SUM(k.sum_ps) OVER (PARTITION BY k.capture_id) AS DOUBLE) AS total_ps,
        CAST(SUM(CASE WHEN k.phase = 'unattributed' THEN k.sum_ps ELSE 0 END)
            OVER (PARTITION BY k.capture_id) AS DOUBLE) AS unattributed_ps,
        MAX(CASE WHEN k.phase IN ('unattributed', 'communication') THEN 0 ELSE 1 END)
            OVER (PARTITION BY k.capture_id) AS has_phases
    FROM _kernels AS k
)
SELECT
    r.run_name AS run_name,
    t.capture_id AS capture_id,
    t.unattributed_ps / NULLIF(t.total_ps, 0) AS without_phase_ratio,
    t.reason AS reason,
    t.kernel_name AS kernel_name,
    t.attribution_source AS attribution_source,
    CAST(t.sum_ps AS DOUBLE) / 1e9 AS sum_ms,
    CAST(t.sum_ps AS DOUBLE) / NULLIF(t.total_ps, 0) AS share_ratio
FROM _totals AS t
INNER JOIN main.captures AS c
    ON c.capture_id = t.capture_id
INNER JOIN main.runs AS r
    ON r.run_id = c.run_id
WHERE t.phase = 'unattributed'
    AND t.unattributed_ps > 5e-2 * t.total_ps
    AND t.sum_ps >= 1e-3 * t.total_ps
    AND (c.source_kind = 'xspace' OR t.has_phases = 1)
ORDER BY
    r.run_name,
    t.capture_id,
    t.sum_ps DESC,
    t.kernel_name,
    t.reason,
    t.attribution_source
