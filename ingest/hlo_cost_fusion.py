"""Memory traffic of a fusion: its results, and of its operands what the fused computation needs."""

from __future__ import annotations

from typing import Any, NamedTuple

from tracewh.ingest.hlo_cost_bodies import callees_first
from tracewh.ingest.hlo_cost_bytes import instruction_bytes
from tracewh.ingest.hlo_cost_reads import FusedReads
from tracewh.ingest.hlo_cost_shapes import Values, is_tuple, stored_bytes
from tracewh.ingest.hlo_cost_value import UnknownCost
from tracewh.ingest.hlo_shape import Shape


class _Body(NamedTuple):
    """What one run of a fused computation reads, in all and by parameter number."""

    total: int
    parameters: dict[int, int]


class FusionTraffic:
    """Counts the bytes that fusions of one module move; each fused computation is looked at once."""

    def __init__(self, values: Values) -> None:
        self._values = values
        # By id of a fused computation: what it reads, or why that is unknown.
        self._bodies: dict[int, _Body | str] = {}
        self._indexed: dict[int, Any | None] = {}

    def bytes_accessed(self, fusion: Any) -> int:
        """Bytes that one execution of the fusion reads and writes. Raises UnknownCost."""
        computation = self._computation(fusion)
        indexed = self.indexed(computation) if fusion.fusion_kind == b"kCustom" else None
        if indexed is not None:
            return instruction_bytes(self._values, indexed)
        for fused in callees_first(self._values.graph, [computation.id], _fused_ids, self._bodies):
            self._bodies[fused.id] = self._read(fused)
        return self._written(fusion, computation) + self._body(computation).total

    def indexed(self, computation: Any) -> Any | None:
        """The first gather or scatter of a computation: a custom fusion with one costs what that does."""
        if computation.id not in self._indexed:
            self._indexed[computation.id] = next(
                (found for found in computation.instructions if found.opcode in (b"gather", b"scatter")), None
            )
        return self._indexed[computation.id]

    def _computation(self, fusion: Any) -> Any:
        called_ids = fusion.called_computation_ids
        computation = self._values.graph.computations.get(called_ids[0]) if called_ids else None
        if computation is None:
            raise UnknownCost("its computation is not in the module")
        return computation

    def _body(self, computation: Any) -> _Body:
        body = self._bodies.get(computation.id)
        if isinstance(body, _Body):
            return body
        raise UnknownCost(body or "the computation that it runs calls itself")

    def _read(self, computation: Any) -> _Body | str:
        total = 0
        parameters: dict[int, int] = {}
        try:
            reads = FusedReads(self._values, computation, self._nested)
            for instruction in computation.instructions:
                if instruction.opcode == b"parameter":
                    total += reads.of_parameter(instruction)
                    parameters[instruction.parameter_number] = reads.of(instruction)
                # A single number is part of the code.
                elif instruction.opcode == b"constant" and self._values.elements(instruction) > 1:
                    total += self._values.passed_bytes(instruction)
        except UnknownCost as error:
            return str(error)
        return _Body(total, parameters)

    def _nested(self, fusion: Any) -> dict[int, int]:
        """Bytes that a fusion within a fusion reads, by parameter number."""
        return self._body(self._computation(fusion)).parameters

    def _written(self, fusion: Any, computation: Any) -> int:
        """Bytes of all results; of an array that is updated in place, those of the update."""
        graph = self._values.graph
        root = graph.instructions.get(computation.root_id)
        if root is None:
            raise UnknownCost("the root of its computation is not in the module")
        shape = graph.shape(fusion)
        if not is_tuple(shape) or root.opcode != b"tuple":
            return self._written_as(shape, root)
        return sum(
            self._written_as(member, root if is_tuple(member) else self._values.operand(root, index))
            for index, member in enumerate(shape.members)
        )

    def _written_as(self, shape: Shape, maker: Any) -> int:
        if maker.opcode == b"dynamic-update-slice":
            return self._values.passed_bytes(self._values.operand(maker, 1))
        return stored_bytes(shape)


def _fused_ids(computation: Any) -> list[int]:
    return [
        called_id
        for instruction in computation.instructions
        if instruction.opcode == b"fusion"
        for called_id in instruction.called_computation_ids
    ]
