-- name: v1.step_classes
-- version: 1
-- grain: one row per capture, device and step
-- summary: What kind of step each is: compiled in it, lighter or heavier than others, and how often that comes.
-- evidence: derived
-- columns:
--   capture_id BIGINT: the capture
--   device_id BIGINT: the device
--   device_ordinal BIGINT: ordinal of the device on its host
--   step_num BIGINT: the step
--   duration_ps BIGINT (ps): device window of the step, as in v1.steps
--   step_class VARCHAR: incomplete (as v1.steps says); warmup (XLA compiled in it); only (no other step
--     is left to compare with); regular (no step differs clearly); light, heavy (they do)
--   period_steps BIGINT (count): distance in step numbers at which heavy steps recur; NULL where they do not
--   light_limit_ps BIGINT (ps): longest light step of the device; NULL where no step differs clearly
--   compared_count BIGINT (count): complete steps of the device without a compilation: they are compared
--   duration_ms DOUBLE (ms): duration_ps in milliseconds
-- algorithm: The compared steps of a device are put in order of duration. From four steps on, they part behind the
--   first step, not before the middle one, after which the next is longer by at least a tenth and by more than
--   that step is longer than the middle one (of an even number, the lower of the two). Those up to there are
--   light, those after it heavy: at least half are light. Heavy steps recur with a period where any two that
--   follow each other are equally far apart, and less than that lies before the first and after the last. A
--   compilation is a host event of XLA's, JAX's or hipRTC's compiler that begins inside the step's mark.

WITH _compilations AS (
    SELECT
        h.capture_id AS capture_id,
        h.start_ps AS start_ps
    FROM main.host_events AS h
    INNER JOIN main.names AS n
        ON n.name_id = h.name_id
    WHERE REGEXP_MATCHES(n.name, '^([$][^ ]* )?backend_compile(_and_load)?$')
        OR REGEXP_MATCHES(n.name, '^(.*::(Compile|CompileAndLoad|RunBackend)|XlaCompile|hiprtcCompileProgram)$')
),
_warm AS (
    SELECT DISTINCT
        a.capture_id AS capture_id,
        a.step_num AS step_num
    FROM v1._step_names AS a
    INNER JOIN _compilations AS c
        ON c.capture_id = a.capture_id
        AND c.start_ps >= a.host_start_ps
        AND c.start_ps < a.host_end_ps
),
_steps AS (
    SELECT
        s.capture_id AS capture_id,
        s.device_id AS device_id,
        s.device_ordinal AS device_ordinal,
        s.step_num AS step_num,
        s.duration_ps AS duration_ps,
        s.is_complete AS is_complete,
        CASE WHEN s.is_complete AND w.step_num IS NULL THEN 1 ELSE 0 END AS is_compared
    FROM v1.steps AS s
    LEFT JOIN _warm AS w
        ON w.capture_id = s.capture_id
        AND w.step_num = s.step_num
),
_sorted AS (
    SELECT
        s.capture_id AS capture_id,
        s.device_id AS device_id,
        s.device_ordinal AS device_ordinal,
        s.step_num AS step_num,
        s.duration_ps AS duration_ps,
        s.is_complete AS is_complete,
        s.is_compared AS is_compared,
        ROW_NUMBER() OVER (
            PARTITION BY s.capture_id, s.device_id, s.is_compared
            ORDER BY s.duration_ps NULLS FIRST, s.step_num NULLS FIRST
        ) AS duration_rank,
        LEAD(s.duration_ps) OVER (
            PARTITION BY s.capture_id, s.device_id, s.is_compared
            ORDER BY s.duration_ps NULLS FIRST, s.step_num NULLS FIRST
        ) AS next_ps,
        CAST(SUM(s.is_compared) OVER (PARTITION BY s.capture_id, s.device_id) AS BIGINT) AS compared_count
    FROM _steps AS s
),
_middle AS (
    SELECT
        s.capture_id AS capture_id,
        s.device_id AS device_id,
        s.device_ordinal AS device_ordinal,
        s.step_num AS step_num,
        s.duration_ps AS duration_ps,
        s.is_complete AS is_complete,
        s.is_compared AS is_compared,
        s.duration_rank AS duration_rank,
        s.next_ps AS next_ps,
        s.compared_count AS compared_count,
        MAX(CASE
            WHEN s.is_compared = 1 AND 2 * s.duration_rank IN (s.compared_count, s.compared_count + 1)
                THEN s.duration_ps
        END) OVER (PARTITION BY s.capture_id, s.device_id) AS middle_ps
    FROM _sorted AS s
),
_parted AS (
    SELECT
        m.capture_id AS capture_id,
        m.device_id AS device_id,
        m.device_ordinal AS device_ordinal,
        m.step_num AS step_num,
        m.duration_ps AS duration_ps,
        m.is_complete AS is_complete,
        m.is_compared AS is_compared,
        m.compared_count AS compared_count,
        MIN(CASE
            WHEN m.is_compared = 1
                AND m.compared_count >= 4
                AND 2 * m.duration_rank >= m.compared_count
                AND m.next_ps - m.duration_ps > m.duration_ps - m.middle_ps
                AND 10 * (m.next_ps - m.duration_ps) >= m.duration_ps
                THEN m.duration_ps
        END) OVER (PARTITION BY m.capture_id, m.device_id) AS light_limit_ps,
        MIN(m.step_num) OVER (PARTITION BY m.capture_id, m.device_id) AS lowest_num,
        MAX(m.step_num) OVER (PARTITION BY m.capture_id, m.device_id) AS highest_num
    FROM _middle AS m
),
_classes AS (
    SELECT
        p.capture_id AS capture_id,
        p.device_id AS device_id,
        p.device_ordinal AS device_ordinal,
        p.step_num AS step_num,
        p.duration_ps AS duration_ps,
        p.compared_count AS compared_count,
        p.light_limit_ps AS light_limit_ps,
        p.lowest_num AS lowest_num,
        p.highest_num AS highest_num,
        CASE
            WHEN NOT p.is_complete THEN 'incomplete'
            WHEN p.is_compared = 0 THEN 'warmup'
            WHEN p.compared_count = 1 THEN 'only'
            WHEN p.light_limit_ps IS NULL THEN 'regular'
            WHEN p.duration_ps <= p.light_limit_ps THEN 'light'
            ELSE 'heavy'
        END AS step_class
    FROM _parted AS p
),
_distances AS (
    SELECT
        c.capture_id AS capture_id,
        c.device_id AS device_id,
        c.device_ordinal AS device_ordinal,
        c.step_num AS step_num,
        c.duration_ps AS duration_ps,
        c.compared_count AS compared_count,
        c.light_limit_ps AS light_limit_ps,
        c.lowest_num AS lowest_num,
        c.highest_num AS highest_num,
        c.step_class AS step_class,
        CASE
            WHEN c.step_class = 'heavy' THEN c.step_num - LAG(c.step_num) OVER (
                PARTITION BY c.capture_id, c.device_id, c.step_class
                ORDER BY c.step_num NULLS FIRST
            )
        END AS distance,
        CASE WHEN c.step_class = 'heavy' THEN c.step_num END AS heavy_num
    FROM _classes AS c
),
_periods AS (
    SELECT
        d.capture_id AS capture_id,
        d.device_id AS device_id,
        d.device_ordinal AS device_ordinal,
        d.step_num AS step_num,
        d.duration_ps AS duration_ps,
        d.compared_count AS compared_count,
        d.light_limit_ps AS light_limit_ps,
        d.step_class AS step_class,
        MIN(d.distance) OVER (PARTITION BY d.capture_id, d.device_id) AS shortest,
        MAX(d.distance) OVER (PARTITION BY d.capture_id, d.device_id) AS longest,
        MIN(d.heavy_num) OVER (PARTITION BY d.capture_id, d.device_id) - d.lowest_num AS before_first,
        d.highest_num - MAX(d.heavy_num) OVER (PARTITION BY d.capture_id, d.device_id) AS after_last
    FROM _distances AS d
)
SELECT
    p.capture_id AS capture_id,
    p.device_id AS device_id,
    p.device_ordinal AS device_ordinal,
    p.step_num AS step_num,
    p.duration_ps AS duration_ps,
    p.step_class AS step_class,
    CASE
        WHEN p.shortest = p.longest AND p.before_first < p.longest AND p.after_last < p.longest THEN p.longest
    END AS period_steps,
    p.light_limit_ps AS light_limit_ps,
    p.compared_count AS compared_count,
    CAST(p.duration_ps AS DOUBLE) / 1e9 AS duration_ms
FROM _periods AS p
