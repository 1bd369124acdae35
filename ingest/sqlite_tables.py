"""The tables of a SQLite file as a reader of one format takes them: which it read, and which it left."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocm_rows import INTEGER, Rows
from tracewh.ingest.sqlite_file import SqliteFile


class SqliteTables:
    """Reads tables by name; `problems` has what is wrong with them."""

    def __init__(self, file: SqliteFile) -> None:
        self.file, self.problems = file, ProblemCounter()
        self._read: set[str] = set()

    def has(self, table: str) -> bool:
        """Whether the file has the table."""
        return table in self.file.tables

    def read(self, table: str) -> Rows:
        """Read a table; no rows where the file lacks it."""
        self._read.add(table)
        if not self.has(table):
            return Rows.empty(table, self.problems)
        return self._rows(table)

    def read_first(self, tables: Sequence[str]) -> Rows:
        """Read the first of these tables that the file has."""
        return self.read(next(filter(self.has, tables), tables[0]))

    def count_unread(self) -> None:
        """Count the rows of all tables that were not read."""
        for table in sorted(self.file.tables - self._read):
            count = self.file.count(table)
            if count:
                detail = "rows rejected: tracewh has no place for this table yet"
                self.problems.add("unsupported_table", table, detail, count)

    def _rows(self, table: str) -> Rows:
        return self.file.read(table, table, self.problems)


def positions_in(ids: pa.Array, among: pa.Array) -> pa.Array:
    """Return where in `among` each id is; null for null and for an id that is nowhere."""
    found = pc.index_in(ids, value_set=among).cast(INTEGER)
    # A null must not match a row without an id.
    return pc.if_else(ids.is_valid(), found, pa.scalar(None, INTEGER))
