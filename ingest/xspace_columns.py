"""From the stats of one XSpace line to columns: names resolved, inherited stats added, known stats typed."""

from __future__ import annotations

from collections.abc import Callable, Set
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracewh.ingest import xspace_decode, xspace_stats
from tracewh.ingest.capture import Interner, ProblemCounter
from tracewh.ingest.xspace_decode import Int64Array, Line, Plane, Stats

DETAIL_COLUMNS = [item.name for item in fields(xspace_stats.Details) if item.name != "has_garbage_registers"]

_DETAIL_TYPES = {"occupancy_ratio": pa.float64(), "copy_kind": pa.string()}

Mask = npt.NDArray[np.bool_]


def text_of(raw: bytes) -> str:
    """Text of a name; bytes that are not UTF-8 become replacement characters."""
    return raw.decode("utf-8", "replace")


def map_distinct(values: Int64Array, function: Callable[[int], int]) -> Int64Array:
    """`function` of each value, called once per distinct value."""
    distinct, inverse = np.unique(values, return_inverse=True)
    return np.array([function(value) for value in distinct.tolist()], np.int64)[inverse]


def lookup(
    name_ids: pa.Array, names: Interner, function: Callable[[str], Any], data_type: pa.DataType
) -> pa.Array:
    """`function` of the text of each name id, called once per distinct text; null stays null."""
    encoded = pa.array(name_ids).dictionary_encode()
    results = [function(names.strings[name_id]) for name_id in encoded.dictionary.to_pylist()]
    return pa.array(results, data_type).take(encoded.indices)


class NameTable:
    """Resolves the metadata ids of one plane to ids of interned names."""

    def __init__(self, plane: Plane, names: Interner, problems: ProblemCounter, place: str) -> None:
        self.plane, self.names, self._problems, self._place = plane, names, problems, place

    def event_names(self, metadata_ids: Int64Array) -> pa.Array:
        """Name id of each event; missing metadata is counted and named by its number."""
        known = self.plane.event_metadata

        def resolve(metadata_id: int) -> int:
            if metadata_id not in known:
                lost = int((metadata_ids == metadata_id).sum())
                self._problems.add("missing_metadata", self._place, f"no event metadata {metadata_id}", lost)
                return self.names.id_of(f"event metadata {metadata_id}")
            return self.names.id_of(text_of(known[metadata_id].display_name or known[metadata_id].name))

        return pa.array(map_distinct(metadata_ids, resolve))

    def full_names(self, metadata_ids: Int64Array) -> pa.Array:
        """Name id of the name that a display name stands for; null where there is no other name."""

        def resolve(metadata_id: int) -> int:
            metadata = self.plane.event_metadata.get(metadata_id)
            if metadata is None or metadata.display_name in (b"", metadata.name):
                return -1
            return self.names.id_of(text_of(metadata.name))

        ids = map_distinct(metadata_ids, resolve)
        return pa.array(ids, mask=ids < 0)

    def stat_name(self, stat_id: int) -> str:
        """Name of a stat; one without metadata is named by its number."""
        raw = self.plane.stat_names.get(stat_id)
        return f"stat {stat_id}" if raw is None else text_of(raw)

    def reference(self, stat_id: int) -> int:
        """Name id of the text that a reference points to."""
        return self.names.id_of(self.stat_name(stat_id))

    def count_missing(self, stats: Stats) -> None:
        """Count the stats, and the references, that no metadata explains."""
        used = np.concatenate([stats.stat_id, stats.int_value[stats.value_type == xspace_decode.REF]])
        for stat_id, count in zip(*(a.tolist() for a in np.unique(used, return_counts=True)), strict=True):
            if stat_id not in self.plane.stat_names:
                self._problems.add("missing_metadata", self._place, f"no stat metadata {stat_id}", count)

    def text_ids(self, stats: Stats, chosen: Mask) -> Int64Array:
        """Name ids of the text stats under `chosen`, references and strings alike."""
        values, is_ref = stats.int_value[chosen], stats.value_type[chosen] == xspace_decode.REF
        result = np.zeros(len(values), np.int64)
        result[is_ref] = map_distinct(values[is_ref], self.reference)
        result[~is_ref] = [
            self.names.id_of(text_of(stats.blobs[value])) for value in values[~is_ref].tolist()
        ]
        return result


def with_inherited(plane: Plane, line: Line) -> Stats:
    """The line's stats with those that events inherit from their metadata; an event's own come last."""
    parts, blobs = [], list(line.stats.blobs)
    for metadata_id in np.unique(line.metadata_id).tolist():
        metadata = plane.event_metadata.get(metadata_id)
        if metadata is None or not len(metadata.stats.stat_id):
            continue
        owners = np.flatnonzero(line.metadata_id == metadata_id)
        inherited, repeat = metadata.stats, len(owners)
        is_blob = np.isin(
            inherited.value_type, (xspace_decode.STRING, xspace_decode.BYTES, xspace_decode.COMPRESSED)
        )
        int_value = np.where(is_blob, inherited.int_value + len(blobs), inherited.int_value)
        blobs.extend(inherited.blobs)
        parts.append(
            (
                np.repeat(owners, len(inherited.stat_id)),
                np.tile(inherited.stat_id, repeat),
                np.tile(inherited.value_type, repeat),
                np.tile(int_value, repeat),
                np.tile(inherited.double_value, repeat),
            )
        )
    own = line.stats
    if not parts:
        return own
    parts.append((own.owner, own.stat_id, own.value_type, own.int_value, own.double_value))
    owner, stat_id, value_type, int_value, double_value = map(np.concatenate, zip(*parts, strict=True))
    # An event's own stat stands in place of the one it would inherit.
    _, key = np.unique(stat_id, return_inverse=True)
    key = owner * (key.max() + 1) + key
    first_own = len(key) - len(own.owner)
    kept = ~np.isin(key, key[first_own:])
    kept[first_own:] = True
    return Stats(owner[kept], stat_id[kept], value_type[kept], int_value[kept], double_value[kept], blobs)


@dataclass
class TypedStats:
    """The stats of a line: `columns` of nullable values, one per event, and the stats they came from.

    `column_of[i]` is the column that stat i went to, '' for none.
    """

    names: NameTable
    stats: Stats
    columns: dict[str, pa.Array]
    column_of: npt.NDArray[np.str_]

    def rows_without(self, columns: Set[str], selected: Mask, owner: str, first_id: int) -> pa.Table:
        """Rows of event_stats for what the selected events have beside `columns`.

        The k-th selected event has the id `first_id` + k.
        """
        mask = selected[self.stats.owner] & ~np.isin(self.column_of, list(columns))
        stats, count = self.stats, int(mask.sum())
        value_type, number = stats.value_type[mask], stats.int_value[mask]
        event_id = (np.cumsum(selected) - 1 + first_id)[stats.owner[mask]]
        text_types = (xspace_decode.REF, xspace_decode.STRING)
        is_text = np.isin(value_type, text_types)
        is_int = np.isin(value_type, (xspace_decode.INT64, xspace_decode.UINT64))
        is_blob = np.isin(value_type, (xspace_decode.BYTES, xspace_decode.COMPRESSED))
        value_name_id = np.zeros(count, np.int64)
        value_name_id[is_text] = self.names.text_ids(stats, mask & np.isin(stats.value_type, text_types))
        blobs: list[bytes | None] = [None] * count
        for index in np.flatnonzero(is_blob).tolist():
            blobs[index] = stats.blobs[int(number[index])]
        return pa.table(
            {
                "owner": pa.array([owner] * count, pa.string()),
                "owner_id": event_id,
                "stat_name_id": map_distinct(stats.stat_id[mask], self.names.reference),
                "value_type": pa.array(np.array(xspace_decode.VALUE_TYPES)[value_type], pa.string()),
                "int_value": pa.array(number, mask=~is_int),
                "double_value": pa.array(stats.double_value[mask], mask=value_type != xspace_decode.DOUBLE),
                "value_name_id": pa.array(value_name_id, mask=~is_text),
                "bytes_value": pa.array(blobs, pa.binary()),
            }
        )


def typed_stats(
    names: NameTable, stats: Stats, count: int, problems: ProblemCounter, place: str
) -> TypedStats:
    """Give the known stats of `count` events a column each.

    A column holds one value: of several stats for it the last is taken, the others stay without a column.
    """
    names.count_missing(stats)
    columns: dict[str, pa.Array] = {}
    column_of = np.full(len(stats.stat_id), "", dtype="U40")
    holder: dict[str, Int64Array] = {}
    is_integer = np.isin(stats.value_type, (xspace_decode.INT64, xspace_decode.UINT64))
    is_text = np.isin(stats.value_type, (xspace_decode.REF, xspace_decode.STRING))
    for stat_id in np.unique(stats.stat_id).tolist():
        stat_name = names.stat_name(stat_id)
        of_stat = stats.stat_id == stat_id
        values: Any
        if stat_name in xspace_stats.INTEGER_COLUMNS:
            column, chosen = xspace_stats.INTEGER_COLUMNS[stat_name], of_stat & is_integer
            values = stats.int_value[chosen]
        elif stat_name in xspace_stats.NAME_COLUMNS:
            column, chosen = xspace_stats.NAME_COLUMNS[stat_name], of_stat & is_text
            values = names.text_ids(stats, chosen)
        elif stat_name == "theoretical_occupancy_pct":
            column, chosen = "occupancy_ratio", of_stat & (stats.value_type == xspace_decode.DOUBLE)
            values = stats.double_value[chosen] / 100
        elif stat_name == "context_id":
            column, chosen = "context_id", of_stat & is_text
            text_ids = pa.array(names.text_ids(stats, chosen))
            numbers = lookup(text_ids, names.names, xspace_stats.context_number, pa.int64())
            chosen[np.flatnonzero(chosen)[np.asarray(numbers.is_null())]] = False
            values = numbers.drop_null().to_numpy(zero_copy_only=False)
        else:
            continue
        positions = np.flatnonzero(chosen)
        if not len(positions):
            continue
        held = holder.setdefault(column, np.full(count, -1))
        before = held.copy()
        # With repeated rows the last assignment holds, so `held` tells who holds each row in the end.
        held[stats.owner[positions]] = positions
        columns[column] = _filled(columns.get(column), stats.owner[positions], values, count)
        column_of[before[(before >= 0) & (before != held)]] = ""
        column_of[held[held >= 0]] = column
    if "details_name_id" in columns:
        _add_details(columns, names.names, problems, place)
    return TypedStats(names, stats, columns, column_of)


def _filled(column: pa.Array | None, rows: Int64Array, values: Any, count: int) -> pa.Array:
    """`column` (all null where None) with `values` put at `rows`."""
    if column is None:
        is_null, data = np.ones(count, bool), np.zeros(count, values.dtype)
    else:
        is_null = np.array(column.is_null())
        data = column.fill_null(0).to_numpy(zero_copy_only=False).copy()
    is_null[rows], data[rows] = False, values
    return pa.array(data, mask=is_null)


def _add_details(columns: dict[str, pa.Array], names: Interner, problems: ProblemCounter, place: str) -> None:
    """Columns from the details text of each event."""
    encoded = columns["details_name_id"].dictionary_encode()
    parsed = [xspace_stats.parse_details(names.strings[i]) for i in encoded.dictionary.to_pylist()]
    for column in DETAIL_COLUMNS:
        values = pa.array(
            [getattr(details, column) for details in parsed], _DETAIL_TYPES.get(column, pa.int64())
        )
        if values.null_count < len(values) and column not in columns:
            columns[column] = values.take(encoded.indices)
    garbage = pa.array([details.has_garbage_registers for details in parsed]).take(encoded.indices)
    lost = garbage.sum().as_py()
    if lost:
        problems.add("garbage_registers", place, "a register count no GPU has; left out", lost)
