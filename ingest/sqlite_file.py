"""Reading the real tables of an untrusted SQLite file: no view, trigger or expression of it is run."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.errors import UnreadableFile

INTEGER = pa.int64()
REAL = pa.float64()
TEXT = pa.large_string()
BYTES = pa.large_binary()

_NOT_CONVERTIBLE = {
    INTEGER: ("not_an_integer", "64-bit integer"),
    REAL: ("not_a_number", "finite number"),
}
_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
_ROWS_PER_FETCH = 50_000
_WHOLE_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")


@dataclass
class Rows:
    """Rows of one table as Arrow columns. `place` names the table in problems."""

    place: str
    table: pa.Table
    problems: ProblemCounter

    def __len__(self) -> int:
        return int(self.table.num_rows)

    @classmethod
    def empty(cls, place: str, problems: ProblemCounter) -> Rows:
        """Return no rows, for a table that the file lacks."""
        return cls(place, pa.table({}), problems)

    def integers(self, column: str) -> pa.Array:
        """Return an int64 column; null where the table lacks it or the value is no 64-bit integer."""
        return self._column(column, INTEGER)

    def numbers(self, column: str) -> pa.Array:
        """Return a float64 column; null where the table lacks it or the value is no finite number."""
        return self._column(column, REAL)

    def texts(self, column: str) -> pa.Array:
        """Return a text column; null where the table lacks it."""
        return self._column(column, TEXT)

    def where(self, keep: pa.Array) -> Rows:
        """Return the rows for which `keep` is true."""
        return Rows(self.place, self.table.filter(keep), self.problems)

    def _column(self, column: str, wanted: pa.DataType) -> pa.Array:
        if column not in self.table.column_names:
            return pa.nulls(len(self), wanted)
        found = self.table.column(column).combine_chunks()
        if found.type != wanted:
            found = _typed(found.to_pylist(), wanted, f"{self.place}.{column}", self.problems)
            position = self.table.column_names.index(column)
            self.table = self.table.set_column(position, column, found)
        return found


class SqliteFile:
    """A SQLite file opened read-only. Any damage met while reading raises UnreadableFile."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._pending = [
            name
            for suffix in ("-wal", "-journal")
            if (name := Path(f"{path.resolve()}{suffix}")).exists() and name.stat().st_size
        ]
        self._header = self._read_header()
        # Without a log beside it the file is complete: immutable keeps SQLite from creating one there.
        options = "mode=ro" if self._pending else "mode=ro&immutable=1"
        with self._reading("opening it"):
            self._connection = sqlite3.connect(f"{path.resolve().as_uri()}?{options}", uri=True)
        try:
            self.tables = self._base_tables()
        except UnreadableFile:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def check_complete(self) -> None:
        """Raise UnreadableFile where the file is shorter than its own header says."""
        page_bytes = int.from_bytes(self._header[16:18], "big")
        page_bytes = 65536 if page_bytes == 1 else page_bytes
        pages = int.from_bytes(self._header[28:32], "big")
        is_count_current = self._header[24:28] == self._header[92:96]
        size = self.path.stat().st_size
        if is_count_current and not self._pending and size < pages * page_bytes:
            raise UnreadableFile(
                f"{self.path} is truncated: it has {size} of {pages * page_bytes} bytes; "
                "copy it again after the profiler has finished."
            )

    def columns(self, table: str) -> dict[str, str]:
        """Return the stored columns of a real table with their declared types, generated columns left out."""
        with self._reading(f"the columns of table {table}"):
            rows = self._connection.execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall()
        return {name: declared for _, name, declared, _, _, _, hidden in rows if not hidden}

    def distinct(self, table: str, column: str) -> list[Any]:
        """Return the distinct values of a column that are not NULL, in order."""
        name = _quoted(column)
        query = f"SELECT DISTINCT {name} FROM {_quoted(table)} WHERE {name} IS NOT NULL ORDER BY 1"
        with self._reading(f"column {column} of table {table}"):
            return [value for (value,) in self._connection.execute(query)]

    def count(self, table: str, where: str = "", parameters: Sequence[object] = ()) -> int:
        """Return the number of rows of a real table that fulfil `where`."""
        query = f"SELECT count(*) FROM {_quoted(table)} {where}"
        with self._reading(f"table {table}"):
            return int(self._connection.execute(query, parameters).fetchone()[0])

    def read(
        self,
        table: str,
        place: str,
        problems: ProblemCounter,
        skip: Collection[str] = (),
        where: str = "",
        parameters: Sequence[object] = (),
    ) -> Rows:
        """Read a real table in storage order, except the columns in `skip`.

        Columns take the type that SQLite's affinity rules give their declaration. A value of another type
        (an unsigned integer of 2^63 and above, which SQLite stores as REAL; text among numbers) becomes null
        and is counted in `problems` at `place.column`. The empty JSON object of a JSON column becomes null.
        """
        declared = {name: kind for name, kind in self.columns(table).items() if name not in skip}
        if not declared:
            return Rows.empty(place, problems)
        selected = ", ".join(
            f"NULLIF({_quoted(name)}, '{{}}')" if "JSON" in kind.upper() else _quoted(name)
            for name, kind in declared.items()
        )
        types = [_affinity(kind) for kind in declared.values()]
        chunks: list[list[pa.Array]] = [[] for _ in declared]
        with self._reading(f"table {table}"):
            cursor = self._connection.execute(f"SELECT {selected} FROM {_quoted(table)} {where}", parameters)
            while fetched := cursor.fetchmany(_ROWS_PER_FETCH):
                for name, kind, values, target in zip(
                    declared, types, zip(*fetched, strict=True), chunks, strict=True
                ):
                    target.append(_typed(values, kind, f"{place}.{name}", problems))
        columns = {
            name: pa.chunked_array(target, type=kind)
            for name, kind, target in zip(declared, types, chunks, strict=True)
        }
        return Rows(place, pa.table(columns), problems)

    def _read_header(self) -> bytes:
        try:
            with self.path.open("rb") as file:
                header = file.read(_HEADER_BYTES)
        except OSError as error:
            raise UnreadableFile(f"{self.path} cannot be read ({error.strerror}); check the path.") from error
        if not header.startswith(_MAGIC):
            raise UnreadableFile(
                f"{self.path} is not a SQLite database (it starts with {header[:16]!r}, and an encrypted or "
                "compressed one must be unpacked first); give the .db file that rocprofv3 wrote."
            )
        return header

    def _base_tables(self) -> frozenset[str]:
        self._connection.text_factory = lambda raw: raw.decode("utf-8", "backslashreplace")
        self._connection.set_authorizer(_deny_stored_code)
        with self._reading("its schema"):
            self._connection.execute("PRAGMA trusted_schema = OFF")
            # A virtual table has no root page, and reading one would run its module.
            rows = self._connection.execute(
                "SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0 "
                "AND sql LIKE 'CREATE TABLE%' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
            ).fetchall()
        return frozenset(name for (name,) in rows)

    @contextmanager
    def _reading(self, what: str) -> Iterator[None]:
        try:
            yield
        # Python's sqlite3 fails to decode the message of an error that quotes damaged text.
        except (sqlite3.Error, UnicodeDecodeError) as error:
            raise UnreadableFile(
                f"{self.path} cannot be read as a SQLite database: {error} (while reading {what}); "
                "copy it again after the profiler has finished, together with its -wal file if there is one."
            ) from error


def _deny_stored_code(
    _action: int, _first: str | None, _second: str | None, _database: str | None, source: str | None
) -> int:
    """Refuse every access that comes from inside a view or trigger."""
    return sqlite3.SQLITE_OK if source is None else sqlite3.SQLITE_DENY


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _affinity(declared: str) -> pa.DataType:
    kind = declared.upper()
    if "INT" in kind:
        return INTEGER
    if any(word in kind for word in ("REAL", "FLOA", "DOUB")):
        return REAL
    return BYTES if "BLOB" in kind else TEXT


def _typed(values: Sequence[Any], wanted: pa.DataType, place: str, problems: ProblemCounter) -> pa.Array:
    """Convert values to one Arrow type; what does not fit becomes null and is counted at `place`."""
    expected = {INTEGER: int, REAL: float, TEXT: str, BYTES: bytes}[wanted]
    if set(map(type, values)) <= {expected, type(None)}:
        array = pa.array(values, type=wanted)
        if wanted != REAL or pc.all(pc.is_finite(array)).as_py() is not False:
            return array
    convert = {INTEGER: _integer, REAL: _number, TEXT: _text, BYTES: _bytes}[wanted]
    converted = [None if value is None else convert(value) for value in values]
    rejected = [
        value for value, kept in zip(values, converted, strict=True) if kept is None and value is not None
    ]
    if rejected:
        problem, need = _NOT_CONVERTIBLE[wanted]
        problems.add(problem, place, f"stored as null: {str(rejected[0])[:80]!r} is no {need}", len(rejected))
    return pa.array(converted, type=wanted)


def _integer(value: Any) -> int | None:
    if isinstance(value, float):
        is_whole = value.is_integer()
    else:
        is_whole = isinstance(value, int) or _WHOLE_NUMBER.fullmatch(str(value)) is not None
    return int(value) if is_whole and -(2**63) <= int(value) < 2**63 else None


def _number(value: Any) -> float | None:
    if not isinstance(value, int | float):
        return None
    number = float(value)
    return number if abs(number) != float("inf") else None


def _text(value: Any) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()
