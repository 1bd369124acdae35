-- name: processes_not_aligned
-- severity: note
-- filter: run_name
-- question: Can times of different processes be compared?
-- meaning: The run has several processes, and this capture shares no clock with the others: it states no wall clock.
--   Its times cannot be put beside theirs.
-- next: Compare durations, not moments. For one time axis, use captures that state their wall clock: any XSpace that
--   JAX wrote, or a rocpd database.
-- evidence: derived
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   process_index INTEGER: position of its process in the run
--   source_kind VARCHAR: format that it was read from
--   process_count BIGINT (count): processes of the run

WITH _runs AS (
    SELECT
        c.run_id AS run_id,
        COUNT(DISTINCT c.process_index) AS process_count
    FROM main.captures AS c
    WHERE c.source_kind <> 'hlo'
    GROUP BY c.run_id
)
SELECT
    r.run_name AS run_name,
    c.capture_id AS capture_id,
    c.process_index AS process_index,
    c.source_kind AS source_kind,
    u.process_count AS process_count
FROM main.captures AS c
INNER JOIN _runs AS u
    ON u.run_id = c.run_id
INNER JOIN main.runs AS r
    ON r.run_id = c.run_id
WHERE u.process_count > 1
    AND c.source_kind <> 'hlo'
    AND c.origin_unix_ns IS NULL
ORDER BY
    r.run_name,
    c.process_index,
    c.capture_id
