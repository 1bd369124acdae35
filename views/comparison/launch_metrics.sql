-- name: v1._launch_metrics
-- version: 1
-- grain: one row per run with device events whose launch is known
-- summary: The median launch latency of a run: from the start of the call to the start of the device event.
-- evidence: measured
-- columns:
--   run_id BIGINT: the run
--   metric VARCHAR: as in v1.metrics
--   scope VARCHAR: likewise
--   value DOUBLE: likewise
--   unit VARCHAR: likewise
--   polarity VARCHAR: likewise
--   evidence VARCHAR: likewise
--   timing VARCHAR: likewise
--   statistic VARCHAR: likewise
--   samples BIGINT (count): likewise
-- algorithm: Neither more nor less is better: work that the host launches long before the device is free waits long.
--   Latencies are counted before they are ranked. An event of a graph has that of the launch of its graph.

WITH _latencies AS (
    SELECT
        c.run_id AS run_id,
        l.launch_latency_ps AS latency_ps,
        COUNT(*) AS events
    FROM v1.launches AS l
    INNER JOIN main.captures AS c
        ON c.capture_id = l.capture_id
    WHERE l.launch_latency_ps IS NOT NULL
    GROUP BY
        c.run_id,
        l.launch_latency_ps
),
_running AS (
    SELECT
        l.run_id AS run_id,
        l.latency_ps AS latency_ps,
        l.events AS events,
        CAST(SUM(l.events) OVER (
            PARTITION BY l.run_id
            ORDER BY l.latency_ps NULLS FIRST
            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW
        ) AS BIGINT) AS until_count,
        CAST(SUM(l.events) OVER (PARTITION BY l.run_id) AS BIGINT) AS total_count
    FROM _latencies AS l
),
_middle AS (
    SELECT
        r.run_id AS run_id,
        MIN(CASE WHEN 2 * r.until_count >= r.total_count THEN r.latency_ps END) AS lower_ps,
        MIN(CASE WHEN 2 * r.until_count >= r.total_count + 1 THEN r.latency_ps END) AS upper_ps,
        MAX(r.total_count) AS events
    FROM _running AS r
    GROUP BY r.run_id
)
SELECT
    m.run_id AS run_id,
    'launch_latency' AS metric,
    '' AS scope,
    CAST(m.lower_ps + m.upper_ps AS DOUBLE) / 2 / 1e9 AS value,
    'ms' AS unit,
    'none' AS polarity,
    'measured' AS evidence,
    'profiled' AS timing,
    'median' AS statistic,
    m.events AS samples
FROM _middle AS m
