-- name: v1._counter_pass_mismatches
-- version: 1
-- grain: one row per kernel, launch shape and pass that dispatched it more or less often than the first pass
-- summary: Where passes of one run over a device do not show the same dispatches, so that none is derived.
-- evidence: measured
-- columns:
--   run_id BIGINT: the run
--   device_id BIGINT: the device
--   device_ordinal BIGINT: ordinal of the device on its host
--   kernel_name VARCHAR: name of the kernel
--   grid VARCHAR: blocks as x,y,z; NULL where unknown
--   block VARCHAR: threads of a block as x,y,z; NULL where unknown
--   first_capture_id BIGINT: capture of the first pass
--   capture_id BIGINT: capture of the pass that differs; the same for a kernel that was run again in it
--   pass_index BIGINT: the pass that differs
--   first_dispatch_count BIGINT (count): dispatches in the first pass; 0 for none
--   dispatch_count BIGINT (count): dispatches in the pass that differs; 0 for none

WITH _counts AS (
    SELECT
        d.run_id AS run_id,
        d.device_id AS device_id,
        d.name_id AS name_id,
        d.grid AS grid,
        d.block AS block,
        d.kernel_group AS kernel_group,
        d.pass_index AS pass_index,
        d.capture_id AS capture_id,
        COUNT(*) AS dispatches
    FROM v1._counted_dispatches AS d
    GROUP BY
        d.run_id,
        d.device_id,
        d.name_id,
        d.grid,
        d.block,
        d.kernel_group,
        d.pass_index,
        d.capture_id
),
_passes AS (
    SELECT DISTINCT
        c.run_id AS run_id,
        c.device_id AS device_id,
        c.pass_index AS pass_index,
        c.capture_id AS capture_id
    FROM _counts AS c
),
_kernels AS (
    SELECT
        c.run_id AS run_id,
        c.device_id AS device_id,
        c.name_id AS name_id,
        c.grid AS grid,
        c.block AS block,
        c.kernel_group AS kernel_group,
        CAST(SUM(CASE WHEN c.pass_index = 1 THEN c.dispatches ELSE 0 END) AS BIGINT) AS first_dispatch_count
    FROM _counts AS c
    GROUP BY
        c.run_id,
        c.device_id,
        c.name_id,
        c.grid,
        c.block,
        c.kernel_group
)
SELECT
    k.run_id AS run_id,
    k.device_id AS device_id,
    d.device_ordinal AS device_ordinal,
    n.name AS kernel_name,
    k.grid AS grid,
    k.block AS block,
    f.capture_id AS first_capture_id,
    p.capture_id AS capture_id,
    p.pass_index AS pass_index,
    k.first_dispatch_count AS first_dispatch_count,
    COALESCE(c.dispatches, 0) AS dispatch_count
FROM _kernels AS k
INNER JOIN _passes AS f
    ON f.run_id = k.run_id
    AND f.device_id = k.device_id
    AND f.pass_index = 1
INNER JOIN _passes AS p
    ON p.run_id = k.run_id
    AND p.device_id = k.device_id
LEFT JOIN _counts AS c
    ON c.run_id = k.run_id
    AND c.kernel_group = k.kernel_group
    AND c.pass_index = p.pass_index
INNER JOIN main.devices AS d
    ON d.device_id = k.device_id
INNER JOIN main.names AS n
    ON n.name_id = k.name_id
WHERE COALESCE(c.dispatches, 0) <> k.first_dispatch_count
