"""Memory traffic of single HLO instructions; what a fusion moves is counted in hlo_cost_fusion."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracewh.ingest.hlo_cost_opcodes import RULE_BY_OPCODE
from tracewh.ingest.hlo_cost_shapes import Values
from tracewh.ingest.hlo_cost_value import UnknownCost
from tracewh.ingest.hlo_proto import ShapeProto


def instruction_bytes(values: Values, instruction: Any) -> int:
    """Bytes that one execution reads and writes. Raises UnknownCost."""
    opcode = instruction.opcode
    if RULE_BY_OPCODE.get(opcode) == "no_work":
        return 0
    rule = _RULES.get(opcode, _everything)
    return rule(values, instruction)


def _everything(values: Values, instruction: Any) -> int:
    """All operands read, all results written."""
    total = values.written_bytes(instruction)
    for index in range(len(instruction.operand_ids)):
        total += values.passed_bytes(values.operand(instruction, index))
    return total


def _slice(values: Values, instruction: Any) -> int:
    return 2 * values.passed_bytes(instruction)


def _dynamic_slice(values: Values, instruction: Any) -> int:
    return 2 * values.passed_bytes(instruction) + _operand_bytes(values, instruction, 1)


def _dynamic_update_slice(values: Values, instruction: Any) -> int:
    """The update is read and written; the rest of the result shares memory with operand 0."""
    return 2 * _operand_bytes(values, instruction, 1) + _operand_bytes(values, instruction, 2)


def _scatter(values: Values, instruction: Any) -> int:
    """Input and result are touched where the updates are."""
    count, odd = divmod(len(instruction.operand_ids), 2)
    if not odd or not count:
        raise UnknownCost("it has not one update per array and the indices as operands")
    updates = sum(_operand_bytes(values, instruction, count + 1 + index) for index in range(count))
    return 3 * updates + _operand_bytes(values, instruction, count)


def _tuple(values: Values, instruction: Any) -> int:
    return values.passed_bytes(instruction)


def _outfeed(values: Values, instruction: Any) -> int:
    indexes = range(len(instruction.operand_ids))
    return sum(values.written_bytes(values.operand(instruction, index)) for index in indexes)


def _cholesky(values: Values, instruction: Any) -> int:
    """Half of the matrix is read and half of it written."""
    return _operand_bytes(values, instruction, 0)


def _triangular_solve(values: Values, instruction: Any) -> int:
    """Half of the matrix is read."""
    return (
        values.written_bytes(instruction)
        + _operand_bytes(values, instruction, 0) // 2
        + _operand_bytes(values, instruction, 1)
    )


def _transpose(values: Values, instruction: Any) -> int:
    # First, as it refuses shapes that cannot be decoded.
    moved = _everything(values, instruction)
    return 0 if _moves_nothing(values, instruction) else moved


def _moves_nothing(values: Values, instruction: Any) -> bool:
    """Whether a transpose only renames dimensions: every element stays where it is."""
    before = ShapeProto.FromString(values.operand(instruction, 0).shape)
    after = ShapeProto.FromString(instruction.shape)
    order, wanted = after.layout.minor_to_major, before.layout.minor_to_major
    dimensions = instruction.dimensions
    if not (before.HasField("layout") and after.HasField("layout")) or len(order) != len(wanted):
        return False
    if before.element_type != after.element_type or not all(0 <= index < len(dimensions) for index in order):
        return False
    return [dimensions[index] for index in order] == list(wanted)


def _operand_bytes(values: Values, instruction: Any, index: int) -> int:
    return values.passed_bytes(values.operand(instruction, index))


_RULES: dict[bytes, Callable[[Values, Any], int]] = {
    b"cholesky": _cholesky,
    b"dynamic-slice": _dynamic_slice,
    b"dynamic-update-slice": _dynamic_update_slice,
    # The elements that it gathers and their indices, not the whole array.
    b"gather": _dynamic_slice,
    b"outfeed": _outfeed,
    b"scatter": _scatter,
    b"slice": _slice,
    b"transpose": _transpose,
    b"triangular-solve": _triangular_solve,
    b"tuple": _tuple,
}
