-- name: v1._counted_dispatches
-- version: 1
-- grain: one row per kernel dispatch of a run that counted
-- summary: Which pass a dispatch belongs to, and the how manieth of its kernel and launch shape it is there.
-- evidence: measured
-- columns:
--   run_id BIGINT: the run
--   capture_id BIGINT: the capture
--   device_event_id BIGINT: the dispatch
--   device_id BIGINT: the device
--   name_id BIGINT: name of the kernel
--   grid VARCHAR: blocks as x,y,z; NULL where unknown
--   block VARCHAR: threads of a block as x,y,z; NULL where unknown
--   kernel_group BIGINT: number, in the run, of its device, kernel, grid and block
--   pass_index BIGINT: 1 for the first pass over the device in this run, in the order of captures
--   occurrence BIGINT: 1 for the first dispatch of this kernel and launch shape in the pass
--   dispatch_count BIGINT (count): dispatches of this kernel and launch shape in the pass
-- algorithm: A profiler that cannot count everything at once runs the program again for each group of counters:
--   captures of one run and device are passes over the same dispatches. Within a capture, a kernel that was run
--   again for more counters has a replay_pass. Dispatches are in the order of their dispatch_id, which the host
--   gives out, and of their start where there is none.

WITH _counted AS (
    SELECT DISTINCT
        c.run_id AS run_id,
        v.capture_id AS capture_id,
        v.device_event_id AS device_event_id
    FROM main.counter_values AS v
    INNER JOIN main.captures AS c
        ON c.capture_id = v.capture_id
    WHERE v.device_event_id IS NOT NULL
        AND v.host_event_id IS NULL
),
_shapes AS (
    SELECT
        l.capture_id AS capture_id,
        l.launch_details_id AS launch_details_id,
        CAST(l.grid_x AS VARCHAR) || ',' || CAST(l.grid_y AS VARCHAR) || ',' || CAST(l.grid_z AS VARCHAR)
            AS grid,
        CAST(l.block_x AS VARCHAR) || ',' || CAST(l.block_y AS VARCHAR) || ',' || CAST(l.block_z AS VARCHAR)
            AS block,
        l.replay_pass AS replay_pass
    FROM main.launch_details AS l
),
_dispatches AS (
    SELECT
        p.run_id AS run_id,
        e.capture_id AS capture_id,
        e.device_event_id AS device_event_id,
        e.device_id AS device_id,
        e.name_id AS name_id,
        s.grid AS grid,
        s.block AS block,
        COALESCE(s.grid, '') || ' ' || COALESCE(s.block, '') AS launch_shape,
        COALESCE(s.replay_pass, 0) AS replay_pass,
        e.dispatch_id AS dispatch_id,
        e.start_ps AS start_ps
    FROM main.device_events AS e
    INNER JOIN main.captures AS p
        ON p.capture_id = e.capture_id
    LEFT JOIN _counted AS c
        ON c.run_id = p.run_id
        AND c.capture_id = e.capture_id
        AND c.device_event_id = e.device_event_id
    LEFT JOIN _shapes AS s
        ON s.capture_id = e.capture_id
        AND s.launch_details_id = e.launch_details_id
    WHERE c.device_event_id IS NOT NULL
        OR (e.role = 'serialized' AND e.kind = 'kernel')
),
_kernels AS (
    SELECT DISTINCT
        d.run_id AS run_id,
        d.device_id AS device_id,
        d.name_id AS name_id,
        d.launch_shape AS launch_shape
    FROM _dispatches AS d
),
_groups AS (
    SELECT
        k.run_id AS run_id,
        k.device_id AS device_id,
        k.name_id AS name_id,
        k.launch_shape AS launch_shape,
        ROW_NUMBER() OVER (
            PARTITION BY k.run_id
            ORDER BY k.device_id NULLS FIRST, k.name_id NULLS FIRST, k.launch_shape NULLS FIRST
        ) AS kernel_group
    FROM _kernels AS k
),
_captured_passes AS (
    SELECT DISTINCT
        d.run_id AS run_id,
        d.device_id AS device_id,
        d.capture_id AS capture_id,
        d.replay_pass AS replay_pass
    FROM _dispatches AS d
),
_passes AS (
    SELECT
        p.run_id AS run_id,
        p.device_id AS device_id,
        p.capture_id AS capture_id,
        p.replay_pass AS replay_pass,
        ROW_NUMBER() OVER (
            PARTITION BY p.run_id, p.device_id
            ORDER BY p.capture_id NULLS FIRST, p.replay_pass NULLS FIRST
        ) AS pass_index
    FROM _captured_passes AS p
)
SELECT
    d.run_id AS run_id,
    d.capture_id AS capture_id,
    d.device_event_id AS device_event_id,
    d.device_id AS device_id,
    d.name_id AS name_id,
    d.grid AS grid,
    d.block AS block,
    g.kernel_group AS kernel_group,
    p.pass_index AS pass_index,
    ROW_NUMBER() OVER (
        PARTITION BY d.run_id, g.kernel_group, p.pass_index
        ORDER BY d.dispatch_id NULLS FIRST, d.start_ps NULLS FIRST, d.device_event_id NULLS FIRST
    ) AS occurrence,
    COUNT(*) OVER (PARTITION BY d.run_id, g.kernel_group, p.pass_index) AS dispatch_count
FROM _dispatches AS d
INNER JOIN _groups AS g
    ON g.run_id = d.run_id
    AND g.device_id = d.device_id
    AND g.name_id = d.name_id
    AND g.launch_shape = d.launch_shape
INNER JOIN _passes AS p
    ON p.run_id = d.run_id
    AND p.device_id = d.device_id
    AND p.capture_id = d.capture_id
    AND p.replay_pass = d.replay_pass
