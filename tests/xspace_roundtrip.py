"""Loads an XSpace into a warehouse in memory, rebuilds its content from the tables, and compares."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

from tracewh.ingest import xspace
from tracewh.sql.loading import load_capture
from tracewh.sql.schema_files import create_schema

from .xspace_content import Event, Line, number_bits, plane_readers, read_header
from .xspace_oracle import XSpace
from .xspace_rebuilt import Rebuilt

# Tables of what events share, with the events that refer to them.
SHARED_ROWS = {
    "ops": ("op_id", "device_events"),
    "launch_details": ("launch_details_id", "device_events"),
    "call_details": ("call_details_id", "host_events"),
}


@contextmanager
def loaded(
    data: bytes, compiled: bool | None, path: Path | None = None
) -> Iterator[duckdb.DuckDBPyConnection]:
    """A warehouse, in memory where no path is given, that holds the XSpace as capture 1."""
    with duckdb.connect(":memory:" if path is None else str(path)) as connection:
        create_schema(connection)
        assert load(connection, data, compiled) == 1
        yield connection


def load(connection: duckdb.DuckDBPyConnection, data: bytes, compiled: bool | None, run_id: int = 1) -> int:
    """Id of the capture that the XSpace becomes, as the next one of the warehouse."""
    capture = xspace.read(data, "round.xplane.pb", compiled=compiled)
    return load_capture(connection, run_id, 1, capture)[0]


def check_round_trip(data: bytes, compiled: bool | None, path: Path | None = None) -> None:
    """Assert that the tables have all that protobuf reads from the bytes, nothing else, and no row twice."""
    with loaded(data, compiled, path) as connection:
        check_same(XSpace.FromString(data), Rebuilt(connection, 1))
        check_shared_rows(connection, 1)


def check_shared_rows(connection: duckdb.DuckDBPyConnection, capture_id: int) -> dict[str, int]:
    """Assert that what events share has a row for each distinct combination that an event refers to.

    Returns the number of rows by table.
    """
    counts = {}
    for table, (key, events) in SHARED_ROWS.items():
        rows = connection.execute(
            f"SELECT {key}, * EXCLUDE (capture_id, {key}) FROM {table} WHERE capture_id = ? ORDER BY 1",
            [capture_id],
        ).fetchall()
        used = connection.execute(
            f"SELECT DISTINCT {key} FROM {events} WHERE capture_id = ? AND {key} IS NOT NULL ORDER BY 1",
            [capture_id],
        ).fetchall()
        ids = [row[0] for row in rows]
        assert ids == list(range(len(rows))), f"ids of {table}"
        assert [row[0] for row in used] == ids, f"ids of {table} that {events} have"
        # SQL takes -0.0 for 0.0, which are two values of a file.
        values = [
            tuple(number_bits(value) if isinstance(value, float) else value for value in row[1:])
            for row in rows
        ]
        assert len(set(values)) == len(values), f"equal rows of {table}"
        assert all(any(value is not None for value in row) for row in values), f"empty rows of {table}"
        counts[table] = len(rows)
    return counts


def check_same(message: Any, rebuilt: Rebuilt) -> None:
    """Assert that a parsed XSpace and a rebuilt one say the same."""
    assert rebuilt.header() == read_header(message)
    readers, planes = plane_readers(message), rebuilt.planes()
    assert [plane.name for plane in planes] == [reader.plane.name for reader in readers]
    for position, (reader, plane) in enumerate(zip(readers, planes, strict=True)):
        assert plane.metadata.keys() == reader.plane.metadata.keys(), plane.name
        assert plane == reader.plane
        lines = rebuilt.lines(position)
        for wanted in reader.lines():
            found = next(lines, None)
            assert found is not None
            _check_line(f"{plane.name}, {wanted.name!r}", found, wanted)
        assert next(lines, None) is None


def _check_line(place: str, found: Line, wanted: Line) -> None:
    for name in ("device_events", "host_events"):
        _check_events(f"{place}, {name}", getattr(found, name), getattr(wanted, name))
        setattr(found, name, [])
        setattr(wanted, name, [])
    assert found == wanted, place


def _check_events(place: str, found: list[Event], wanted: list[Event]) -> None:
    assert len(found) == len(wanted), place
    for index, (ours, theirs) in enumerate(zip(found, wanted, strict=True)):
        if ours != theirs:
            lost, made = set(theirs[-1]) - set(ours[-1]), set(ours[-1]) - set(theirs[-1])
            raise AssertionError(
                f"{place}, event {index}: found {ours[:-1]}, wanted {theirs[:-1]}, "
                f"lost {lost}, made up {made}"
            )
