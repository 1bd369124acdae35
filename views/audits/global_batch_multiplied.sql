-- name: global_batch_multiplied
-- severity: warning
-- filter: run_name
-- question: Are the tokens of an update the global batch times the sequence length?
-- meaning: The tokens per update that the configuration states are not its global batch times its sequence length.
--   Tokens/s and MFU are off by that factor. Most often a global batch was multiplied by the device count once more,
--   or each assignment of a token to an expert was counted as a token.
-- next: Correct tokens_per_update in the configuration: input tokens of one optimizer update over all devices and all
--   accumulated microsteps, each token once.
-- evidence: analytical
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: NULL: the whole run
--   tokens_per_update BIGINT (count): tokens that the configuration states
--   global_batch BIGINT (count): sequences of an update
--   sequence_length BIGINT (count): tokens of a sequence
--   tokens_ratio DOUBLE (ratio): tokens_per_update / (global_batch * sequence_length)
--   equals VARCHAR: a parameter that is this factor, or the one over it; NULL where none is

WITH _names AS (
    SELECT
        v.param AS param,
        v.meaning AS meaning
    FROM (
        VALUES
            ('tokens_per_update', 'tokens'),
            ('tokens_per_step', 'tokens'),
            ('global_tokens_per_update', 'tokens'),
            ('global_batch', 'batch'),
            ('global_batch_size', 'batch'),
            ('seq', 'sequence'),
            ('seq_len', 'sequence'),
            ('sequence_length', 'sequence'),
            ('max_target_length', 'sequence')
    ) AS v (param, meaning)
),
_numbers AS (
    SELECT
        p.run_id AS run_id,
        p.param AS param,
        MAX(CASE WHEN REGEXP_MATCHES(p.value, '^[0-9]{1,12}$') THEN CAST(p.value AS BIGINT) END) AS number
    FROM main.run_params AS p
    GROUP BY
        p.run_id,
        p.param
),
_stated AS (
    SELECT
        p.run_id AS run_id,
        MAX(CASE WHEN n.meaning = 'tokens' THEN p.number END) AS tokens,
        MAX(CASE WHEN n.meaning = 'batch' THEN p.number END) AS batch,
        MAX(CASE WHEN n.meaning = 'sequence' THEN p.number END) AS sequence_length
    FROM _numbers AS p
    INNER JOIN _names AS n
        ON n.param = p.param
    GROUP BY p.run_id
),
_wrong AS (
    SELECT
        s.run_id AS run_id,
        s.tokens AS tokens,
        s.batch AS batch,
        s.sequence_length AS sequence_length
    FROM _stated AS s
    WHERE s.batch > 0
        AND s.sequence_length > 0
        AND CAST(s.tokens AS DOUBLE) <> CAST(s.batch AS DOUBLE) * CAST(s.sequence_length AS DOUBLE)
),
_causes AS (
    SELECT
        w.run_id AS run_id,
        MIN(p.param) AS equal_param
    FROM _wrong AS w
    INNER JOIN _numbers AS p
        ON p.run_id = w.run_id
    WHERE p.number > 1
        AND p.param IN ('devices', 'device_count', 'num_devices', 'process_count', 'num_processes', 'accum',
            'gradient_accumulation_steps', 'topk', 'num_experts_per_tok')
        AND (
            CAST(w.tokens AS DOUBLE)
                = CAST(w.batch AS DOUBLE) * CAST(w.sequence_length AS DOUBLE) * CAST(p.number AS DOUBLE)
            OR CAST(w.tokens AS DOUBLE) * CAST(p.number AS DOUBLE)
                = CAST(w.batch AS DOUBLE) * CAST(w.sequence_length AS DOUBLE)
        )
    GROUP BY w.run_id
)
SELECT
    r.run_name AS run_name,
    CAST(NULL AS BIGINT) AS capture_id,
    w.tokens AS tokens_per_update,
    w.batch AS global_batch,
    w.sequence_length AS sequence_length,
    CAST(w.tokens AS DOUBLE)
        / NULLIF(CAST(w.batch AS DOUBLE) * CAST(w.sequence_length AS DOUBLE), 0) AS tokens_ratio,
    c.equal_param AS equals
FROM _wrong AS w
INNER JOIN main.runs AS r
    ON r.run_id = w.run_id
LEFT JOIN _causes AS c
    ON c.run_id = w.run_id
ORDER BY r.run_name
