-- name: v1.clock_alignment
-- version: 1
-- grain: one row per capture
-- summary: What to add to the times of each capture to compare them with those of the other processes of its
--   run, and how far that can be trusted.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   run_id BIGINT: the run
--   reference_capture_id BIGINT: the capture on whose time axis it is put: of those of the run that ran at
--     the same time, the one with the lowest process_index, then the lowest capture_id. Times of captures
--     with different references cannot be compared. NULL where aligned_by is none
--   aligned_by VARCHAR: reference (is the reference itself, or the only capture of its run), collectives,
--     profile_start_time (by wall clock alone), none (other captures, and no wall clock)
--   offset_ps BIGINT (ps): add it to the capture's times; NULL where aligned_by is none
--   start_offset_ps BIGINT (ps): part of offset_ps by wall clock: the capture's origin less the reference's
--   refinement_ps BIGINT (ps): part of offset_ps by collectives; NULL where aligned_by is another
--   matched_collectives BIGINT (count): collective executions found in this capture and in the reference
--   residual_ps BIGINT (ps): median distance of the matched ends after the refinement; NULL without matches
--   p95_residual_ps BIGINT (ps): the distance that 95 % of the matched ends do not exceed
--   max_residual_ps BIGINT (ps): the largest
--   offset_us DOUBLE (us): offset_ps in microseconds
--   residual_us DOUBLE (us): residual_ps in microseconds
-- algorithm: A collective ends everywhere at the same time. An execution of one process is matched with that
--   of the reference with the same HLO module, instruction, kernel, step and position in the step; of a step
--   and instruction whose count differs between the two, none is. The refinement is the median of reference
--   end less own end, after the offset by wall clock; of an even number of matches the lower of the middle
--   two, so that it is exact. Captures that did not overlap by wall clock, or are of one process, are never
--   matched. Collectives within groups that do not include the reference end together with it only as far as
--   the groups keep pace; the residuals tell.

WITH _ends AS (
    SELECT
        e.capture_id AS capture_id,
        r.reference_capture_id AS reference_capture_id,
        r.is_comparable AS is_comparable,
        e.occurrences AS occurrences,
        e.end_ps + r.start_offset_ps AS shifted_end_ps,
        MAX(CASE WHEN NOT r.is_comparable THEN e.end_ps END) OVER (
            PARTITION BY
                r.reference_capture_id, e.step_num, e.module_name, e.hlo_op_name_id, e.name_id, e.occurrence
        ) AS reference_end_ps,
        MAX(CASE WHEN NOT r.is_comparable THEN e.occurrences END) OVER (
            PARTITION BY
                r.reference_capture_id, e.step_num, e.module_name, e.hlo_op_name_id, e.name_id, e.occurrence
        ) AS reference_occurrences
    FROM v1._collective_ends AS e
    INNER JOIN v1._clock_references AS r
        ON r.capture_id = e.capture_id
    WHERE r.is_comparable
        OR r.reference_capture_id = r.capture_id
),
_matches AS (
    SELECT
        e.capture_id AS capture_id,
        e.reference_end_ps - e.shifted_end_ps AS difference_ps
    FROM _ends AS e
    WHERE e.is_comparable
        AND e.reference_occurrences = e.occurrences
        AND e.shifted_end_ps IS NOT NULL
),
_ranked AS (
    SELECT
        m.capture_id AS capture_id,
        m.difference_ps AS difference_ps,
        ROW_NUMBER() OVER (
            PARTITION BY m.capture_id
            ORDER BY m.difference_ps NULLS FIRST
        ) AS difference_rank,
        COUNT(*) OVER (PARTITION BY m.capture_id) AS match_count
    FROM _matches AS m
),
_refined AS (
    SELECT
        r.capture_id AS capture_id,
        r.match_count AS match_count,
        r.difference_ps AS difference_ps,
        MAX(CASE WHEN 2 * r.difference_rank IN (r.match_count, r.match_count + 1) THEN r.difference_ps END)
            OVER (PARTITION BY r.capture_id) AS median_ps
    FROM _ranked AS r
),
_distances AS (
    SELECT
        r.capture_id AS capture_id,
        r.match_count AS match_count,
        r.median_ps AS median_ps,
        ABS(r.difference_ps - r.median_ps) AS distance_ps,
        ROW_NUMBER() OVER (
            PARTITION BY r.capture_id
            ORDER BY ABS(r.difference_ps - r.median_ps) NULLS FIRST
        ) AS distance_rank
    FROM _refined AS r
),
_refinements AS (
    SELECT
        d.capture_id AS capture_id,
        d.match_count AS match_count,
        d.median_ps AS median_ps,
        MAX(CASE WHEN 2 * d.distance_rank IN (d.match_count, d.match_count + 1) THEN d.distance_ps END)
            AS middle_distance_ps,
        MIN(CASE WHEN 100 * d.distance_rank >= 95 * d.match_count THEN d.distance_ps END)
            AS p95_distance_ps,
        MAX(d.distance_ps) AS largest_distance_ps
    FROM _distances AS d
    GROUP BY
        d.capture_id,
        d.match_count,
        d.median_ps
),
_traces AS (
    SELECT
        c.run_id AS run_id,
        COUNT(*) AS trace_count
    FROM main.captures AS c
    WHERE c.source_kind <> 'hlo'
    GROUP BY c.run_id
),
_references AS (
    SELECT
        c.capture_id AS capture_id,
        c.run_id AS run_id,
        CASE
            WHEN c.source_kind = 'hlo' THEN NULL
            WHEN t.trace_count = 1 THEN c.capture_id
            WHEN r.start_offset_ps IS NOT NULL THEN r.reference_capture_id
        END AS reference_capture_id,
        CASE
            WHEN c.source_kind = 'hlo' THEN NULL
            WHEN t.trace_count = 1 THEN 0
            ELSE r.start_offset_ps
        END AS start_offset_ps
    FROM main.captures AS c
    LEFT JOIN _traces AS t
        ON t.run_id = c.run_id
    LEFT JOIN v1._clock_references AS r
        ON r.capture_id = c.capture_id
)
SELECT
    c.capture_id AS capture_id,
    c.run_id AS run_id,
    c.reference_capture_id AS reference_capture_id,
    CASE
        WHEN c.reference_capture_id IS NULL THEN 'none'
        WHEN c.reference_capture_id = c.capture_id THEN 'reference'
        WHEN f.match_count IS NOT NULL THEN 'collectives'
        ELSE 'profile_start_time'
    END AS aligned_by,
    c.start_offset_ps + COALESCE(f.median_ps, 0) AS offset_ps,
    c.start_offset_ps AS start_offset_ps,
    f.median_ps AS refinement_ps,
    COALESCE(f.match_count, 0) AS matched_collectives,
    f.middle_distance_ps AS residual_ps,
    f.p95_distance_ps AS p95_residual_ps,
    f.largest_distance_ps AS max_residual_ps,
    CAST(c.start_offset_ps + COALESCE(f.median_ps, 0) AS DOUBLE) / 1e6 AS offset_us,
    CAST(f.middle_distance_ps AS DOUBLE) / 1e6 AS residual_us
FROM _references AS c
LEFT JOIN _refinements AS f
    ON f.capture_id = c.capture_id
