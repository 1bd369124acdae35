"""Collects rows of event_stats: values of a source that have no column of their own."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

from tracewh.ingest.capture import Interner

EVENT_STATS_TYPES = {
    "owner": pa.string(),
    "owner_id": pa.int64(),
    "stat_name_id": pa.int64(),
    "value_type": pa.string(),
    "int_value": pa.int64(),
    "double_value": pa.float64(),
    "value_name_id": pa.int64(),
    "bytes_value": pa.binary(),
}
_SCHEMA = pa.schema(list(EVENT_STATS_TYPES.items()))


class StatsCollector:
    """Gathers stats by the column or one by one; `take()` returns them in the order they came."""

    def __init__(self, names: Interner) -> None:
        self._names = names
        self._batches: list[pa.Table] = []
        self._single: list[dict[str, Any]] = []

    def add_column(self, owner: str, owner_ids: pa.Array, stat: str | pa.Array, values: pa.Array) -> None:
        """Add the values that are not null, typed by the Arrow type of `values`.

        `stat` is the name of all of them, or an array with the name of each.
        """
        kept = values.is_valid()
        values = values.filter(kept)
        if not len(values):
            return
        if isinstance(stat, str):
            stat_name_ids = pa.repeat(pa.scalar(self._names.id_of(stat), pa.int64()), len(values))
        else:
            stat_name_ids = intern(self._names, stat.filter(kept))
        if pa.types.is_integer(values.type):
            value_type, column = "int64", "int_value"
        elif pa.types.is_floating(values.type):
            value_type, column = "double", "double_value"
        elif pa.types.is_large_binary(values.type):
            value_type, column = "bytes", "bytes_value"
            values = values.cast(pa.binary())
        else:
            value_type, column = "string", "value_name_id"
            values = intern(self._names, values)
        self._flush()
        self._batches.append(
            _batch(
                len(values),
                owner=pa.repeat(owner, len(values)),
                owner_id=owner_ids.filter(kept),
                stat_name_id=stat_name_ids,
                value_type=pa.repeat(value_type, len(values)),
                **{column: values},
            )
        )

    def add_value(self, owner: str, owner_id: int, stat: str, value: object) -> None:
        """Add one value: bytes, or what JSON knows; objects and lists are kept as JSON text."""
        row: dict[str, Any] = {
            "owner": owner,
            "owner_id": owner_id,
            "stat_name_id": self._names.id_of(stat),
        }
        if value is None:
            row["value_type"] = "none"
        elif isinstance(value, bytes):
            row |= {"value_type": "bytes", "bytes_value": value}
        elif isinstance(value, float):
            row |= {"value_type": "double", "double_value": value}
        elif isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63:
            row |= {"value_type": "int64", "int_value": value}
        elif isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64:
            row |= {"value_type": "uint64", "int_value": value - 2**64}
        else:
            text = value if isinstance(value, str) else json.dumps(value)
            row |= {"value_type": "string", "value_name_id": self._names.id_of(text)}
        self._single.append(row)

    def take(self) -> pa.Table:
        """Return the stats gathered since the last call."""
        self._flush()
        batches, self._batches = self._batches, []
        return pa.concat_tables([_SCHEMA.empty_table(), *batches])

    def _flush(self) -> None:
        if self._single:
            self._batches.append(pa.Table.from_pylist(self._single, schema=_SCHEMA))
            self._single = []


def intern(names: Interner, texts: pa.Array) -> pa.Array:
    """Return the name ids of a text array as int64; null stays null."""
    encoded = texts.dictionary_encode()
    ids = pa.array([names.id_of(text) for text in encoded.dictionary.to_pylist()], type=pa.int64())
    return ids.take(encoded.indices)


def _batch(length: int, **columns: pa.Array) -> pa.Table:
    return pa.table(
        {
            name: columns[name] if name in columns else pa.nulls(length, kind)
            for name, kind in EVENT_STATS_TYPES.items()
        },
        schema=_SCHEMA,
    )
