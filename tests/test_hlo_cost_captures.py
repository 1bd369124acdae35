"""The cost of every instruction of real programs, against XLA's own analysis of each instruction alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tracewh.ingest.hlo_cost import ModuleCosts
from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_library_calls import library_call_cost
from tracewh.ingest.hlo_proto import HloModuleProto

from . import hlo_oracle
from .hlo_dumps import read_dumps
from .xspace_files import ARCHIVES, BUNDLED, PUBLIC, file_id, read_file

SOURCES = [*BUNDLED, *PUBLIC, *ARCHIVES]


def modules(source: Path) -> list[bytes]:
    if source in ARCHIVES:
        protos = [dump.files["hlo"] for dump in read_dumps(source)]
        return [module for proto in protos for module in hlo_oracle.modules_of_hlo_proto(proto)]
    return hlo_oracle.modules_of_xspace(read_file(source))


@pytest.fixture(scope="module")
def checked() -> set[bytes]:
    """Fingerprints of the instructions that a test has compared: the programs have many in common."""
    return set()


@pytest.mark.parametrize("source", SOURCES, ids=file_id)
def test_real_programs_cost_what_xla_says(source: Path, checked: set[bytes]) -> None:
    found = modules(source)
    assert found
    assert [line for module in found for line in hlo_oracle.disagreements(module, checked)] == []


def test_the_bundled_programs_hold_what_matters() -> None:
    opcodes: Counter[str] = Counter()
    for source in BUNDLED:
        for module in modules(source):
            graph = ModuleGraph(HloModuleProto.FromString(module))
            opcodes.update(instruction.opcode.decode() for instruction in graph.instructions.values())
    assert opcodes["fusion"] > 500
    assert opcodes["dot"] > 50
    wanted = {"reduce", "scatter", "gather", "dynamic-slice", "dynamic-update-slice", "sort", "all-reduce"}
    assert wanted <= opcodes.keys()


@pytest.mark.parametrize("source", SOURCES, ids=file_id)
def test_every_instruction_has_a_cost_or_a_reason(source: Path) -> None:
    for module in modules(source):
        graph = ModuleGraph(HloModuleProto.FromString(module))
        costs = ModuleCosts(graph, library_call_cost)
        for instruction in graph.instructions.values():
            cost = costs.cost(instruction)
            for number in (cost.flops, cost.transcendentals, cost.bytes_accessed):
                assert type(number) is int or (number is None and cost.reason), (instruction.name, cost)
            if None in (cost.flops, cost.transcendentals, cost.bytes_accessed):
                assert instruction.opcode == b"custom-call", (instruction.name, cost)
