"""What XLA itself says an HLO instruction costs: jaxlib's analysis of a module made for that instruction."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from math import isclose
from typing import Any

import pytest

from tracewh.ingest import hlo_cost_shapes
from tracewh.ingest.hlo_cost import ModuleCosts
from tracewh.ingest.hlo_cost_value import Cost
from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_proto import HloModuleProto
from tracewh.ingest.protobuf_messages import message_classes

os.environ.setdefault("JAX_PLATFORMS", "cpu")

# Independent of the messages that the reader declares; protobuf keeps the fields that are not named here.
_CLASSES = message_classes(
    "hlo_oracle",
    {
        "Module": {
            "name": (1, "bytes"),
            "entry_computation_name": (2, "bytes"),
            "computations": (3, "repeated Computation"),
            "host_program_shape": (4, "ProgramShape"),
            "entry_computation_id": (6, "int64"),
        },
        "Computation": {
            "name": (1, "bytes"),
            "instructions": (2, "repeated Instruction"),
            "program_shape": (4, "ProgramShape"),
            "id": (5, "int64"),
            "root_id": (6, "int64"),
        },
        "Instruction": {
            "name": (1, "bytes"),
            "opcode": (2, "bytes"),
            "shape": (3, "bytes"),
            "metadata": (7, "bytes"),
            "parameter_number": (9, "int64"),
            "channel_id": (26, "int64"),
            "id": (35, "int64"),
            "operand_ids": (36, "repeated int64"),
            "control_predecessor_ids": (37, "repeated int64"),
            "called_computation_ids": (38, "repeated int64"),
            "sharding": (40, "bytes"),
            "backend_config": (43, "bytes"),
            "frontend_attributes": (68, "bytes"),
        },
        "ProgramShape": {
            "parameters": (1, "repeated bytes"),
            "result": (2, "bytes"),
            "parameter_names": (3, "repeated bytes"),
        },
        "Proto": {"hlo_module": (1, "bytes")},
        "Space": {"planes": (1, "repeated Plane")},
        "Plane": {"name": (2, "bytes"), "event_metadata": (4, "repeated Entry")},
        "Entry": {"value": (2, "EventMetadata")},
        "EventMetadata": {"stats": (5, "repeated Stat")},
        "Stat": {"bytes_value": (6, "bytes")},
    },
)


@dataclass(frozen=True)
class XlaCost:
    """The numbers of XLA, rounded to float32 as it keeps them; what it does not count is 0."""

    flops: float
    transcendentals: float
    bytes_accessed: float


@cache
def _analysis() -> tuple[Any, Any, Any]:
    """jaxlib's HLO bindings, its cost analysis and a client for it; skips the test where they are missing."""
    jax = pytest.importorskip("jax")
    from jaxlib import _jax

    try:
        from jaxlib import _hlo as hlo
    except ImportError:
        hlo = _jax
    if not hasattr(_jax, "hlo_module_cost_analysis"):
        pytest.skip("this jaxlib has no cost analysis of an HLO module")
    return hlo, _jax.hlo_module_cost_analysis, jax.devices("cpu")[0].client


def module_of_text(text: str) -> bytes:
    """A serialized HloModuleProto of HLO text; skips the test where this jaxlib does not know an opcode."""
    hlo, _, _ = _analysis()
    try:
        module = hlo.hlo_module_from_text(text)
    except Exception as error:
        if "Unknown opcode" in str(error) or "unexpected attribute" in str(error):
            pytest.skip(f"this jaxlib: {str(error).split('error: ')[-1].splitlines()[0]}")
        raise
    return bytes(module.as_serialized_hlo_module_proto())


def modules_of_hlo_proto(data: bytes) -> list[bytes]:
    """The serialized HloModuleProto in a serialized HloProto, as a list of one or none."""
    module = _CLASSES["Proto"].FromString(data).hlo_module
    return [module] if module else []


def modules_of_xspace(data: bytes) -> list[bytes]:
    """The serialized HloModuleProtos that an XSpace carries."""
    return [
        module
        for plane in _CLASSES["Space"].FromString(data).planes
        if plane.name == b"/host:metadata"
        for entry in plane.event_metadata
        for stat in entry.value.stats
        for module in modules_of_hlo_proto(stat.bytes_value)
    ]


def xla_cost(module: bytes) -> XlaCost:
    """The cost of a serialized HloModuleProto."""
    hlo, analysis, client = _analysis()
    found = analysis(client, hlo.HloModule.from_serialized_hlo_module_proto(module))
    return XlaCost(
        found.get("flops", 0.0), found.get("transcendentals", 0.0), found.get("bytes accessed", 0.0)
    )


class Isolator:
    """Makes modules of single instructions of one module."""

    def __init__(self, module: bytes) -> None:
        self._computations = {
            computation.id: computation for computation in _CLASSES["Module"].FromString(module).computations
        }
        self._instructions = {
            instruction.id: instruction
            for computation in self._computations.values()
            for instruction in computation.instructions
        }
        self._prints: dict[int, bytes] = {}

    def module(self, instruction_id: int) -> bytes:
        """A module whose entry computation is parameters and the instruction, with all that it calls."""
        instruction = self._copy(instruction_id)
        operands = [self._instructions[operand_id].shape for operand_id in instruction.operand_ids]
        entry_id = max(self._computations) + 1
        entry = _CLASSES["Computation"](name=b"oracle_entry", id=entry_id)
        for index, shape in enumerate(operands):
            entry.instructions.add(
                name=b"oracle_p%d" % index,
                opcode=b"parameter",
                shape=shape,
                parameter_number=index,
                id=entry_id << 32 | index,
            )
        instruction.id = entry.root_id = entry_id << 32 | len(operands)
        instruction.operand_ids[:] = [parameter.id for parameter in entry.instructions]
        entry.instructions.append(instruction)
        program = entry.program_shape
        program.parameters.extend(operands)
        program.parameter_names.extend(parameter.name for parameter in entry.instructions[:-1])
        program.result = instruction.shape
        called = self._called(instruction)
        return bytes(
            _CLASSES["Module"](
                name=b"oracle",
                entry_computation_name=entry.name,
                entry_computation_id=entry_id,
                host_program_shape=program,
                computations=[
                    *(found for found_id, found in self._computations.items() if found_id in called),
                    entry,
                ],
            ).SerializeToString()
        )

    def fingerprint(self, instruction_id: int) -> bytes:
        """Equal for instructions that cost the same: the same apart from names and configuration."""
        operands = [
            self._instructions[operand].shape for operand in self._instructions[instruction_id].operand_ids
        ]
        return self._print(instruction_id) + b"|".join(operands)

    def _copy(self, instruction_id: int) -> Any:
        instruction = _CLASSES["Instruction"]()
        instruction.CopyFrom(self._instructions[instruction_id])
        instruction.ClearField("metadata")
        instruction.ClearField("control_predecessor_ids")
        return instruction

    def _called(self, instruction: Any) -> set[int]:
        called: set[int] = set()
        pending = list(instruction.called_computation_ids)
        while pending:
            computation_id = pending.pop()
            if computation_id not in called:
                called.add(computation_id)
                for inner in self._computations[computation_id].instructions:
                    pending += inner.called_computation_ids
        return called

    def _print(self, instruction_id: int) -> bytes:
        instruction = self._copy(instruction_id)
        called = list(instruction.called_computation_ids)
        for field in (
            *("name", "id", "operand_ids", "called_computation_ids"),
            *("channel_id", "sharding", "backend_config", "frontend_attributes"),
        ):
            instruction.ClearField(field)
        bodies = b"".join(map(self._body_print, called))
        return bytes(instruction.SerializeToString(deterministic=True)) + bodies

    def _body_print(self, computation_id: int) -> bytes:
        if computation_id not in self._prints:
            computation = self._computations[computation_id]
            place = {inner.id: index for index, inner in enumerate(computation.instructions)}
            lines = [
                self._print(inner.id) + repr([place[operand] for operand in inner.operand_ids]).encode()
                for inner in computation.instructions
            ]
            self._prints[computation_id] = b"\n".join([*lines, b"%d" % place[computation.root_id]])
        return self._prints[computation_id]


@cache
def counts_as_jaxlib_0_11() -> bool:
    """Whether this XLA takes 4 bytes per member of a passed tuple, and counts the padding of tiles.

    Up to jaxlib 0.10 it takes 8 and counts no padding. The two changes are all that differs between the
    versions from 0.8 to 0.12, apart from opcodes that older ones lack.
    """
    text = (
        "HloModule m\nENTRY e {\n p = s8[1]{0:T(128)} parameter(0)\n ROOT t = (s8[1]{0:T(128)}) tuple(p)\n}"
    )
    size = xla_cost(module_of_text(text)).bytes_accessed
    assert size in (4, 8)
    return size == 4


def disagreements(module: bytes, checked: set[bytes]) -> list[str]:
    """Where our costs of a serialized HloModuleProto's instructions differ from XLA's.

    Leaves out the instructions whose fingerprint is in `checked` and adds the others. Leaves out control flow
    and custom calls, which cost something else here by intent; of what runs a custom call, and of ragged-dot,
    whose flops XLA counts wrong, only the bytes are compared.
    """
    with pytest.MonkeyPatch.context() as patch:
        if not counts_as_jaxlib_0_11():
            patch.setattr(hlo_cost_shapes, "_POINTER_BYTES", 8)
        return _disagreements(module, checked)


def _disagreements(module: bytes, checked: set[bytes]) -> list[str]:
    graph = ModuleGraph(HloModuleProto.FromString(module))
    costs = ModuleCosts(graph, lambda graph, instruction: Cost(0, 0, 0, "custom_call"))
    isolator = Isolator(module)
    found = []
    for instruction_id, instruction in graph.instructions.items():
        cost = costs.cost(instruction)
        if cost.rule == "control_flow" or instruction.opcode in (b"custom-call", b"parameter"):
            continue
        fingerprint = isolator.fingerprint(instruction_id)
        shapes = [graph.shape(value).text for value in (instruction, *graph.operands(instruction))]
        is_tiled = any(":T(" in text for text in shapes)
        if fingerprint in checked or (is_tiled and not counts_as_jaxlib_0_11()):
            continue
        checked.add(fingerprint)
        expected = xla_cost(isolator.module(instruction_id))
        pairs = [(cost.bytes_accessed, expected.bytes_accessed)]
        if b"custom-call" not in fingerprint and instruction.opcode != b"ragged-dot":
            pairs += [(cost.flops, expected.flops), (cost.transcendentals, expected.transcendentals)]
        # XLA adds up in float32.
        if not all(ours is not None and isclose(ours, xlas, rel_tol=1e-6) for ours, xlas in pairs):
            text = instruction.name.decode(), instruction.opcode.decode(), graph.shape(instruction).text
            found.append(f"{text}: {cost}, but XLA has {expected}")
    return found
