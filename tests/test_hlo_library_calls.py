"""The cost of library calls, against jaxlib's counts of the same work as plain HLO, and by arithmetic."""

from __future__ import annotations

import json
import random
import tarfile
from typing import Any

import pytest

from tracewh.ingest.hlo_cost_value import Cost
from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_library_calls import library_call_cost
from tracewh.ingest.hlo_proto import HloProto

from .library_calls import (
    SHARED,
    call_module,
    calls,
    cost,
    dimension_numbers,
    flops_of,
    kernel_seconds,
    module_cost,
    size_of,
    xspace_modules,
)

# Operands, result, and contracting and batch dimensions of either side.
DOTS: list[tuple[str, str, str, Any]] = [
    ("bf16[64,128]", "bf16[128,32]", "bf16[64,32]", ([1], [0])),
    ("f32[128,64]", "f32[32,128]", "f32[64,32]", ([0], [1])),
    ("bf16[8,2560,16]", "bf16[16,8,48]", "bf16[8,2560,48]", ([2], [0], [0], [1])),
    ("f16[2,3,16,8]", "f16[2,3,8,4]", "f16[2,3,16,4]", ([3], [2], [0, 1], [0, 1])),
    ("f32[6,4,5]", "f32[4,5,7]", "f32[6,7]", ([1, 2], [0, 1])),
    ("c64[6,4]", "c64[4,7]", "c64[6,7]", ([1], [0])),
    ("f32[6,0]", "f32[0,7]", "f32[6,7]", ([1], [0])),
]


def gemm_config(numbers: Any, **more: Any) -> dict[str, Any]:
    return {"gemm_backend_config": {"dot_dimension_numbers": dimension_numbers(*numbers), **more}}


def dot_flops(lhs: str, rhs: str, result: str, numbers: Any) -> int:
    names = ("lhs_contracting_dims", "rhs_contracting_dims", "lhs_batch_dims", "rhs_batch_dims")
    attributes = ", ".join(
        f"{name}={{{','.join(map(str, found))}}}" for name, found in zip(names, numbers, strict=False)
    )
    return flops_of([lhs, rhs], f"{result} dot(p0, p1), {attributes}")


@pytest.mark.parametrize(("lhs", "rhs", "result", "numbers"), DOTS)
@pytest.mark.parametrize(
    ("target", "rule"), [("__cublas$gemm", "cublas_gemm"), ("__cublas$lt$matmul", "cublaslt_matmul")]
)
def test_products_count_as_dots(
    target: str, rule: str, lhs: str, rhs: str, result: str, numbers: Any
) -> None:
    found = cost(target, [lhs, rhs], f"({result}, s8[33554432])", gemm_config(numbers))
    assert found == Cost(dot_flops(lhs, rhs, result, numbers), 0, size_of(lhs, rhs, result), rule)


def test_product_without_workspace_and_with_the_configuration_of_old_compilers() -> None:
    config = gemm_config(([1], [0]))["gemm_backend_config"]
    for found in (config, {**config, "dot_dimension_numbers": {"lhs_contracting_dimensions": [1]}}):
        got = cost("__cublas$gemm", ["f32[3,5]", "f32[5,7]"], "f32[3,7]", found)
        if found is config:
            assert got == Cost(2 * 3 * 5 * 7, 0, 4 * (15 + 35 + 21), "cublas_gemm")
        else:
            assert got.flops is None
            assert got.reason == "the sizes of its operands do not fit each other"


def test_epilogues_add_bytes_and_exponentials_but_no_flops() -> None:
    operands = ["bf16[64,128]", "bf16[128,32]", "bf16[32]"]
    config = gemm_config(([1], [0]), epilogue="BIAS_GELU_AUX", beta=0)
    found = cost("__cublas$lt$matmul", operands, "(bf16[64,32], bf16[64,32], s8[4096])", config)
    size = size_of(*operands) + 2 * size_of("bf16[64,32]")
    assert found == Cost(2 * 64 * 128 * 32, 64 * 32, size, "cublaslt_matmul")
    # An accumulator is read as an operand and written as the result.
    operands = ["bf16[64,128]", "bf16[128,32]", "f32[64,32]"]
    config = gemm_config(([1], [0]), epilogue="BIAS_RELU", beta=1)
    found = cost("__cublas$lt$matmul", operands, "(f32[64,32], s8[4096])", config)
    size = size_of(*operands, "f32[64,32]")
    assert found == Cost(2 * 64 * 128 * 32, 0, size, "cublaslt_matmul")


@pytest.mark.parametrize("suffix", ["f8", "mx"])
def test_scaled_products(suffix: str) -> None:
    operands = ["f8e4m3fn[64,128]", "f8e4m3fn[32,128]", "f32[]", "f32[]"]
    config = gemm_config(([1], [1]), scale_mode=1)
    found = cost(f"__cublas$lt$matmul${suffix}", operands, "(bf16[64,32], f32[], s8[4096])", config)
    size = 64 * 128 + 32 * 128 + 4 + 4 + 2 * 64 * 32 + 4
    assert found == Cost(2 * 64 * 128 * 32, 0, size, f"cublaslt_matmul_{suffix}")


def test_block_scaled_dot() -> None:
    operands = ["f8e4m3fn[4,128,224]", "f8e5m2[4,120,224]", "f8e8m0fnu[4,128,7]", "f8e8m0fnu[4,120,7]"]
    found = cost("__cudnn$blockScaledDot", operands, "(f32[4,128,120], u8[16])")
    assert (found.flops, found.rule) == (2 * 4 * 128 * 120 * 224, "block_scaled_dot")
    found = cost("__op$block_scaled_dot", [shape.replace("[4,", "[") for shape in operands], "f32[128,120]")
    assert found.flops == 2 * 128 * 120 * 224


# Ragged dots of XLA's own tests of the rewriter: operands, result, numbers, ragged and group dimensions.
RAGGED: list[tuple[list[str], str, Any, list[int], list[int], int]] = [
    # 64 rows of 9, in 2 groups; each row meets the 9 by 8 matrix of its group.
    (["f16[64,9]", "f16[2,9,8]", "s32[2]"], "f16[64,8]", ([1], [1]), [0], [0], 2 * 64 * 9 * 8),
    # The same with a batch of 3.
    (
        ["f16[3,16,9]", "f16[3,2,9,8]", "s64[3,2]"],
        "f16[3,16,8]",
        ([2], [2], [0], [0]),
        [1],
        [1],
        2 * 3 * 16 * 9 * 8,
    ),
    # A weight gradient: 16 rows, in 4 groups, are summed over into 4 products of 64 by 8.
    (["f16[64,16]", "f16[16,8]", "s64[4]"], "f16[4,64,8]", ([1], [0]), [1], [], 2 * 64 * 16 * 8),
]


@pytest.mark.parametrize(("operands", "result", "numbers", "ragged", "groups", "flops"), RAGGED)
def test_grouped_products(
    operands: list[str], result: str, numbers: Any, ragged: list[int], groups: list[int], flops: int
) -> None:
    dots = dimension_numbers(*numbers)
    config = {
        "grouped_gemm_backend_config": {
            "gemm_backend_config": {"dot_dimension_numbers": dots},
            "ragged_dot_dimension_numbers": {
                "dot_dimension_numbers": dots,
                "lhs_ragged_dimensions": list(map(str, ragged)),
                "rhs_group_dimensions": list(map(str, groups)),
            },
        }
    }
    found = cost("__cublas$lt$groupedMatmul", operands, f"({result}, s8[1024])", config)
    assert (found.flops, found.transcendentals, found.rule) == (flops, 0, "grouped_matmul")
    assert found.bytes_accessed == size_of(*operands, result)
    assert found.reason is not None
    assert "run time" in found.reason


def test_onednn_products() -> None:
    found = cost("__onednn$matmul", ["f32[2,8,4,16]", "f32[2,8,16,32]"], "f32[2,8,4,32]")
    assert found == Cost(2 * 2 * 8 * 4 * 16 * 32, 0, 4 * (1024 + 8192 + 2048), "onednn_matmul")
    config = {
        "onednn_matmul_config": {
            "transpose_a": True,
            "transpose_b": True,
            "fusions": {"ops": ["BIAS", "GELU_TANH"]},
        }
    }
    operands = ["bf16[16,4]", "bf16[32,16]", "bf16[32]"]
    found = cost("__onednn$matmul", operands, "(bf16[4,32], u8[64])", config)
    assert (found.flops, found.transcendentals) == (2 * 4 * 16 * 32, 4 * 32)


def test_matrix_products_of_transformer_engine() -> None:
    operands = ["bf16[2,64,128]", "f32[0]", "bf16[128,4,8]", "f32[0]", "bf16[0]", "bf16[0]"]
    config = (
        "{collective_op = 0 : i64, fuse_bias = false, fuse_gelu = false, lhs_axis_boundary = 2 : i64, "
        "lhs_transposed = false, rhs_axis_boundary = 1 : i64, rhs_transposed = false, scaling_mode = 1 : i64}"
    )
    result = "(bf16[2,64,4,8], bf16[0], bf16[0], u8[256])"
    found = cost("te_gemm_ffi", operands, result, config)
    size = 2 * (2 * 64 * 128 + 128 * 32 + 2 * 64 * 32)
    assert found == Cost(2 * (2 * 64) * 128 * (4 * 8), 0, size, "te_gemm")
    # A weight gradient sums over batch and sequence; newer versions have one dictionary inside another.
    operands = ["f8e4m3fn[2,64,128]", "f32[1]", "f8e5m2[2,64,32]", "f32[1]", "bf16[0]", "f32[1]", "f32[1]"]
    config = (
        "{config = {collective_op = 0 : i64, lhs_axis_boundary = 2 : i64, lhs_transposed = true, "
        "rhs_axis_boundary = 2 : i64, rhs_transposed = false, use_split_accumulator = true}}"
    )
    found = cost("te_gemm_v2_ffi", operands, "(bf16[128,32], u8[256])", config)
    assert (found.flops, found.rule) == (2 * 128 * (2 * 64) * 32, "te_gemm")
    # One that gathers its rows from 4 devices first has 4 times the rows.
    gathered = config.replace("collective_op = 0", "collective_op = 1").replace("true", "false", 1)
    operands = ["bf16[2,64,128]", "f32[0]", "bf16[2,64,32]"]
    forward = gathered.replace("rhs_axis_boundary = 2", "rhs_axis_boundary = 1")
    operands[2] = "bf16[128,32]"
    found = cost("te_gemm_v2_ffi", operands, "(bf16[2,256,32], u8[256])", forward)
    assert found.flops == 2 * (2 * 256) * 128 * 32


def test_grouped_products_of_transformer_engine() -> None:
    operands = ["bf16[8192]", "f32[0]", "bf16[65536]", "f32[0]", "bf16[0]", "s32[4]", "s32[1]"]
    config = "{K = 128 : i64, M = 64 : i64, N = 128 : i64, has_bias = false, is_grouped_dense_wgrad = false}"
    found = cost("te_grouped_gemm_ffi", operands, "(bf16[8192], u8[256])", config)
    assert (found.flops, found.rule) == (2 * 64 * 128 * 128, "te_grouped_gemm")
    wrong = cost(
        "te_grouped_gemm_ffi", operands, "(bf16[8192], u8[256])", config.replace("K = 128", "K = 12")
    )
    assert (wrong.flops, wrong.rule) == (None, "te_grouped_gemm")


def test_solvers_count_as_the_opcodes() -> None:
    solve = (
        "triangular-solve(p0, p1), left_side=true, lower=true, unit_diagonal=false, transpose_a=NO_TRANSPOSE"
    )
    expected = flops_of(["f32[3,5,5]", "f32[3,5,7]"], f"f32[3,5,7] {solve}")
    for target in ("__cublas$triangularSolve", "lapack_strsm_ffi"):
        found = cost(target, ["f32[3,5,5]", "f32[3,5,7]"], "(f32[3,5,7], u8[64])")
        assert (found.flops, found.rule) == (expected, "triangular_solve")
    expected = flops_of(["f32[3,5,5]"], "f32[3,5,5] cholesky(p0), lower=true")
    for target in ("__cusolver$cholesky", "cusolver_potrf_ffi", "hipsolver_potrf_ffi", "lapack_spotrf_ffi"):
        found = cost(target, ["f32[3,5,5]"], "(f32[3,5,5], s32[3])")
        assert (found.flops, found.rule) == (expected, "cholesky")


# --- calls without a formula --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    [
        "AllocateBuffer",
        "Sharding",
        "SPMDFullToShardShape",
        "SPMDShardToFullShape",
        "MoveToHost",
        "MoveToDevice",
        "annotate_device_placement",
        "PinToDevice",
        "NopCustomCall",
        "xla.sdy.FuncResultSharding",
    ],
)
def test_marks_are_no_work(target: str) -> None:
    assert cost(target, ["f32[8]"], "f32[8]") == Cost(0, 0, 0, "no_work")


def test_movement_sorts_and_selections_have_bytes_only() -> None:
    assert cost("PadToStatic", ["f32[8]"], "(f32[8], s32[])") == Cost(0, 0, 32 + 32 + 4, "data_movement")
    for target in ("TopK", "__gpu$TopK"):
        assert cost(target, ["f32[4,100]"], "(f32[4,8], s32[4,8])") == Cost(0, 0, 1600 + 256, "topk")
    for target in ("__cub$DeviceRadixSort", "xla.gpu.ext.cub_sort_keys", "xla.gpu.ext.cub_sort_pairs_f32"):
        assert cost(target, ["f32[100]"], "(f32[100], u8[999])") == Cost(0, 0, 800, "radix_sort")


@pytest.mark.parametrize(
    ("target", "rule"),
    [
        ("__gpu$xla.gpu.triton", "user_kernel"),
        ("triton_kernel_call", "user_kernel"),
        ("mosaic_gpu_v2", "user_kernel"),
        ("tpu_custom_call", "user_kernel"),
        ("te_norm_forward_ffi", "te_other"),
        ("te_act_lu_ffi", "te_other"),
        ("te_dbias_quantize_ffi", "te_other"),
        ("te_rmsnorm_forward", "te_other"),
        ("te_gemm", "te_other"),
        ("cusolver_syevd_ffi", "solver"),
        ("hipsolver_gesvd_ffi", "solver"),
        ("lapack_sgesdd_ffi", "solver"),
        ("cu_cholesky_update", "solver"),
        ("cu_threefry2x32_ffi", "random_bits"),
        ("__cudnn$norm", "cudnn_norm"),
        ("__onednn$softmax", "onednn"),
        ("__onednn$convolution", "onednn"),
        ("xla_python_gpu_callback", "host_callback"),
        ("xla_ffi_python_gpu_callback", "host_callback"),
        ("__cudnn$fusion", "unknown_custom_call"),
        ("my_own_kernel", "unknown_custom_call"),
        ("", "unknown_custom_call"),
    ],
)
def test_unknown_work_is_none_with_a_reason(target: str, rule: str) -> None:
    found = cost(target, ["f32[8]", "f32[8]"], "(f32[8], f32[4])")
    assert (found.flops, found.transcendentals, found.rule) == (None, None, rule)
    assert found.bytes_accessed == 32 + 32 + 32 + 16
    assert found.reason
    if rule == "unknown_custom_call":
        assert repr(target) in found.reason


def test_declared_cost_of_a_kernel() -> None:
    estimate = {"flops": 1000, "transcendentals": 7, "bytes_accessed": 4096}
    config = {"custom_call_config": {"body": "TUzv", "cost_estimate": estimate}}
    found = cost("tpu_custom_call", ["f32[8]"], "f32[8]", config)
    assert (found.flops, found.transcendentals, found.bytes_accessed) == (1000, 7, 4096)
    assert found.rule == "declared_cost"
    for broken in ({**estimate, "flops": -1}, {"flops": 1}, {**estimate, "flops": 1e9}, [], None):
        config = {"custom_call_config": {"cost_estimate": broken}}
        assert cost("tpu_custom_call", ["f32[8]"], "f32[8]", config).rule == "user_kernel"


# --- damage -------------------------------------------------------------------------------------------------

PLAIN_GEMM = ("__cublas$gemm", ["f32[3,5]", "f32[5,7]"], "(f32[3,7], s8[16])")


@pytest.mark.parametrize(
    "config",
    [
        "",
        "{",
        "[]",
        "7",
        "{}",
        "\x00\xff",
        "{a = 1 : i64",
        "{a = 1 : i64} b",
        "{a = 1 : i64 b}",
        "{a =}",
        "{a = array}",
        '{"a":' * 2000,
        "{a = " * 2000,
        '{"gemm_backend_config": 3}',
        '{"gemm_backend_config": {"dot_dimension_numbers": [1]}}',
        json.dumps(gemm_config(([9], [0]))),
        json.dumps(gemm_config(([-1], [0]))),
        json.dumps(gemm_config(([1, 1], [0, 0]))),
        json.dumps(gemm_config(([0], [0]))),
        json.dumps(gemm_config(([1], [0], [0], [1]))),
        json.dumps(gemm_config(([], []))),
        json.dumps(gemm_config(([10**30], [0]))),
        '{"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":["one"]}}}',
        '{"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":[true]}}}',
        '{"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":[null]}}}',
        '{"gemm_backend_config":{"dot_dimension_numbers":{"lhs_contracting_dimensions":"1"}}}',
    ],
)
def test_damaged_configuration_gives_a_reason(config: str) -> None:
    found = cost(*PLAIN_GEMM, config)
    assert (found.flops, found.transcendentals, found.rule) == (None, None, "cublas_gemm")
    assert found.reason
    assert found.bytes_accessed == size_of("f32[3,5]", "f32[5,7]", "f32[3,7]")


def test_configuration_that_is_not_text() -> None:
    module = call_module(*PLAIN_GEMM, gemm_config(([1], [0])))
    calls(module)[0].backend_config = b"\xff\xfe\x00"
    assert module_cost(module).reason == "its configuration is not text"


def test_operands_that_are_missing_dangling_or_no_arrays() -> None:
    config = gemm_config(([1], [0]))
    found = cost("__cublas$gemm", ["f32[3,5]"], "f32[3,7]", config)
    assert found == Cost(None, None, 60 + 84, "cublas_gemm", "it has 1 operands, so no operand 1")
    found = cost("__cublas$gemm", ["f32[3,5]", "(f32[5,7])"], "f32[3,7]", config)
    assert (found.flops, found.bytes_accessed) == (None, 4 * (15 + 35 + 21))
    found = cost("__cublas$gemm", ["f32[3,5]", "f32[5,7]"], "()", config)
    assert (found.flops, found.reason) == (None, "it has no result")
    module = call_module(*PLAIN_GEMM, config)
    calls(module)[0].operand_ids[1] = 12345
    reason = "the module does not hold its operands"
    assert module_cost(module) == Cost(None, None, None, "cublas_gemm", reason)


def test_sizes_beyond_64_bits() -> None:
    config = gemm_config(([1], [0]))
    operands = ["f32[1000000,1000000]", "f32[1000000,100000000]"]
    found = cost("__cublas$gemm", operands, "f32[1000000,100000000]", config)
    assert (found.flops, found.reason) == (None, "its numbers do not fit into 64 bits")
    assert found.bytes_accessed == size_of(*operands, "f32[1000000,100000000]")
    module = call_module(*PLAIN_GEMM, config)
    huge = module.computations[0].instructions[0]
    # A ShapeProto of type F32 with two dimensions of 2^62.
    huge.shape = bytes.fromhex("100b") + 2 * (b"\x18" + b"\x80" * 8 + b"\x40")
    found = module_cost(module)
    assert (found.flops, found.bytes_accessed, found.rule) == (None, None, "cublas_gemm")
    assert found.reason


def test_random_damage_never_raises() -> None:
    """Whole modules with bytes of the configuration, the dimensions and the window changed."""
    source = random.Random(5)
    config = json.dumps(gemm_config(([1], [0])))
    seeds = [
        call_module(*PLAIN_GEMM, config),
        call_module(
            "te_gemm_ffi",
            ["bf16[4,8]", "f32[0]", "bf16[8,3]"],
            "(bf16[4,3], u8[4])",
            "{lhs_axis_boundary = 1 : i64, rhs_axis_boundary = 1 : i64, lhs_transposed = false}",
        ),
        call_module(
            "__cudnn$convForward",
            ["f32[2,9,9,4]", "f32[3,3,4,6]"],
            "(f32[2,7,7,6], u8[0])",
            extra=", window={size=3x3}, dim_labels=b01f_01io->b01f",
        ),
    ]
    for seed in seeds:
        assert module_cost(seed).flops
        for _ in range(150):
            module = type(seed)()
            module.CopyFrom(seed)
            (call,) = calls(module)
            data = bytearray(call.backend_config or b"{}")
            for _ in range(source.randint(0, 3)):
                data[source.randrange(len(data))] = source.choice(b'{}[]",:=0129 \xff')
            call.backend_config = bytes(data[: source.choice([len(data), source.randrange(len(data) + 1)])])
            numbers = call.convolution_dimension_numbers
            if source.random() < 0.5:
                numbers.input_batch_dimension = source.choice([-1, 0, 3, 9, 2**62])
            for dimension in call.window.dimensions:
                name = source.choice(["size", "stride", "padding_low", "window_dilation", "base_dilation"])
                setattr(dimension, name, source.choice([-(2**62), -1, 0, 1, 3, 2**62]))
            found = module_cost(module)
            assert found.flops is None or found.flops >= 0
            assert found.flops is not None or found.reason


# --- real files ---------------------------------------------------------------------------------------------


def test_rates_of_a_real_gemm_sweep() -> None:
    name = "TraceLens-mi300-jax08_gemm.xplane.pb"
    modules, kernels = xspace_modules(name), kernel_seconds(name, "custom-call.1")
    expected = {
        21: (2 * 1024**3, 205.4),
        34: (2 * 4096**3, 917.7),
        49: (2 * 8192 * 8192 * 4096, 899.8),
        64: (2 * 2048 * 2048 * 8192, 585.2),
        79: (2 * 16384 * 4096 * 1024, 745.7),
    }
    for program_id, (flops, tflops_per_s) in expected.items():
        assert module_cost(modules[program_id]).flops == flops
        seconds = kernels[program_id]
        assert flops * len(seconds) / sum(seconds) / 1e12 == pytest.approx(tflops_per_s, abs=0.05)


def test_products_of_real_h200_modules() -> None:
    path = SHARED / "captures" / "h200x2_medium_fsdp2.tar.xz"
    if not path.exists():
        pytest.skip(f"{path.name} is not here")
    with tarfile.open(path) as archive:
        (member,) = (name for name in archive.getnames() if name.endswith(".hlo.pb"))
        file = archive.extractfile(member)
        assert file is not None
        module = HloProto.FromString(file.read()).hlo_module
    graph = ModuleGraph(module)
    assert len(calls(module)) == 28
    for call in calls(module):
        lhs, rhs = (graph.shape(operand) for operand in graph.operands(call))
        result = graph.shape(call).members[0]
        numbers = json.loads(call.backend_config)["gemm_backend_config"]["dot_dimension_numbers"]
        order = [
            list(map(int, numbers[f"{side}_{kind}_dimensions"]))
            for kind in ("contracting", "batch")
            for side in ("lhs", "rhs")
        ]
        found = library_call_cost(graph, call)
        # jaxlib sums in 32-bit floating point.
        assert found.flops == pytest.approx(dot_flops(lhs.text, rhs.text, result.text, order), rel=1e-6)
        sizes = [shape.size_bytes for shape in (lhs, rhs, result)]
        assert (found.rule, found.bytes_accessed) == ("cublaslt_matmul", sum(filter(None, sizes)))
