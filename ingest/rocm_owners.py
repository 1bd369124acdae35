"""Which loaded row has which id of the source: arguments and counters refer to events by them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

_Int64Array = npt.NDArray[np.int64]


class Owners:
    """Ids of the source, each with the row of a table that has it; of several rows the first keeps the id."""

    def __init__(self, first_row: int = 0) -> None:
        """Begin with the ids of the row `first_row`."""
        self._first_row = first_row
        self._parts: list[_Int64Array] = []

    def claim(self, ids: pa.Array) -> None:
        """Record that the next rows of the table have these ids; a null is none."""
        # As no id is negative, that number stands for none.
        self._parts.append(np.asarray(pc.fill_null(ids, -1)))
        self.__dict__.pop("_sorted", None)

    def rows(self, ids: pa.Array) -> pa.Array:
        """Return the row that has each id; null for none."""
        known, rows = self._sorted
        wanted = np.asarray(pc.fill_null(ids, -1))
        positions = np.searchsorted(known, wanted)
        inside = np.minimum(positions, max(len(known) - 1, 0))
        is_found = (wanted >= 0) & (known[inside] == wanted) if len(known) else np.zeros(len(wanted), bool)
        found = rows[inside] if rows is not None and len(known) else inside
        return pa.array(found + self._first_row, pa.int64(), mask=~is_found)

    def ids(self) -> _Int64Array:
        """Return the ids in order; one that several rows have comes several times."""
        known = self._sorted[0]
        return known[np.searchsorted(known, 0) :]

    @cached_property
    def _sorted(self) -> tuple[_Int64Array, _Int64Array | None]:
        """The ids in order, and the row of each; None where they came in order: then positions are rows."""
        ids = np.concatenate([np.zeros(0, np.int64), *self._parts])
        self._parts = [ids]
        if len(ids) < 2 or (ids[1:] > ids[:-1]).all():
            return ids, None
        order = np.argsort(ids, kind="stable")
        return ids[order], order


def count_distinct(owners: Iterable[Owners]) -> int:
    """Return how many ids any of the owners have."""
    # Runs that are in order are merged fast.
    ids = np.sort(np.concatenate([of_table.ids() for of_table in owners]), kind="stable")
    return len(ids) - int(np.count_nonzero(ids[1:] == ids[:-1]))
