"""What metrics the runs of a warehouse have, for listings."""

from __future__ import annotations

from tracewh.sql import listing
from tracewh.sql.listing import Record, records
from tracewh.sql.warehouse import Warehouse

_METRICS = """
    SELECT metric, count(DISTINCT scope) AS scopes, unit, polarity AS better,
           timing, evidence, count(DISTINCT run_id) AS runs
    FROM v1.metrics GROUP BY ALL ORDER BY metric, timing, evidence
"""
_VALUES = """
    SELECT metric, scope, value, unit, polarity AS better, timing, evidence, statistic, samples
    FROM v1.metrics WHERE run_name = $1 AND ($2 IS NULL OR metric = $2)
    ORDER BY metric, timing, evidence, CASE WHEN polarity = 'lower' THEN -value ELSE value END, scope
"""


def metrics(warehouse: Warehouse) -> list[Record]:
    """Each metric with its number of scopes and of runs, what it is in, and which values are better."""
    return records(warehouse, _METRICS)


def metrics_of_run(warehouse: Warehouse, run: str, metric: str | None) -> list[Record]:
    """The values of a run, or of one of its metrics; raises WarehouseError where there is no such run."""
    listing.check_run(warehouse, run)
    return records(warehouse, _VALUES, run, metric)
