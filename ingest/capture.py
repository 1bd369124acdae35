"""What a reader hands over: the content of one profiler output as Arrow tables, free of warehouse ids."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa


class Interner:
    """Gives each distinct string a small id; `strings[i]` is the text of id i."""

    def __init__(self) -> None:
        self.strings: list[str] = []
        self._ids: dict[str, int] = {}

    def id_of(self, text: str) -> int:
        """Return the id of `text`, new or known."""
        found = self._ids.get(text)
        if found is None:
            found = self._ids[text] = len(self.strings)
            self.strings.append(text)
        return found


@dataclass(frozen=True)
class Device:
    """A device as one capture sees it. `attributes` are the source's own claims, as text."""

    hostname: str
    device_type: str
    ordinal: int
    kind: str | None = None
    vendor: str | None = None
    attributes: tuple[tuple[str, str | None], ...] = ()


@dataclass(frozen=True)
class Problem:
    """Something rejected or repaired: a stable short name, where it was, and the reason."""

    problem: str
    place: str
    detail: str
    occurrences: int = 1


@dataclass
class Capture:
    """One profiler output of one process.

    `tables` maps a table of the schema to an Arrow table with a subset of its columns. Ids in it are local:
    a column ending in `name_id` is an index into `names.strings`, one ending in `device_index` (which the
    warehouse turns into `device_id`) an index into `devices`; either may be null. `capture_id` is absent.

    `stream` has the rows of a large capture in the same form, batch by batch, each batch with the name of its
    table, and `streamed_events` of all its rows are events. It can be read once, after `tables`; until it
    ends, `names`, `devices` and `problems` may grow.
    """

    source_kind: str
    hostname: str = ""
    process_id: int | None = None
    platform: str | None = None
    origin_unix_ns: int | None = None
    origin_source_ns: int | None = None
    fingerprint: str | None = None
    attributes: dict[str, str | None] = field(default_factory=dict)
    names: Interner = field(default_factory=Interner)
    devices: list[Device] = field(default_factory=list)
    tables: dict[str, pa.Table] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    stream: Iterator[tuple[str, pa.Table]] = field(default_factory=lambda: iter(()))
    streamed_events: int = 0

    def row_count(self, table: str) -> int:
        """Number of rows that `tables` has for `table`."""
        found = self.tables.get(table)
        return 0 if found is None else found.num_rows


class ProblemCounter:
    """Collects problems, one row per (problem, place) with the first detail and a count."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], list[object]] = {}

    def add(self, problem: str, place: str, detail: str, occurrences: int = 1) -> None:
        """Count `occurrences` of `problem` at `place`; the first detail is kept as the example."""
        entry = self._found.setdefault((problem, place), [detail, 0])
        entry[1] = int(str(entry[1])) + occurrences

    def problems(self) -> list[Problem]:
        """All that was counted, in the order of first appearance."""
        return [
            Problem(problem, place, str(detail), int(str(count)))
            for (problem, place), (detail, count) in self._found.items()
        ]


def columns_table(columns: dict[str, Iterable[object]], types: dict[str, pa.DataType]) -> pa.Table:
    """Build an Arrow table from Python columns, with the type of each column from `types`."""
    return pa.table({name: pa.array(values, type=types[name]) for name, values in columns.items()})
