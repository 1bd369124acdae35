-- name: v1.throughput
-- version: 1
-- grain: one row per run, metric and statistic, and for MFU and HFU per dtype and kind of peak
-- summary: How fast a run trains: step time, tokens per second, useful and executed FLOP rates, MFU, HFU.
-- evidence: measured, analytical, compiler or derived
-- columns:
--   run_id BIGINT: the run
--   run_name VARCHAR: its name
--   line BIGINT: order of the metrics
--   metric VARCHAR: step_time, profiled_step_time, profiled_over_unprofiled, tokens_per_s, tokens_per_s_per_device,
--     nonpadding_tokens_per_s, nonpadding_tokens_per_s_per_device, expert_assignments_per_s, useful_flop_rate, mfu,
--     executed_flop_rate, hfu, executed_over_useful; and apart from the step: compile_time, lower_time, checkpoint_time,
--     evaluation_time, input_stall
--   value DOUBLE: value in its unit
--   unit VARCHAR: s, ratio, tokens/s, tokens/s/device, assignments/s, TFLOP/s/device
--   samples BIGINT (count): updates, or events, that the value is made of
--   statistic VARCHAR: median, mean, min, max, p10, p90 or total; one sample where there is one, which is no median
--   spread DOUBLE: of a median, the median distance from it (MAD, not scaled) in the same unit; of a rate, that of the
--     step time in proportion; NULL for one sample and for other statistics
--   warmup_excluded BIGINT (count): updates before the samples that are left out as warm-up; 0 for what is no step
--   timing VARCHAR: unprofiled, profiled, or unknown where no source says whether a profiler ran; NULL for what is no step
--   dtype VARCHAR: of the peak in mfu and hfu; NULL elsewhere
--   peak_kind VARCHAR: of that peak: spec, achievable or measured; NULL elsewhere
--   denominator VARCHAR: what the value is of, or divided by, with its numbers
--   evidence VARCHAR: measured for times; derived for what only counts divide by them; analytical where the FLOPs are
--     those of the declared model (v1.model_flops), compiler where they are those of the ops that ran
-- algorithm: A metric without its inputs has no row. Rates are over the median of the unprofiled step times, else of those
--   of which nothing is known, else of the profiled ones. Tokens are the global batch times the sequence, padding
--   included, never times the devices again; each counts once, however many experts take it: assignments are k times the
--   tokens, before drops. Tokens that are no padding are those that the configuration or the log (total_weights) says.
--   MFU is useful FLOPs over devices, step time and dense matrix peak; HFU has what the ops executed instead, with replay
--   and padding. v1._step_samples says what warm-up is.

WITH _best AS (
    SELECT
        t.run_id AS run_id,
        t.timing AS timing,
        t.samples AS samples,
        t.warmup_excluded AS warmup_excluded,
        t.median_s AS median_s,
        t.mad_s AS mad_s,
        t.mean_s AS mean_s,
        t.min_s AS min_s,
        t.max_s AS max_s,
        t.p10_s AS p10_s,
        t.p90_s AS p90_s,
        CASE WHEN t.samples = 1 THEN 'one sample' ELSE 'median' END AS statistic,
        CASE t.timing
            WHEN 'unprofiled' THEN 'one optimizer update, without a profiler'
            WHEN 'profiled' THEN 'one optimizer update, under the profiler'
            ELSE 'one optimizer update; whether a profiler ran is not stated'
        END AS update_text,
        CAST(t.median_s AS VARCHAR) || ' s' AS time_text,
        ROW_NUMBER() OVER (
            PARTITION BY t.run_id
            ORDER BY CASE t.timing WHEN 'unprofiled' THEN 1 WHEN 'unknown' THEN 2 ELSE 3 END NULLS FIRST
        ) AS choice
    FROM v1._step_time_statistics AS t
),
_weights AS (
    SELECT
        s.run_id AS run_id,
        CAST(SUM(s.value) AS DOUBLE) / NULLIF(COUNT(*), 0) AS logged_tokens
    FROM main.timing_samples AS s
    WHERE s.metric = 'total_weights'
        AND s.value > 0
        AND s.value < 1e15
    GROUP BY s.run_id
),
_counts AS (
    SELECT
        d.run_id AS run_id,
        CAST(d.tokens_per_update AS DOUBLE) AS tokens,
        CASE
            WHEN COALESCE(CAST(d.nonpadding_tokens AS DOUBLE), w.logged_tokens) <= d.tokens_per_update
                THEN COALESCE(CAST(d.nonpadding_tokens AS DOUBLE), w.logged_tokens)
        END AS nonpadding,
        CAST(d.top_k AS DOUBLE) * CAST(d.tokens_per_update AS DOUBLE) AS assignments,
        CAST(d.devices AS DOUBLE) AS devices,
        CAST(d.tokens_per_update AS VARCHAR) || ' tokens of an update' AS tokens_text,
        CAST(d.top_k AS VARCHAR) || ' experts x ' || CAST(d.tokens_per_update AS VARCHAR) || ' tokens, before drops'
            AS assignments_text,
        CAST(d.devices AS VARCHAR) || CASE WHEN d.devices = 1 THEN ' device (' ELSE ' devices (' END
            || d.devices_source || ')' AS devices_text
    FROM v1.model_dimensions AS d
    LEFT JOIN _weights AS w
        ON w.run_id = d.run_id
),
_useful AS (
    SELECT
        f.run_id AS run_id,
        f.useful_flops AS useful_flops,
        'useful FLOPs of an update (' || f.source || ')' AS useful_text
    FROM v1.model_flops AS f
    WHERE f.component = 'total'
),
_timed AS (
    SELECT
        b.run_id AS run_id,
        b.timing AS timing,
        b.samples AS samples,
        b.warmup_excluded AS warmup_excluded,
        b.statistic AS statistic,
        b.median_s AS median_s,
        b.mad_s / NULLIF(b.median_s, 0) AS relative_mad,
        b.time_text AS time_text,
        c.tokens AS tokens,
        c.nonpadding AS nonpadding,
        c.assignments AS assignments,
        c.devices AS devices,
        c.tokens_text AS tokens_text,
        c.assignments_text AS assignments_text,
        c.devices_text AS devices_text
    FROM _best AS b
    INNER JOIN _counts AS c
        ON c.run_id = b.run_id
    WHERE b.choice = 1
),
_times AS (
    SELECT
        b.run_id AS run_id,
        CAST(v.line AS BIGINT) AS line,
        'step_time' AS metric,
        CASE v.line
            WHEN 1 THEN b.median_s
            WHEN 2 THEN b.mean_s
            WHEN 3 THEN b.min_s
            WHEN 4 THEN b.max_s
            WHEN 5 THEN b.p10_s
            ELSE b.p90_s
        END AS value,
        's' AS unit,
        b.samples AS samples,
        COALESCE(v.statistic, b.statistic) AS statistic,
        CASE WHEN v.line = 1 THEN b.mad_s END AS spread,
        b.warmup_excluded AS warmup_excluded,
        b.timing AS timing,
        b.update_text AS denominator,
        'measured' AS evidence
    FROM _best AS b
    CROSS JOIN (
        VALUES (1, NULL), (2, 'mean'), (3, 'min'), (4, 'max'), (5, 'p10'), (6, 'p90')
    ) AS v (line, statistic)
    WHERE b.choice = 1
        AND (v.line = 1 OR b.samples > 1)
    UNION ALL
    SELECT
        p.run_id AS run_id,
        CAST(v.line AS BIGINT) AS line,
        v.metric AS metric,
        CASE WHEN v.line = 7 THEN p.median_s ELSE p.median_s / NULLIF(b.median_s, 0) END AS value,
        v.unit AS unit,
        p.samples AS samples,
        p.statistic AS statistic,
        CASE WHEN v.line = 7 THEN p.mad_s END AS spread,
        p.warmup_excluded AS warmup_excluded,
        p.timing AS timing,
        CASE
            WHEN v.line = 7 THEN p.update_text
            ELSE b.time_text || ', the ' || b.timing || ' step time'
        END AS denominator,
        v.evidence AS evidence
    FROM _best AS p
    INNER JOIN _best AS b
        ON b.run_id = p.run_id
        AND b.choice = 1
        AND p.choice > 1
    CROSS JOIN (
        VALUES (7, 'profiled_step_time', 's', 'measured'), (8, 'profiled_over_unprofiled', 'ratio', 'derived')
    ) AS v (line, metric, unit, evidence)
    WHERE p.timing = 'profiled'
),
_counted AS (
    SELECT
        t.run_id AS run_id,
        CAST(v.line AS BIGINT) AS line,
        v.metric AS metric,
        CASE v.line
            WHEN 10 THEN t.tokens
            WHEN 11 THEN t.tokens / NULLIF(t.devices, 0)
            WHEN 12 THEN t.nonpadding
            WHEN 13 THEN t.nonpadding / NULLIF(t.devices, 0)
            ELSE t.assignments
        END / NULLIF(t.median_s, 0) AS value,
        v.unit AS unit,
        t.samples AS samples,
        t.statistic AS statistic,
        t.relative_mad AS relative_mad,
        t.warmup_excluded AS warmup_excluded,
        t.timing AS timing,
        CASE
            WHEN v.line IN (10, 11) THEN t.tokens_text
            WHEN v.line IN (12, 13) THEN CAST(t.nonpadding AS VARCHAR) || ' tokens without padding'
            ELSE t.assignments_text
        END || ' / ' || CASE WHEN v.line IN (11, 13) THEN t.devices_text || ' / ' ELSE '' END || t.time_text
            AS denominator
    FROM _timed AS t
    CROSS JOIN (
        VALUES
            (10, 'tokens_per_s', 'tokens/s'),
            (11, 'tokens_per_s_per_device', 'tokens/s/device'),
            (12, 'nonpadding_tokens_per_s', 'tokens/s'),
            (13, 'nonpadding_tokens_per_s_per_device', 'tokens/s/device'),
            (14, 'expert_assignments_per_s', 'assignments/s')
    ) AS v (line, metric, unit)
),
_rates AS (
    SELECT
        t.run_id AS run_id,
        CAST(20 AS BIGINT) AS rate_line,
        u.useful_flops / NULLIF(t.devices, 0) / NULLIF(t.median_s, 0) AS device_rate,
        u.useful_text || ' / ' || t.devices_text || ' / ' || t.time_text AS rate_text,
        'analytical' AS evidence
    FROM _timed AS t
    INNER JOIN _useful AS u
        ON u.run_id = t.run_id
    WHERE t.devices > 0
    UNION ALL
    SELECT
        t.run_id AS run_id,
        CAST(30 AS BIGINT) AS rate_line,
        x.device_flops / NULLIF(t.median_s, 0) AS device_rate,
        'FLOPs that the ops of a step execute on a device' || CASE
            WHEN x.unknown_ops > 0 THEN ', without ' || CAST(x.unknown_ops AS VARCHAR) || ' custom calls of unknown cost'
            ELSE ''
        END || ' / ' || t.time_text AS rate_text,
        'compiler' AS evidence
    FROM _timed AS t
    INNER JOIN v1._executed_flops AS x
        ON x.run_id = t.run_id
),
_flop_rows AS (
    SELECT
        r.run_id AS run_id,
        r.rate_line AS line,
        CASE WHEN r.rate_line = 20 THEN 'useful_flop_rate' ELSE 'executed_flop_rate' END AS metric,
        r.device_rate / 1e12 AS value,
        'TFLOP/s/device' AS unit,
        CAST(NULL AS VARCHAR) AS dtype,
        CAST(NULL AS VARCHAR) AS peak_kind,
        r.rate_text AS denominator,
        r.evidence AS evidence
    FROM _rates AS r
    UNION ALL
    SELECT
        r.run_id AS run_id,
        r.rate_line + 1 AS line,
        CASE WHEN r.rate_line = 20 THEN 'mfu' ELSE 'hfu' END AS metric,
        r.device_rate / NULLIF(p.device_flops_per_s, 0) AS value,
        'ratio' AS unit,
        p.dtype AS dtype,
        p.peak_kind AS peak_kind,
        r.rate_text || ' / ' || CAST(p.device_flops_per_s / 1e12 AS VARCHAR) || ' TFLOP/s, the dense ' || p.dtype
            || ' peak (' || p.peak_kind || ')' AS denominator,
        r.evidence AS evidence
    FROM _rates AS r
    INNER JOIN v1._run_peaks AS p
        ON p.run_id = r.run_id
    UNION ALL
    SELECT
        x.run_id AS run_id,
        CAST(32 AS BIGINT) AS line,
        'executed_over_useful' AS metric,
        x.device_rate / NULLIF(u.device_rate, 0) AS value,
        'ratio' AS unit,
        CAST(NULL AS VARCHAR) AS dtype,
        CAST(NULL AS VARCHAR) AS peak_kind,
        'useful FLOPs of an update on a device' AS denominator,
        'derived' AS evidence
    FROM _rates AS x
    INNER JOIN _rates AS u
        ON u.run_id = x.run_id
        AND u.rate_line = 20
    WHERE x.rate_line = 30
),
_apart AS (
    SELECT
        s.run_id AS run_id,
        v.line AS line,
        v.metric AS metric,
        COUNT(*) AS samples,
        CAST(SUM(s.value) AS DOUBLE) AS total_s
    FROM main.timing_samples AS s
    INNER JOIN (
        VALUES
            (40, 'compile_time', 'compile_time_s'),
            (42, 'lower_time', 'lower_time_s'),
            (44, 'checkpoint_time', 'checkpoint_time_s'),
            (46, 'evaluation_time', 'evaluation_time_s'),
            (48, 'input_stall', 'input_stall_s')
    ) AS v (line, metric, sample_metric)
        ON v.sample_metric = s.metric
    GROUP BY
        s.run_id,
        v.line,
        v.metric
),
_all AS (
    SELECT
        t.run_id AS run_id,
        t.line AS line,
        t.metric AS metric,
        t.value AS value,
        t.unit AS unit,
        t.samples AS samples,
        t.statistic AS statistic,
        t.spread AS spread,
        t.warmup_excluded AS warmup_excluded,
        t.timing AS timing,
        CAST(NULL AS VARCHAR) AS dtype,
        CAST(NULL AS VARCHAR) AS peak_kind,
        t.denominator AS denominator,
        t.evidence AS evidence
    FROM _times AS t
    UNION ALL
    SELECT
        c.run_id AS run_id,
        c.line AS line,
        c.metric AS metric,
        c.value AS value,
        c.unit AS unit,
        c.samples AS samples,
        c.statistic AS statistic,
        c.value * c.relative_mad AS spread,
        c.warmup_excluded AS warmup_excluded,
        c.timing AS timing,
        CAST(NULL AS VARCHAR) AS dtype,
        CAST(NULL AS VARCHAR) AS peak_kind,
        c.denominator AS denominator,
        'derived' AS evidence
    FROM _counted AS c
    WHERE c.value IS NOT NULL
    UNION ALL
    SELECT
        f.run_id AS run_id,
        f.line AS line,
        f.metric AS metric,
        f.value AS value,
        f.unit AS unit,
        t.samples AS samples,
        t.statistic AS statistic,
        CASE WHEN f.line <> 32 THEN f.value * t.relative_mad END AS spread,
        t.warmup_excluded AS warmup_excluded,
        t.timing AS timing,
        f.dtype AS dtype,
        f.peak_kind AS peak_kind,
        f.denominator AS denominator,
        f.evidence AS evidence
    FROM _flop_rows AS f
    INNER JOIN _timed AS t
        ON t.run_id = f.run_id
    UNION ALL
    SELECT
        a.run_id AS run_id,
        CAST(a.line + v.later AS BIGINT) AS line,
        a.metric AS metric,
        CASE WHEN v.later = 1 THEN a.total_s ELSE a.total_s / NULLIF(a.samples, 0) END AS value,
        's' AS unit,
        a.samples AS samples,
        CASE WHEN v.later = 1 THEN 'total' WHEN a.samples = 1 THEN 'one sample' ELSE 'mean' END AS statistic,
        CAST(NULL AS DOUBLE) AS spread,
        CAST(0 AS BIGINT) AS warmup_excluded,
        CAST(NULL AS VARCHAR) AS timing,
        CAST(NULL AS VARCHAR) AS dtype,
        CAST(NULL AS VARCHAR) AS peak_kind,
        'apart from the step: no step time has it' AS denominator,
        'measured' AS evidence
    FROM _apart AS a
    CROSS JOIN (
        VALUES (0), (1)
    ) AS v (later)
    -- Processes compile at once: their times have no total.
    WHERE v.later = 0
        OR a.samples > 1 AND a.metric NOT IN ('compile_time', 'lower_time')
)
SELECT
    a.run_id AS run_id,
    r.run_name AS run_name,
    a.line AS line,
    a.metric AS metric,
    a.value AS value,
    a.unit AS unit,
    a.samples AS samples,
    a.statistic AS statistic,
    a.spread AS spread,
    a.warmup_excluded AS warmup_excluded,
    a.timing AS timing,
    a.dtype AS dtype,
    a.peak_kind AS peak_kind,
    a.denominator AS denominator,
    a.evidence AS evidence
FROM _all AS a
INNER JOIN main.runs AS r
    ON r.run_id = a.run_id
