-- name: v1._rccl_arguments
-- version: 1
-- grain: one row per host call of RCCL with an argument of use
-- summary: What the arguments of RCCL's calls say.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture
--   host_event_id BIGINT: the call
--   element_count BIGINT (count): elements, as the function counts them
--   dtype_spelling VARCHAR: number or name of the element type; joins v1._rccl_dtypes
--   communicator VARCHAR: handle that it communicates with; numbers in decimal
--   formed_communicator VARCHAR: handle that it made
--   rank_count BIGINT (count): ranks of the communicator that it made
--   stream VARCHAR: handle of the stream; numbers in decimal

WITH _arguments AS (
    SELECT
        s.capture_id AS capture_id,
        s.owner_id AS host_event_id,
        a.name AS argument,
        s.int_value AS int_value,
        COALESCE(CAST(s.int_value AS VARCHAR), t.name) AS text_value,
        COALESCE(
            CAST(s.int_value AS VARCHAR),
            NULLIF(REGEXP_EXTRACT(
                t.name, '(nccl(Int|Uint|Char|Half|Float|Double|Bfloat|BFloat|Fp8)[A-Za-z0-9]*)', 1
            ), ''),
            NULLIF(REGEXP_EXTRACT(t.name, '^[^0-9]*([0-9]+)[^0-9]*$', 1), '')
        ) AS dtype_text
    FROM main.event_stats AS s
    INNER JOIN main.names AS a
        ON a.name_id = s.stat_name_id
    INNER JOIN v1._rccl_host_calls AS c
        ON c.capture_id = s.capture_id
        AND c.host_event_id = s.owner_id
    LEFT JOIN main.names AS t
        ON t.name_id = s.value_name_id
    WHERE s.owner = 'host_event'
        AND a.name IN (
            'count', 'sendcount', 'recvcount', 'datatype', 'dataType', 'comm', 'newcomm', 'nranks', 'ndev',
            'stream'
        )
)
SELECT
    a.capture_id AS capture_id,
    a.host_event_id AS host_event_id,
    MIN(CASE WHEN a.argument IN ('count', 'sendcount', 'recvcount') THEN a.int_value END) AS element_count,
    MIN(CASE WHEN a.argument IN ('datatype', 'dataType') THEN a.dtype_text END) AS dtype_spelling,
    MIN(CASE WHEN a.argument = 'comm' THEN a.text_value END) AS communicator,
    MIN(CASE WHEN a.argument = 'newcomm' THEN a.text_value END) AS formed_communicator,
    MIN(CASE WHEN a.argument IN ('nranks', 'ndev') THEN a.int_value END) AS rank_count,
    MIN(CASE WHEN a.argument = 'stream' THEN a.text_value END) AS stream
FROM _arguments AS a
GROUP BY
    a.capture_id,
    a.host_event_id
