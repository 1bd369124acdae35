"""What the stats of XSpace events mean: which have a column of their own, and how the detail texts read."""

from __future__ import annotations

import re
from dataclasses import dataclass

INTEGER_COLUMNS = {
    "correlation_id": "correlation_id",
    "cuda_graph_id": "graph_id",
    "hip_graph_id": "graph_id",
    "cuda_graph_node_id": "graph_node_id",
    "hip_graph_node_id": "graph_node_id",
    "program_id": "program_id",
    "run_id": "execution_id",
    "unique_hlo_op_id": "unique_hlo_op_id",
    "scope_range_id": "scope_range_id",
    "occupancy_min_grid_size": "occupancy_min_grid_size",
    "occupancy_suggested_block_size": "occupancy_suggested_block_size",
    "device_id": "native_device_id",
    "step_num": "step_num",
    "_r": "is_step_root",
    "_pt": "producer_type",
    "_p": "producer_id",
    "_ct": "consumer_type",
    "_c": "consumer_id",
    "device_ordinal": "device_ordinal",
}
"""Stat name to column, for stats that hold an integer."""

NAME_COLUMNS = {
    "hlo_op": "hlo_op_name_id",
    "hlo_module": "hlo_module_name_id",
    "name": "op_name_id",
    "tf_op": "tf_op_name_id",
    "kernel_details": "details_name_id",
    "memcpy_details": "details_name_id",
    "Memset_details": "details_name_id",
    "memset_details": "details_name_id",
}
"""Stat name to column, for stats that hold text or a reference to text."""

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
    """The number in CUPTI's context text `$$5`; None for another form."""
    return integer_of(text.removeprefix("$$"))


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
