-- name: v1._step_samples
-- version: 1
-- grain: one row per run, kind of timing and update with a step time
-- summary: The step times that throughput is made of, each update once, warm-up told from the rest.
-- evidence: measured
-- columns:
--   run_id BIGINT: the run
--   timing VARCHAR: unprofiled, profiled, or unknown where no source says whether a profiler ran
--   position BIGINT: order of the updates, from 1
--   step_num BIGINT: number of the step; NULL where the source gives none
--   step_s DOUBLE (s): time of the update: of several processes, that of the slowest
--   is_warmup BOOLEAN: it is left out of all statistics
--   stated_warmup BIGINT (count): updates before these that the source says that it left out; 0 where it says nothing
--   warmup_rule VARCHAR: source, where the source says which updates are warm-up; none of profiled ones, which are
--     few and come after; first stable, where the rule decides
-- algorithm: Of the sources of a run, timing.json counts before tables of step times, and those before logs. In a log or
--   table that goes beyond the steps of the captures, the steps that a capture has are profiled ones. Where no source
--   tells warm-up, it is the updates before the first that takes at most 1.1 times the median of the later half.

WITH _captured AS (
    SELECT DISTINCT
        c.run_id AS run_id,
        s.step_num AS step_num
    FROM main.steps AS s
    INNER JOIN main.captures AS c
        ON c.capture_id = s.capture_id
    WHERE s.step_num IS NOT NULL
),
_samples AS (
    SELECT
        t.run_id AS run_id,
        t.artifact_id AS artifact_id,
        t.sample_index AS sample_index,
        t.step_num AS step_num,
        t.value AS value,
        t.is_warmup AS is_warmup,
        t.is_profiled AS is_profiled,
        CASE a.kind WHEN 'timing' THEN 1 WHEN 'step_times' THEN 2 WHEN 'training_log' THEN 3 ELSE 4 END AS source_order,
        CASE WHEN c.step_num IS NULL THEN 0 ELSE 1 END AS is_captured,
        MIN(CASE WHEN c.step_num IS NULL THEN 0 ELSE 1 END) OVER (PARTITION BY t.run_id, t.artifact_id)
            AS all_captured
    FROM main.timing_samples AS t
    LEFT JOIN main.artifacts AS a
        ON a.artifact_id = t.artifact_id
    LEFT JOIN _captured AS c
        ON c.run_id = t.run_id
        AND c.step_num = t.step_num
    WHERE t.metric = 'step_time_s'
        AND t.value > 0
        AND t.value < 1e12
),
_kinds AS (
    SELECT
        s.run_id AS run_id,
        s.artifact_id AS artifact_id,
        s.sample_index AS sample_index,
        s.step_num AS step_num,
        s.value AS value,
        s.is_warmup AS is_warmup,
        s.source_order AS source_order,
        CASE
            WHEN s.is_profiled THEN 'profiled'
            WHEN NOT s.is_profiled THEN 'unprofiled'
            WHEN s.is_captured = 1 AND s.all_captured = 0 THEN 'profiled'
            ELSE 'unknown'
        END AS timing
    FROM _samples AS s
),
_ordered AS (
    SELECT
        k.run_id AS run_id,
        k.timing AS timing,
        k.step_num AS step_num,
        k.value AS value,
        k.is_warmup AS is_warmup,
        k.source_order AS source_order,
        MIN(k.source_order) OVER (PARTITION BY k.run_id, k.timing) AS best_order,
        CASE
            WHEN k.step_num IS NULL THEN ROW_NUMBER() OVER (
                PARTITION BY k.run_id, k.timing, k.artifact_id
                ORDER BY k.sample_index NULLS FIRST
            )
        END AS sample_rank
    FROM _kinds AS k
),
_updates AS (
    SELECT
        o.run_id AS run_id,
        o.timing AS timing,
        o.step_num AS step_num,
        o.sample_rank AS sample_rank,
        MIN(o.source_order) AS used_order,
        MAX(o.value) AS step_s,
        MAX(CASE WHEN o.is_warmup THEN 1 WHEN NOT o.is_warmup THEN 0 END) AS warmup_flag
    FROM _ordered AS o
    WHERE o.source_order = o.best_order
    GROUP BY
        o.run_id,
        o.timing,
        o.step_num,
        o.sample_rank
),
_placed AS (
    SELECT
        u.run_id AS run_id,
        u.timing AS timing,
        u.step_num AS step_num,
        u.used_order AS used_order,
        u.step_s AS step_s,
        u.warmup_flag AS warmup_flag,
        MAX(u.warmup_flag) OVER (PARTITION BY u.run_id, u.timing) AS any_flag,
        ROW_NUMBER() OVER (
            PARTITION BY u.run_id, u.timing
            ORDER BY u.step_num NULLS FIRST, u.sample_rank NULLS FIRST
        ) AS position,
        COUNT(*) OVER (PARTITION BY u.run_id, u.timing) AS updates
    FROM _updates AS u
),
_later AS (
    SELECT
        p.run_id AS run_id,
        p.timing AS timing,
        p.step_s AS step_s,
        ROW_NUMBER() OVER (
            PARTITION BY p.run_id, p.timing
            ORDER BY p.step_s NULLS FIRST
        ) AS value_rank,
        COUNT(*) OVER (PARTITION BY p.run_id, p.timing) AS updates
    FROM _placed AS p
    WHERE 2 * p.position > p.updates
),
_usual AS (
    SELECT
        l.run_id AS run_id,
        l.timing AS timing,
        (MIN(l.step_s) + MAX(l.step_s)) / 2 AS usual_s
    FROM _later AS l
    WHERE 2 * l.value_rank BETWEEN l.updates AND l.updates + 2
        AND (MOD(l.updates, 2) = 0 OR 2 * l.value_rank = l.updates + 1)
    GROUP BY
        l.run_id,
        l.timing
),
_stable AS (
    SELECT
        p.run_id AS run_id,
        p.timing AS timing,
        MIN(CASE WHEN p.step_s <= 11e-1 * u.usual_s THEN p.position END) AS first_position
    FROM _placed AS p
    INNER JOIN _usual AS u
        ON u.run_id = p.run_id
        AND u.timing = p.timing
    GROUP BY
        p.run_id,
        p.timing
),
_stated AS (
    SELECT
        p.run_id AS run_id,
        MAX(CASE WHEN REGEXP_MATCHES(p.value, '^[0-9]{1,9}$') THEN CAST(p.value AS BIGINT) END) AS warmup
    FROM main.run_params AS p
    WHERE p.param IN ('timing.warmup', 'timing.warmup_steps')
    GROUP BY p.run_id
)
SELECT
    p.run_id AS run_id,
    p.timing AS timing,
    p.position AS position,
    p.step_num AS step_num,
    p.step_s AS step_s,
    CASE
        WHEN p.any_flag IS NOT NULL THEN COALESCE(p.warmup_flag, 0) = 1
        WHEN p.used_order = 1 AND w.warmup IS NOT NULL THEN FALSE
        WHEN p.timing = 'profiled' THEN FALSE
        ELSE p.position < s.first_position
    END AS is_warmup,
    CASE WHEN p.used_order = 1 AND p.any_flag IS NULL THEN COALESCE(w.warmup, 0) ELSE 0 END AS stated_warmup,
    CASE
        WHEN p.any_flag IS NOT NULL OR p.used_order = 1 AND w.warmup IS NOT NULL THEN 'source'
        WHEN p.timing = 'profiled' THEN 'none'
        ELSE 'first stable'
    END AS warmup_rule
FROM _placed AS p
INNER JOIN _stable AS s
    ON s.run_id = p.run_id
    AND s.timing = p.timing
LEFT JOIN _stated AS w
    ON w.run_id = p.run_id
