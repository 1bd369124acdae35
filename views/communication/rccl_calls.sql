-- name: v1.rccl_calls
-- version: 1
-- grain: one row per host call of RCCL that communicates
-- summary: Payload of each call of RCCL by its arguments, and the kernel that carries it out.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   host_event_id BIGINT: the call
--   correlation_id BIGINT: its id; NULL where it has none
--   api_name VARCHAR: the function
--   kind VARCHAR: all-reduce, all-gather, reduce-scatter, all-to-all, send, recv, ..., as v1.collectives has it;
--     reduce, gather, scatter; NULL where its arguments decide
--   thread_name VARCHAR: thread that made the call
--   call_start_ps BIGINT (ps): start of the call
--   call_end_ps BIGINT (ps): end of the call
--   step_num BIGINT: the step that made the call; NULL outside the steps
--   is_nested BOOLEAN: made inside of another call of RCCL, whose payload is this one's too: sums leave it out
--   element_count BIGINT (count): elements, as the function counts them; NULL where not recorded
--   dtype VARCHAR: type of the elements as HLO calls it; NULL where not recorded
--   element_bytes BIGINT (bytes): size of an element
--   call_bytes BIGINT (bytes): element_count elements
--   communicator VARCHAR: handle of the communicator; numbers in decimal
--   group_size BIGINT (count): ranks of the communicator; NULL where no call that formed it is traced
--   payload_bytes BIGINT (bytes): per device, as v1.collectives has it: of an all-gather and a gather the
--     result, else the operands; NULL where unknown
--   unknown_reason VARCHAR: why payload_bytes is NULL
--   device_event_id BIGINT: the kernel; the first where several kernels of one device carry the call out
--   device_id BIGINT: its device
--   device_ordinal BIGINT: ordinal of the device on its host
--   kernel_name VARCHAR: name of the kernel
--   start_ps BIGINT (ps): start of the first kernel; NULL for a run that counted, whose times tell nothing
--   end_ps BIGINT (ps): end of the last
--   kernel_count BIGINT (count): kernels that carry out the call and those launched with it
--   calls_in_kernel BIGINT (count): calls that those kernels carry out, this one too, and without the nested: all
--     calls of a group share its kernels, whose time belongs to none of them alone
--   link_source VARCHAR: correlation (the kernel was launched inside the call, or at the end of its group);
--     name_and_time (the nth kernel of RCCL without a call, for the nth call without a kernel, where a step has
--     as many of both); several_devices (of a group that launched on several devices, it is unknown which); none
--   payload_mb DOUBLE (MB): payload_bytes in millions of bytes

WITH _ordered AS (
    SELECT
        l.capture_id AS capture_id,
        l.unit_track_id AS unit_track_id,
        l.unit_place AS unit_place,
        l.device_event_id AS device_event_id,
        l.device_id AS device_id,
        l.name_id AS name_id,
        CASE WHEN l.role = 'work' THEN l.start_ps END AS timed_start_ps,
        CASE WHEN l.role = 'work' THEN l.end_ps END AS timed_end_ps,
        l.link_source AS link_source,
        ROW_NUMBER() OVER (
            PARTITION BY l.capture_id, l.unit_track_id, l.unit_place
            ORDER BY l.start_ps NULLS FIRST, l.device_event_id NULLS FIRST
        ) AS place
    FROM v1._rccl_links AS l
),
_kernels AS (
    SELECT
        o.capture_id AS capture_id,
        o.unit_track_id AS unit_track_id,
        o.unit_place AS unit_place,
        COUNT(*) AS kernel_count,
        COUNT(DISTINCT o.device_id) AS device_count,
        MAX(CASE WHEN o.place = 1 THEN o.device_event_id END) AS first_event_id,
        MAX(CASE WHEN o.place = 1 THEN o.name_id END) AS first_name_id,
        MAX(CASE WHEN o.place = 1 THEN o.device_id END) AS first_device_id,
        MIN(o.timed_start_ps) AS first_start_ps,
        MAX(o.timed_end_ps) AS last_end_ps,
        MIN(o.link_source) AS first_source
    FROM _ordered AS o
    GROUP BY
        o.capture_id,
        o.unit_track_id,
        o.unit_place
),
_calls AS (
    SELECT
        c.capture_id AS capture_id,
        c.host_event_id AS host_event_id,
        c.correlation_id AS correlation_id,
        c.name_id AS name_id,
        c.kind AS kind,
        c.is_per_rank AS is_per_rank,
        c.track_id AS track_id,
        c.unit_place AS unit_place,
        c.start_ps AS start_ps,
        c.end_ps AS end_ps,
        c.is_nested AS is_nested,
        a.host_event_id IS NOT NULL AS has_arguments,
        a.element_count AS element_count,
        t.dtype AS dtype,
        t.element_bytes AS element_bytes,
        a.communicator AS communicator,
        g.group_size AS group_size,
        -- Of the bytes in doubles, whether they fit: nothing of 10 TB is in one device's memory.
        CASE
            WHEN a.element_count < 0 THEN FALSE
            ELSE CAST(a.element_count AS DOUBLE) * CAST(t.element_bytes AS DOUBLE)
                * CAST(CASE WHEN c.is_per_rank THEN COALESCE(g.group_size, 1) ELSE 1 END AS DOUBLE) < 1e13
        END AS is_possible,
        CAST(SUM(CASE WHEN c.is_nested THEN 0 ELSE 1 END) OVER (
            PARTITION BY c.capture_id, c.track_id, c.unit_place
        ) AS BIGINT) AS calls_in_unit
    FROM v1._rccl_host_calls AS c
    LEFT JOIN v1._rccl_arguments AS a
        ON a.capture_id = c.capture_id
        AND a.host_event_id = c.host_event_id
    LEFT JOIN v1._rccl_dtypes AS t
        ON t.spelling = a.dtype_spelling
    LEFT JOIN v1._rccl_communicators AS g
        ON g.capture_id = c.capture_id
        AND g.communicator = a.communicator
    WHERE c.function_role = 'communicates'
),
_sized AS (
    SELECT
        c.capture_id AS capture_id,
        c.host_event_id AS host_event_id,
        c.correlation_id AS correlation_id,
        c.name_id AS name_id,
        c.kind AS kind,
        c.track_id AS track_id,
        c.unit_place AS unit_place,
        c.start_ps AS start_ps,
        c.end_ps AS end_ps,
        c.is_nested AS is_nested,
        c.element_count AS element_count,
        c.dtype AS dtype,
        c.element_bytes AS element_bytes,
        c.communicator AS communicator,
        c.group_size AS group_size,
        c.calls_in_unit AS calls_in_unit,
        CASE WHEN c.is_possible THEN c.element_count * c.element_bytes END AS call_bytes,
        CASE
            WHEN c.is_per_rank IS NULL OR NOT c.is_possible THEN NULL
            WHEN c.is_per_rank THEN c.element_count * c.element_bytes * c.group_size
            ELSE c.element_count * c.element_bytes
        END AS payload_bytes,
        CASE
            WHEN c.is_per_rank IS NULL THEN 'its arguments do not tell'
            WHEN NOT c.has_arguments THEN 'no arguments are recorded'
            WHEN c.element_count IS NULL THEN 'the count is not recorded'
            WHEN c.element_bytes IS NULL THEN 'the element type is not recorded'
            WHEN NOT c.is_possible THEN 'the count is out of range'
            WHEN c.is_per_rank AND c.group_size IS NULL THEN 'the size of the communicator is not recorded'
        END AS unknown_reason
    FROM _calls AS c
)
SELECT
    z.capture_id AS capture_id,
    z.host_event_id AS host_event_id,
    z.correlation_id AS correlation_id,
    f.name AS api_name,
    z.kind AS kind,
    t.track_name AS thread_name,
    z.start_ps AS call_start_ps,
    z.end_ps AS call_end_ps,
    s.step_num AS step_num,
    z.is_nested AS is_nested,
    z.element_count AS element_count,
    z.dtype AS dtype,
    z.element_bytes AS element_bytes,
    z.call_bytes AS call_bytes,
    z.communicator AS communicator,
    z.group_size AS group_size,
    z.payload_bytes AS payload_bytes,
    z.unknown_reason AS unknown_reason,
    CASE WHEN k.device_count = 1 THEN k.first_event_id END AS device_event_id,
    d.device_id AS device_id,
    d.device_ordinal AS device_ordinal,
    n.name AS kernel_name,
    CASE WHEN k.device_count = 1 THEN k.first_start_ps END AS start_ps,
    CASE WHEN k.device_count = 1 THEN k.last_end_ps END AS end_ps,
    COALESCE(k.kernel_count, 0) AS kernel_count,
    z.calls_in_unit AS calls_in_kernel,
    CASE
        WHEN k.device_count > 1 THEN 'several_devices'
        WHEN k.device_count = 1 THEN k.first_source
        ELSE 'none'
    END AS link_source,
    CAST(z.payload_bytes AS DOUBLE) / 1e6 AS payload_mb
FROM _sized AS z
INNER JOIN main.names AS f
    ON f.name_id = z.name_id
LEFT JOIN main.tracks AS t
    ON t.capture_id = z.capture_id
    AND t.track_id = z.track_id
LEFT JOIN v1._launch_steps AS s
    ON s.capture_id = z.capture_id
    AND s.correlation_id = z.correlation_id
LEFT JOIN _kernels AS k
    ON k.capture_id = z.capture_id
    AND k.unit_track_id = z.track_id
    AND k.unit_place = z.unit_place
LEFT JOIN main.devices AS d
    ON d.device_id = CASE WHEN k.device_count = 1 THEN k.first_device_id END
LEFT JOIN main.names AS n
    ON n.name_id = CASE WHEN k.device_count = 1 THEN k.first_name_id END
