-- name: v1.run_groups
-- version: 1
-- grain: one row per group and run in it
-- summary: Sets of runs that can be compared: single runs, commits, labels and baselines.
-- evidence: measured
-- columns:
--   group_name VARCHAR: run:NAME, commit:SHA, label:LABEL=VALUE or baseline:NAME
--   group_kind VARCHAR: run, commit, label or baseline
--   run_id BIGINT: a run of the group
-- algorithm: `tracewh baseline` makes baselines; `tracewh ingest --label` labels runs.

SELECT
    'run:' || r.run_name AS group_name,
    'run' AS group_kind,
    r.run_id AS run_id
FROM main.runs AS r
UNION ALL
SELECT
    'commit:' || r.commit_sha AS group_name,
    'commit' AS group_kind,
    r.run_id AS run_id
FROM main.runs AS r
WHERE r.commit_sha IS NOT NULL
UNION ALL
SELECT
    'label:' || l.label || '=' || l.value AS group_name,
    'label' AS group_kind,
    l.run_id AS run_id
FROM main.run_labels AS l
UNION ALL
SELECT
    'baseline:' || b.baseline AS group_name,
    'baseline' AS group_kind,
    b.run_id AS run_id
FROM main.baselines AS b
