"""What the tests of library calls share: custom calls from HLO text, and jaxlib's counts for other HLO."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from tracewh.ingest.hlo_cost_value import Cost
from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_library_calls import library_call_cost
from tracewh.ingest.hlo_proto import HloModuleProto, HloProto

from .xspace_oracle import Space, read_space

os.environ["JAX_PLATFORMS"] = "cpu"
SHARED = Path(__file__).parents[1].parent / "shared"


def jaxlib_module(text: str) -> Any:
    try:
        from jaxlib._hlo import hlo_module_from_text
    except ImportError:
        from jaxlib._jax import hlo_module_from_text
    return hlo_module_from_text(text)


def module_text(operands: list[str], root: str) -> str:
    """A module whose parameters p0, p1, ... have the given shapes."""
    parameters = "".join(
        f"  p{number} = {shape} parameter({number})\n" for number, shape in enumerate(operands)
    )
    return f"HloModule m\nENTRY e {{\n{parameters}  ROOT r = {root}\n}}\n"


def flops_of(operands: list[str], root: str) -> int:
    """FLOPs of the instruction `root`, as jaxlib counts them."""
    import jax
    from jaxlib._jax import hlo_module_cost_analysis

    client = jax.devices("cpu")[0].client
    module = jaxlib_module(module_text(operands, root))
    # A property that is 0 is left out.
    return int(hlo_module_cost_analysis(client, module).get("flops", 0))


def call_module(
    target: str, operands: list[str], result: str, config: dict[str, Any] | str = "", extra: str = ""
) -> Any:
    """A module with one custom call; its configuration is a dictionary for JSON, or text."""
    text = json.dumps(config) if isinstance(config, dict) else config
    names = ", ".join(f"p{number}" for number in range(len(operands)))
    root = f'{result} custom-call({names}), custom_call_target="{target}"{extra}'
    module = HloModuleProto.FromString(
        jaxlib_module(module_text(operands, root)).as_serialized_hlo_module_proto()
    )
    calls(module)[0].backend_config = text.encode()
    return module


def calls(module: Any) -> list[Any]:
    return [
        instruction
        for computation in module.computations
        for instruction in computation.instructions
        if instruction.opcode == b"custom-call"
    ]


def cost(
    target: str, operands: list[str], result: str, config: dict[str, Any] | str = "", extra: str = ""
) -> Cost:
    return module_cost(call_module(target, operands, result, config, extra))


def module_cost(module: Any) -> Cost:
    (call,) = calls(module)
    return library_call_cost(ModuleGraph(module), call)


def dimension_numbers(
    lhs_summed: list[int], rhs_summed: list[int], lhs_batch: list[int] | None = None, rhs_batch: Any = None
) -> dict[str, list[str]]:
    """DotDimensionNumbers as XLA writes them: 64-bit numbers are strings in protobuf's JSON."""
    return {
        "lhs_contracting_dimensions": list(map(str, lhs_summed)),
        "rhs_contracting_dimensions": list(map(str, rhs_summed)),
        "lhs_batch_dimensions": list(map(str, lhs_batch or [])),
        "rhs_batch_dimensions": list(map(str, rhs_batch or [])),
    }


def size_of(*shapes: str) -> int:
    """Bytes of arrays written as `bf16[2,3]`."""
    total = 0
    for shape in shapes:
        found = re.fullmatch(r"([a-z]+)(\d+)\w*\[([\d,]*)\]", shape)
        assert found is not None
        size = int(found[2]) // 8
        for dimension in filter(None, found[3].split(",")):
            size *= int(dimension)
        total += size
    return total


def _space(name: str) -> Space:
    path = SHARED / "data" / "xspace" / name
    if not path.exists():
        pytest.skip(f"{name} is not here")
    return read_space(path.read_bytes())


def xspace_modules(name: str) -> dict[int, Any]:
    """The HLO modules in a capture, by program id."""
    found = {}
    for metadata in _space(name).plane("/host:metadata").event_metadata.values():
        program = re.search(r"\((\d+)\)$", metadata.name)
        for stat in metadata.stats:
            if program and stat.type == "bytes":
                found[int(program[1])] = HloProto.FromString(stat.value).hlo_module
    return found


def kernel_seconds(name: str, hlo_op: str) -> dict[int, list[float]]:
    """Durations of the kernels of instructions with a name, by program id."""
    seconds: dict[int, list[float]] = {}
    for plane in _space(name).planes:
        for event in (event for line in plane.lines for event in line.events):
            stats = {stat.name: stat.value for stat in event.stats}
            if plane.name.startswith("/device:") and stats.get("hlo_op") == hlo_op:
                seconds.setdefault(int(stats["program_id"]), []).append(event.duration_ps / 1e12)
    return seconds
