-- name: v1.memory_profile
-- version: 1
-- grain: one row per device memory profile, device, kind and call site
-- summary: What was live when a device memory profile was saved, by the line of the user's code that made it.
-- evidence: measured
-- columns:
--   run_id BIGINT: the run
--   artifact_id BIGINT: the profile
--   device_id BIGINT: the device; NULL of what is of none, and where no device of the run has that label
--   device_ordinal BIGINT: its ordinal on its host; NULL without a device
--   device_label VARCHAR: the device as the profile has it: cuda:0; NULL where it tells none, as of executables
--   kind VARCHAR: buffer (arrays that the program holds) or executable (code of compiled programs)
--   function_name VARCHAR: function of the site; NULL where the profile has no stack
--   source_file VARCHAR: its file
--   source_line BIGINT: the line that was being run in it
--   is_user_code BOOLEAN: the site is the innermost frame outside of installed packages; else, as all frames are in
--     them, the innermost of all
--   allocation_count BIGINT (count): allocations that are live
--   bytes BIGINT (bytes): what they take
--   share_ratio DOUBLE (ratio): bytes over all that the profile has of this kind on this device
--   stack_count BIGINT (count): distinct stacks that lead through the site to an allocation
--   mib DOUBLE (MiB): bytes in mebibytes
-- algorithm: Installed packages lie in site-packages, dist-packages, jax/_src or the library of Python. The profile
--   holds the arrays that are live when it is saved; what a program takes only while it runs is not in it.

WITH _frames AS (
    SELECT
        f.artifact_id AS artifact_id,
        f.stack_id AS stack_id,
        f.frame_index AS frame_index,
        f.function_name AS function_name,
        f.source_file AS source_file,
        f.source_line AS source_line,
        NOT COALESCE(
            f.source_file LIKE '%/site-packages/%'
            OR f.source_file LIKE '%/dist-packages/%'
            OR f.source_file LIKE '%/lib/python_.%'
            OR f.source_file LIKE '%/jax/_src/%'
            OR f.source_file LIKE '<frozen %',
            TRUE
        ) AS is_user_code
    FROM main.memory_profile_frames AS f
),
_ranked AS (
    SELECT
        f.artifact_id AS artifact_id,
        f.stack_id AS stack_id,
        f.function_name AS function_name,
        f.source_file AS source_file,
        f.source_line AS source_line,
        f.is_user_code AS is_user_code,
        ROW_NUMBER() OVER (
            PARTITION BY f.artifact_id, f.stack_id
            ORDER BY CASE WHEN f.is_user_code THEN 1 ELSE 2 END NULLS FIRST, f.frame_index NULLS FIRST
        ) AS site_rank
    FROM _frames AS f
),
_samples AS (
    SELECT
        s.run_id AS run_id,
        s.artifact_id AS artifact_id,
        s.device_id AS device_id,
        s.device_label AS device_label,
        s.kind AS kind,
        r.function_name AS function_name,
        r.source_file AS source_file,
        r.source_line AS source_line,
        COALESCE(r.is_user_code, FALSE) AS is_user_code,
        s.stack_id AS stack_id,
        s.allocation_count AS allocations,
        s.size_bytes AS size_bytes
    FROM main.memory_profile_samples AS s
    LEFT JOIN _ranked AS r
        ON r.artifact_id = s.artifact_id
        AND r.stack_id = s.stack_id
        AND r.site_rank = 1
),
_sites AS (
    SELECT
        s.run_id AS run_id,
        s.artifact_id AS artifact_id,
        s.device_id AS device_id,
        s.device_label AS device_label,
        s.kind AS kind,
        s.function_name AS function_name,
        s.source_file AS source_file,
        s.source_line AS source_line,
        s.is_user_code AS is_user_code,
        CAST(SUM(s.allocations) AS BIGINT) AS allocation_count,
        CAST(SUM(s.size_bytes) AS BIGINT) AS bytes,
        COUNT(DISTINCT s.stack_id) AS stack_count
    FROM _samples AS s
    GROUP BY
        s.run_id,
        s.artifact_id,
        s.device_id,
        s.device_label,
        s.kind,
        s.function_name,
        s.source_file,
        s.source_line,
        s.is_user_code
)
SELECT
    s.run_id AS run_id,
    s.artifact_id AS artifact_id,
    s.device_id AS device_id,
    d.device_ordinal AS device_ordinal,
    s.device_label AS device_label,
    s.kind AS kind,
    s.function_name AS function_name,
    s.source_file AS source_file,
    s.source_line AS source_line,
    s.is_user_code AS is_user_code,
    s.allocation_count AS allocation_count,
    s.bytes AS bytes,
    CAST(s.bytes AS DOUBLE)
        / NULLIF(
            CAST(SUM(s.bytes) OVER (PARTITION BY s.artifact_id, s.device_id, s.device_label, s.kind) AS DOUBLE), 0
        ) AS share_ratio,
    s.stack_count AS stack_count,
    CAST(s.bytes AS DOUBLE) / 1048576 AS mib
FROM _sites AS s
LEFT JOIN main.devices AS d
    ON d.device_id = s.device_id
