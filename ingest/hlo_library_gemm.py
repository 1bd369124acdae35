"""The operations of matrix products in libraries: cuBLAS, hipBLASLt, rocBLAS, cuDNN and oneDNN.

ROCm's libraries have the targets of NVIDIA's. A product counts 2*M*N*K per batch, as XLA counts a `dot`;
scaling by alpha, adding an accumulator or a bias and activations do not count.
"""

from __future__ import annotations

from math import prod
from typing import Any

from tracewh.ingest.hlo_cost_value import UnknownCost
from tracewh.ingest.hlo_library_call import (
    FULL_GROUPS,
    LibraryCall,
    Work,
    check_indices,
    product_of,
    product_without,
)
from tracewh.ingest.hlo_library_config import integers, section

# Activations that take one transcendental operation per element.
_CURVED_EPILOGUES = ("GELU", "SILU")
_CURVED_FUSIONS = ("GELU", "SIGMOID", "SWISH", "TANH")


def cublas_gemm(call: LibraryCall) -> Work:
    """Work of a product with dimension numbers in its configuration. Raises UnknownCost."""
    # Before 2024 the configuration was that of the product itself.
    config = section(call.config, "gemm_backend_config") or call.config
    flops = _dot_flops(call, section(config, "dot_dimension_numbers"))
    epilogue = str(config.get("epilogue"))
    is_curved = any(name in epilogue for name in _CURVED_EPILOGUES)
    return Work(flops, prod(call.result()) if is_curved else 0)


def grouped_matmul(call: LibraryCall) -> Work:
    """Work of a ragged dot: rows of one operand are in groups, each with a matrix of its own.

    Raises UnknownCost.
    """
    config = section(call.config, "grouped_gemm_backend_config") or call.config
    ragged = section(config, "ragged_dot_dimension_numbers")
    numbers = section(ragged, "dot_dimension_numbers")
    groups = integers(ragged, "rhs_group_dimensions")
    batch, rows, columns, contracted = _dot_sizes(call, numbers, groups)
    outputs = prod(call.result())
    # With groups along a contracting dimension each group has a result of its own.
    if outputs != batch * rows * columns and outputs != batch * rows * columns * _group_count(call):
        raise UnknownCost("the size of its result does not fit its operands")
    return Work(2 * batch * rows * columns * contracted, 0, note=FULL_GROUPS)


def block_scaled_dot(call: LibraryCall) -> Work:
    """Work of a product of [batch, M, K] and [batch, N, K], with scales as operands. Raises UnknownCost."""
    lhs, rhs, outputs = call.operand(0), call.operand(1), prod(call.result())
    if len(lhs) != len(rhs) or len(lhs) < 2 or lhs[-1] != rhs[-1] or lhs[:-2] != rhs[:-2]:
        raise UnknownCost("the sizes of its operands do not fit each other")
    if outputs != prod(lhs[:-1]) * rhs[-2]:
        raise UnknownCost("the size of its result does not fit its operands")
    return Work(2 * outputs * lhs[-1], 0)


def onednn_matmul(call: LibraryCall) -> Work:
    """Work of a product of [batch, M, K] and [batch, K, N], either one transposed. Raises UnknownCost."""
    config = section(call.config, "onednn_matmul_config")
    lhs, rhs, outputs = call.operand(0), call.operand(1), prod(call.result())
    if len(lhs) < 2 or len(rhs) < 2:
        raise UnknownCost("its operands are no matrices")
    rows, contracted = _matrix(lhs, config.get("transpose_a") is True)
    also_contracted, columns = _matrix(rhs, config.get("transpose_b") is True)
    # Dimensions of the batch may be missing from one side, or 1 there.
    matrices = rows * columns
    if contracted != also_contracted or (outputs % matrices if matrices else outputs):
        raise UnknownCost("the sizes of its operands and result do not fit each other")
    is_curved = any(name in str(config) for name in _CURVED_FUSIONS)
    return Work(2 * outputs * contracted, outputs if is_curved else 0)


def _matrix(dimensions: tuple[int, ...], is_transposed: bool) -> tuple[int, int]:
    rows, columns = dimensions[-2:]
    return (columns, rows) if is_transposed else (rows, columns)


def _dot_flops(call: LibraryCall, numbers: dict[str, Any]) -> int:
    batch, rows, columns, contracted = _dot_sizes(call, numbers)
    if prod(call.result()) != batch * rows * columns:
        raise UnknownCost("the size of its result does not fit its operands")
    return 2 * batch * rows * columns * contracted


def _dot_sizes(
    call: LibraryCall, numbers: dict[str, Any], group_dimensions: tuple[int, ...] = ()
) -> tuple[int, int, int, int]:
    """Sizes of the batch, of the other dimensions of either side, and of what is summed over."""
    if not numbers:
        raise UnknownCost("its configuration has no dimension numbers")
    lhs, rhs = call.operand(0), call.operand(1)
    lhs_batch = integers(numbers, "lhs_batch_dimensions")
    rhs_batch = integers(numbers, "rhs_batch_dimensions")
    lhs_summed = integers(numbers, "lhs_contracting_dimensions")
    rhs_summed = integers(numbers, "rhs_contracting_dimensions")
    check_indices(lhs, lhs_batch + lhs_summed, "dimension numbers")
    check_indices(rhs, rhs_batch + rhs_summed + group_dimensions, "dimension numbers")
    for of_lhs, of_rhs in ((lhs_batch, rhs_batch), (lhs_summed, rhs_summed)):
        if [lhs[index] for index in of_lhs] != [rhs[index] for index in of_rhs]:
            raise UnknownCost("the sizes of its operands do not fit each other")
    return (
        product_of(lhs, lhs_batch),
        product_without(lhs, lhs_batch + lhs_summed),
        product_without(rhs, rhs_batch + rhs_summed + group_dimensions),
        product_of(lhs, lhs_summed),
    )


def _group_count(call: LibraryCall) -> int:
    sizes = call.operand(2)
    return sizes[-1] if sizes else 1
