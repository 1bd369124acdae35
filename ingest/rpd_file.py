"""The tables of an RPD trace as they lie in the file, and the texts that they refer to."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocm_rows import INTEGER, TEXT, Rows
from tracewh.ingest.sqlite_file import SqliteFile
from tracewh.ingest.sqlite_tables import SqliteTables, positions_in

Positions = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]


class RpdFile(SqliteTables):
    """Reads tables with an empty text in place of a number as null: the tracer's way to say nothing."""

    def __init__(self, file: SqliteFile) -> None:
        super().__init__(file)
        self.texts = Texts(self.read("rocpd_string"))

    def find(self, ids: pa.Array, among: Rows, key: str, place: str) -> pa.Array:
        """Return the position in `among` of the row whose `key` is each id; null for null.

        A dangling id is null too, counted at `place`.
        """
        found = positions_in(ids, among.integers(key))
        dangling = found.null_count - ids.null_count
        if dangling:
            example = ids.filter(pc.and_(ids.is_valid(), found.is_null()))[0]
            detail = f"no {among.place} row has {key} {example}"
            self.problems.add("dangling_reference", place, detail, dangling)
        return found

    def name_positions(self, rows: Rows, column: str) -> pa.Array:
        """Return the position in `texts` of what a column of ids refers to."""
        return self.find(rows.integers(column), self.texts.rows, "id", f"{rows.place}.{column}")

    def _rows(self, table: str) -> Rows:
        found = ProblemCounter()
        rows = self.file.read(table, table, found)
        for problem in found.problems():
            column = problem.place.removeprefix(f"{table}.").replace('"', '""')
            empty = self.file.count(table, f"WHERE \"{column}\" = ''")
            if problem.occurrences > empty:
                detail = "stored as null: some values are no numbers that fit" if empty else problem.detail
                self.problems.add(problem.problem, problem.place, detail, problem.occurrences - empty)
        return Rows(table, rows.table, self.problems)


class Texts:
    """The strings of the file by position, and behind them those that the reader adds."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        self._added: dict[str, int] = {}

    def position(self, text: str) -> int:
        """Return the position of a text of the reader's own."""
        return self._added.setdefault(text, len(self.rows) + len(self._added))

    def positions_of(self, ids: pa.Array) -> pa.Array:
        """Return the position of each id of the file; null for null and for a dangling id."""
        return positions_in(ids, self.rows.integers("id"))

    def named(self, where: pa.Array) -> pa.Array:
        """Return the positions with null for those of an empty text."""
        is_named = self.test(where, lambda text: text != "")
        return pc.if_else(pa.array(is_named), where, pa.scalar(None, INTEGER))

    def at(self, where: pa.Array) -> pa.Array:
        """Return the text at each position; null stays null."""
        return self._all().take(where)

    def test(self, where: pa.Array, condition: Callable[[str], bool]) -> Flags:
        """Return whether the text at each position fulfils the condition; of no text, false."""
        encoded = where.dictionary_encode()
        texts = self.at(encoded.dictionary).to_pylist()
        found = pa.array([text is not None and condition(text) for text in texts], pa.bool_())
        return np.asarray(pc.fill_null(found.take(encoded.indices), False))

    def table(self) -> pa.Table:
        """Return the table `string`, in which the ids are positions."""
        texts = self._all()
        return pa.table({"id": pa.array(np.arange(len(texts))), "string": texts})

    def _all(self) -> pa.Array:
        return pa.concat_arrays([self.rows.texts("string"), pa.array(list(self._added), TEXT)])


def pointers(positions: Positions) -> pa.Array:
    """Return positions as an array to take with, in which -1 is null."""
    return pa.array(positions, mask=positions < 0)


def without_nothing(values: pa.Array) -> pa.Array:
    """Return the values with '' and 0, which the tracer writes where it knows no value, as null."""
    nothing = "" if pa.types.is_large_string(values.type) else 0
    if pa.types.is_large_binary(values.type):
        return values
    return pc.if_else(pc.equal(values, nothing), pa.scalar(None, values.type), values)
