-- name: v1._compared_runs
-- version: 1
-- grain: one row per pair of groups, side of it and run
-- summary: The runs of both sides of every comparison that can be asked for.
-- evidence: measured
-- columns:
--   base_group VARCHAR: group of v1.run_groups that is compared with
--   head_group VARCHAR: group that is compared
--   side VARCHAR: base or head
--   run_id BIGINT: a run of that side
-- algorithm: A filter on both groups leaves the runs of two groups; without one, rows grow with the square of the groups.

SELECT DISTINCT
    b.group_name AS base_group,
    h.group_name AS head_group,
    s.side AS side,
    CASE s.side WHEN 'base' THEN b.run_id ELSE h.run_id END AS run_id
FROM v1.run_groups AS b
CROSS JOIN v1.run_groups AS h
CROSS JOIN (
    VALUES
        ('base'),
        ('head')
) AS s (side)
