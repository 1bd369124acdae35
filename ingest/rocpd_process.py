"""A process of a rocpd database as its tables: facts joined with their events, some rows at a time."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocm_process import FACT_TIMES
from tracewh.ingest.rocm_rows import Rows
from tracewh.ingest.rocm_source import NULL
from tracewh.ingest.rocpd_database import GUID, PREFIX, Shard
from tracewh.ingest.sqlite_file import SqliteFile

# The environment of the traced process: it can hold secrets, so it is not even read.
_ENVIRONMENT = "environment"
_REFERENCES = (
    *("string", "track"),
    *(f"info_{name}" for name in ("node", "process", "thread", "agent", "queue", "stream", "pmc")),
    *(f"info_{name}" for name in ("code_object", "kernel_symbol", "blob_schema", "blob_field")),
)
_READ_TABLES = {"metadata", "event", "arg", "pmc_event", "blob_event", *FACT_TIMES, *_REFERENCES}


class DatabaseProcess:
    """One shard of a rocpd database. Joins are by id within the shard, so by (id, guid)."""

    source_kind = "rocpd"

    def __init__(self, file: SqliteFile, shard: Shard) -> None:
        self._file, self._shard = file, shard
        self._references: dict[str, Rows] = {}
        self.problems = ProblemCounter()
        self._count_unread()

    @property
    def attributes(self) -> Mapping[str, str | None]:
        """What the metadata says, and the guid."""
        attributes: dict[str, str | None] = {**self._shard.metadata, "guid": self._shard.guid}
        table = self._shard.tables.get("info_process")
        if table is not None and _ENVIRONMENT in self._file.columns(table):
            attributes[_ENVIRONMENT] = "not stored"
        return attributes

    def reference(self, base: str) -> Rows:
        """All rows of a reference table, read once."""
        if base not in self._references:
            place, table = f"{PREFIX}{base}", self._shard.tables.get(base)
            self._references[base] = (
                Rows.empty(place, self.problems)
                if table is None
                else self._file.read(table, place, self.problems, *self._selection(table))
            )
        return self._references[base]

    def facts(self, base: str) -> Iterator[Rows]:
        """The rows of a fact table with the columns of their events."""
        for rows in self._chunks(base, self.problems):
            yield self._with_events(rows) if base in FACT_TIMES else rows

    def columns(self, base: str, names: Sequence[str]) -> Iterator[Rows]:
        """Those columns of a fact table that it has."""
        table = self._shard.tables.get(base)
        others = set() if table is None else self._file.columns(table).keys() - set(names)
        yield from self._chunks(base, ProblemCounter(), others)

    def count(self, base: str) -> int:
        """Number of rows of a table."""
        table = self._shard.tables.get(base)
        if table is None:
            return 0
        _, where, parameters = self._selection(table)
        return self._file.count(table, where, parameters)

    def _chunks(self, base: str, problems: ProblemCounter, skip: Collection[str] = ()) -> Iterator[Rows]:
        table = self._shard.tables.get(base)
        if table is not None:
            skipped, where, parameters = self._selection(table)
            place = f"{PREFIX}{base}"
            yield from self._file.chunks(table, place, problems, {*skipped, *skip}, where, parameters)

    def _selection(self, table: str) -> tuple[tuple[str, ...], str, tuple[str, ...]]:
        """Columns to leave out, and which rows are of this process."""
        skip = (_ENVIRONMENT, "guid")
        if not self._shard.shares_tables or "guid" not in self._file.columns(table):
            return skip, "", ()
        return skip, f"WHERE {GUID} = ?", (self._shard.guid,)

    def _with_events(self, rows: Rows) -> Rows:
        table = self._shard.tables.get("event")
        event_ids = rows.integers("event_id")
        if table is None:
            return rows
        place = f"{PREFIX}event"
        # The guid of an event says whether it is of this process where several share a table.
        skip = (_ENVIRONMENT,) if self._shard.shares_tables else (_ENVIRONMENT, "guid")
        events, is_found = self._file.at(table, event_ids, place, self.problems, skip)
        if self._shard.shares_tables:
            guids = pc.utf8_trim_whitespace(events.texts("guid"))
            is_found = pc.and_(is_found, pc.fill_null(pc.equal(guids, self._shard.guid), False))
        joined = rows.table
        for column in sorted(set(events.table.column_names) - {"id", "guid"}):
            values = events.table.column(column).combine_chunks()
            values = pc.if_else(is_found, values, pa.scalar(None, values.type))
            joined = joined.append_column(f"event.{column}", values)
        is_dangling = pc.and_(event_ids.is_valid(), pc.invert(is_found))
        count = pc.sum(is_dangling).as_py()
        if count:
            detail = f"no {place} row has id {event_ids.filter(is_dangling)[0]}"
            self.problems.add("dangling_reference", f"{rows.place}.event_id", detail, count)
            position = joined.column_names.index("event_id")
            joined = joined.set_column(position, "event_id", pc.if_else(is_found, event_ids, NULL))
        return Rows(rows.place, joined, self.problems)

    def _count_unread(self) -> None:
        """Count the rows of tables that have no place in the warehouse yet, and rows of no process."""
        for base in sorted(self._shard.tables):
            count = 0 if base in _READ_TABLES else self.count(base)
            if count:
                detail = "rows rejected: tracewh has no place for this table yet"
                self.problems.add("unsupported_table", f"{PREFIX}{base}", detail, count)
        for base, count in self._shard.rows_without_guid.items():
            detail = "row rejected: it names no process of the file"
            self.problems.add("missing_guid", f"{PREFIX}{base}", detail, count)
