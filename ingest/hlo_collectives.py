"""What an HLO instruction communicates: the kind of collective, the devices that take part, the bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from tracewh.ingest.hlo_graph import DanglingReference, ModuleGraph
from tracewh.ingest.hlo_replica_groups import MAX_MEMBERS, Groups, UnknownGroups, replica_groups

Pairs = tuple[tuple[int, int], ...]

_OPCODE = re.compile(
    rb"(all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute"
    rb"|collective-broadcast|send|recv)(-start|-done)?"
)
_PAIR = re.compile(r"\{(\d{1,18}),(\d{1,18})\}")
_PAIR_LIST = re.compile(rf"\{{(?:{_PAIR.pattern},?)*\}}")
_POINT_TO_POINT = frozenset({"collective-permute", "send", "recv"})
# For the others `use_global_device_ids` has no meaning.
_WITH_GLOBAL_IDS = frozenset({"all-reduce", "all-gather", "reduce-scatter"})
_CONTINUING = frozenset({b"async-update", b"async-done"})
# Of all collectives of a module, though most share their groups: 3,000 of 65,536 devices.
_MAX_MEMBERS_READ = 200_000_000
_INT64_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Collective:
    """What a collective communicates.

    kind: the opcode without -start and -done.
    payload_bytes: bytes of one device, as the NCCL tests count them: the result of all-gather and recv, the
        operands of the others. For ragged-all-to-all that is an upper bound. What a send sends its recv
        receives: a sum takes one of them.
    groups: the members of each group, in order; None for point-to-point kinds, which have
        `source_target_pairs`, and where unknown.
    group_size: devices in each group; None where groups differ in size, and where `groups` is None.
    group_mode: what the members, and sources and targets, are. `cross_replica`: replicas, each group once per
        partition; `cross_partition`: partitions, each group once per replica; `cross_replica_and_partition`:
        replicas with all their partitions, which group_size counts; `flattened_id`: replica times partition
        count plus partition.
    is_done: the instruction ends what another one started. It has no payload: the start has it.
    reason: why something is unknown; None for an end, as its start says it.
    """

    kind: str
    payload_bytes: int | None
    groups: Groups | None
    group_size: int | None
    group_mode: str | None
    source_target_pairs: Pairs
    is_done: bool = False
    reason: str | None = None


_Reader = Callable[[Any], Collective | None]


class ModuleCollectives:
    """What the instructions of an HloModuleProto communicate; each computation in it is looked at once."""

    def __init__(self, graph: ModuleGraph, module: Any) -> None:
        self._graph, self._module = graph, module
        self._members_read = 0
        # What started an end or update, by its id; what a body does, by its id and by how it is read.
        self._starts: dict[int, Any | None] = {}
        self._bodies: dict[tuple[int, _Reader], Collective | None] = {}

    def of(self, instruction: Any) -> Collective | None:
        """What `instruction` communicates, None where nothing.

        An async-start, or a fusion, is the collective in the computation that it calls, and the one in there
        is one as well: a sum leaves out one of them. A send to, or recv from, the host is none.
        """
        opcode = instruction.opcode
        if opcode == b"async-start":
            return self._wrapped(instruction, self._started)
        if opcode in _CONTINUING:
            start = self._start(instruction)
            found = None if start is None else self._wrapped(start, self._started)
            return None if found is None else _end_of(found)
        if not opcode.endswith(b"-done"):
            return self._started(instruction)
        named = _OPCODE.fullmatch(opcode)
        if named is None or instruction.is_host_transfer:
            return None
        kind = named[1].decode()
        start = self._start(instruction)
        found = None if start is None else self._started(start)
        if found is None or found.kind != kind:
            # Pipelined sends and recvs come from an earlier turn of a loop.
            return Collective(kind, None, None, None, None, (), is_done=True)
        return _end_of(found)

    def _start(self, instruction: Any) -> Any | None:
        """The instruction that started what `instruction` ends or continues."""
        links = []
        while instruction is not None and instruction.id not in self._starts:
            links.append(instruction.id)
            # For links in a circle.
            self._starts[instruction.id] = None
            operand_ids = instruction.operand_ids
            instruction = self._graph.instructions.get(operand_ids[0]) if operand_ids else None
            if instruction is not None and instruction.opcode not in _CONTINUING:
                break
        else:
            instruction = None if instruction is None else self._starts[instruction.id]
        self._starts.update(dict.fromkeys(links, instruction))
        return instruction

    def _started(self, instruction: Any) -> Collective | None:
        """What an instruction that is neither an end nor an async-start communicates."""
        if instruction.opcode == b"fusion":
            return self._wrapped(instruction, self._own)
        return self._own(instruction)

    def _wrapped(self, wrapper: Any, read: _Reader) -> Collective | None:
        """What the body of a wrapper, which calls one computation, communicates."""
        for called_id in wrapper.called_computation_ids[:1]:
            key = called_id, read
            if key not in self._bodies:
                body = self._graph.computations.get(called_id)
                parts = [] if body is None else map(read, body.instructions)
                self._bodies[key] = _merged([part for part in parts if part is not None])
            return self._bodies[key]
        return None

    def _own(self, instruction: Any) -> Collective | None:
        """What an instruction that is no end and no wrapper communicates."""
        named = _OPCODE.fullmatch(instruction.opcode)
        if named is None or named[2] == b"-done" or instruction.is_host_transfer:
            return None
        kind = named[1].decode()
        reasons: list[str] = []
        payload = _payload_bytes(self._graph, instruction, kind, reasons)
        mode = _group_mode(instruction, kind)
        pairs: Pairs = ()
        groups: Groups | None = None
        size: int | None = None
        if kind in _POINT_TO_POINT:
            pairs = _pairs(instruction, reasons)
        else:
            try:
                groups, size = self._groups(instruction, mode)
            except UnknownGroups as error:
                reasons.append(str(error))
        return Collective(kind, payload, groups, size, mode, pairs, reason="; ".join(reasons) or None)

    def _groups(self, instruction: Any, mode: str | None) -> tuple[Groups, int | None]:
        if self._members_read > _MAX_MEMBERS_READ:
            raise UnknownGroups(f"the replica groups before it have more than {_MAX_MEMBERS_READ} members")
        groups, size = _groups(instruction, self._module, mode)
        self._members_read += sum(map(len, groups))
        return groups, size


def _end_of(start: Collective) -> Collective:
    return replace(start, payload_bytes=None, is_done=True, reason=None)


def _merged(found: list[Collective]) -> Collective | None:
    """Several collectives that run as one, whose payload is their sum."""
    if len(found) < 2:
        return found[0] if found else None
    first = found[0]
    payload = _total([part.payload_bytes for part in found])
    if all(replace(part, payload_bytes=None) == replace(first, payload_bytes=None) for part in found):
        return replace(first, payload_bytes=payload)
    kinds = "+".join(sorted({part.kind for part in found}))
    reason = f"{len(found)} collectives in one that differ"
    return Collective(kinds, payload, None, None, None, (), reason=reason)


def _payload_bytes(graph: ModuleGraph, instruction: Any, kind: str, reasons: list[str]) -> int | None:
    if kind == "collective-permute" and instruction.dynamic_slice_sizes:
        reasons.append("the payload of a permutation in place is not read")
        return None
    try:
        if kind == "all-gather":
            shape = graph.shape(instruction)
            # The shape of a start: the operands, the results, and what else the device needs.
            shapes = [shape.members[1] if instruction.opcode == b"all-gather-start" else shape]
        elif kind == "recv":
            shapes = [graph.shape(instruction).members[0]]
        elif kind in ("send", "ragged-all-to-all"):
            # The other operands are a token, or say what goes where.
            shapes = [graph.shape(graph.operands(instruction)[0])]
        else:
            shapes = [graph.shape(operand) for operand in graph.operands(instruction)]
    except (DanglingReference, IndexError):
        reasons.append("an operand, or a part of the result, is not there")
        return None
    payload = _total([shape.size_bytes for shape in shapes])
    if payload is None:
        reasons.append("an operand or result has no fixed size")
    return payload


def _total(sizes: list[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    total = sum(known)
    return total if len(known) == len(sizes) and total <= _INT64_MAX else None


def _group_mode(instruction: Any, kind: str) -> str | None:
    """By the rules of XLA, for which a channel's number does not matter; None where they forbid it."""
    has_channel = instruction.channel_id > 0
    if kind not in _WITH_GLOBAL_IDS:
        return "cross_partition" if has_channel else "cross_replica"
    if instruction.use_global_device_ids:
        return "flattened_id" if has_channel else None
    return "cross_replica_and_partition" if has_channel else "cross_replica"


def _groups(instruction: Any, module: Any, mode: str | None) -> tuple[Groups, int | None]:
    """Return the groups and their size in devices, None where they differ in it."""
    if mode is None:
        raise UnknownGroups("it has global device ids but no channel")
    groups = replica_groups(instruction)
    if not groups and mode == "flattened_id":
        raise UnknownGroups("it has global device ids but no replica groups")
    devices_per_member = 1
    if not groups or mode == "cross_replica_and_partition":
        replicas = module.device_assignment.replica_count
        partitions = module.device_assignment.computation_count
        if replicas <= 0 or partitions <= 0:
            raise UnknownGroups("the module does not say how many devices it is for")
        if replicas * partitions > MAX_MEMBERS:
            raise UnknownGroups(f"the module is for more than {MAX_MEMBERS} devices")
        if not groups:
            groups = _everyone(partitions if mode == "cross_partition" else replicas)
        if mode == "cross_replica_and_partition":
            devices_per_member = partitions
    sizes = {len(group) * devices_per_member for group in groups}
    return groups, sizes.pop() if len(sizes) == 1 else None


# One tuple for all collectives: to know equal groups again is quicker where they are the same.
@lru_cache(maxsize=4)
def _everyone(count: int) -> Groups:
    return (tuple(range(count)),)


def _pairs(instruction: Any, reasons: list[str]) -> Pairs:
    """Sources and targets; a send or recv has them as text in an attribute."""
    pairs: Pairs = ()
    if instruction.opcode.startswith(b"collective-permute"):
        if len(instruction.source_target_pairs) <= MAX_MEMBERS:
            pairs = tuple((pair.source, pair.target) for pair in instruction.source_target_pairs)
    else:
        for entry in instruction.frontend_attributes.map:
            if entry.key == b"_xla_send_recv_source_target_pairs" and len(entry.value) <= MAX_MEMBERS:
                text = "".join(entry.value.decode(errors="replace").split()).strip('"')
                if _PAIR_LIST.fullmatch(text):
                    pairs = tuple((int(found[1]), int(found[2])) for found in _PAIR.finditer(text))
    if not pairs or min(map(min, pairs)) < 0:
        reasons.append("its sources and targets are not there, too many or negative")
        return ()
    return pairs
