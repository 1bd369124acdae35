-- name: lost_events
-- severity: warning
-- filter: run_name
-- question: Was anything of the run's files lost at ingest?
-- meaning: Files or rows were rejected when the run was loaded, or are kept and not counted. What they hold is missing
--   from every view.
-- next: Read the detail. A damaged file is best copied again from the machine that wrote it, and the run ingested
--   anew; rows that the profiler never finished cannot be had back.
-- evidence: measured
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture; NULL where the file became none
--   problem VARCHAR: short name of the problem
--   occurrences BIGINT (count): rows or files
--   place VARCHAR: plane, line, table or file
--   detail VARCHAR: the reason, of the first
-- algorithm: Every problem counts that is not known to be a repair, a repetition, or a detail without which no event
--   is missing: a problem that is new to this list is reported.

WITH _harmless AS (
    SELECT v.problem AS problem
    FROM (
        VALUES
            ('ambiguous_agent'),
            ('bound_without_peak'),
            ('counter_sum_differs'),
            ('dangling_payload'),
            ('dangling_stack_frame'),
            ('derived_table'),
            ('dispatch_on_cpu'),
            ('duplicate_column'),
            ('duplicate_row'),
            ('earlier_sysinfo'),
            ('empty_workgroup'),
            ('garbage_registers'),
            ('invalid_json'),
            ('invalid_text'),
            ('long_frame_name'),
            ('lost_marker_text'),
            ('missing_agent_info'),
            ('missing_metadata'),
            ('negative_duration'),
            ('orphan_argument'),
            ('orphan_blob'),
            ('repeated_counter'),
            ('repeated_peak'),
            ('repeated_schedule'),
            ('repeated_schedule_id'),
            ('repeated_step_number'),
            ('rows_of_twin'),
            ('secret_dropped'),
            ('size_out_of_range'),
            ('too_large_payloads'),
            ('unknown_column'),
            ('unknown_peak'),
            ('unknown_shape_size'),
            ('unread_payload'),
            ('unreadable_compressed_text'),
            ('unscheduled_instruction'),
            ('unused_message')
    ) AS v (problem)
)
SELECT
    r.run_name AS run_name,
    p.capture_id AS capture_id,
    p.problem AS problem,
    p.occurrences AS occurrences,
    p.place AS place,
    p.detail AS detail
FROM main.ingest_problems AS p
INNER JOIN main.runs AS r
    ON r.run_id = p.run_id
LEFT JOIN _harmless AS h
    ON h.problem = p.problem
WHERE h.problem IS NULL
ORDER BY
    r.run_name,
    p.occurrences DESC,
    p.capture_id,
    p.problem,
    p.place
