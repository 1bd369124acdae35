"""What device events of a GPU are (kernel, memcpy, memset) and what they were launched with."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from tracewh.ingest import xspace_kinds, xspace_stats
from tracewh.ingest.capture import Interner, ProblemCounter
from tracewh.ingest.shared_details import LAUNCH_DETAILS_TYPES
from tracewh.ingest.shared_rows import Column, SharedRows, distinct_rows, rows_at
from tracewh.ingest.xspace_columns import by_distinct
from tracewh.ingest.xspace_space import Int64Array

LAUNCH_COLUMNS = (
    "context_id",
    "graph_id",
    "details_name_id",
    "occupancy_ratio",
    "occupancy_min_grid_size",
    "occupancy_suggested_block_size",
)
"""Columns of typed stats that, with name and stream, decide the launch details."""


@dataclass(frozen=True)
class _Told:
    """What name and details text tell of a launch: its kind, and values of its launch details."""

    kind: str
    values: dict[str, Any]
    has_garbage_registers: bool


class LaunchTable:
    """The distinct launch details of a capture."""

    def __init__(self, names: Interner, problems: ProblemCounter) -> None:
        self.rows = SharedRows("launch_details_id", LAUNCH_DETAILS_TYPES)
        self._names, self._problems = names, problems
        self._classes: dict[tuple[str, str | None], int] = {}
        self._class_of: dict[int, int] = {}
        self._known: dict[tuple[int, str | None, int | None], _Told] = {}

    def classify(
        self,
        name_ids: Int64Array,
        columns: dict[str, Column],
        kind: str | None,
        stream_id: int | None,
        place: str,
    ) -> tuple[pa.Array, pa.Array]:
        """Kind and launch_details_id of each event; `kind` is that of all, where the line tells it.

        A register count that no GPU has is left out and counted at `place`.
        """
        # What names tell is a column like the others.
        told = by_distinct(name_ids, self._name_class)
        codes, first = distinct_rows([told, *columns.values()])
        kinds: list[str] = []
        ids: list[int | None] = []
        counts, named = np.bincount(codes).tolist(), name_ids[first].tolist()
        for name_id, values, count in zip(named, rows_at(columns, first), counts, strict=True):
            launch = self._told(name_id, kind, values.get("details_name_id"))
            if launch.has_garbage_registers:
                self._problems.add("garbage_registers", place, "a register count no GPU has; left out", count)
            known = {name: value for name, value in values.items() if value is not None}
            kinds.append(launch.kind)
            ids.append(self.rows.id_of({"stream_id": stream_id, **launch.values, **known}))
        indices = pa.array(codes)
        return pa.array(kinds, pa.string()).take(indices), pa.array(ids, pa.int64()).take(indices)

    def _name_class(self, name_id: int) -> int:
        """A number for what the name tells: equal where kind and direction are."""
        if name_id not in self._class_of:
            name = self._names.strings[name_id]
            told = (xspace_kinds.kind_of_name(name), xspace_stats.copy_kind_of_name(name))
            self._class_of[name_id] = self._classes.setdefault(told, len(self._classes))
        return self._class_of[name_id]

    def _told(self, name_id: int, kind: str | None, details_id: int | None) -> _Told:
        key = (self._name_class(name_id), kind, details_id)
        if key not in self._known:
            text = None if details_id is None else self._names.strings[details_id]
            self._known[key] = _read(self._names.strings[name_id], kind, text)
        return self._known[key]


def _read(name: str, kind: str | None, text: str | None) -> _Told:
    details = xspace_stats.Details() if text is None else xspace_stats.parse_details(text)
    if kind is None:
        kind = xspace_kinds.kind_of_name(name)
        if text is not None and kind != "memset":
            kind = xspace_kinds.kind_of_details(text) or kind
    values = asdict(details)
    is_garbage = values.pop("has_garbage_registers")
    named = xspace_stats.copy_kind_of_name(name)
    values["copy_kind"] = (named or details.copy_kind or "unknown") if kind == "memcpy" else None
    return _Told(kind, values, is_garbage)
