"""What a device event of an XSpace is (kind) and whether it counts as device work (role)."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute

from tracewh.ingest import xspace_stats
from tracewh.ingest.capture import Interner
from tracewh.ingest.xspace_columns import Mask, lookup
from tracewh.ingest.xspace_decode import Int64Array

# Lines that a producer computes from the others of its plane; a suffix " - from #7" may follow.
_DERIVED_LINE = re.compile(
    r"^(Steps|XLA Modules|XLA Ops|Framework Ops|Framework Name Scope|Source code|Launch Stats|TensorFlow .*)"
    r"( - from #.*)?$",
    re.IGNORECASE,
)
_GPU_WORK_LINE = re.compile(r"^stream ", re.IGNORECASE)
# Transfers in flight: they overlap each other, and lying inside one is not being a part of it.
ASYNCHRONOUS_LINE = "Async XLA Ops"
_TPU_WORK_LINES = {"XLA Ops", ASYNCHRONOUS_LINE}
_TPU_MARKER_LINES = {"XLA TraceMe", "Overlay"}
_COPY_NAME = re.compile(r"^(Memcpy[A-Z]\w*|Copy[A-Z][A-Za-z]*)$")
_CONTROL_FLOW_OP = re.compile(r"^%?(while|conditional)([.\d]|$)")


def line_role(device_type: str, line_name: str) -> str:
    """Role of the events of a device line, by the line's name: work, derived or marker."""
    if device_type == "TPU":
        if line_name in _TPU_MARKER_LINES:
            return "marker"
        return "work" if line_name in _TPU_WORK_LINES else "derived"
    if _GPU_WORK_LINE.match(line_name):
        return "work"
    return "derived" if _DERIVED_LINE.match(line_name) else "marker"


def op_roles(start_ps: pa.Array, end_ps: pa.Array, op_name_ids: pa.Array, names: Interner) -> pa.Array:
    """Roles of HLO ops on one line: `enclosing` for loops and for ops around another, `work` for the rest.

    An op that a loop runs is its own event on the same line, so counting both would count its time twice.
    """
    start, end = (array.to_numpy(zero_copy_only=False) for array in (start_ps, end_ps))
    is_loop = lookup(op_name_ids, names, lambda name: bool(_CONTROL_FLOW_OP.match(name)), pa.bool_())
    is_enclosing = np.asarray(is_loop.fill_null(False)) | _around_another(start, end)
    return pa.array(np.where(is_enclosing, "enclosing", "work"), pa.string())


def _around_another(start: Int64Array, end: Int64Array) -> Mask:
    """Which intervals hold another one of more than zero length; of two equal ones, the first."""
    order = np.lexsort((-end, start))
    # What follows in this order begins no earlier: it lies inside if it ends no later.
    inner_end = np.where(end > start, end, np.iinfo(np.int64).max)[order]
    earliest_end_after = np.minimum.accumulate(inner_end[::-1])[::-1]
    result = np.zeros(len(start), bool)
    result[order[:-1]] = earliest_end_after[1:] <= end[order[:-1]]
    return result


def gpu_kinds(name_ids: pa.Array, details_ids: pa.Array | None, names: Interner) -> pa.Array:
    """kernel, memcpy or memset for each event of a GPU stream, from its details and else from its name."""
    by_name = lookup(name_ids, names, _kind_of_name, pa.string())
    if details_ids is None:
        return by_name
    by_details = lookup(details_ids, names, _kind_of_details, pa.string())
    is_memset = pa.compute.equal(by_name, "memset")
    return pa.compute.if_else(is_memset, by_name, pa.compute.coalesce(by_details, by_name))


def copy_kinds(kinds: pa.Array, name_ids: pa.Array, detailed: pa.Array | None, names: Interner) -> pa.Array:
    """H2D, D2H, D2D, ... for copies, `unknown` where neither name nor details tell; null for the rest."""
    named = lookup(name_ids, names, xspace_stats.copy_kind_of_name, pa.string())
    known = named if detailed is None else pa.compute.coalesce(named, detailed)
    is_copy = pa.compute.equal(kinds, "memcpy")
    return pa.compute.if_else(is_copy, known.fill_null("unknown"), pa.scalar(None, pa.string()))


def _kind_of_name(name: str) -> str:
    lowered = name.lower()
    if lowered.startswith("memset"):
        return "memset"
    # `memcpy128` and `memcpy32_post` are kernels that a CUDA graph runs in place of copies.
    return "memcpy" if _COPY_NAME.match(name) else "kernel"


def _kind_of_details(details: str) -> str | None:
    if "grid:" in details:
        return "kernel"
    if "num_bytes:" in details:
        return "memset"
    return "memcpy" if "size:" in details else None
