"""Reading the real tables of an untrusted SQLite file: no view, trigger or expression of it is run.

Large files are read from their pages by compiled loops; SQLite reads the others, and what is unusual.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.content import Content, open_content
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.rocm_rows import BYTES, INTEGER, REAL, TEXT, Rows, typed

if TYPE_CHECKING:
    from tracewh.ingest.sqlite_pages import Cells, PageFile, RecordColumn, TablePages

_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
_ROWS_PER_FETCH = 50_000
# Below this size SQLite is done before the compiled loops are loaded.
_COMPILED_FROM_BYTES = 4 << 20


@dataclass(frozen=True)
class _Layout:
    """Stored columns with their types, which of them is the row's number, and whether others are computed."""

    columns: dict[str, str]
    rowid_column: str | None
    has_generated: bool


class SqliteFile:
    """A SQLite file opened read-only. Any damage met while reading raises UnreadableFile."""

    def __init__(self, path: Path, compiled: bool | None = None) -> None:
        """Open the file; whether to use the compiled loops is told by its size unless `compiled` says."""
        self.path = path
        self._pending = [
            name
            for suffix in ("-wal", "-journal")
            if (name := Path(f"{path.resolve()}{suffix}")).exists() and name.stat().st_size
        ]
        self._header = self._read_header()
        is_large = path.stat().st_size >= _COMPILED_FROM_BYTES
        self._use_pages = (is_large if compiled is None else compiled) and not self._pending
        self._content: Content | None = None
        self._trees: dict[str, TablePages | None] = {}
        self._layouts: dict[str, _Layout] = {}
        self._whole: dict[tuple[str, frozenset[str]], Rows] = {}
        # Without a log beside it the file is complete: immutable keeps SQLite from creating one there.
        options = "mode=ro" if self._pending else "mode=ro&immutable=1"
        with self._reading("opening it"):
            self._connection = sqlite3.connect(f"{path.resolve().as_uri()}?{options}", uri=True)
        try:
            self._roots = self._base_tables()
        except UnreadableFile:
            self.close()
            raise
        self.tables = frozenset(self._roots)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._trees.clear()
        self.__dict__.pop("_pages", None)
        if self._content is not None:
            self._content.close()
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
        return self._layout(table).columns

    def _layout(self, table: str) -> _Layout:
        if table not in self._layouts:
            with self._reading(f"the columns of table {table}"):
                # A name that is no UTF-8 is damage: the column could not be asked for.
                self._connection.text_factory = str
                rows = self._connection.execute(f"PRAGMA table_xinfo({_quoted(table)})").fetchall()
                self._connection.text_factory = _decoded
                indexes = self._connection.execute(f"PRAGMA index_list({_quoted(table)})").fetchall()
            keys = [(name, declared) for _, name, declared, _, _, key, _ in rows if key]
            # The one key that is an alias of the row's number: records hold NULL in its place, and no index
            # serves it, as it does an INTEGER PRIMARY KEY DESC.
            is_rowid = len(keys) == 1 and keys[0][1].upper() == "INTEGER"
            is_rowid = is_rowid and all(origin != "pk" for _, _, _, origin, _ in indexes)
            self._layouts[table] = _Layout(
                {name: declared for _, name, declared, _, _, _, hidden in rows if not hidden},
                keys[0][0] if is_rowid else None,
                any(hidden for *_, hidden in rows),
            )
        return self._layouts[table]

    def distinct(self, table: str, column: str) -> list[str]:
        """Return the distinct texts of a column that are not NULL, in order."""
        found: set[str] = set()
        others = self.columns(table).keys() - {column}
        for rows in self.chunks(table, table, ProblemCounter(), others):
            found.update(_distinct(rows.texts(column)))
        return sorted(found)

    def count(self, table: str, where: str = "", parameters: Sequence[object] = ()) -> int:
        """Return the number of rows of a real table that fulfil `where`."""
        tree = None if where else self._tree(table)
        if tree is not None:
            return tree.rows
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
        """Read a real table in storage order, except the columns in `skip`; see `chunks`."""
        declared = self._declared(table, skip)
        parts = [rows.table for rows in self.chunks(table, place, problems, skip, where, parameters)]
        schema = pa.schema([(name, _affinity(kind)) for name, kind in declared.items()])
        return Rows(place, pa.concat_tables([schema.empty_table(), *parts]), problems)

    def chunks(
        self,
        table: str,
        place: str,
        problems: ProblemCounter,
        skip: Collection[str] = (),
        where: str = "",
        parameters: Sequence[object] = (),
    ) -> Iterator[Rows]:
        """Read a real table in storage order, some rows at a time, except the columns in `skip`.

        Columns take the type that SQLite's affinity rules give their declaration. A value of another type
        (an unsigned integer of 2^63 and above, which SQLite stores as REAL; text among numbers) becomes null
        and is counted in `problems` at `place.column`. The empty JSON object of a JSON column becomes null.
        """
        declared = self._declared(table, skip)
        if not declared:
            return
        tree, done = None if where else self._tree(table), 0
        if tree is not None:
            from tracewh.ingest.sqlite_pages import OddPages

            try:
                for cells in tree.batches(self._record_columns(table, declared)):
                    yield Rows(place, self._table(table, cells, declared, place, problems), problems)
                    done += cells.count
            except OddPages:
                # SQLite reads the rest, or says what is wrong with it.
                where, parameters = "LIMIT -1 OFFSET ?", (done,)
            else:
                return
        selected = ", ".join(_selected(name, kind) for name, kind in declared.items())
        with self._reading(f"table {table}"):
            # An index that has all of the columns would give the rows in its own order.
            query = f"SELECT {selected} FROM {_quoted(table)} AS stored NOT INDEXED {where}"
            cursor = self._connection.execute(query, parameters)
            while fetched := cursor.fetchmany(_ROWS_PER_FETCH):
                yield Rows(place, _from_tuples(fetched, declared, place, problems), problems)

    def at(
        self, table: str, ids: pa.Array, place: str, problems: ProblemCounter, skip: Collection[str] = ()
    ) -> tuple[Rows, pa.Array]:
        """Read the rows of a real table with these ids, and whether each is there; of no row, nulls.

        The ids are those of its column `id`.
        """
        declared = self._declared(table, skip)
        tree = self._tree(table) if self._id_is_rowid(table) else None
        if tree is not None:
            from tracewh.ingest.sqlite_pages import OddPages

            try:
                # A null has to be some number; what is found for it does not count.
                wanted = np.asarray(pc.fill_null(ids, -(2**63)).cast(pa.int64()))
                cells, is_found = tree.at(wanted, self._record_columns(table, declared))
                found = pc.and_(pa.array(is_found), ids.is_valid())
                rejected = ProblemCounter()
                rows = Rows(place, self._table(table, cells, declared, place, rejected), problems)
                if not rejected.problems():
                    return rows, found
            except OddPages:
                pass
            # Also where values are rejected: a row that is asked for twice must not be counted twice.
            self._trees[table] = None
        held = self._held(table, place, problems, frozenset(skip))
        positions = pc.index_in(ids, value_set=held.integers("id"))
        positions = pc.if_else(ids.is_valid(), positions, pa.scalar(None, positions.type))
        return Rows(place, held.table.take(positions), problems), positions.is_valid()

    def _held(self, table: str, place: str, problems: ProblemCounter, skip: frozenset[str]) -> Rows:
        key = (table, skip)
        if key not in self._whole:
            self._whole[key] = self.read(table, place, problems, skip)
        return self._whole[key]

    def _declared(self, table: str, skip: Collection[str]) -> dict[str, str]:
        return {name: kind for name, kind in self.columns(table).items() if name not in skip}

    @cached_property
    def _pages(self) -> PageFile | None:
        """The pages for the compiled loops; None where SQLite has to read the file."""
        if not self._use_pages:
            return None
        # Imported here, as it takes time that small files do not need.
        from tracewh.ingest.sqlite_pages import OddPages, PageFile

        self._content = open_content(self.path)
        try:
            return PageFile(self._content)
        except OddPages:
            return None

    def _tree(self, table: str) -> TablePages | None:
        if table not in self._trees:
            from tracewh.ingest.sqlite_pages import OddPages

            self._trees[table] = None
            # A table with generated columns stores some of them, and SQLite knows which.
            if self._pages is not None and not self._layout(table).has_generated:
                with suppress(OddPages):
                    self._trees[table] = self._pages.table(self._roots[table])
        return self._trees[table]

    def _id_is_rowid(self, table: str) -> bool:
        return self._layout(table).rowid_column == "id"

    def _record_columns(self, table: str, declared: Mapping[str, str]) -> list[RecordColumn]:
        from tracewh.ingest.sqlite_pages import RecordColumn

        names = list(self._layout(table).columns)
        return [RecordColumn(names.index(name), _is_json(kind)) for name, kind in declared.items()]

    def _table(
        self, table: str, cells: Cells, declared: Mapping[str, str], place: str, problems: ProblemCounter
    ) -> pa.Table:
        rowid_column = self._layout(table).rowid_column
        columns = {}
        for position, (name, kind) in enumerate(declared.items()):
            wanted = _affinity(kind)
            if name == rowid_column:
                columns[name] = pa.array(cells.rowids[: cells.count])
            else:
                columns[name] = _from_cells(cells, position, wanted, f"{place}.{name}", problems)
        return pa.table(columns)

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

    def _base_tables(self) -> dict[str, int]:
        """The real tables with their root pages."""
        self._connection.text_factory = _decoded
        self._connection.set_authorizer(_deny_stored_code)
        with self._reading("its schema"):
            self._connection.execute("PRAGMA trusted_schema = OFF")
            if any(log.name.endswith("-wal") for log in self._pending):
                # A profiler that goes on writing would have some tables say more than others.
                self._connection.execute("BEGIN")
            # A virtual table has no root page, and reading one would run its module.
            rows = self._connection.execute(
                "SELECT name, rootpage FROM sqlite_master WHERE type = 'table' AND rootpage > 0 "
                "AND sql LIKE 'CREATE TABLE%' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'"
            ).fetchall()
        return {str(name): int(root) for name, root in rows}

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


def _decoded(text: bytes) -> str:
    return text.decode("utf-8", "backslashreplace")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _affinity(declared: str) -> pa.DataType:
    kind = declared.upper()
    if "INT" in kind:
        return INTEGER
    if any(word in kind for word in ("REAL", "FLOA", "DOUB")):
        return REAL
    return BYTES if "BLOB" in kind else TEXT


def _is_json(declared: str) -> bool:
    return "JSON" in declared.upper()


def _selected(name: str, declared: str) -> str:
    # By its table: SQLite takes a bare name in quotes that is no column for a text.
    column = f"stored.{_quoted(name)}"
    return f"NULLIF({column}, '{{}}')" if _is_json(declared) else column


def _from_tuples(
    fetched: Sequence[tuple[Any, ...]], declared: Mapping[str, str], place: str, problems: ProblemCounter
) -> pa.Table:
    columns = zip(*fetched, strict=True)
    return pa.table(
        {
            name: typed(values, _affinity(kind), f"{place}.{name}", problems)
            for (name, kind), values in zip(declared.items(), columns, strict=True)
        }
    )


def _from_cells(
    cells: Cells, position: int, wanted: pa.DataType, place: str, problems: ProblemCounter
) -> pa.Array:
    """A column of cells; where they hold anything but what is wanted, by way of Python's values."""
    from tracewh.ingest import sqlite_records as record

    others = cells.kinds_of(position)
    if wanted == INTEGER and others <= {record.INTEGER}:
        return cells.integers(position)
    if wanted == REAL and others <= {record.INTEGER, record.FLOAT}:
        floats = cells.floats(position)
        if pc.all(pc.is_finite(floats)).as_py() is not False:
            return floats
    if wanted == BYTES and others <= {record.BLOB}:
        return cells.bytes_of(position, record.BLOB)
    if wanted == TEXT and others <= {record.TEXT}:
        # Arrow refuses bytes that are no UTF-8.
        with suppress(pa.ArrowInvalid):
            return cells.bytes_of(position, record.TEXT).cast(TEXT)
    return typed(cells.python_values(position), wanted, place, problems)


def _distinct(texts: pa.Array) -> list[str]:
    """The distinct texts that are not null; fast where there is but one, as of whose rows they are."""
    offsets = np.frombuffer(texts.buffers()[1], np.int64)[texts.offset : texts.offset + len(texts) + 1]
    lengths = np.diff(offsets)
    data = texts.buffers()[2]
    if data is not None and len(lengths) and not texts.null_count and (lengths == lengths[0]).all():
        content = np.frombuffer(data, np.uint8)[offsets[0] : offsets[-1]].reshape(len(lengths), lengths[0])
        if (content == content[0]).all():
            return [texts[0].as_py()]
    return list(texts.unique().drop_null().to_pylist())
