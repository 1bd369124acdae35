"""Rows that many events share, each once: told by their values, referred to by an id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tracewh.ingest.xspace_columns import Column
from tracewh.ingest.xspace_space import Int64Array

# Codes of combined columns stay below this.
_MAX_CODE = 2**62
# One object for all, because NaN is equal to nothing but, as part of a key, to itself.
_NAN = float("nan")


class SharedRows:
    """The distinct rows of one table, in the order in which they are met; ids count from 0."""

    def __init__(self, id_column: str, types: Mapping[str, pa.DataType]) -> None:
        self._id_column, self._types = id_column, types
        self._ids: dict[tuple[object, ...], int] = {}
        self._new: list[dict[str, Any]] = []

    def id_of(self, row: Mapping[str, Any]) -> int | None:
        """Id of the row with these values; None where it has none."""
        values = (row.get(name) for name in self._types)
        key = tuple(_NAN if value != value else value for value in values)
        if all(value is None for value in key):
            return None
        known = self._ids.get(key)
        if known is None:
            known = self._ids[key] = len(self._ids)
            self._new.append(dict(row) | {self._id_column: known})
        return known

    def ids_of(self, columns: Mapping[str, Column], count: int) -> pa.Array:
        """Id of the row of each of `count` events, by those of their columns that the table has."""
        names = [name for name in self._types if name in columns]
        if not names:
            return pa.nulls(count, pa.int64())
        codes, first = distinct_rows([columns[name] for name in names])
        ids = [self.id_of(values_at(columns, names, position)) for position in first.tolist()]
        return pa.array(ids, pa.int64()).take(pa.array(codes))

    def new_rows(self) -> pa.Table:
        """The rows that were met since the last call."""
        rows, self._new = self._new, []
        return pa.Table.from_pylist(rows, pa.schema([(self._id_column, pa.int64()), *self._types.items()]))


def values_at(columns: Mapping[str, Column], names: Sequence[str], position: int) -> dict[str, Any]:
    """The values at one position of the columns with these names; None for null."""
    return {
        name: columns[name].values[position].item() if columns[name].valid[position] else None
        for name in names
    }


def distinct_rows(columns: Sequence[Column]) -> tuple[Int64Array, Int64Array]:
    """A code for each row of the columns, from 0 on and equal where all values are; the first row of each."""
    keys = []
    for column in columns:
        if column.valid.all():
            keys.append(column.values.view(np.int64))
        else:
            keys += [np.where(column.valid, column.values, 0).view(np.int64), column.valid.astype(np.int64)]
    codes, size = np.zeros(len(keys[0]), np.int64), 1
    for key in keys:
        encoded = pa.array(key).dictionary_encode()
        if size * len(encoded.dictionary) > _MAX_CODE:
            codes, size = _dense(codes)
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
        size *= len(encoded.dictionary)
    codes, count = _dense(codes)
    first = np.empty(count, np.int64)
    # Of repeated positions the last assignment holds, so from the end it is the first row.
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return codes, first


def _dense(codes: Int64Array) -> tuple[Int64Array, int]:
    """The codes as numbers from 0 on, in the order in which they come, and how many there are."""
    encoded = pa.array(codes).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
