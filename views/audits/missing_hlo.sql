-- name: missing_hlo
-- severity: warning
-- filter: capture_id
-- question: Is the HLO of every program that ran at hand?
-- meaning: Device events name a program whose HLO the capture does not hold. Their ops have no name stack, so no phase
--   and no component, and no FLOPs or bytes.
-- next: Profile with the HLO in the XSpace (the default of jax.profiler), or put the dump of the same process beside
--   the capture (XLA_FLAGS=--xla_dump_to=DIR --xla_dump_hlo_as_proto) and ingest the run again.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   program_id BIGINT: the program
--   module_name VARCHAR: its name, as events give it
--   event_count BIGINT (count): its device events
--   sum_ms DOUBLE (ms): sum of their durations
--   share_ratio DOUBLE (ratio): sum_ms in the capture's device time

WITH _programs AS (
    SELECT
        e.capture_id AS capture_id,
        o.program_id AS program_id,
        MIN(o.hlo_module_name_id) AS name_id,
        COUNT(*) AS event_count,
        CAST(SUM(e.end_ps - e.start_ps) AS BIGINT) AS sum_ps
    FROM main.device_events AS e
    LEFT JOIN main.ops AS o
        ON o.capture_id = e.capture_id
        AND o.op_id = e.op_id
    WHERE e.role = 'work'
    GROUP BY
        e.capture_id,
        o.program_id
),
_shares AS (
    SELECT
        p.capture_id AS capture_id,
        p.program_id AS program_id,
        p.name_id AS name_id,
        p.event_count AS event_count,
        p.sum_ps AS sum_ps,
        CAST(SUM(p.sum_ps) OVER (PARTITION BY p.capture_id) AS BIGINT) AS total_ps
    FROM _programs AS p
)
SELECT
    r.run_name AS run_name,
    s.capture_id AS capture_id,
    s.program_id AS program_id,
    n.name AS module_name,
    s.event_count AS event_count,
    CAST(s.sum_ps AS DOUBLE) / 1e9 AS sum_ms,
    CAST(s.sum_ps AS DOUBLE) / NULLIF(CAST(s.total_ps AS DOUBLE), 0) AS share_ratio
FROM _shares AS s
INNER JOIN main.captures AS c
    ON c.capture_id = s.capture_id
INNER JOIN main.runs AS r
    ON r.run_id = c.run_id
LEFT JOIN main.hlo_programs AS h
    ON h.capture_id = s.capture_id
    AND h.program_id = s.program_id
LEFT JOIN main.names AS n
    ON n.name_id = s.name_id
WHERE s.program_id IS NOT NULL
    AND h.module_id IS NULL
ORDER BY
    r.run_name,
    s.capture_id,
    s.sum_ps DESC,
    s.program_id
