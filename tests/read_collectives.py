"""Reading the collectives of modules, for tests."""

from __future__ import annotations

from tracewh.ingest.hlo_collectives import Collective, ModuleCollectives
from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_proto import HloModuleProto

from .hlo_wire import Field, array, computation, instruction, module

Groups = list[list[int]]


def collectives(data: bytes) -> dict[str, Collective]:
    """The collectives of a serialized HloModuleProto, by the names of their instructions."""
    proto = HloModuleProto.FromString(data)
    known = ModuleCollectives(ModuleGraph(proto), proto)
    found = {item.name.decode(): known.of(item) for part in proto.computations for item in part.instructions}
    return {name: value for name, value in found.items() if value is not None}


def hand_made(
    *fields: Field, opcode: str = "all-reduce", devices: tuple[int, int] | None = (1, 8)
) -> Collective:
    """One collective of 8 floats, with the given fields."""
    parameter = instruction(1, "parameter", shape=array(8))
    body = instruction(2, opcode, *fields, shape=array(8), operands=(1,))
    (found,) = collectives(module(computation(1, parameter, body), entry=1, devices=devices)).values()
    return found


def lists(groups: tuple[tuple[int, ...], ...] | None) -> Groups | None:
    return None if groups is None else [list(group) for group in groups]
