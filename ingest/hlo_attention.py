"""The operations of a fused attention core, from its sizes and its mask.

Only the matrix products count, and only the pairs of query and key that the mask lets through: a forward pass
has two products (scores and values), a backward pass the gradients of both, four, and a fifth where it
computes the scores again. A square causal core counts S*S/2 pairs, half of the square, as model FLOP ledgers
do, and not the S*(S+1)/2 of the triangle with its diagonal; every other mask counts its pairs exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

from tracewh.ingest.hlo_cost_value import UnknownCost
from tracewh.ingest.hlo_library_call import Work

FULL_LENGTH = "sequences count with their full length, because where they end is known only at run time"
PAGED = "its keys are pages, whose number per sequence is known only at run time"


@dataclass(frozen=True, slots=True)
class Band:
    """The keys that a query sees, as distances from its own position; None is without a limit.

    The own position of query i is key i, or with `bottom_right` the key as far from the last one as the
    query is from the last query.
    """

    left: int | None = None
    right: int | None = None
    bottom_right: bool = False


@dataclass(frozen=True, slots=True)
class Core:
    """Sizes of an attention core. `heads` are those of the queries, over the whole batch."""

    heads: int
    queries: int
    keys: int
    key_width: int
    value_width: int
    band: Band = Band()


def attention_work(core: Core, is_backward: bool, recomputes: bool = True, note: str | None = None) -> Work:
    """FLOPs of the matrix products; transcendentals are the softmax's exponentials, one per pair.

    `recomputes` says whether a backward pass computes the scores again. Raises UnknownCost on a negative
    size.
    """
    if min(core.heads, core.queries, core.keys, core.key_width, core.value_width) < 0:
        raise UnknownCost("its attention has a negative size")
    doubled_pairs, variant = _doubled_pairs(core)
    of_keys, of_values = 1, 1
    if is_backward:
        of_keys, of_values = 3 if recomputes else 2, 2
    width = of_keys * core.key_width + of_values * core.value_width
    exponentials = core.heads * doubled_pairs // 2 if recomputes or not is_backward else 0
    return Work(core.heads * doubled_pairs * width, exponentials, variant, note)


def _doubled_pairs(core: Core) -> tuple[int, str]:
    """Twice the pairs that the mask lets through, and what the name of the rule says of it."""
    queries, keys, band = core.queries, core.keys, core.band
    shift = keys - queries if band.bottom_right else 0
    left = None if band.left is None or band.left >= queries - 1 + shift else band.left
    right = None if band.right is None or band.right >= keys - 1 - shift else band.right
    if left is None and right is None:
        return 2 * queries * keys, ""
    if left is None and right == 0 and queries == keys:
        return queries * queries, "_causal"
    until = keys * queries if right is None else _keys_below(shift + right + 1, queries, keys)
    before = 0 if left is None else _keys_below(shift - left, queries, keys)
    return 2 * max(until - before, 0), "_banded"


def _keys_below(offset: int, queries: int, keys: int) -> int:
    """Sum over each query i of the keys at positions below i + offset."""
    return _sum_clamped(offset + queries, keys) - _sum_clamped(offset, keys)


def _sum_clamped(end: int, limit: int) -> int:
    """Sum of min(max(v, 0), limit) over all v < end."""
    if end <= 0:
        return 0
    rising = min(end - 1, limit)
    return rising * (rising + 1) // 2 + (end - 1 - rising) * limit
