"""The operations of triangular solves and Cholesky decompositions in libraries, as XLA counts its opcodes."""

from __future__ import annotations

from math import prod

from tracewh.ingest.hlo_cost_value import UnknownCost
from tracewh.ingest.hlo_library_call import LibraryCall, Work


def triangular_solve(call: LibraryCall) -> Work:
    """A product of the triangular matrix, taken as full, and the other operand. Raises UnknownCost."""
    size, right = _square_matrix(call), call.operand(1)
    if size not in right[-2:]:
        raise UnknownCost("the sizes of its operands do not fit each other")
    return Work(2 * size * prod(right), 0)


def cholesky(call: LibraryCall) -> Work:
    """A third of the cube of the size. Raises UnknownCost."""
    return Work(_square_matrix(call) * prod(call.operand(0)) // 3, 0)


def _square_matrix(call: LibraryCall) -> int:
    dimensions = call.operand(0)
    if len(dimensions) < 2 or dimensions[-1] != dimensions[-2]:
        raise UnknownCost("its operand is no square matrix")
    return dimensions[-1]
