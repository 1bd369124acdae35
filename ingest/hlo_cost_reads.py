"""How much of its parameters a fused computation reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracewh.ingest.hlo_cost_shapes import Values, is_tuple
from tracewh.ingest.hlo_cost_value import UnknownCost
from tracewh.ingest.hlo_shape import Shape

_Use = tuple[Any, list[int]]
"""An instruction that uses a value, and as which of its operands, ascending."""


class FusedReads:
    """Counts the bytes that one fused computation reads of its parameters. Its methods raise UnknownCost."""

    def __init__(self, values: Values, computation: Any, nested: Callable[[Any], dict[int, int]]) -> None:
        """`nested` tells what a fusion in the computation reads, by its parameter numbers."""
        self._values, self._nested = values, nested
        self._uses = _uses(computation)
        self._known: dict[int, int] = {}
        self._known_results: dict[tuple[int, bool], tuple[int, int | None]] = {}

    def of_parameter(self, parameter: Any) -> int:
        """Bytes that are read of a parameter; of a tuple those of the arrays in it.

        Where no instruction takes an array out of its tuple, the tuple counts instead: XLA's rule.
        """
        total = 0
        pending: list[tuple[Any, Shape]] = [(parameter, self._values.graph.shape(parameter))]
        taken: dict[int, dict[int, Any]] = {}
        while pending:
            value, shape = pending.pop()
            if not is_tuple(shape):
                total += self.of(value)
                continue
            if value.id not in taken:
                taken[value.id] = self._taken_from(value)
            members = taken[value.id]
            pending += [(members.get(index, value), member) for index, member in enumerate(shape.members)]
        return total

    def of(self, value: Any) -> int:
        """Bytes that are read of a value. Users that need all of it share one reading."""
        known = self._known.get(value.id)
        if known is not None:
            return known
        whole = self._values.passed_bytes(value)
        total = 0
        is_shared = False
        for user, indexes in self._uses.get(value.id, ()):
            opcode = user.opcode
            if opcode == b"fusion":
                total += sum(self._nested_read(user, index) for index in indexes)
            elif (part := self._part(user, indexes)) is not None:
                total += part
            elif opcode in (b"broadcast", b"reshape"):
                total += whole
            elif not is_shared:
                is_shared = True
                total += whole
        self._known[value.id] = total
        return total

    def _taken_from(self, value: Any) -> dict[int, Any]:
        """The first get-tuple-element of each member of a tuple, by index."""
        taken: dict[int, Any] = {}
        for user, _ in self._uses.get(value.id, ()):
            if user.opcode == b"get-tuple-element":
                taken.setdefault(user.tuple_index, user)
        return taken

    def _part(self, user: Any, indexes: list[int]) -> int | None:
        """Bytes that a user reads which does not need all of the value; None for any other user."""
        opcode = user.opcode
        if opcode == b"slice" or (opcode == b"dynamic-slice" and indexes[0] == 0):
            return self._values.passed_bytes(user)
        if opcode == b"dynamic-update-slice" and indexes[0] == 0:
            return 0
        return None

    def _nested_read(self, fusion: Any, index: int) -> int:
        """Bytes that a fusion in this computation reads of its operand at `index`."""
        reads = self._nested(fusion)
        if index not in reads:
            raise UnknownCost(f"a fusion in it has no parameter {index}")
        passes_on = self._passes_on(fusion, index)
        key = fusion.id, passes_on
        if key not in self._known_results:
            self._known_results[key] = self._result_reads(fusion, passes_on)
        parts, whole = self._known_results[key]
        return parts + (reads[index] if whole is None else whole)

    def _passes_on(self, fusion: Any, index: int) -> bool:
        """Whether what uses the fusion's result may be taken as a user of the operand at `index`."""
        graph = self._values.graph
        root = graph.instructions.get(graph.computations[fusion.called_computation_ids[0]].root_id)
        if root is None:
            raise UnknownCost("the root of a fusion in it is not in the module")
        if not root.operand_ids:
            return True
        first = self._values.operand(root, 0)
        return bool(first.opcode == b"parameter" and first.parameter_number == index)

    def _result_reads(self, fusion: Any, passes_on: bool) -> tuple[int, int | None]:
        """Bytes that users read parts of, and those of the one reading of the whole.

        The latter is None where it is the fusion that reads, not its user.
        """
        parts = 0
        whole: int | None = 0
        is_shared = False
        for user, indexes in self._uses.get(fusion.id, ()):
            part = self._part(user, indexes) if passes_on else None
            if part is not None:
                parts += part
            elif not is_shared:
                is_shared = True
                is_sliced = user.opcode in (b"dynamic-slice", b"dynamic-update-slice")
                whole = self._values.passed_bytes(fusion) if passes_on and is_sliced else None
        return parts, whole


def _uses(computation: Any) -> dict[int, list[_Use]]:
    """The users of every value in the computation by the value's id, in their order."""
    uses: dict[int, list[_Use]] = {}
    for user in computation.instructions:
        for index, operand_id in enumerate(user.operand_ids):
            known = uses.setdefault(operand_id, [])
            if known and known[-1][0] is user:
                known[-1][1].append(index)
            else:
                known.append((user, [index]))
    return uses
