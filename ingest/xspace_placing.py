"""Puts the stats of events in the columns that they go to, with numpy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tracewh.ingest.xspace_space import NONE, Int8Array, Placed, Stats


def placed(stats: Stats, slot: Int8Array, columns: Sequence[int], count: int) -> Placed:
    """What Space.placed says."""
    result: Placed = {}
    for number in columns:
        mine = np.flatnonzero(slot == number)
        if not len(mine):
            continue
        owners = stats.owner[mine]
        is_replaced = np.append(owners[1:] == owners[:-1], False)
        slot[mine[is_replaced]] = 0
        value_type, value = np.full(count, NONE, np.int8), np.zeros(count, np.int64)
        last = mine[~is_replaced]
        value_type[stats.owner[last]] = stats.value_type[last]
        value[stats.owner[last]] = stats.value[last]
        result[number] = (value_type, value)
    return result
