-- name: v1._sibling_captures
-- version: 1
-- grain: one row per capture of a run that has several
-- summary: Captures that others may be compared with; the events of any other need not be read for that.
-- evidence: measured
-- columns:
--   capture_id BIGINT: the capture

SELECT DISTINCT c.capture_id AS capture_id
FROM main.captures AS c
INNER JOIN main.captures AS o
    ON o.run_id = c.run_id
    AND o.capture_id <> c.capture_id
