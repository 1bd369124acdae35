"""What the tests of the rocpd reader share: databases from the generator, and captures made comparable."""

from __future__ import annotations

import importlib.util
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracewh.ingest import rocpd
from tracewh.ingest.capture import Capture

ROOT = Path(__file__).parents[1]
FIXTURE = ROOT / "fixtures" / "rocpd_train" / "mi300x_results.db"
SHARED = ROOT.parent / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the folder of public test files is not here")


def _load_generator() -> Any:
    spec = importlib.util.spec_from_file_location("make_rocpd", ROOT / "fixtures" / "make_rocpd.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_rocpd"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


make_rocpd = _load_generator()
Change = Callable[[Any], None]


def write(path: Path, change: Change | None = None, *, enforce: bool = False, **run: Any) -> Path:
    """Write one run; `change` may add rows through the writer, by default with foreign keys off."""
    (writer,) = make_rocpd.write_database(path, [make_rocpd.Run(**run)])
    writer.connection.commit()
    if change is not None:
        writer.connection.execute(f"PRAGMA foreign_keys = {'ON' if enforce else 'OFF'}")
        change(writer)
    writer.connection.commit()
    writer.connection.close()
    return path


def read_one(path: Path) -> Capture:
    (capture,) = rocpd.read(path)
    return capture


def query(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """Ask SQLite, through the file's own un-suffixed views."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def rows(capture: Capture, table: str) -> list[dict[str, Any]]:
    """Rows of a table with names in place of name ids."""
    result = []
    for row in capture.tables[table].to_pylist():
        named = {}
        for column, value in row.items():
            if column.endswith("name_id"):
                column = column.removesuffix("_id")
                value = None if value is None else capture.names.strings[value]
            named[column] = value
        result.append(named)
    return result


def stats(capture: Capture, owner: str, owner_id: int) -> dict[str, Any]:
    """Stats of one owner: name to value."""
    found = {}
    for row in rows(capture, "event_stats"):
        if (row["owner"], row["owner_id"]) == (owner, owner_id):
            values = (row["int_value"], row["double_value"], row["value_name"], row["bytes_value"])
            found[row["stat_name"]] = next((value for value in values if value is not None), None)
    return found


def problems(capture: Capture) -> dict[tuple[str, str], int]:
    return {(item.problem, item.place): item.occurrences for item in capture.problems}


def rejected(capture: Capture, table: str) -> int:
    """Rows of a table that were not loaded: problems whose place is the table itself."""
    return sum(item.occurrences for item in capture.problems if item.place == table)


def kind(capture: Capture, wanted: str) -> list[dict[str, Any]]:
    """Device events of a kind, each with the op and the launch details that it refers to."""
    events = [row for row in rows(capture, "device_events") if row["kind"] == wanted]
    return _joined(capture, _joined(capture, events, "ops", "op_id"), "launch_details", "launch_details_id")


def calls(capture: Capture) -> list[dict[str, Any]]:
    """Host events, each with the call details that it refers to, and the enclosing call that is its stat."""
    parents = {
        row["owner_id"]: row["int_value"]
        for row in rows(capture, "event_stats")
        if (row["owner"], row["stat_name"]) == ("host_event", "parent_correlation_id")
    }
    return [
        {**row, "parent_correlation_id": parents.get(row["host_event_id"])}
        for row in _joined(capture, rows(capture, "host_events"), "call_details", "call_details_id")
    ]


def _joined(
    capture: Capture, events: list[dict[str, Any]], table: str, id_column: str
) -> list[dict[str, Any]]:
    columns = capture.tables[table].column_names
    absent = {name.removesuffix("_id") if name.endswith("name_id") else name: None for name in columns}
    details = {row[id_column]: row for row in rows(capture, table)}
    assert len(details) == capture.row_count(table)
    return [{**(absent if row[id_column] is None else details[row[id_column]]), **row} for row in events]
