-- name: reconciliation
-- severity: error
-- filter: capture_id
-- question: Does every ledger of device time add up?
-- meaning: Two ways to count the same device time differ. Some work is charged twice, or not at all: shares of this
--   step cannot be trusted.
-- next: This is a fault of a view or of an extended rule, not of the run. Remove your own rules (tracewh rules) to see
--   whether they cause it; else report it with the capture.
-- evidence: derived
-- columns:
--   run_name VARCHAR: the run
--   capture_id BIGINT: the capture
--   device_ordinal BIGINT: ordinal of the device on its host
--   step_num BIGINT: the step; NULL for the whole capture
--   ledger VARCHAR: what is added up
--   expected_ps BIGINT (ps): what the parts must add up to
--   actual_ps BIGINT (ps): what they add up to
--   difference_ps BIGINT (ps): actual_ps - expected_ps

SELECT
    r.run_name AS run_name,
    l.capture_id AS capture_id,
    d.device_ordinal AS device_ordinal,
    l.step_num AS step_num,
    l.ledger AS ledger,
    l.expected_ps AS expected_ps,
    l.actual_ps AS actual_ps,
    l.difference_ps AS difference_ps
FROM v1.reconciliation AS l
INNER JOIN main.captures AS c
    ON c.capture_id = l.capture_id
INNER JOIN main.runs AS r
    ON r.run_id = c.run_id
LEFT JOIN main.devices AS d
    ON d.device_id = l.device_id
WHERE l.is_exact
    AND l.difference_ps <> 0
ORDER BY
    ABS(l.difference_ps) DESC,
    r.run_name,
    l.capture_id,
    d.device_ordinal,
    l.step_num,
    l.ledger
