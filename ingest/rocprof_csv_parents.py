"""Which call each call of CSVs was made in: the format does not say, so it is told by thread and times."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracewh.ingest.rocm_rows import INTEGER
from tracewh.ingest.rocprof_csv_references import References

Integers = npt.NDArray[np.int64]

# Domains from the outermost to the innermost: a call is made in one of the layers before its own. Markers are
# no calls, whatever happens inside them.
_LAYERS = tuple(re.compile(rf"(?:ROCM_)?(?:{domain})") for domain in ("RCCL|ROCDECODE|ROCJPEG", "HIP", "HSA"))
_NO_LAYER = len(_LAYERS)
_COLUMNS = ("tid", "start", "end", "event.category_id", "event.stack_id")
# No calls are nested deeper; a file that claims so is not followed at any cost.
_MAX_STEPS = 64


def with_parents(regions: pa.Table, references: References) -> pa.Table:
    """Return the rows of `region` with the id of the innermost call around each as `event.parent_stack_id`.

    That is the last one begun on the same thread that had not ended: of RCCL or a decoder for HIP, of these
    or HIP for HSA.
    """
    if not set(_COLUMNS) <= set(regions.column_names):
        return regions
    columns = {name: regions.column(name).combine_chunks() for name in _COLUMNS}
    categories = columns["event.category_id"].dictionary_encode()
    domains = references.texts(categories.dictionary).to_pylist()
    codes = np.append([_layer_of(domain) for domain in domains], _NO_LAYER).astype(np.int64)
    layers = codes[np.asarray(categories.indices.fill_null(len(domains)))]
    is_timed = np.logical_and.reduce([np.asarray(columns[name].is_valid()) for name in _COLUMNS[:3]])
    threads, starts, ends, ids = (
        np.asarray(columns[name].fill_null(0)) for name in ("tid", "start", "end", "event.stack_id")
    )
    is_sound = is_timed & (starts > 0) & (ends >= starts)
    callers = np.full(len(regions), -1)
    for layer in range(1, _NO_LAYER):
        inner = np.flatnonzero(is_sound & (layers == layer))
        # A call without an id cannot be referred to.
        outer = np.flatnonzero(is_sound & (layers < layer) & (ids != 0))
        # Of calls with the same times the one of the outer layer is around the other.
        outer = outer[np.lexsort((layers[outer], -ends[outer], starts[outer], threads[outer]))]
        callers[inner] = _innermost(inner, outer, threads, starts, ends)
    if (callers < 0).all():
        return regions
    parents = pa.array(ids[callers], INTEGER, mask=callers < 0)
    return regions.append_column("event.parent_stack_id", parents)


def _layer_of(domain: str) -> int:
    layers = (number for number, known in enumerate(_LAYERS) if known.match(domain.upper()))
    return next(layers, _NO_LAYER)


def _innermost(
    inner: Integers, outer: Integers, threads: Integers, starts: Integers, ends: Integers
) -> Integers:
    """Return for each row of `inner` the last one of `outer`, in their order, that has it within; else -1."""
    if not len(outer):
        return np.full(len(inner), -1)
    both = np.concatenate([outer, inner])
    is_inner = np.arange(len(both)) >= len(outer)
    order = np.lexsort((is_inner, starts[both], threads[both]))
    begun = np.empty(len(both), np.int64)
    begun[order] = np.cumsum(~is_inner[order]) - 1
    last = begun[len(outer) :]
    last[(last >= 0) & (threads[outer[last]] != threads[inner])] = -1

    # From each of `outer` to the last one before it that ends no earlier.
    around = np.arange(len(outer)) - 1
    around[1:][threads[outer[1:]] != threads[outer[:-1]]] = -1
    _follow(around, around, ends[outer], ends[outer])
    is_found = _follow(last, around, ends[outer], ends[inner])
    return np.where(is_found, outer[last], -1)


def _follow(positions: Integers, around: Integers, ends: Integers, needed: Integers) -> npt.NDArray[np.bool_]:
    """Move each position along `around` until its end reaches `needed`; return which ones got there."""
    moving = np.flatnonzero(positions >= 0)
    for _ in range(_MAX_STEPS):
        moving = moving[ends[positions[moving]] < needed[moving]]
        if not len(moving):
            break
        positions[moving] = around[positions[moving]]
        moving = moving[positions[moving] >= 0]
    is_found: npt.NDArray[np.bool_] = positions >= 0
    is_found[moving] = False
    return is_found
