"""Step marks of XSpace host lines as rows of `steps`: step annotations, and ranges named as a step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tracewh.ingest.capture import Interner
from tracewh.ingest.shared_rows import Column
from tracewh.ingest.step_markers import step_marker
from tracewh.ingest.xspace_space import Int32Array, Int64Array, Mask

STEP_COLUMNS = {"step_num", "is_step_root"}
"""Columns of typed stats that tell a step annotation."""
_SHARED = ("name_id", "track_id", "start_ps", "end_ps")


@dataclass(frozen=True)
class HostRows:
    """Rows of host_events: their ids, columns, and the rows of their event metadata."""

    ids: Int64Array
    columns: Mapping[str, pa.Array]
    metadata_rows: Int32Array


class StepMarks:
    """Finds the host events of one plane that mark a step.

    `event_name_ids` has the names of events by row of their metadata: they tell NVTX, ROCTx and trace ranges.
    A step is called by the word in its name, so that all steps of a kind have one name.
    """

    def __init__(self, names: Interner, event_name_ids: Int64Array) -> None:
        texts = [names.strings[name_id] for name_id in event_name_ids.tolist()]
        found = {row: marker for row, text in enumerate(texts) if (marker := step_marker(text)) is not None}
        self._marker_rows = np.array([*found], np.int64)
        self._words = np.array([names.id_of(word) for word, _ in found.values()], np.int64)
        self._numbers = np.array([number for _, number in found.values()], np.int64)

    def tables(self, events: HostRows, told: Mapping[str, Column]) -> Iterator[pa.Table]:
        """Rows of `steps` without their ids; `told` has the STEP_COLUMNS of the events, if any."""
        is_root = np.zeros(len(events.ids), bool)
        if len(told) == len(STEP_COLUMNS):
            root, number = told["is_step_root"], told["step_num"]
            is_root = root.valid & (root.values > 0) & number.valid
            if is_root.any():
                numbers = pa.array(number.values[is_root])
                yield _rows("step_trace_annotation", events, is_root, {"step_num": numbers})
        if len(self._marker_rows):
            at = np.searchsorted(self._marker_rows, events.metadata_rows)
            at = np.minimum(at, len(self._marker_rows) - 1)
            is_marker: Mask = (self._marker_rows[at] == events.metadata_rows) & ~is_root
            if is_marker.any():
                found = at[is_marker]
                named = {
                    "name_id": pa.array(self._words[found]),
                    "step_num": pa.array(self._numbers[found]),
                }
                yield _rows("marker", events, is_marker, named)


def _rows(source: str, events: HostRows, at: Mask, own: Mapping[str, pa.Array]) -> pa.Table:
    mask = pa.array(at)
    return pa.table(
        {name: events.columns[name].filter(mask) for name in _SHARED}
        | {"host_event_id": pa.array(events.ids[at]), "source": pa.repeat(source, int(at.sum()))}
        | dict(own)
    )
