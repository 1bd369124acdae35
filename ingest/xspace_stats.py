"""What the stats of XSpace events mean: which have a column of their own, and how the detail texts read."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tracewh.ingest.xspace_space import DOUBLE, INT64, REF, STRING, UINT64

_INTEGERS, _TEXTS, _DOUBLES = (INT64, UINT64), (REF, STRING), (DOUBLE,)


@dataclass(frozen=True)
class Slot:
    """A column for a stat: how it is called, and the value types that it takes."""

    column: str
    value_types: tuple[int, ...]


# Several spellings of producers share a column. What has no entry, or another type, goes to event_stats.
_OP_SLOTS = {
    "program_id": Slot("program_id", _INTEGERS),
    "hlo_op": Slot("hlo_op_name_id", _TEXTS),
    "hlo_module": Slot("hlo_module_name_id", _TEXTS),
    "name": Slot("op_name_id", _TEXTS),
    "tf_op": Slot("tf_op_name_id", _TEXTS),
}
_LAUNCH_SLOTS = {
    "correlation_id": Slot("correlation_id", _INTEGERS),
    "context_id": Slot("context_id", _TEXTS),
    "cuda_graph_id": Slot("graph_id", _INTEGERS),
    "hip_graph_id": Slot("graph_id", _INTEGERS),
    "run_id": Slot("execution_id", _INTEGERS),
    "scope_range_id": Slot("scope_range_id", _INTEGERS),
    "kernel_details": Slot("details_name_id", _TEXTS),
    "memcpy_details": Slot("details_name_id", _TEXTS),
    "Memset_details": Slot("details_name_id", _TEXTS),
    "memset_details": Slot("details_name_id", _TEXTS),
}
DEVICE_SLOTS = {
    **_OP_SLOTS,
    **_LAUNCH_SLOTS,
    "cuda_graph_node_id": Slot("graph_node_id", _INTEGERS),
    "hip_graph_node_id": Slot("graph_node_id", _INTEGERS),
    "unique_hlo_op_id": Slot("unique_hlo_op_id", _INTEGERS),
    "annotation": Slot("annotation_name_id", _TEXTS),
    "nvtx_range": Slot("nvtx_range_name_id", _TEXTS),
    "theoretical_occupancy_pct": Slot("occupancy_ratio", _DOUBLES),
    "occupancy_min_grid_size": Slot("occupancy_min_grid_size", _INTEGERS),
    "occupancy_suggested_block_size": Slot("occupancy_suggested_block_size", _INTEGERS),
    # Of an op on a host thread: the device that the thread stands for.
    "device_ordinal": Slot("device_ordinal", _INTEGERS),
}
"""Stat name to column, for events of devices."""

HOST_SLOTS = {
    **_LAUNCH_SLOTS,
    "program_id": Slot("program_id", _INTEGERS),
    "device_id": Slot("native_device_id", _INTEGERS),
    "_pt": Slot("producer_type", _INTEGERS),
    "_p": Slot("producer_id", _INTEGERS),
    "_ct": Slot("consumer_type", _INTEGERS),
    "_c": Slot("consumer_id", _INTEGERS),
}
"""Stat name to column, for events of the host."""

STEP_SLOTS = {"_r": Slot("is_step_root", _INTEGERS), "step_num": Slot("step_num", _INTEGERS)}
"""Stat name to column, for what tells a step annotation."""

# A GPU has at most 512 vector registers for a thread; older ROCm tracers wrote uninitialised memory here.
MAX_REGISTERS = 1024

_PAIR = re.compile(r"(\w+):(\S+)")
_INTEGER = re.compile(r"[0-9]{1,19}$")
_MAX_INTEGER = 2**63 - 1
_BESIDE_REGISTERS = ("regs", "static_shared")
_MEMORY_LETTER = {"host": "H", "pageable": "H", "pinned": "H", "device": "D", "array": "D", "managed": "D"}
_KIND_IN_NAME = re.compile(r"(H2D|D2H|D2D|P2P|H2H|HtoD|DtoH|DtoD|HostToDevice|DeviceToHost|DeviceToDevice)")
_KIND_SPELLINGS = {
    "HtoD": "H2D",
    "DtoH": "D2H",
    "DtoD": "D2D",
    "HostToDevice": "H2D",
    "DeviceToHost": "D2H",
    "DeviceToDevice": "D2D",
}


@dataclass(frozen=True)
class Details:
    """The fields of one kernel_details, memcpy_details or memset_details text; None where it has none."""

    registers_per_thread: int | None = None
    static_shared_memory_bytes: int | None = None
    dynamic_shared_memory_bytes: int | None = None
    private_memory_bytes: int | None = None
    grid_x: int | None = None
    grid_y: int | None = None
    grid_z: int | None = None
    block_x: int | None = None
    block_y: int | None = None
    block_z: int | None = None
    occupancy_ratio: float | None = None
    copy_kind: str | None = None
    copy_bytes: int | None = None
    has_garbage_registers: bool = False


def parse_details(text: str) -> Details:
    """Read a details text: `regs:16 static_shared:0 dynamic_shared:0 grid:1,1,1 block:256,1,1 occ_pct:100`.

    An occupancy of 0 means that the tracer did not compute one. A register count no GPU has is left out and
    flagged. Unknown keys are ignored here: the text itself is kept beside.
    """
    pairs = dict(_PAIR.findall(text))
    registers = integer_of(pairs.get("regs"))
    is_garbage = registers is not None and registers > MAX_REGISTERS
    if is_garbage:
        # The static shared memory beside it is the other half of the same stray pointer.
        pairs = {key: value for key, value in pairs.items() if key not in _BESIDE_REGISTERS}
    grid, block = _triple(pairs.get("grid")), _triple(pairs.get("block"))
    return Details(
        registers_per_thread=integer_of(pairs.get("regs")),
        static_shared_memory_bytes=integer_of(
            pairs.get("static_shared", pairs.get("group_mem", pairs.get("shm")))
        ),
        dynamic_shared_memory_bytes=integer_of(pairs.get("dynamic_shared")),
        private_memory_bytes=integer_of(pairs.get("private_mem")),
        grid_x=grid[0],
        grid_y=grid[1],
        grid_z=grid[2],
        block_x=block[0],
        block_y=block[1],
        block_z=block[2],
        occupancy_ratio=_ratio(pairs.get("occ_pct")),
        copy_kind=_copy_kind(pairs),
        copy_bytes=integer_of(pairs.get("size", pairs.get("num_bytes"))),
        has_garbage_registers=is_garbage,
    )


def copy_kind_of_name(name: str) -> str | None:
    """Direction in the name of a copy: `MemcpyH2D` or `CopyDeviceToDevice`; None where it tells none."""
    found = _KIND_IN_NAME.search(name)
    return None if found is None else _KIND_SPELLINGS.get(found.group(1), found.group(1))


def context_number(text: str) -> int | None:
    """The number in CUPTI's context text `$$5`; None for another form, as what is not written shortest."""
    digits = text.removeprefix("$$")
    number = integer_of(digits)
    return number if digits == str(number) else None


def _copy_kind(pairs: dict[str, str]) -> str | None:
    source = _MEMORY_LETTER.get(pairs.get("kind_src", "").lower())
    target = _MEMORY_LETTER.get(pairs.get("kind_dst", "").lower())
    return f"{source}2{target}" if source and target else None


def integer_of(text: str | None) -> int | None:
    """A non-negative number that fits a signed 64-bit integer; None for any other text."""
    if text is None or _INTEGER.match(text) is None or int(text) > _MAX_INTEGER:
        return None
    return int(text)


def _ratio(percent: str | None) -> float | None:
    """A percentage as a ratio; None for 0, which stands for unknown, and for what is no percentage."""
    try:
        ratio = 0.0 if percent is None else float(percent) / 100
    except ValueError:
        return None
    return ratio if 0 < ratio <= 1 else None


def _triple(text: str | None) -> tuple[int | None, int | None, int | None]:
    parts = (text or "").split(",")
    x, y, z = map(integer_of, parts) if len(parts) == 3 else (None, None, None)
    return x, y, z
