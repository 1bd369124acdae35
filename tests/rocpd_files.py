"""What the tests of the rocpd reader share: databases from the generator, and captures made comparable."""

from __future__ import annotations

import importlib.util
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tracewh.ingest import rocpd
from tracewh.ingest.capture import Capture
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.rocm_capture import read_capture
from tracewh.ingest.sqlite_file import SqliteFile

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


def read_all(path: Path) -> list[Capture]:
    """Read the captures of a database, by SQLite and by the compiled loops: both have to come to the same.

    Raises UnreadableFile where both do, for the same reason.
    """
    by_sqlite, by_loops = (_outcome(path, compiled) for compiled in (False, True))
    if isinstance(by_sqlite, UnreadableFile) or isinstance(by_loops, UnreadableFile):
        assert str(by_sqlite) == str(by_loops)
        raise by_sqlite
    assert [content(capture) for capture in by_loops] == [content(capture) for capture in by_sqlite]
    return by_sqlite


def _outcome(path: Path, compiled: bool) -> Any:
    try:
        return read_with(path, compiled)
    except UnreadableFile as error:
        return error


def read_with(path: Path, compiled: bool) -> list[Capture]:
    """Read the captures of a database, with their streams in `tables`."""
    with SqliteFile(path, compiled) as file:
        captures = [read_capture(process) for process in rocpd.read_processes(file)]
        for capture in captures:
            parts: dict[str, list[pa.Table]] = {}
            for name, rows in capture.stream:
                parts.setdefault(name, []).append(rows)
            for name, tables in parts.items():
                held = [capture.tables[name]] if name in capture.tables else []
                capture.tables[name] = pa.concat_tables([*held, *tables], promote_options="default")
        return captures


def read_one(path: Path) -> Capture:
    (capture,) = read_all(path)
    return capture


def content(capture: Capture) -> dict[str, Any]:
    """All that a capture says, whatever numbers its names have.

    But for values of the wrong type in events: the loops look at no event that nothing refers to.
    """
    found: dict[str, Any] = {table: rows(capture, table) for table in sorted(capture.tables)}
    problems = {(item.problem, item.place, item.detail): item.occurrences for item in capture.problems}
    kept = {key: count for key, count in problems.items() if not key[1].startswith("rocpd_event.")}
    about = {**vars(capture), "problems": kept}
    return found | {name: about[name] for name in sorted(about.keys() - {"tables", "names", "stream"})}


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
    for row in capture.tables[table].to_pylist() if table in capture.tables else []:
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
    """Host events, each with the call details that it refers to, and the enclosing call."""
    parents = {row["correlation_id"]: row["parent_correlation_id"] for row in rows(capture, "call_parents")}
    return [
        {**row, "parent_correlation_id": parents.get(row["correlation_id"])}
        for row in _joined(capture, rows(capture, "host_events"), "call_details", "call_details_id")
    ]


def _joined(
    capture: Capture, events: list[dict[str, Any]], table: str, id_column: str
) -> list[dict[str, Any]]:
    columns = capture.tables[table].column_names if table in capture.tables else []
    absent = {name.removesuffix("_id") if name.endswith("name_id") else name: None for name in columns}
    details = {row[id_column]: row for row in rows(capture, table)}
    assert len(details) == capture.row_count(table)
    return [{**(absent if row[id_column] is None else details[row[id_column]]), **row} for row in events]
