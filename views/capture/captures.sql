-- name: v1.captures
-- version: 1
-- grain: one row per capture
-- summary: What the warehouse holds: each capture with its run, its devices, and how much is in it.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   run_id BIGINT: the run
--   run_name VARCHAR: name of the run
--   process_index INTEGER: position of the process in the run; NULL for a capture of HLO files alone
--   source_kind VARCHAR: xspace or hlo; rocpd, rocprof_json, rocprof_csv, rpd or rocprof_compute for the profilers of
--     ROCm
--   platform VARCHAR: cuda, rocm, tpu or cpu; NULL where unknown
--   device_kind VARCHAR: kind of the devices that worked, else of those that the capture saw
--   device_count BIGINT (count): devices with work in the capture
--   commit_sha VARCHAR: commit of the run
--   step_count BIGINT (count): training steps with device work, except what the user left out
--   device_event_count BIGINT (count): device events that are work
--   serialized_event_count BIGINT (count): dispatches and copies of a run that counted per dispatch; no timing view
--     has them
--   host_event_count BIGINT (count): host events
--   module_count BIGINT (count): HLO modules
--   span_ps BIGINT (ps): from the start of the first device event to the end of the last; NULL without any
--   problem_count BIGINT (count): rows rejected or repaired at ingest

WITH _events AS (
    SELECT
        e.capture_id AS capture_id,
        COUNT(DISTINCT e.device_id) AS device_count,
        COUNT(CASE WHEN e.role = 'work' THEN 1 END) AS device_event_count,
        COUNT(CASE WHEN e.role = 'serialized' THEN 1 END) AS serialized_event_count,
        MAX(CASE WHEN e.role = 'work' THEN e.end_ps END)
            - MIN(CASE WHEN e.role = 'work' THEN e.start_ps END) AS span_ps,
        COALESCE(
            MIN(CASE WHEN d.device_type <> 'CPU' THEN d.device_kind END),
            MIN(d.device_kind)
        ) AS first_kind
    FROM main.device_events AS e
    INNER JOIN main.devices AS d
        ON d.device_id = e.device_id
    WHERE e.role IN ('work', 'serialized')
    GROUP BY e.capture_id
),
_seen AS (
    SELECT
        a.capture_id AS capture_id,
        COALESCE(
            MIN(CASE WHEN d.device_type <> 'CPU' THEN d.device_kind END),
            MIN(d.device_kind)
        ) AS first_kind
    FROM main.device_attributes AS a
    INNER JOIN main.devices AS d
        ON d.device_id = a.device_id
    GROUP BY a.capture_id
),
_host AS (
    SELECT
        h.capture_id AS capture_id,
        COUNT(*) AS host_event_count
    FROM main.host_events AS h
    GROUP BY h.capture_id
),
_modules AS (
    SELECT
        m.capture_id AS capture_id,
        COUNT(*) AS module_count
    FROM main.hlo_programs AS m
    GROUP BY m.capture_id
),
_steps AS (
    SELECT
        l.capture_id AS capture_id,
        COUNT(DISTINCT l.step_num) AS step_count
    FROM v1._event_steps AS l
    GROUP BY l.capture_id
),
_problems AS (
    SELECT
        p.capture_id AS capture_id,
        CAST(SUM(p.occurrences) AS BIGINT) AS problem_count
    FROM main.ingest_problems AS p
    GROUP BY p.capture_id
)
SELECT
    c.capture_id AS capture_id,
    c.run_id AS run_id,
    r.run_name AS run_name,
    c.process_index AS process_index,
    c.source_kind AS source_kind,
    c.platform AS platform,
    COALESCE(e.first_kind, v.first_kind) AS device_kind,
    COALESCE(e.device_count, 0) AS device_count,
    r.commit_sha AS commit_sha,
    COALESCE(s.step_count, 0) AS step_count,
    COALESCE(e.device_event_count, 0) AS device_event_count,
    COALESCE(e.serialized_event_count, 0) AS serialized_event_count,
    COALESCE(h.host_event_count, 0) AS host_event_count,
    COALESCE(m.module_count, 0) AS module_count,
    e.span_ps AS span_ps,
    COALESCE(p.problem_count, 0) AS problem_count
FROM main.captures AS c
INNER JOIN main.runs AS r
    ON r.run_id = c.run_id
LEFT JOIN _events AS e
    ON e.capture_id = c.capture_id
LEFT JOIN _seen AS v
    ON v.capture_id = c.capture_id
LEFT JOIN _host AS h
    ON h.capture_id = c.capture_id
LEFT JOIN _modules AS m
    ON m.capture_id = c.capture_id
LEFT JOIN _steps AS s
    ON s.capture_id = c.capture_id
LEFT JOIN _problems AS p
    ON p.capture_id = c.capture_id
