"""A name stack for HLO instructions whose own metadata tells none, and what collectives communicate for.

XLA keeps the op_name of most instructions and loses that of some: of fusions whose root has none, of copies
that it inserts, of operations that it rewrites. What is recorded instead, in this order:

own     its own op_name, where that is a name stack: it has segments and is no argument (`state['mu']['wo']`).
root    that of the root of the computation that it fuses, calls or starts.
inner   that of the most work in that computation, by FLOPs, or by bytes where it computes nothing. Work
        without a name counts as one candidate: where it is the most, nothing is inferred.
operand of an instruction that only moves data, the op_name of what it moves, where all of that has one name
        stack; of one that computes, where all that it takes data from and all that it gives data to has one
        and the same. Instructions without a name are passed on the way; from one that only moves data the
        search goes no further than the next that computes.
user    of an instruction that only moves data, which has no name stack or several, that of what it goes to,
        where all of that has one. A loop counts as what its first values go to.

Else it stays without: data that leaves a computation, or comes from several places, belongs to none of them.

Collectives that the partitioner inserts borrow names: gathered expert weights are called like the slice of
the loop that reads them. So for each collective the `neighbour` is recorded as well: the op_name of what a
gather's data is for, of what a reduction's data comes from, and of both for others, as far as all of it is
in scopes of one name. Only views decide whether it counts.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tracewh.ingest.hlo_cost_value import Cost
from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_loops import ComputationRuns
from tracewh.ingest.hlo_name_flow import Answer, DataFlow, Label
from tracewh.ingest.op_names import Segment, split_op_name

_MOVING = frozenset(
    b"bitcast bitcast-convert broadcast concatenate convert copy copy-done copy-start dynamic-slice "
    b"dynamic-update-slice get-tuple-element opt-barrier pad reshape reverse slice transpose tuple".split()
)
_BESIDE_MOVING = _MOVING | {b"parameter", b"constant", b"iota"}
_ASYNC = frozenset((b"async-start", b"async-update", b"async-done"))
_CALLING = frozenset((b"fusion", b"call", b"custom-call", b"async-start"))
_CONTROL_FLOW = frozenset((b"while", b"conditional", b"call"))
_COLLECTIVE = re.compile(
    rb"(all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute"
    rb"|collective-broadcast)(-start|-done)?"
)
_GATHERING = frozenset((b"all-gather", b"collective-broadcast"))
_REDUCING = frozenset((b"all-reduce", b"reduce-scatter"))
# Calls, which do not tell two scopes apart.
_CALL = re.compile(
    r"(.*\()?p?jit\(.*|checkpoint|remat\d*|rematted_computation|closed_call|eval_jaxpr|shard_map"
)
_EQUATION = re.compile(r".*->.*|[A-Za-z]+(,[A-Za-z]+)+")
# Between the start and the end of an asynchronous operation.
_MAX_UPDATES = 16
_LOOP = frozenset(("while", "body", "cond"))


@dataclass(frozen=True, slots=True)
class FoundNames:
    """What is recorded of one instruction; `inferred` is None where its own op_name serves, or none does."""

    inferred: str | None = None
    source: str | None = None
    neighbour: str | None = None


class ModuleOpNames:
    """The op_names that are found for the instructions of an HloModuleProto."""

    def __init__(self, graph: ModuleGraph, runs: ComputationRuns, cost: Callable[[Any], Cost]) -> None:
        self._graph, self._cost = graph, cost
        self._stacks: dict[str, Label] = {}
        self._scopes: dict[str, Label | None] = {}
        self._own: dict[int, str] = {}
        self._found: dict[int, FoundNames] = {}
        self._are_moving: dict[int, bool] = {}
        executed = [
            computation
            for computation in graph.computations.values()
            if runs.of(computation).role not in ("fusion", "reducer")
        ]
        for computation in executed:
            for instruction in computation.instructions:
                self._name_by_itself(instruction)
        flow = DataFlow(graph, executed)
        self._name_by_data(executed, flow)
        self._find_neighbours(executed, flow)

    def of(self, instruction: Any) -> FoundNames:
        """What is known of an instruction of the module."""
        found = self._found.get(instruction.id)
        if found is None:
            found = FoundNames(source="own" if instruction.metadata.op_name else None)
        return found

    def _own_name(self, instruction: Any) -> str | None:
        """The op_name, if it is a name stack."""
        op_name: bytes = instruction.metadata.op_name
        if instruction.opcode == b"parameter" or b"/" not in op_name or b"[" in op_name.split(b"/", 1)[0]:
            return None
        return op_name.decode(errors="replace")

    def _name_by_itself(self, instruction: Any) -> None:
        own = self._own_name(instruction)
        if own is not None:
            self._own[instruction.id] = own
            return
        if instruction.opcode not in _CALLING:
            return
        for called_id in instruction.called_computation_ids[:1]:
            called = self._graph.computations.get(called_id)
            if called is None:
                continue
            root = self._graph.instructions.get(called.root_id)
            found, source = None if root is None else self._own_name(root), "root"
            if found is None:
                found, source = self._heaviest(called), "inner"
            if found is not None:
                self._own[instruction.id] = found
                self._found[instruction.id] = FoundNames(found, source)

    def _heaviest(self, computation: Any) -> str | None:
        """The op_name of the most work in a computation; None where that has none."""
        names = {instruction.id: self._own_name(instruction) for instruction in computation.instructions}
        work: dict[int, int] = {}
        for instruction in computation.instructions:
            if instruction.opcode not in (b"parameter", b"constant"):
                cost = self._cost(instruction)
                work[instruction.id] = (cost.flops or 0) + (cost.transcendentals or 0)
        if not any(work.values()):
            for instruction_id in work:
                shape = self._graph.shape(self._graph.instructions[instruction_id])
                work[instruction_id] = shape.size_bytes or 0
        by_stack: dict[str | None, int] = defaultdict(int)
        by_name: dict[str, int] = defaultdict(int)
        for instruction_id, amount in work.items():
            name = names[instruction_id]
            by_stack[None if name is None else self._stack(name).key] += amount
            if name is not None:
                by_name[name] += amount
        heaviest = max(by_stack, key=by_stack.__getitem__, default=None)
        if heaviest is None or not by_stack[heaviest]:
            return None
        same = [name for name in by_name if self._stack(name).key == heaviest]
        return max(same, key=by_name.__getitem__)

    def _name_by_data(self, executed: list[Any], flow: DataFlow) -> None:
        def label(instruction: Any) -> Label | None:
            name = self._own.get(instruction.id)
            return None if name is None else self._stack(name)

        unnamed = [
            instruction
            for computation in executed
            for instruction in computation.instructions
            if instruction.id not in self._own and instruction.opcode not in _CONTROL_FLOW
        ]
        if not unnamed:
            return
        moved_before = flow.before(label, self._is_moving)
        moved_after = flow.after(label, self._is_moving)
        any_before = flow.before(label, _is_no_control_flow)
        any_after = flow.after(label, _is_no_control_flow)
        for instruction in unnamed:
            if instruction.opcode == b"parameter":
                continue
            if self._is_moving(instruction):
                before, after = moved_before.get(instruction.id), moved_after.get(instruction.id)
                if isinstance(before, Label):
                    self._found[instruction.id] = FoundNames(before.op_name, "operand")
                elif isinstance(after, Label):
                    self._found[instruction.id] = FoundNames(after.op_name, "user")
                continue
            before, after = any_before.get(instruction.id), any_after.get(instruction.id)
            if isinstance(before, Label) and isinstance(after, Label) and before.key == after.key:
                self._found[instruction.id] = FoundNames(before.op_name, "operand")

    def _find_neighbours(self, executed: list[Any], flow: DataFlow) -> None:
        collectives = [
            (instruction, kind)
            for computation in executed
            for instruction in computation.instructions
            if (kind := self._collective_kind(instruction)) is not None
        ]
        if not collectives:
            return

        def label(instruction: Any) -> Label | None:
            name = self._own.get(instruction.id)
            is_plumbing = instruction.opcode in _ASYNC or instruction.opcode.endswith((b"-start", b"-done"))
            is_passed = is_plumbing or instruction.opcode in _CONTROL_FLOW
            return None if name is None or is_passed else self._scope(name)

        def passes(instruction: Any) -> bool:
            return self._is_moving(instruction) or _COLLECTIVE.fullmatch(instruction.opcode) is not None

        before, after = flow.before(label, passes), flow.after(label, passes)
        for instruction, kind in collectives:
            neighbour = _neighbour(instruction.id, kind, before, after)
            if neighbour is not None:
                known = self.of(instruction)
                self._found[instruction.id] = FoundNames(known.inferred, known.source, neighbour)

    def _collective_kind(self, instruction: Any) -> bytes | None:
        """The opcode, without -start and -done, of a collective or of the one that it starts or ends."""
        for _ in range(_MAX_UPDATES):
            if instruction is None or instruction.opcode not in (b"async-update", b"async-done"):
                break
            instruction = self._graph.instructions.get(next(iter(instruction.operand_ids), -1))
        if instruction is None:
            return None
        if instruction.opcode == b"async-start":
            called = self._graph.computations.get(next(iter(instruction.called_computation_ids), -1))
            instruction = None if called is None else self._graph.instructions.get(called.root_id)
        named = None if instruction is None else _COLLECTIVE.fullmatch(instruction.opcode)
        return None if named is None else named[1]

    def _is_moving(self, instruction: Any) -> bool:
        """Whether the instruction changes no value but the type that holds it."""
        if instruction.opcode in _MOVING or instruction.opcode in _ASYNC:
            return True
        if instruction.opcode != b"fusion":
            return False
        known = self._are_moving.get(instruction.id)
        if known is None:
            bodies = map(self._graph.computations.get, instruction.called_computation_ids)
            known = self._are_moving[instruction.id] = all(
                body is not None and all(inner.opcode in _BESIDE_MOVING for inner in body.instructions)
                for body in bodies
            )
        return known

    def _stack(self, op_name: str) -> Label:
        """Label of an op_name by all scopes that it is in."""
        if op_name not in self._stacks:
            segments = split_op_name(op_name)
            path = [segment.segment for segment in segments[:-1]]
            if any(segment.member is not None for segment in segments):
                path = [op_name]
            while path and (_CALL.fullmatch(path[-1]) or _EQUATION.fullmatch(path[-1])):
                path.pop()
            self._stacks[op_name] = Label("/".join(path), op_name)
        return self._stacks[op_name]

    def _scope(self, op_name: str) -> Label | None:
        """Label of an op_name by its deepest scope; None where none below the innermost loop has a name."""
        if op_name not in self._scopes:
            self._scopes[op_name] = None
            segments = split_op_name(op_name)
            if all(segment.member is None for segment in segments):
                scope = _deepest_scope(segments)
                self._scopes[op_name] = None if scope is None else Label(scope, op_name)
        return self._scopes[op_name]


def _deepest_scope(segments: list[Segment]) -> str | None:
    for segment in reversed(segments[:-1]):
        if segment.scope in _LOOP:
            return None
        is_call = _CALL.fullmatch(segment.segment) or _CALL.fullmatch(segment.scope)
        if segment.scope and not is_call and not _EQUATION.fullmatch(segment.scope):
            return segment.scope
    return None


def _is_no_control_flow(instruction: Any) -> bool:
    return instruction.opcode not in _CONTROL_FLOW


def _neighbour(
    instruction_id: int, kind: bytes, before: Mapping[int, Answer], after: Mapping[int, Answer]
) -> str | None:
    source, target = before.get(instruction_id), after.get(instruction_id)
    if kind in _GATHERING:
        return target.op_name if isinstance(target, Label) else None
    if kind in _REDUCING:
        return source.op_name if isinstance(source, Label) else None
    if isinstance(source, Label) and isinstance(target, Label) and source.key == target.key:
        return source.op_name
    return None
