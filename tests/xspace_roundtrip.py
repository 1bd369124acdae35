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

from .xspace_content import Event, Line, plane_readers, read_header
from .xspace_oracle import XSpace
from .xspace_rebuilt import Rebuilt


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
    return load_capture(connection, run_id, 1, None, capture)[0]


def check_round_trip(data: bytes, compiled: bool | None, path: Path | None = None) -> None:
    """Assert that the tables have all that protobuf reads from the bytes, and nothing else."""
    with loaded(data, compiled, path) as connection:
        check_same(XSpace.FromString(data), Rebuilt(connection, 1))


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
