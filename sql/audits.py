"""Run audits on the runs of a warehouse. What is a fault, the audits say; nothing is judged here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from tracewh.ingest.errors import WarehouseError
from tracewh.sql.listing import did_you_mean
from tracewh.sql.warehouse import Warehouse
from tracewh.views.audit_catalog import Audit

_RUN_NAMES = "SELECT run_name FROM main.runs ORDER BY run_id"
_CAPTURES = """
    SELECT c.capture_id, r.run_name
    FROM main.captures AS c JOIN main.runs AS r USING (run_id) ORDER BY c.capture_id
"""
_IS_CHOSEN = "list_contains($runs, a.run_name)"
_INSTALLED = "SELECT view_name FROM main.view_versions"


@dataclass(frozen=True)
class AuditResult:
    """What an audit returned: no rows where all is well."""

    audit: Audit
    rows: list[tuple[Any, ...]]


def run_names(warehouse: Warehouse) -> list[str]:
    """Names of the runs, in the order in which they came."""
    return [name for (name,) in warehouse.connection.execute(_RUN_NAMES).fetchall()]


def missing_audit(name: str, known: Sequence[str]) -> str:
    """What to say where there is no audit of that name."""
    return f"There is no check {name}; {did_you_mean(name, known, '`tracewh check --list` lists them')}"


def run_audits(
    warehouse: Warehouse, audits: Iterable[Audit], runs: Sequence[str] | None = None
) -> Iterator[AuditResult]:
    """Run the audits, one by one, on the named runs, or on all where `runs` is None.

    The filter on the runs is put around each query; events of other runs stay unread. Raises WarehouseError
    where the warehouse lacks a view that an audit reads.
    """
    audits = list(audits)
    _check_views(warehouse, audits)
    conditions: dict[str, list[tuple[str, dict[str, Any]]]] = {
        "run_name": [("TRUE", {}) if runs is None else (_IS_CHOSEN, {"runs": list(runs)})],
        "capture_id": [(text, {}) for text in (["TRUE"] if runs is None else _ranges(warehouse, runs))],
    }
    for audit in audits:
        rows: list[tuple[Any, ...]] = []
        for condition, parameters in conditions[audit.filter_column]:
            query = f"SELECT * FROM (\n{audit.sql}\n) AS a WHERE {condition}"
            rows += warehouse.connection.execute(query, parameters).fetchall()
        yield AuditResult(audit, rows)


def _ranges(warehouse: Warehouse, runs: Sequence[str]) -> list[str]:
    """Conditions that together pick the captures of the runs.

    Ranges, since DuckDB carries two comparisons through joins to every scan, but no list of ids.
    """
    captures = warehouse.connection.execute(_CAPTURES).fetchall()
    ranges = []
    for is_chosen, group in groupby(captures, key=lambda capture: capture[1] in runs):
        ids = [capture_id for capture_id, _ in group]
        if is_chosen:
            ranges.append(f"a.capture_id BETWEEN {ids[0]} AND {ids[-1]}")
    return ranges


def _check_views(warehouse: Warehouse, audits: Iterable[Audit]) -> None:
    installed = {name for (name,) in warehouse.connection.execute(_INSTALLED).fetchall()}
    missing = sorted({name for audit in audits for name in audit.references} - installed)
    if missing:
        raise WarehouseError(
            f"{warehouse.path}: has the views of another tracewh, without {missing[0]}. "
            "The next `tracewh ingest` into it brings them up to date."
        )
