-- name: v1._step_time_statistics
-- version: 1
-- grain: one row per run and kind of timing
-- summary: Step times after warm-up: how many, how long, and how far apart.
-- evidence: measured
-- columns:
--   run_id BIGINT: the run
--   timing VARCHAR: unprofiled, profiled or unknown
--   samples BIGINT (count): updates after warm-up
--   warmup_excluded BIGINT (count): updates left out before them, by the rule or by the source
--   warmup_rule VARCHAR: source or first stable
--   median_s DOUBLE (s): median; of an even number the mean of the middle two; of one sample that sample
--   mad_s DOUBLE (s): median of the distances from it, not scaled; NULL for one sample
--   mean_s DOUBLE (s): mean
--   min_s DOUBLE (s): shortest
--   max_s DOUBLE (s): longest
--   p10_s DOUBLE (s): tenth percentile, between samples by straight lines
--   p90_s DOUBLE (s): ninetieth percentile
-- algorithm: The quantile q of n values in order lies at position q * (n - 1), counted from 0; between two values each
--   counts by how near it is.

WITH _ranked AS (
    SELECT
        s.run_id AS run_id,
        s.timing AS timing,
        s.step_s AS step_s,
        10 * (ROW_NUMBER() OVER (
            PARTITION BY s.run_id, s.timing
            ORDER BY s.step_s NULLS FIRST
        ) - 1) AS tenfold_rank,
        COUNT(*) OVER (PARTITION BY s.run_id, s.timing) - 1 AS last_rank
    FROM v1._step_samples AS s
    WHERE NOT s.is_warmup
),
_quantiles AS (
    SELECT
        r.run_id AS run_id,
        r.timing AS timing,
        COUNT(*) AS samples,
        CAST(SUM(r.step_s * CAST(GREATEST(10 - ABS(r.tenfold_rank - 5 * r.last_rank), 0) AS DOUBLE) / 10) AS DOUBLE)
            AS median_s,
        CAST(SUM(r.step_s * CAST(GREATEST(10 - ABS(r.tenfold_rank - r.last_rank), 0) AS DOUBLE) / 10) AS DOUBLE)
            AS p10_s,
        CAST(SUM(r.step_s * CAST(GREATEST(10 - ABS(r.tenfold_rank - 9 * r.last_rank), 0) AS DOUBLE) / 10) AS DOUBLE)
            AS p90_s,
        CAST(SUM(r.step_s) AS DOUBLE) / NULLIF(COUNT(*), 0) AS mean_s,
        MIN(r.step_s) AS min_s,
        MAX(r.step_s) AS max_s
    FROM _ranked AS r
    GROUP BY
        r.run_id,
        r.timing
),
_distances AS (
    SELECT
        r.run_id AS run_id,
        r.timing AS timing,
        ABS(r.step_s - q.median_s) AS distance_s,
        10 * (ROW_NUMBER() OVER (
            PARTITION BY r.run_id, r.timing
            ORDER BY ABS(r.step_s - q.median_s) NULLS FIRST
        ) - 1) AS tenfold_rank,
        r.last_rank AS last_rank
    FROM _ranked AS r
    INNER JOIN _quantiles AS q
        ON q.run_id = r.run_id
        AND q.timing = r.timing
),
_spreads AS (
    SELECT
        d.run_id AS run_id,
        d.timing AS timing,
        CAST(SUM(
            d.distance_s * CAST(GREATEST(10 - ABS(d.tenfold_rank - 5 * d.last_rank), 0) AS DOUBLE) / 10
        ) AS DOUBLE) AS mad_s
    FROM _distances AS d
    GROUP BY
        d.run_id,
        d.timing
),
_warmups AS (
    SELECT
        s.run_id AS run_id,
        s.timing AS timing,
        COUNT(CASE WHEN s.is_warmup THEN 1 END) + MAX(s.stated_warmup) AS warmup_excluded,
        MIN(s.warmup_rule) AS decided_by
    FROM v1._step_samples AS s
    GROUP BY
        s.run_id,
        s.timing
)
SELECT
    q.run_id AS run_id,
    q.timing AS timing,
    q.samples AS samples,
    w.warmup_excluded AS warmup_excluded,
    w.decided_by AS warmup_rule,
    q.median_s AS median_s,
    CASE WHEN q.samples > 1 THEN d.mad_s END AS mad_s,
    q.mean_s AS mean_s,
    q.min_s AS min_s,
    q.max_s AS max_s,
    q.p10_s AS p10_s,
    q.p90_s AS p90_s
FROM _quantiles AS q
INNER JOIN _spreads AS d
    ON d.run_id = q.run_id
    AND d.timing = q.timing
INNER JOIN _warmups AS w
    ON w.run_id = q.run_id
    AND w.timing = q.timing
