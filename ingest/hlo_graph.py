"""Looks up the instructions, computations and shapes of one HLO module by id."""

from __future__ import annotations

from typing import Any

from google.protobuf.message import DecodeError

from tracewh.ingest.hlo_proto import ShapeProto
from tracewh.ingest.hlo_shape import Shape, describe_shape

UNREADABLE_SHAPE = Shape("invalid", None, None, None)
"""Stands for the shape of an instruction whose own is damaged."""


class DanglingReference(KeyError):
    """An instruction refers to one, or to a computation, that the module does not hold."""


class ModuleGraph:
    """The instructions and computations of an HloModuleProto; of several with one id the first counts."""

    def __init__(self, module: Any) -> None:
        self.computations: dict[int, Any] = {}
        self.instructions: dict[int, Any] = {}
        self._shapes: dict[bytes, Shape] = {}
        self._shape_by_id: dict[int, Shape] = {}
        for computation in module.computations:
            self.computations.setdefault(computation.id, computation)
            for instruction in computation.instructions:
                self.instructions.setdefault(instruction.id, instruction)

    def shape(self, instruction: Any) -> Shape:
        """Shape of the instruction's result; UNREADABLE_SHAPE where it is damaged."""
        # Others ask for the shape of a wide tuple again and again: even to hash its bytes takes long.
        shape = self._shape_by_id.get(instruction.id)
        if shape is None:
            shape = self._shape_by_id[instruction.id] = self._described(instruction.shape)
        return shape

    def _described(self, data: bytes) -> Shape:
        """The shape in a serialized ShapeProto. A module has few distinct ones: each is decoded once."""
        shape = self._shapes.get(data)
        if shape is None:
            try:
                shape = describe_shape(ShapeProto.FromString(data))
            except DecodeError:
                shape = UNREADABLE_SHAPE
            self._shapes[data] = shape
        return shape

    def operands(self, instruction: Any) -> list[Any]:
        """The instructions that give the operands, in order. Raises DanglingReference."""
        return [self._found(self.instructions, operand_id) for operand_id in instruction.operand_ids]

    def called(self, instruction: Any) -> list[Any]:
        """The computations that the instruction calls, in order. Raises DanglingReference."""
        return [self._found(self.computations, called_id) for called_id in instruction.called_computation_ids]

    def root(self, computation: Any) -> Any:
        """The instruction whose result is the computation's. Raises DanglingReference."""
        return self._found(self.instructions, computation.root_id)

    @staticmethod
    def _found(known: dict[int, Any], wanted: int) -> Any:
        try:
            return known[wanted]
        except KeyError as error:
            raise DanglingReference(wanted) from error
