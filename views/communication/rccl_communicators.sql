-- name: v1._rccl_communicators
-- version: 1
-- grain: one row per capture and communicator that calls of RCCL use
-- summary: How many ranks each communicator has, from the calls that formed it.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   communicator VARCHAR: its handle
--   group_size BIGINT (count): its ranks; NULL where unknown
-- algorithm: The call that formed the communicator states the ranks, if the trace shows the handle that it made.
--   Else, where all calls that form one state the same number, none splits one, and they formed at least as many
--   as are used, that is the number of each.

WITH _rows AS (
    SELECT
        c.capture_id AS capture_id,
        CASE
            WHEN c.function_role = 'communicates' THEN a.communicator
            WHEN c.function_role = 'splits' THEN a.formed_communicator
            ELSE COALESCE(a.formed_communicator, a.communicator)
        END AS handle,
        CASE WHEN c.function_role = 'communicates' THEN 1 ELSE 0 END AS is_used,
        CASE WHEN c.function_role = 'splits' THEN 1 ELSE 0 END AS is_split,
        CASE
            WHEN c.function_role = 'forms' AND a.rank_count BETWEEN 1 AND 1000000 THEN a.rank_count
        END AS rank_count,
        CASE
            WHEN c.function_role <> 'forms' THEN 0
            WHEN n.name = 'ncclCommInitAll' AND a.rank_count BETWEEN 1 AND 1000000 THEN a.rank_count
            ELSE 1
        END AS formed
    FROM v1._rccl_host_calls AS c
    INNER JOIN v1._rccl_arguments AS a
        ON a.capture_id = c.capture_id
        AND a.host_event_id = c.host_event_id
    INNER JOIN main.names AS n
        ON n.name_id = c.name_id
    WHERE c.function_role IN ('communicates', 'forms', 'splits')
),
_handles AS (
    SELECT
        r.capture_id AS capture_id,
        r.handle AS handle,
        MAX(r.is_used) AS any_used,
        MAX(r.is_split) AS any_split,
        MIN(r.rank_count) AS lowest,
        MAX(r.rank_count) AS highest,
        CAST(SUM(r.formed) AS BIGINT) AS times_formed
    FROM _rows AS r
    GROUP BY
        r.capture_id,
        r.handle
),
_all AS (
    SELECT
        h.capture_id AS capture_id,
        h.handle AS handle,
        h.any_used AS any_used,
        h.any_split AS any_split,
        h.lowest AS lowest,
        h.highest AS highest,
        h.times_formed AS times_formed,
        MIN(h.lowest) OVER (PARTITION BY h.capture_id) AS lowest_of_all,
        MAX(h.highest) OVER (PARTITION BY h.capture_id) AS highest_of_all,
        MAX(h.any_split) OVER (PARTITION BY h.capture_id) AS split_of_all,
        CAST(SUM(h.times_formed) OVER (PARTITION BY h.capture_id) AS BIGINT) AS formed_of_all,
        CAST(SUM(CASE WHEN h.handle IS NOT NULL THEN h.any_used ELSE 0 END) OVER (
            PARTITION BY h.capture_id
        ) AS BIGINT) AS used_of_all
    FROM _handles AS h
)
SELECT
    a.capture_id AS capture_id,
    a.handle AS communicator,
    CASE
        WHEN a.any_split = 1 THEN NULL
        WHEN a.times_formed > 0 AND a.lowest = a.highest THEN a.lowest
        WHEN a.times_formed > 0 THEN NULL
        WHEN a.lowest_of_all = a.highest_of_all AND a.split_of_all = 0 AND a.formed_of_all >= a.used_of_all
        THEN a.lowest_of_all
    END AS group_size
FROM _all AS a
WHERE a.handle IS NOT NULL
    AND a.any_used = 1
