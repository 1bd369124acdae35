"""Numbers the distinct values of a column."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tracewh.ingest.xspace_space import Int64Array

# A table of so many entries for each value is still cheaper than looking the values up.
_MAX_ENTRIES_PER_VALUE = 2


def distinct(values: Int64Array) -> tuple[Int64Array, Int64Array]:
    """A code for each value, from 0 on in the order in which they come, and the first position of each."""
    low, high = int(values.min(initial=0)), int(values.max(initial=0))
    if high - low > _MAX_ENTRIES_PER_VALUE * len(values):
        codes = pa.array(values).dictionary_encode().indices.to_numpy().astype(np.int64)
        first = np.empty(int(codes.max(initial=-1)) + 1, np.int64)
        _set_first(first, codes)
        return codes, first
    # Names and most numbers lie close together.
    entries = values - low
    position = np.full(high - low + 1, -1)
    _set_first(position, entries)
    present = np.flatnonzero(position >= 0)
    present = present[np.argsort(position[present])]
    first = position[present]
    position[present] = np.arange(len(present))
    return position.take(entries), first


def _set_first(position: Int64Array, codes: Int64Array) -> None:
    # Of repeated codes the last assignment holds, so from the end it is the first position.
    position[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
