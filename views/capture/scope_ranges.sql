-- name: v1.scope_ranges
-- version: 1
-- grain: one row per capture and scope range
-- summary: The profiler's annotation scopes around GPU launches: one per execution of a module or an op on the
--   host, with what it lies in and the device work launched directly in it.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   scope_range_id BIGINT: the scope range; events carry that of the innermost scope around their launch
--   parent_scope_range_id BIGINT: the scope that it lies in; NULL for an outermost one
--   outermost_scope_range_id BIGINT: the outermost scope that it lies in, itself if it is one; NULL for cycle
--   depth INTEGER: 1 for an outermost scope; NULL for cycle
--   nesting VARCHAR: outermost, nested, or cycle where the scopes around it lead back to themselves
--   scope_name VARCHAR: HLO module or framework op of an outermost scope, HLO op of a nested one. Only events
--     tell names: NULL for a nested scope without a device event of its own, and where events disagree
--   path VARCHAR: names from the outermost to this one, with ... for the scopes between; NULL where one of the
--     two is unknown
--   device_event_count BIGINT (count): device events launched directly in it
--   host_event_count BIGINT (count): launch calls directly in it
--   sum_ps BIGINT (ps): sum of the durations of those device events
--   start_ps BIGINT (ps): start of the first of those device events; NULL without any
--   end_ps BIGINT (ps): end of the last; NULL without any
--   sum_us DOUBLE (us): sum_ps in microseconds
-- algorithm: XLA annotates each execution of a module, and in it each of the ops that it launches, nested as
--   their calls are. The file numbers the scopes and says which lies in which, but not what they are called:
--   an event carries the name of the outermost annotation (tf_op) and what the innermost say of their module
--   and op. Of several parents that a damaged file gives one scope, the lowest is taken.

WITH _rows AS (
    SELECT
        s.capture_id AS capture_id,
        s.scope_range_id AS scope_range_id,
        s.parent_scope_range_id AS parent_id,
        0 AS is_device_event,
        0 AS is_host_event,
        CAST(NULL AS BIGINT) AS start_ps,
        CAST(NULL AS BIGINT) AS end_ps,
        CAST(NULL AS BIGINT) AS hlo_op_name_id,
        CAST(NULL AS BIGINT) AS hlo_module_name_id,
        CAST(NULL AS BIGINT) AS tf_op_name_id
    FROM main.scope_ranges AS s
    UNION ALL
    SELECT
        s.capture_id AS capture_id,
        s.parent_scope_range_id AS scope_range_id,
        CAST(NULL AS BIGINT) AS parent_id,
        0 AS is_device_event,
        0 AS is_host_event,
        CAST(NULL AS BIGINT) AS start_ps,
        CAST(NULL AS BIGINT) AS end_ps,
        CAST(NULL AS BIGINT) AS hlo_op_name_id,
        CAST(NULL AS BIGINT) AS hlo_module_name_id,
        CAST(NULL AS BIGINT) AS tf_op_name_id
    FROM main.scope_ranges AS s
    UNION ALL
    SELECT
        e.capture_id AS capture_id,
        e.scope_range_id AS scope_range_id,
        CAST(NULL AS BIGINT) AS parent_id,
        1 AS is_device_event,
        0 AS is_host_event,
        e.start_ps AS start_ps,
        e.end_ps AS end_ps,
        o.hlo_op_name_id AS hlo_op_name_id,
        o.hlo_module_name_id AS hlo_module_name_id,
        o.tf_op_name_id AS tf_op_name_id
    FROM main.device_events AS e
    LEFT JOIN main.ops AS o
        ON o.capture_id = e.capture_id
        AND o.op_id = e.op_id
    WHERE e.role = 'work'
        AND e.scope_range_id IS NOT NULL
    UNION ALL
    SELECT
        h.capture_id AS capture_id,
        h.scope_range_id AS scope_range_id,
        CAST(NULL AS BIGINT) AS parent_id,
        0 AS is_device_event,
        1 AS is_host_event,
        CAST(NULL AS BIGINT) AS start_ps,
        CAST(NULL AS BIGINT) AS end_ps,
        CAST(NULL AS BIGINT) AS hlo_op_name_id,
        CAST(NULL AS BIGINT) AS hlo_module_name_id,
        CAST(NULL AS BIGINT) AS tf_op_name_id
    FROM main.host_events AS h
    WHERE h.scope_range_id IS NOT NULL
),
_scopes AS (
    SELECT
        r.capture_id AS capture_id,
        r.scope_range_id AS scope_range_id,
        MIN(r.parent_id) AS lowest_parent_id,
        CAST(SUM(r.is_device_event) AS BIGINT) AS device_event_count,
        CAST(SUM(r.is_host_event) AS BIGINT) AS host_event_count,
        COALESCE(CAST(SUM(r.end_ps - r.start_ps) AS BIGINT), 0) AS sum_ps,
        MIN(r.start_ps) AS first_start_ps,
        MAX(r.end_ps) AS last_end_ps,
        MIN(r.hlo_op_name_id) AS first_op,
        MAX(r.hlo_op_name_id) AS last_op,
        MIN(r.hlo_module_name_id) AS first_module,
        MAX(r.hlo_module_name_id) AS last_module,
        MIN(r.tf_op_name_id) AS first_title,
        MAX(r.tf_op_name_id) AS last_title
    FROM _rows AS r
    GROUP BY
        r.capture_id,
        r.scope_range_id
),
_placed AS (
    SELECT
        s.capture_id AS capture_id,
        s.scope_range_id AS scope_range_id,
        s.lowest_parent_id AS parent_id,
        CASE
            WHEN s.lowest_parent_id IS NULL THEN s.scope_range_id
            ELSE t.outermost_scope_range_id
        END AS outermost_id,
        CASE WHEN s.lowest_parent_id IS NULL THEN 1 ELSE t.depth + 1 END AS depth,
        s.device_event_count AS device_event_count,
        s.host_event_count AS host_event_count,
        s.sum_ps AS sum_ps,
        s.first_start_ps AS start_ps,
        s.last_end_ps AS end_ps,
        CASE WHEN s.first_op = s.last_op THEN s.first_op END AS hlo_op_name_id,
        s.first_module AS first_module,
        s.last_module AS last_module,
        s.first_title AS first_title,
        s.last_title AS last_title
    FROM _scopes AS s
    LEFT JOIN v1._scope_tree AS t
        ON t.capture_id = s.capture_id
        AND t.scope_range_id = s.lowest_parent_id
),
_outermost AS (
    SELECT
        p.capture_id AS capture_id,
        p.scope_range_id AS scope_range_id,
        p.parent_id AS parent_id,
        p.outermost_id AS outermost_id,
        p.depth AS depth,
        p.device_event_count AS device_event_count,
        p.host_event_count AS host_event_count,
        p.sum_ps AS sum_ps,
        p.start_ps AS start_ps,
        p.end_ps AS end_ps,
        p.hlo_op_name_id AS hlo_op_name_id,
        MIN(p.first_module) OVER (PARTITION BY p.capture_id, p.outermost_id) AS lowest_module,
        MAX(p.last_module) OVER (PARTITION BY p.capture_id, p.outermost_id) AS highest_module,
        MIN(p.first_title) OVER (PARTITION BY p.capture_id, p.outermost_id) AS lowest_title,
        MAX(p.last_title) OVER (PARTITION BY p.capture_id, p.outermost_id) AS highest_title
    FROM _placed AS p
),
_named AS (
    SELECT
        o.capture_id AS capture_id,
        o.scope_range_id AS scope_range_id,
        o.parent_id AS parent_id,
        o.outermost_id AS outermost_id,
        o.depth AS depth,
        o.device_event_count AS device_event_count,
        o.host_event_count AS host_event_count,
        o.sum_ps AS sum_ps,
        o.start_ps AS start_ps,
        o.end_ps AS end_ps,
        h.name AS op_name,
        CASE
            WHEN o.outermost_id IS NULL THEN NULL
            -- What XLA calls all modules, and all ops: the name follows in its metadata.
            WHEN t.name LIKE 'XlaModule:%' THEN m.name
            WHEN t.name LIKE 'Thunk:%' THEN NULL
            ELSE COALESCE(t.name, m.name)
        END AS outermost_name
    FROM _outermost AS o
    LEFT JOIN main.names AS h
        ON h.name_id = o.hlo_op_name_id
    LEFT JOIN main.names AS m
        ON m.name_id = o.lowest_module
        AND o.lowest_module = o.highest_module
    LEFT JOIN main.names AS t
        ON t.name_id = o.lowest_title
        AND o.lowest_title = o.highest_title
)
SELECT
    n.capture_id AS capture_id,
    n.scope_range_id AS scope_range_id,
    n.parent_id AS parent_scope_range_id,
    n.outermost_id AS outermost_scope_range_id,
    n.depth AS depth,
    CASE
        WHEN n.parent_id IS NULL THEN 'outermost'
        WHEN n.outermost_id IS NULL THEN 'cycle'
        ELSE 'nested'
    END AS nesting,
    CASE WHEN n.parent_id IS NULL THEN COALESCE(n.outermost_name, n.op_name) ELSE n.op_name END
        AS scope_name,
    CASE
        WHEN n.parent_id IS NULL THEN COALESCE(n.outermost_name, n.op_name)
        WHEN n.depth = 2 THEN n.outermost_name || '/' || n.op_name
        ELSE n.outermost_name || '/.../' || n.op_name
    END AS path,
    n.device_event_count AS device_event_count,
    n.host_event_count AS host_event_count,
    n.sum_ps AS sum_ps,
    n.start_ps AS start_ps,
    n.end_ps AS end_ps,
    CAST(n.sum_ps AS DOUBLE) / 1e6 AS sum_us
FROM _named AS n
