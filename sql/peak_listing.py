"""What peaks a warehouse has, and which of them hold for the devices of a run."""

from __future__ import annotations

from tracewh.sql.listing import Record, check_run, records
from tracewh.sql.rows import SHIPPED_IDS, first_row
from tracewh.sql.warehouse import Warehouse

_ALL = """
    SELECT p.peak_id AS id, p.device_pattern AS device, r.run_name AS run, p.quantity,
           p.memory_level AS level, p.dtype, p.peak_kind AS kind, p.value, p.clock_mhz,
           CASE WHEN p.capture_id IS NOT NULL THEN 'capture ' || p.capture_id
                WHEN p.peak_id <= $1 THEN 'reference' ELSE 'user' END AS origin,
           p.source, CAST(p.stated_on AS VARCHAR) AS stated_on
    FROM main.device_peaks AS p
    LEFT JOIN main.captures AS c ON c.capture_id = p.capture_id
    LEFT JOIN main.runs AS r ON r.run_id = COALESCE(p.run_id, c.run_id)
    ORDER BY p.device_pattern, p.quantity, p.memory_level, p.dtype, p.peak_kind, p.peak_id
"""
_OF_RUN = """
    SELECT p.peak_id AS id, p.device_kind AS device, p.product, count(DISTINCT p.device_id) AS devices,
           p.quantity, p.memory_level AS level, p.dtype, p.peak_kind AS kind, p.value, p.scale_ratio,
           p.clock_mhz, p.origin, p.source, p.stated_on, p.trace_value, p.trace_ratio
    FROM v1.device_peaks AS p
    JOIN main.captures AS c USING (capture_id)
    JOIN main.runs AS r USING (run_id)
    WHERE r.run_name = $1
    GROUP BY ALL
    ORDER BY p.device_kind, p.product, p.quantity, p.memory_level, p.dtype, p.peak_kind, p.peak_id, p.value
"""


def peaks(warehouse: Warehouse, run: str | None) -> list[Record]:
    """All peaks of the warehouse or, with a run, those that count for its devices as they are partitioned.

    Raises WarehouseError where there is no such run.
    """
    if run is None:
        return records(warehouse, _ALL, SHIPPED_IDS)
    check_run(warehouse, run)
    return records(warehouse, _OF_RUN, run)


def is_named(warehouse: Warehouse, device_pattern: str) -> bool:
    """Whether the pattern matches a device of the warehouse, or a product that one of them is."""
    row = first_row(
        warehouse.connection,
        "SELECT 1 WHERE EXISTS (FROM main.devices WHERE device_kind LIKE $1) "
        "OR EXISTS (FROM v1._device_products WHERE product_count = 1 AND product LIKE $1)",
        [device_pattern],
    )
    return row is not None
