"""A user's own ledger of useful FLOPs: what an optimizer update computes by component, as JSON or CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.content import uncompressed_name
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.timing import metric_name

TOTAL = "total"
_FLOPS_COLUMNS = ("useful_flops", "useful_flops_per_update", "flops_per_update", "flops")
_LISTS = ("components", "useful_flops_per_update", "useful_flops")
# A total that is stated beside its parts may be rounded.
_TOLERANCE = 1e-3


@dataclass(frozen=True)
class LedgerRow:
    """Useful FLOPs of a component in one optimizer update of all devices, and the formula if it is stated."""

    component: str
    useful_flops: float
    formula: str | None = None


def read_ledger(data: bytes, place: str, problems: ProblemCounter) -> list[LedgerRow]:
    """The components of a ledger; a total is among them only where it is all that is stated.

    A component comes once, with FLOPs that are finite and not negative: what is not so raises UnreadableFile,
    since a ledger that lacks a part would be wrong in silence. A total that is not the sum is a problem.
    """
    text = data.decode("utf-8-sig", "replace")
    is_csv = uncompressed_name(place).lower().endswith(".csv")
    rows = list(_csv_rows(text, place) if is_csv else _json_rows(text, place))
    ledger: dict[str, LedgerRow] = {}
    for component, flops, formula in rows:
        value = _flops(flops)
        if not component:
            raise UnreadableFile(f"{place}: useful FLOPs of {flops!r} have no component. Name it.")
        if value is None:
            raise UnreadableFile(
                f"{place}: useful FLOPs of {component} are {str(flops)[:40]!r}, no count. Correct the file."
            )
        if component in ledger:
            raise UnreadableFile(f"{place}: {component} comes twice. Keep one row for each component.")
        ledger[component] = LedgerRow(component, value, formula)
    if not ledger:
        raise UnreadableFile(
            f"{place}: no component in it. Write a row for each: component, useful_flops of an update."
        )
    parts = [row for row in ledger.values() if row.component.lower() != TOTAL]
    total = next((row for row in ledger.values() if row.component.lower() == TOTAL), None)
    if not parts or total is None:
        return parts or [LedgerRow(TOTAL, row.useful_flops, row.formula) for row in ledger.values()]
    found = math.fsum(row.useful_flops for row in parts)
    if abs(found - total.useful_flops) > _TOLERANCE * max(found, total.useful_flops):
        problems.add(
            "ledger_total", place, f"its total is {total.useful_flops:g}, its components add up to {found:g}"
        )
    return parts


def _flops(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _csv_rows(text: str, place: str) -> Iterator[tuple[str, Any, str | None]]:
    reader = csv.DictReader(io.StringIO(text))
    columns = {metric_name(name): name for name in reader.fieldnames or () if isinstance(name, str)}
    flops = next((columns[name] for name in _FLOPS_COLUMNS if name in columns), None)
    if "component" not in columns or flops is None:
        raise UnreadableFile(
            f"{place}: a ledger has the columns component and useful_flops, and maybe formula. Name them so."
        )
    try:
        for row in reader:
            formula = row.get(columns.get("formula", "formula"))
            yield (row[columns["component"]] or "").strip(), row[flops], formula or None
    except csv.Error as error:
        raise UnreadableFile(
            f"{place}: not valid CSV at line {reader.line_num}: {error}. Correct the file or remove it."
        ) from error


def _json_rows(text: str, place: str) -> Iterator[tuple[str, Any, str | None]]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableFile(f"{place}: not valid JSON: {error}. Correct the file or remove it.") from error
    if isinstance(content, dict):
        listed = (content[name] for name in _LISTS if isinstance(content.get(name), dict | list))
        content = next(listed, content)
    if isinstance(content, dict):
        for component, value in content.items():
            # A component with more than its FLOPs is an object of its own.
            stated = value if isinstance(value, dict) else {"useful_flops": value}
            yield _row({**stated, "component": component})
        return
    if not isinstance(content, list) or not all(isinstance(row, dict) for row in content):
        raise UnreadableFile(
            f"{place}: a ledger is an object of components, or a list of objects with component and "
            "useful_flops. Correct the file or remove it."
        )
    yield from map(_row, content)


def _row(stated: dict[str, Any]) -> tuple[str, Any, str | None]:
    flops = next((stated[name] for name in _FLOPS_COLUMNS if name in stated), None)
    component, formula = stated.get("component"), stated.get("formula")
    return (
        component.strip() if isinstance(component, str) else "",
        flops,
        formula if isinstance(formula, str) and formula else None,
    )
