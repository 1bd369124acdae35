"""What a device event of an XSpace is (kind) and whether it counts as device work (role)."""

from __future__ import annotations

import re

import numpy as np

from tracewh.ingest.xspace_space import Int64Array, Mask

# Lines that a producer computes from the others of its plane; a suffix " - from #7" may follow.
_DERIVED_LINE = re.compile(
    r"^(Steps|XLA Modules|XLA Ops|Framework Ops|Framework Name Scope|Source code|Launch Stats|TensorFlow .*"
    r"|Host Offload Ops( row \d+)?)( - from #.*)?$",
    re.IGNORECASE,
)
_GPU_WORK_LINE = re.compile(r"^stream ", re.IGNORECASE)
# Counters, and the time that CUPTI itself takes.
_GPU_MARKER_LINE = re.compile(r"^(_|CUPTI overhead$)")
# Transfers in flight: they overlap each other, and lying inside one is not being a part of it.
ASYNCHRONOUS_LINE = "Async XLA Ops"
_TPU_WORK_LINES = {"XLA Ops", ASYNCHRONOUS_LINE, "Sparse Core Ops"}
# Annotations, and waits for flags; the rest of a TPU's lines are computed from these and from the ops.
_TPU_MARKER_LINES = {"XLA TraceMe", "Overlay", "Tensor Core Sync Flag", "Sparse Core Syncs", "_counters_"}
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


def is_unknown_line(device_type: str | None, line_name: str) -> bool:
    """Whether no producer is known to write such a line of markers."""
    return device_type != "TPU" and _GPU_MARKER_LINE.match(line_name) is None


def is_loop(op_name: str) -> bool:
    """Whether an HLO op runs others that are events of their own."""
    return _CONTROL_FLOW_OP.match(op_name) is not None


def around_another(start: Int64Array, end: Int64Array) -> Mask:
    """Which intervals hold another one of more than zero length; of two equal ones, the first.

    An op that a loop runs is its own event on the same line, so counting both would count its time twice.
    """
    order = np.lexsort((-end, start))
    # What follows in this order begins no earlier: it lies inside if it ends no later.
    inner_end = np.where(end > start, end, np.iinfo(np.int64).max)[order]
    earliest_end_after = np.minimum.accumulate(inner_end[::-1])[::-1]
    result = np.zeros(len(start), bool)
    result[order[:-1]] = earliest_end_after[1:] <= end[order[:-1]]
    return result


def kind_of_name(name: str) -> str:
    """kernel, memcpy or memset, by the name of a GPU's event."""
    lowered = name.lower()
    if lowered.startswith("memset"):
        return "memset"
    # `memcpy128` and `memcpy32_post` are kernels that a CUDA graph runs in place of copies.
    return "memcpy" if _COPY_NAME.match(name) else "kernel"


def kind_of_details(details: str) -> str | None:
    """kernel, memcpy or memset, by the details text of a GPU's event; None where it does not tell."""
    if "grid:" in details:
        return "kernel"
    if "num_bytes:" in details:
        return "memset"
    return "memcpy" if "size:" in details else None
