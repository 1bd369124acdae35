"""Flops and transcendentals of HLO instructions and of the computations that they run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracewh.ingest.hlo_cost_arithmetic import (
    cholesky_flops,
    dot_flops,
    fft_flops,
    ragged_dot_flops,
    sort_flops,
    triangular_solve_flops,
)
from tracewh.ingest.hlo_cost_bodies import callees_first
from tracewh.ingest.hlo_cost_opcodes import RULE_BY_OPCODE, TRANSCENDENTAL_OPCODES
from tracewh.ingest.hlo_cost_shapes import LARGEST, Values, product
from tracewh.ingest.hlo_cost_value import Cost, UnknownCost
from tracewh.ingest.hlo_cost_window import convolution_flops, window_reductions
from tracewh.ingest.hlo_graph import ModuleGraph

Work = tuple[int, int]
"""Flops and transcendentals."""
LibraryCall = Callable[[ModuleGraph, Any], Cost]

_NONE: Work = (0, 0)
_CALLS_ITSELF = "the computation that it runs calls itself"
_FLOPS: dict[bytes, Callable[[Values, Any], int]] = {
    b"dot": dot_flops,
    b"scaled-dot": dot_flops,
    b"ragged-dot": ragged_dot_flops,
    b"convolution": convolution_flops,
    b"sort": sort_flops,
    b"fft": fft_flops,
    b"cholesky": cholesky_flops,
    b"triangular-solve": triangular_solve_flops,
    # One addition per result: XLA takes two devices as given.
    b"all-reduce": Values.elements,
    b"all-reduce-start": Values.elements,
}


class WorkCounter:
    """Counts the work of instructions of one module; each computation that they run is counted once."""

    def __init__(
        self, values: Values, library_call: LibraryCall, indexed: Callable[[Any], Any | None]
    ) -> None:
        """`indexed` gives the gather or scatter that a custom fusion stands for."""
        self._values, self._library_call, self._indexed = values, library_call, indexed
        # By id: what one run of a computation does, or why that is unknown.
        self._bodies: dict[int, Work | str] = {}

    def of(self, instruction: Any) -> Work:
        """What one execution of the instruction does. Raises UnknownCost."""
        if _runs_others(instruction):
            graph = self._values.graph
            for body in callees_first(
                graph, list(instruction.called_computation_ids), _called_ids, self._bodies
            ):
                self._bodies[body.id] = self._sum(body)
        return self._count(instruction)

    def _sum(self, computation: Any) -> Work | str:
        flops = transcendentals = 0
        for instruction in computation.instructions:
            try:
                work = self._count(instruction)
            except UnknownCost as error:
                if _runs_others(instruction):
                    return str(error)
                return f"{instruction.name.decode(errors='replace')[:80]} in it: {error}"
            flops += work[0]
            transcendentals += work[1]
        return flops, transcendentals

    def _count(self, instruction: Any) -> Work:
        opcode = instruction.opcode
        rule = RULE_BY_OPCODE.get(opcode)
        if rule == "elementwise":
            elements = self._values.elements(instruction)
            return (0, elements) if opcode in TRANSCENDENTAL_OPCODES else (elements, 0)
        if rule == "no_work":
            return _NONE
        work = self._count_special(instruction, opcode, rule)
        if not (0 <= work[0] <= LARGEST and 0 <= work[1] <= LARGEST):
            raise UnknownCost("its numbers do not fit into 64 bits")
        return work

    def _count_special(self, instruction: Any, opcode: bytes, rule: str | None) -> Work:
        if opcode in _FLOPS:
            return _FLOPS[opcode](self._values, instruction), 0
        if opcode in _REPEATS:
            flops, transcendentals = self._body(instruction, 0)
            times = _REPEATS[opcode](self._values, instruction)
            return flops * times, transcendentals * times
        if opcode in _NESTED:
            return _NESTED[opcode](self, instruction)
        if rule == "random":
            return 0, self._values.elements(instruction)
        if rule == "custom_call":
            return self._library_work(instruction)
        if rule is None:
            raise UnknownCost(f"there is no rule for the opcode {opcode.decode(errors='replace')[:80]}")
        return _NONE

    def _body(self, instruction: Any, index: int) -> Work:
        """What the computation does that the instruction calls at `index`."""
        called_ids = instruction.called_computation_ids
        if index >= len(called_ids):
            raise UnknownCost(f"it calls no computation {index}")
        body = self._bodies.get(called_ids[index])
        if isinstance(body, tuple):
            return body
        if body is not None:
            raise UnknownCost(body)
        if called_ids[index] in self._values.graph.computations:
            raise UnknownCost(_CALLS_ITSELF)
        raise UnknownCost(f"the computation {called_ids[index]} is not in the module")

    def _fusion(self, instruction: Any) -> Work:
        if instruction.fusion_kind == b"kCustom":
            for computation_id in instruction.called_computation_ids[:1]:
                computation = self._values.graph.computations.get(computation_id)
                indexed = None if computation is None else self._indexed(computation)
                if indexed is not None:
                    return self._count(indexed)
        return self._body(instruction, 0)

    def _first(self, instruction: Any) -> Work:
        return self._body(instruction, 0)

    def _sum_of_all(self, instruction: Any) -> Work:
        bodies = self._all_bodies(instruction)
        return sum(flops for flops, _ in bodies), sum(transcendentals for _, transcendentals in bodies)

    def _largest(self, instruction: Any) -> Work:
        bodies = self._all_bodies(instruction)
        return max(flops for flops, _ in bodies), max(transcendentals for _, transcendentals in bodies)

    def _all_bodies(self, instruction: Any) -> list[Work]:
        return [
            self._body(instruction, index) for index in range(len(instruction.called_computation_ids) or 1)
        ]

    def _select_and_scatter(self, instruction: Any) -> Work:
        select, scatter = self._body(instruction, 0), self._body(instruction, 1)
        sources = self._values.elements(self._values.operand(instruction, 1))
        selections = sources * (product(window.size for window in instruction.window.dimensions) - 1)
        return (
            select[0] * selections + scatter[0] * sources,
            select[1] * selections + scatter[1] * sources,
        )

    def _library_work(self, instruction: Any) -> Work:
        cost = self._library_call(self._values.graph, instruction)
        if cost.flops is None or cost.transcendentals is None:
            raise UnknownCost(cost.reason or "what the library does is not known")
        return cost.flops, cost.transcendentals


def _reductions(values: Values, instruction: Any) -> int:
    return values.elements(values.operand(instruction, 0)) - values.first_elements(instruction)


def _scan_steps(values: Values, instruction: Any) -> int:
    """As XLA counts: once per element of operand 1, even where a step takes several of them at once."""
    return values.elements(values.operand(instruction, 1))


def _updates(values: Values, instruction: Any) -> int:
    return values.elements(values.operand(instruction, len(instruction.operand_ids) // 2 + 1))


# How often an instruction runs the computation that it calls.
_REPEATS: dict[bytes, Callable[[Values, Any], int]] = {
    b"map": Values.elements,
    b"reduce": _reductions,
    b"reduce-window": window_reductions,
    b"scan": _scan_steps,
    b"scatter": _updates,
}
# Other instructions that run computations; loops count one round, as XLA has it.
_NESTED: dict[bytes, Callable[[WorkCounter, Any], Work]] = {
    b"async-start": WorkCounter._first,
    b"call": WorkCounter._first,
    b"conditional": WorkCounter._largest,
    b"fusion": WorkCounter._fusion,
    b"select-and-scatter": WorkCounter._select_and_scatter,
    b"while": WorkCounter._sum_of_all,
}


def _runs_others(instruction: Any) -> bool:
    return instruction.opcode in _REPEATS or instruction.opcode in _NESTED


def _called_ids(computation: Any) -> list[int]:
    return [
        called_id
        for instruction in computation.instructions
        if _runs_others(instruction)
        for called_id in instruction.called_computation_ids
    ]
