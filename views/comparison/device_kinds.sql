-- name: v1._device_kinds
-- version: 1
-- grain: one row per run and kind of its devices
-- summary: What the devices of a run are: the product where its captures tell one, else the kind.
-- evidence: measured or derived
-- columns:
--   run_id BIGINT: the run
--   device_kind VARCHAR: product or kind
-- algorithm: CPUs are no devices of a run with accelerators. A run whose captures name no device has the kind that its
--   configuration states.

WITH _products AS (
    SELECT
        p.device_id AS device_id,
        MAX(p.product) AS product_name
    FROM v1._device_products AS p
    WHERE p.product_count = 1
    GROUP BY p.device_id
),
_told AS (
    SELECT
        d.run_id AS run_id,
        COALESCE(p.product_name, d.device_kind) AS device_kind,
        CASE WHEN d.device_type = 'CPU' THEN 2 ELSE 1 END AS preference
    FROM main.devices AS d
    LEFT JOIN _products AS p
        ON p.device_id = d.device_id
    UNION ALL
    SELECT
        k.run_id AS run_id,
        k.value AS device_kind,
        3 AS preference
    FROM main.run_params AS k
    WHERE k.param = 'device_kind'
),
_ranked AS (
    SELECT
        t.run_id AS run_id,
        t.device_kind AS device_kind,
        t.preference AS preference,
        MIN(t.preference) OVER (PARTITION BY t.run_id) AS best_preference
    FROM _told AS t
    WHERE t.device_kind IS NOT NULL
)
SELECT DISTINCT
    r.run_id AS run_id,
    r.device_kind AS device_kind
FROM _ranked AS r
WHERE r.preference = r.best_preference
