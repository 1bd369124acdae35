"""From the stats of XSpace events to columns, one value per event; the rest as rows of event_stats."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracewh.ingest import xspace_space, xspace_stats
from tracewh.ingest.distinct_values import distinct
from tracewh.ingest.event_stats import EVENT_STATS_TYPES
from tracewh.ingest.shared_rows import Column
from tracewh.ingest.xspace_names import PlaneNames
from tracewh.ingest.xspace_space import NONE, Int8Array, Int32Array, Int64Array, Mask, Space, Stats
from tracewh.ingest.xspace_stats import Slot

# Longer bytes, as those of HLO modules, are stored compressed.
_MAX_PLAIN_BYTES = 4096
_GZIP = "gzip"
_GZIP_LEVEL = 1
_VALUE_TYPES = [xspace_space.VALUE_TYPES.get(number, "none") for number in range(9)]


class SlotTable:
    """Columns that stats can go to: those of device events, of host events, or of both."""

    def __init__(self, *tables: Mapping[str, Slot]) -> None:
        self._slots = [slot for table in tables for slot in table.values()]
        self.columns = list(dict.fromkeys(slot.column for slot in self._slots))
        self._number_of = {
            name: self.columns.index(slot.column) + 1 for table in tables for name, slot in table.items()
        }
        self._accepts = np.zeros((len(self.columns) + 1, len(_VALUE_TYPES)), bool)
        for slot in self._slots:
            self._accepts[self.columns.index(slot.column) + 1, list(slot.value_types)] = True

    def numbers(self, stat_names: list[str]) -> npt.NDArray[np.int8]:
        """By stat and value type: number of the column, counted from 1; 0 for none.

        Less than 0 where the stat has a column that cannot hold such a value.
        """
        number = np.array([self._number_of.get(name, 0) for name in stat_names], np.int8)
        return np.where(self._accepts[number], number[:, np.newaxis], -number[:, np.newaxis])

    def are_among(self, columns: Collection[str]) -> Mask:
        """Whether the column of each number is one of `columns`; False for number 0."""
        return np.array([False, *(column in columns for column in self.columns)])


@dataclass
class TypedStats:
    """The stats of some events: a column for each kind that has one, and which stats went there.

    `slot[i]` is the number of the column that holds stat i, 0 for none. `refused` has, by column, the owners
    of stats that are of its kind but that it cannot hold.
    """

    stats: Stats
    slot: npt.NDArray[np.int8]
    columns: dict[str, Column]
    refused: dict[str, Int64Array]


def typed_stats(names: PlaneNames, stats: Stats, count: int, slots: SlotTable, space: Space) -> TypedStats:
    """Give the known stats of `count` events a column each; `space` places them.

    A column holds one value: of several stats for it the last is taken, the others stay without a column.
    """
    rows = names.stat_rows(stats.stat_id)
    numbers = slots.numbers(names.stat_names)
    slot = numbers.ravel().take(rows * len(_VALUE_TYPES) + stats.value_type)
    placed = space.placed(stats, slot, np.unique(numbers[numbers > 0]).tolist(), count)
    unfit = np.flatnonzero(slot < 0)
    refused = {
        slots.columns[-number - 1]: stats.owner[unfit[slot[unfit] == number]]
        for number in np.unique(slot[unfit]).tolist()
    }
    slot[unfit] = 0
    columns: dict[str, Column] = {}
    for number, (value_type, value) in placed.items():
        name = slots.columns[number - 1]
        has_stat = value_type != NONE
        columns[name] = column = _converted(names, name, value_type, value, stats.blobs)
        is_refused = has_stat & ~column.valid
        if is_refused.any():
            slot[(slot == number) & is_refused[stats.owner]] = 0
            owners = np.flatnonzero(is_refused)
            refused[name] = np.concatenate([refused.get(name, owners[:0]), owners])
    return TypedStats(stats, slot, columns, refused)


def _converted(
    names: PlaneNames, column: str, value_type: Int8Array, value: Int64Array, blobs: pa.LargeBinaryArray
) -> Column:
    """What `column` holds of the stats placed there; null where it cannot, and where there is none."""
    has_stat = value_type != NONE
    if column == "occupancy_ratio":
        return Column(xspace_space.double_values(value) / 100, has_stat)
    if column != "context_id" and not column.endswith("name_id"):
        return Column(value, has_stat)
    at = slice(None) if has_stat.all() else has_stat
    text_ids = np.full(len(value), -1)
    text_ids[at] = names.text_ids(value_type[at], value[at], blobs)
    if column != "context_id":
        return Column(text_ids, has_stat)
    return by_distinct(
        text_ids,
        lambda name_id: (
            None if name_id < 0 else xspace_stats.context_number(names.texts.names.strings[name_id])
        ),
    )


def by_distinct(keys: Int64Array, function: Callable[[int], int | None]) -> Column:
    """`function` of each key, called once per distinct key; null where it returns None."""
    codes, first = distinct(keys)
    results = [function(key) for key in keys[first].tolist()]
    values = np.array([0 if result is None else result for result in results], np.int64)
    valid = np.array([result is not None for result in results], bool)
    return Column(values.take(codes), valid.take(codes))


def inherit(typed: TypedStats, inherited: Mapping[str, Column], rows: Int32Array) -> None:
    """Fill in what events take over from their metadata, whose row is in `rows`; their own values stand.

    The last row of `inherited` stands for all metadata that is missing.
    """
    for name, column in inherited.items():
        at = np.minimum(rows, len(column.valid) - 1)
        values, valid = column.values[at], column.valid[at]
        # Their own value stands where the column cannot hold it, too.
        valid[typed.refused.get(name, rows[:0])] = False
        own = typed.columns.get(name)
        if own is not None:
            values, valid = np.where(own.valid, own.values, values), valid | own.valid
        typed.columns[name] = Column(values, valid)


def stat_rows(
    names: PlaneNames, stats: Stats, chosen: Int64Array, owner: str, owner_ids: Int64Array
) -> pa.Table:
    """Rows of event_stats for the chosen stats; `owner_ids` has the id of the owner of each of them."""
    value_type, value = stats.value_type[chosen], stats.value[chosen]
    is_text = np.isin(value_type, (xspace_space.REF, xspace_space.STRING))
    text_ids = np.zeros(len(chosen), np.int64)
    if is_text.any():
        text_ids[is_text] = names.text_ids(value_type[is_text], value[is_text], stats.blobs)
    words = pa.array(_VALUE_TYPES).take(pa.array(value_type))
    blobs: pa.Array = pa.nulls(len(chosen), pa.binary())
    is_blob = np.isin(value_type, (xspace_space.BYTES, xspace_space.COMPRESSED))
    if is_blob.any():
        word_list: list[str] = words.to_pylist()
        blob_list: list[bytes | None] = [None] * len(chosen)
        for row in np.flatnonzero(is_blob).tolist():
            raw = stats.blob(int(chosen[row]))
            text = names.texts.uncompressed(raw) if value_type[row] == xspace_space.COMPRESSED else None
            if text is not None:
                is_text[row], text_ids[row] = True, names.texts.id_of(text)
            elif len(raw) > _MAX_PLAIN_BYTES and value_type[row] == xspace_space.BYTES:
                word_list[row], blob_list[row] = _GZIP, gzip.compress(raw, _GZIP_LEVEL, mtime=0)
            else:
                blob_list[row] = raw
        words, blobs = pa.array(word_list, pa.string()), pa.array(blob_list, pa.binary())
    is_int = np.isin(value_type, (xspace_space.INT64, xspace_space.UINT64))
    return pa.table(
        {
            "owner": pa.repeat(owner, len(chosen)),
            "owner_id": pa.array(owner_ids),
            "stat_name_id": pa.array(names.stat_name_ids_of(stats.stat_id[chosen])),
            "value_type": words,
            "int_value": pa.array(value, mask=~is_int),
            "double_value": pa.array(
                xspace_space.double_values(value), mask=value_type != xspace_space.DOUBLE
            ),
            "value_name_id": pa.array(text_ids, mask=~is_text),
            "bytes_value": blobs,
        },
        schema=pa.schema(list(EVENT_STATS_TYPES.items())),
    )
