"""The cost of HLO custom calls, which XLA's own analysis does not count: it gives each -1 FLOPs.

FLOPs are those of the matrix products, convolutions and attention cores that a call does; what it adds around
them (scales, biases, activations, softmax) does not count. Bytes are those of the operands and results, once
each, without the workspace: an estimate of the least traffic, not a measurement.

`reason` says why a number is None, and where a number stands, in what way it is a bound.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from tracewh.ingest.hlo_cost_shapes import LARGEST
from tracewh.ingest.hlo_cost_value import Cost, UnknownCost
from tracewh.ingest.hlo_graph import DanglingReference, ModuleGraph
from tracewh.ingest.hlo_library_call import LibraryCall, Work
from tracewh.ingest.hlo_library_config import integer, section
from tracewh.ingest.hlo_library_convolution import (
    cudnn_convolution,
    cudnn_convolution_backward_filter,
    cudnn_convolution_backward_input,
    cudnn_fused_convolution,
)
from tracewh.ingest.hlo_library_cudnn import cudnn_attention
from tracewh.ingest.hlo_library_gemm import block_scaled_dot, cublas_gemm, grouped_matmul, onednn_matmul
from tracewh.ingest.hlo_library_solvers import cholesky, triangular_solve
from tracewh.ingest.hlo_library_transformer_engine import (
    transformer_engine_attention,
    transformer_engine_gemm,
    transformer_engine_grouped_gemm,
)
from tracewh.ingest.hlo_shape import Shape

UNKNOWN_CUSTOM_CALL = "unknown_custom_call"

_Counter = Callable[[LibraryCall], Work]

# Rule -> its formula, and the targets that it is for.
_COUNTED: dict[str, tuple[_Counter, str]] = {
    "cublas_gemm": (cublas_gemm, "__cublas$gemm"),
    "cublaslt_matmul": (cublas_gemm, "__cublas$lt$matmul"),
    "cublaslt_matmul_f8": (cublas_gemm, "__cublas$lt$matmul$f8"),
    "cublaslt_matmul_mx": (cublas_gemm, "__cublas$lt$matmul$mx"),
    "grouped_matmul": (grouped_matmul, "__cublas$lt$groupedMatmul"),
    "block_scaled_dot": (block_scaled_dot, "__cudnn$blockScaledDot __op$block_scaled_dot"),
    "onednn_matmul": (onednn_matmul, "__onednn$matmul"),
    "cudnn_convolution": (cudnn_convolution, "__cudnn$convForward"),
    "cudnn_fused_convolution": (
        cudnn_fused_convolution,
        "__cudnn$convBiasActivationForward __cudnn$convForwardGraph",
    ),
    "cudnn_convolution_backward_input": (cudnn_convolution_backward_input, "__cudnn$convBackwardInput"),
    "cudnn_convolution_backward_filter": (cudnn_convolution_backward_filter, "__cudnn$convBackwardFilter"),
    "cudnn_attention_forward": (
        cudnn_attention,
        "__cudnn$fmhaSoftmax __cudnn$fmhaSoftmaxF8 __cudnn$fmhaSoftmaxDropout"
        " __cudnn$fmhaScaleBiasSoftmax __cudnn$fmhaScaleBiasSoftmaxDropout"
        " __cudnn$fmhaScaleMaskSoftmax __cudnn$fmhaScaleMaskSoftmaxDropout"
        " __cudnn$fmhaScaleBiasMaskSoftmax __cudnn$fmhaScaleBiasMaskSoftmaxDropout",
    ),
    "cudnn_attention_backward": (
        cudnn_attention,
        "__cudnn$fmhaSoftmaxBackward __cudnn$fmhaSoftmaxBackwardF8 __cudnn$fmhaSoftmaxDropoutBackward"
        " __cudnn$fmhaScaleBiasSoftmaxBackward __cudnn$fmhaScaleBiasSoftmaxDropoutBackward"
        " __cudnn$fmhaScaleMaskSoftmaxBackward __cudnn$fmhaScaleMaskSoftmaxDropoutBackward"
        " __cudnn$fmhaScaleBiasMaskSoftmaxBackward __cudnn$fmhaScaleBiasMaskSoftmaxDropoutBackward",
    ),
    "te_attention_forward": (
        transformer_engine_attention,
        "te_fused_attn_forward te_fused_attn_forward_ffi",
    ),
    "te_attention_backward": (
        transformer_engine_attention,
        "te_fused_attn_backward te_fused_attn_backward_ffi",
    ),
    "te_gemm": (transformer_engine_gemm, "te_gemm_ffi te_gemm_v2_ffi"),
    "te_grouped_gemm": (transformer_engine_grouped_gemm, "te_grouped_gemm_ffi"),
    "triangular_solve": (
        triangular_solve,
        "__cublas$triangularSolve lapack_strsm_ffi lapack_dtrsm_ffi lapack_ctrsm_ffi lapack_ztrsm_ffi",
    ),
    "cholesky": (
        cholesky,
        "__cusolver$cholesky cusolver_potrf_ffi hipsolver_potrf_ffi"
        " lapack_spotrf_ffi lapack_dpotrf_ffi lapack_cpotrf_ffi lapack_zpotrf_ffi",
    ),
}
_RULE_BY_TARGET = {target: rule for rule, (_, targets) in _COUNTED.items() for target in targets.split()}

# Marks that the compiler and the runtime read; no kernel stands behind them.
_MARKS = frozenset(
    (
        "AllocateBuffer",
        "CreateBuffer",
        "LayoutConstraint",
        "MoveToDevice",
        "MoveToHost",
        "NopCustomCall",
        "NopReturnToken",
        "Pin",
        "PinToDevice",
        "PinToDeviceSram",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "Sharding",
        "Unpin",
        "__xla_internal_call_marker_after",
        "__xla_internal_call_marker_before",
        "annotate_device_placement",
        "inspect_sharding",
    )
)
_MARK_PREFIXES = ("xla.sdy.",)

# Data that moves or changes its form, and sorts by radix and selections, whose comparisons are no arithmetic.
_WITHOUT_ARITHMETIC = {
    "PadToStatic": "data_movement",
    "SliceToDynamic": "data_movement",
    "TopK": "topk",
    "X64Combine": "data_movement",
    "X64SplitHigh": "data_movement",
    "X64SplitLow": "data_movement",
    "__cub$DeviceRadixSort": "radix_sort",
    "__cudnn$convReorderFilter": "data_movement",
    "__cudnn$convReorderFilterAndBias": "data_movement",
    "__gpu$TopK": "topk",
    "cu_lu_pivots_to_permutation": "data_movement",
    "hip_lu_pivots_to_permutation": "data_movement",
    "x64_combine": "data_movement",
}
_UNSIZED = "an operand or a result has no fixed size"
_RADIX_SORT_PREFIX = "xla.gpu.ext.cub_sort"

_TPU_KERNEL = "tpu_custom_call"
_USER_KERNELS = frozenset(
    ("__gpu$xla.gpu.triton", "mosaic_gpu", "mosaic_gpu_v2", "triton_kernel_call", _TPU_KERNEL)
)
# Prefix of a target -> rule, and the reason why the work is not known.
_UNKNOWN_FAMILIES = {
    "__cudnn$norm": ("cudnn_norm", "cuDNN does not say how many operations its normalizations take"),
    "__onednn$": ("onednn", "oneDNN does not say how many operations {target} takes"),
    "cu_threefry": ("random_bits", "it makes random bits by integer operations that no formula counts"),
    "hip_threefry": ("random_bits", "it makes random bits by integer operations that no formula counts"),
    "cu_": ("solver", "how many operations {target} takes depends on its algorithm"),
    "cusolver_": ("solver", "how many operations {target} takes depends on its algorithm"),
    "hip_": ("solver", "how many operations {target} takes depends on its algorithm"),
    "hipsolver_": ("solver", "how many operations {target} takes depends on its algorithm"),
    "lapack_": ("solver", "how many operations {target} takes depends on its algorithm"),
    "te_": ("te_other", "Transformer Engine does not say how many operations {target} takes"),
    "xla_ffi_partitioned_python_": ("host_callback", "it runs Python code on the host"),
    "xla_ffi_python_": ("host_callback", "it runs Python code on the host"),
    "xla_python_": ("host_callback", "it runs Python code on the host"),
}


def library_call_cost(graph: ModuleGraph, instruction: Any) -> Cost:
    """The cost of one execution of a `custom-call`; never raises, whatever its configuration holds.

    `rule` names the library and the formula, `no_work` for marks of the compiler, and `unknown_custom_call`
    for targets that nothing is known about.
    """
    target = instruction.custom_call_target.decode(errors="replace")
    if target in _MARKS or target.startswith(_MARK_PREFIXES):
        return Cost(0, 0, 0, "no_work")
    try:
        call = LibraryCall.of(graph, instruction)
    except DanglingReference:
        rule = _RULE_BY_TARGET.get(target, UNKNOWN_CUSTOM_CALL)
        return Cost(None, None, None, rule, "the module does not hold its operands")
    if target in _RULE_BY_TARGET:
        return _counted_cost(call, _RULE_BY_TARGET[target])
    if target in _WITHOUT_ARITHMETIC or target.startswith(_RADIX_SORT_PREFIX):
        size = _bytes(call.operands + call.data_results)
        return Cost(0, 0, size, _WITHOUT_ARITHMETIC.get(target, "radix_sort"), _size_reason(size))
    if target in _USER_KERNELS:
        return _user_kernel_cost(call)
    rule, reason = _family(target)
    results = call.results if rule == UNKNOWN_CUSTOM_CALL else call.data_results
    return Cost(None, None, _bytes(call.operands + results), rule, reason)


def _counted_cost(call: LibraryCall, rule: str) -> Cost:
    size = _bytes(call.operands + call.data_results)
    try:
        work = _COUNTED[rule][0](call)
    except UnknownCost as error:
        return Cost(None, None, size, rule, str(error))
    if max(work.flops, work.transcendentals) > LARGEST:
        return Cost(None, None, size, rule, "its numbers do not fit into 64 bits")
    reason = work.note or _size_reason(size)
    return Cost(work.flops, work.transcendentals, size, rule + work.variant, reason)


def _user_kernel_cost(call: LibraryCall) -> Cost:
    """The cost that the author of a kernel declared, which only calls for TPUs carry."""
    estimate = {}
    if call.target == _TPU_KERNEL:
        with suppress(UnknownCost):
            estimate = section(section(call.config, "custom_call_config"), "cost_estimate")
    flops, transcendentals, size = (
        integer(estimate, name) for name in ("flops", "transcendentals", "bytes_accessed")
    )
    if all(number is not None and 0 <= number <= LARGEST for number in (flops, transcendentals, size)):
        return Cost(flops, transcendentals, size, "declared_cost", "the author of the kernel declared it")
    size = _bytes(call.operands + call.results)
    return Cost(None, None, size, "user_kernel", "it is a kernel of its own, with no cost declared")


def _family(target: str) -> tuple[str, str]:
    """The rule for a target without a formula, and the reason."""
    for prefix, (rule, reason) in _UNKNOWN_FAMILIES.items():
        if target.startswith(prefix):
            return rule, reason.format(target=target)
    return UNKNOWN_CUSTOM_CALL, f"what the target {target[:80]!r} computes is not known"


def _bytes(shapes: tuple[Shape, ...]) -> int | None:
    sizes = [shape.stored_bytes for shape in shapes]
    known = [size for size in sizes if size is not None]
    return sum(known) if len(known) == len(sizes) and sum(known) <= LARGEST else None


def _size_reason(size: int | None) -> str | None:
    return None if size is not None else _UNSIZED
