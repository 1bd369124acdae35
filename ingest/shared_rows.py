"""Rows that many events share, each once: told by their values, referred to by an id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.distinct_values import distinct
from tracewh.ingest.xspace_space import Int64Array, Mask

# Codes of combined columns stay below this, and those of one by their range below that.
_MAX_CODE, _MAX_RANGE = 2**62, 2**20
# NaN is equal to nothing but, as part of a key, to itself.
_NAN = float("nan")


@dataclass
class Column:
    """A nullable column: `values` counts only where `valid`."""

    values: npt.NDArray[Any]
    valid: Mask

    def array(self, selected: Mask | None = None) -> pa.Array:
        """As Arrow, for the selected rows; all rows for None."""
        values, valid = (
            (self.values, self.valid) if selected is None else (self.values[selected], self.valid[selected])
        )
        return pa.array(values) if valid.all() else pa.array(values, mask=~valid)

    @classmethod
    def of(cls, array: pa.Array) -> Column:
        """Return the column of an Arrow array of integers, as int64."""
        return cls(np.asarray(pc.fill_null(array.cast(pa.int64()), 0)), np.asarray(array.is_valid()))


class SharedRows:
    """The distinct rows of one table, in the order in which they are met; ids count from 0."""

    def __init__(self, id_column: str, types: Mapping[str, pa.DataType]) -> None:
        self._id_column, self._types = id_column, types
        self._no_values = (None,) * len(types)
        self._ids: dict[tuple[object, ...], int] = {}
        self._new: list[dict[str, Any]] = []

    def id_of(self, row: Mapping[str, Any]) -> int | None:
        """Id of the row with these values; None where it has none."""
        key = tuple(map(row.get, self._types))
        if key == self._no_values:
            return None
        known = self._ids.get(key)
        if known is None:
            known = self._ids[key] = len(self._ids)
            self._new.append(dict(row) | {self._id_column: known})
        return known

    def ids_of(self, columns: Mapping[str, Column], count: int) -> pa.Array:
        """Id of the row of each of `count` events, by those of their columns that the table has."""
        own = {name: columns[name] for name in self._types if name in columns}
        if not own:
            return pa.nulls(count, pa.int64())
        codes, first = distinct_rows([*own.values()])
        ids = [self.id_of(row) for row in rows_at(own, first)]
        return pa.array(ids, pa.int64()).take(pa.array(codes))

    def ids_of_arrays(self, columns: Mapping[str, pa.Array], count: int) -> pa.Array:
        """As `ids_of`, of Arrow arrays of integers or texts."""
        own = {name: columns[name] for name in self._types if name in columns}
        if not own:
            return pa.nulls(count, pa.int64())
        texts = {
            name: array.dictionary_encode() for name, array in own.items() if self._types[name] == pa.string()
        }
        numbers = {name: Column.of(texts[name].indices if name in texts else own[name]) for name in own}
        codes, first = distinct_rows([*numbers.values()])
        rows = rows_at(numbers, first)
        for name, encoded in texts.items():
            dictionary = encoded.dictionary.to_pylist()
            for row in rows:
                row[name] = None if row[name] is None else dictionary[row[name]]
        return pa.array([self.id_of(row) for row in rows], pa.int64()).take(pa.array(codes))

    def new_rows(self) -> pa.Table:
        """The rows that were met since the last call."""
        rows, self._new = self._new, []
        return pa.Table.from_pylist(rows, pa.schema([(self._id_column, pa.int64()), *self._types.items()]))


def rows_at(columns: Mapping[str, Column], positions: Int64Array) -> list[dict[str, Any]]:
    """The values of the columns at each of the positions, by the names of the columns; None for null.

    NaN is one object wherever it comes.
    """
    rows: list[dict[str, Any]] = [{} for _ in positions]
    for name, column in columns.items():
        values, valid = column.values[positions].tolist(), column.valid[positions].tolist()
        for row, value, is_valid in zip(rows, values, valid, strict=True):
            row[name] = (value if value == value else _NAN) if is_valid else None
    return rows


def distinct_rows(columns: Sequence[Column]) -> tuple[Int64Array, Int64Array]:
    """A code for each row of the columns, from 0 on and equal where all values are; the first row of each."""
    codes, size = _codes(columns[0])
    for column in columns[1:]:
        more, count = _codes(column)
        if size * count > _MAX_CODE:
            codes, first = distinct(codes)
            size = len(first)
        codes, size = codes * count + more, size * count
    return distinct(codes)


def _codes(column: Column) -> tuple[Int64Array, int]:
    """A number from 0 on for each value, 0 for null, and how many there may be."""
    values = column.values.view(np.int64)
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    if high - low >= _MAX_RANGE:
        values, first = distinct(values)
        low, high = 0, len(first) - 1
    return np.where(column.valid, values - (low - 1), 0), high - low + 2
