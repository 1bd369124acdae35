-- name: different_programs
-- severity: warning
-- filter: run_name
-- question: Do all processes of the run run the same program?
-- meaning: The program with most device time differs between processes of one run, in its instructions or their shapes.
--   Their steps are not the same work: times of these processes cannot be compared, and stragglers may be no fault of
--   a device.
-- next: Compare the two programs (tracewh hlo). Different versions, flags or inputs of the processes, and a capture of
--   another job in the same directory, make them differ; so does a pipeline, where it is meant.
-- evidence: compiler
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   process_index INTEGER: position of its process in the run
--   module_name VARCHAR: its program
--   instruction_count BIGINT (count): instructions of that program
--   other_capture_id BIGINT: the capture of the first process
--   other_module_name VARCHAR: program of that
--   other_instruction_count BIGINT (count): instructions of that
--   differing_instructions BIGINT (count): instructions that the other lacks, or has with another opcode or shape

WITH _first AS (
    SELECT
        c.run_id AS run_id,
        MIN(c.process_index) AS first_index,
        COUNT(DISTINCT c.process_index) AS process_count
    FROM main.captures AS c
    WHERE c.source_kind = 'xspace'
    GROUP BY c.run_id
),
_captures AS (
    SELECT
        c.run_id AS run_id,
        c.capture_id AS capture_id,
        c.process_index AS process_index,
        CASE WHEN c.process_index = f.first_index THEN 1 ELSE 0 END AS is_first
    FROM main.captures AS c
    INNER JOIN _first AS f
        ON f.run_id = c.run_id
    WHERE f.process_count > 1
        AND c.source_kind = 'xspace'
),
_programs AS (
    SELECT
        c.run_id AS run_id,
        c.capture_id AS capture_id,
        c.process_index AS process_index,
        c.is_first AS is_first,
        p.module_id AS module_id,
        CAST(SUM(e.end_ps - e.start_ps) AS BIGINT) AS sum_ps
    FROM _captures AS c
    INNER JOIN main.device_events AS e
        ON e.capture_id = c.capture_id
    INNER JOIN main.ops AS o
        ON o.capture_id = e.capture_id
        AND o.op_id = e.op_id
    INNER JOIN main.hlo_programs AS p
        ON p.capture_id = o.capture_id
        AND p.program_id = o.program_id
    WHERE e.role = 'work'
    GROUP BY
        c.run_id,
        c.capture_id,
        c.process_index,
        c.is_first,
        p.module_id
),
_ranked AS (
    SELECT
        p.run_id AS run_id,
        p.capture_id AS capture_id,
        p.process_index AS process_index,
        p.is_first AS is_first,
        p.module_id AS module_id,
        ROW_NUMBER() OVER (
            PARTITION BY p.capture_id
            ORDER BY p.sum_ps DESC NULLS FIRST, p.module_id NULLS FIRST
        ) AS time_rank
    FROM _programs AS p
),
_reference AS (
    SELECT
        p.run_id AS run_id,
        MIN(p.capture_id) AS first_capture_id
    FROM _ranked AS p
    WHERE p.is_first = 1
        AND p.time_rank = 1
    GROUP BY p.run_id
),
_pairs AS (
    SELECT
        p.run_id AS run_id,
        p.capture_id AS capture_id,
        p.process_index AS process_index,
        p.module_id AS module_id,
        f.first_capture_id AS other_capture_id,
        q.module_id AS other_module_id
    FROM _ranked AS p
    INNER JOIN _reference AS f
        ON f.run_id = p.run_id
    INNER JOIN _ranked AS q
        ON q.capture_id = f.first_capture_id
        AND q.time_rank = 1
    WHERE p.time_rank = 1
        AND p.is_first = 0
        AND p.module_id <> q.module_id
),
_sizes AS (
    SELECT
        i.module_id AS module_id,
        COUNT(*) AS instruction_count
    FROM main.hlo_instructions AS i
    GROUP BY i.module_id
),
_equal AS (
    SELECT
        p.capture_id AS capture_id,
        COUNT(*) AS equal_count
    FROM _pairs AS p
    INNER JOIN main.hlo_instructions AS i
        ON i.module_id = p.module_id
    INNER JOIN main.hlo_instructions AS j
        ON j.module_id = p.other_module_id
        AND j.name_id = i.name_id
        AND j.opcode = i.opcode
        AND j.shape = i.shape
    GROUP BY p.capture_id
),
_compared AS (
    SELECT
        p.run_id AS run_id,
        p.capture_id AS capture_id,
        p.process_index AS process_index,
        p.module_id AS module_id,
        s.instruction_count AS instruction_count,
        p.other_capture_id AS other_capture_id,
        p.other_module_id AS other_module_id,
        o.instruction_count AS other_instruction_count,
        GREATEST(s.instruction_count, o.instruction_count) - COALESCE(e.equal_count, 0) AS differing
    FROM _pairs AS p
    INNER JOIN _sizes AS s
        ON s.module_id = p.module_id
    INNER JOIN _sizes AS o
        ON o.module_id = p.other_module_id
    LEFT JOIN _equal AS e
        ON e.capture_id = p.capture_id
)
SELECT
    r.run_name AS run_name,
    p.capture_id AS capture_id,
    p.process_index AS process_index,
    m.module_name AS module_name,
    p.instruction_count AS instruction_count,
    p.other_capture_id AS other_capture_id,
    n.module_name AS other_module_name,
    p.other_instruction_count AS other_instruction_count,
    p.differing AS differing_instructions
FROM _compared AS p
INNER JOIN main.runs AS r
    ON r.run_id = p.run_id
INNER JOIN main.hlo_modules AS m
    ON m.module_id = p.module_id
INNER JOIN main.hlo_modules AS n
    ON n.module_id = p.other_module_id
WHERE p.differing > 0
ORDER BY
    r.run_name,
    p.process_index,
    p.capture_id
