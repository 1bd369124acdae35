"""What device events of a GPU are (kernel, memcpy, memset) and what they were launched with."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import pyarrow as pa

from tracewh.ingest import xspace_kinds, xspace_stats
from tracewh.ingest.capture import Interner, ProblemCounter
from tracewh.ingest.launch_details import LAUNCH_DETAILS_TYPES
from tracewh.ingest.xspace_columns import Column, by_distinct
from tracewh.ingest.xspace_space import Int64Array

# Columns of events that, with the name, decide the launch details; they are not columns of the events' table.
LAUNCH_COLUMNS = (
    "details_name_id",
    "occupancy_ratio",
    "occupancy_min_grid_size",
    "occupancy_suggested_block_size",
)
# Codes of combined keys stay below this.
_MAX_CODE = 2**62


class LaunchTable:
    """The distinct launch details of a capture, with an id for each; equal events share one."""

    def __init__(self, names: Interner, problems: ProblemCounter) -> None:
        self._names, self._problems = names, problems
        self._known: dict[tuple[object, ...], tuple[str, int | None, bool]] = {}
        self._rows: list[dict[str, Any]] = []
        self._given: dict[tuple[object, ...], int] = {}
        self._taken = 0

    def classify(
        self, name_ids: Int64Array, columns: dict[str, Column], kind: str | None, place: str
    ) -> tuple[pa.Array, pa.Array]:
        """Kind and launch_details_id of each event; `kind` is that of all, where the line tells it.

        A register count that no GPU has is left out and counted at `place`.
        """
        named = by_distinct(name_ids, self._name_class) if kind is None else None
        keys = [] if named is None else [named.values]
        present = [name for name in LAUNCH_COLUMNS if name in columns]
        for name in present:
            column = columns[name]
            if column.valid.all():
                keys.append(column.values.view(np.int64))
            else:
                keys += [
                    np.where(column.valid, column.values, 0).view(np.int64),
                    column.valid.astype(np.int64),
                ]
        if not keys:
            return pa.repeat(kind, len(name_ids)), pa.nulls(len(name_ids), pa.int64())
        codes, first = _distinct_rows(keys)
        kinds: list[str] = []
        ids: list[int | None] = []
        counts = np.bincount(codes)
        for position, count in zip(first.tolist(), counts.tolist(), strict=True):
            values = {
                name: columns[name].values[position].item() if columns[name].valid[position] else None
                for name in present
            }
            event_name = None if named is None else self._names.strings[int(name_ids[position])]
            found, launch_id, is_garbage = self._launch(event_name, kind, values)
            if is_garbage:
                self._problems.add("garbage_registers", place, "a register count no GPU has; left out", count)
            kinds.append(found)
            ids.append(launch_id)
        indices = pa.array(codes)
        return pa.array(kinds, pa.string()).take(indices), pa.array(ids, pa.int64()).take(indices)

    def new_rows(self) -> pa.Table:
        """Rows of launch_details that were met since the last call."""
        rows, self._rows = self._rows, []
        schema = pa.schema([("launch_details_id", pa.int64()), *LAUNCH_DETAILS_TYPES.items()])
        return pa.Table.from_pylist(rows, schema=schema)

    def _name_class(self, name_id: int) -> int:
        """A number for what the name tells: equal where kind and direction are."""
        name = self._names.strings[name_id]
        told = (xspace_kinds.kind_of_name(name), xspace_stats.copy_kind_of_name(name))
        return self._given.setdefault(told, len(self._given))

    def _launch(
        self, name: str | None, kind: str | None, values: dict[str, Any]
    ) -> tuple[str, int | None, bool]:
        """Kind, launch_details_id and whether its registers are garbage, for one distinct launch."""
        named_copy = None if name is None else xspace_stats.copy_kind_of_name(name)
        named_kind = kind if name is None else xspace_kinds.kind_of_name(name)
        key = (kind, named_kind, named_copy, *values.items())
        if key not in self._known:
            self._known[key] = self._add(named_kind, kind is None, named_copy, values)
        return self._known[key]

    def _add(
        self, named_kind: str | None, is_open: bool, named_copy: str | None, values: dict[str, Any]
    ) -> tuple[str, int | None, bool]:
        details_id = values.get("details_name_id")
        text = None if details_id is None else self._names.strings[details_id]
        kind = named_kind or ""
        if is_open and text is not None and named_kind != "memset":
            kind = xspace_kinds.kind_of_details(text) or kind
        parsed = xspace_stats.Details() if text is None else xspace_stats.parse_details(text)
        row = {name: value for name, value in asdict(parsed).items() if name in LAUNCH_DETAILS_TYPES}
        row |= {name: value for name, value in values.items() if value is not None}
        row["copy_kind"] = (named_copy or parsed.copy_kind or "unknown") if kind == "memcpy" else None
        if all(value is None for value in row.values()):
            return kind, None, False
        launch_id = self._taken
        self._taken += 1
        self._rows.append(row | {"launch_details_id": launch_id})
        return kind, launch_id, parsed.has_garbage_registers


def _distinct_rows(keys: list[Int64Array]) -> tuple[Int64Array, Int64Array]:
    """A code for each row of the columns `keys`, from 0 on and equal where all are; the first row of each."""
    codes, size = np.zeros(len(keys[0]), np.int64), 1
    for key in keys:
        encoded = pa.array(key).dictionary_encode()
        if size * len(encoded.dictionary) > _MAX_CODE:
            codes, size = _dense(codes)
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
        size *= len(encoded.dictionary)
    codes, _ = _dense(codes)
    first = np.empty(int(codes.max()) + 1 if len(codes) else 0, np.int64)
    # Of repeated positions the last assignment holds, so from the end it is the first row.
    first[codes[::-1]] = np.arange(len(codes))[::-1]
    return codes, first


def _dense(codes: Int64Array) -> tuple[Int64Array, int]:
    """The codes as numbers from 0 on, in the order in which they come, and how many there are."""
    encoded = pa.array(codes).dictionary_encode()
    return encoded.indices.to_numpy().astype(np.int64), len(encoded.dictionary)
