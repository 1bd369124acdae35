"""HLO modules, as text, for the rules of the cost analysis that captured programs do not reach."""

from __future__ import annotations


def entry(result: str, *parameters: str, before: str = "") -> str:
    """A module whose entry computation returns `result` of its parameters p0, p1, ..."""
    lines = [f"  p{index} = {shape} parameter({index})" for index, shape in enumerate(parameters)]
    return "\n".join(["HloModule m", before, "ENTRY e {", *lines, f"  ROOT r = {result}", "}"])


def fusion(result: str, body: str, *parameters: str, kind: str = "kLoop", before: str = "") -> str:
    """A module with one fusion, whose body uses its parameters p0, p1, ..."""
    lines = [f"  p{index} = {shape} parameter({index})" for index, shape in enumerate(parameters)]
    fused = "\n".join(["fused {", *lines, *(f"  {line.strip()}" for line in body.strip().splitlines()), "}"])
    operands = ", ".join(f"p{index}" for index in range(len(parameters)))
    call = f"{result} fusion({operands}), kind={kind}, calls=fused"
    return entry(call, *parameters, before=f"{before}\n{fused}")


def computation(name: str, *lines: str) -> str:
    return "\n".join([f"{name} {{", *(f"  {line}" for line in lines), "}"])


ADD = computation("add", "a = f32[] parameter(0)", "b = f32[] parameter(1)", "ROOT c = f32[] add(a, b)")
# Two flops and a transcendental.
HEAVY = computation(
    "heavy",
    *("a = f32[] parameter(0)", "b = f32[] parameter(1)", "c = f32[] add(a, b)", "d = f32[] tanh(c)"),
    "ROOT e = f32[] multiply(c, d)",
)
PAIR = computation(
    "pair",
    *("a = f32[] parameter(0)", "b = s32[] parameter(1)", "c = f32[] parameter(2)", "d = s32[] parameter(3)"),
    *("e = f32[] add(a, c)", "f = s32[] maximum(b, d)", "ROOT g = (f32[], s32[]) tuple(e, f)"),
)
LESS = computation(
    "less", "a = f32[] parameter(0)", "b = f32[] parameter(1)", "ROOT c = pred[] compare(a, b), direction=LT"
)
LESS_OF_TWO = computation(
    "less",
    *("a = f32[] parameter(0)", "b = f32[] parameter(1)", "c = s32[] parameter(2)", "d = s32[] parameter(3)"),
    "ROOT e = pred[] compare(a, b), direction=LT",
)
SCAN = computation(
    "step",
    "a = f32[3] parameter(0)",
    "b = f32[5] parameter(1)",
    "c = f32[5] add(b, b)",
    "d = f32[3] exponential(a)",
    "ROOT e = (f32[3], f32[5]) tuple(d, c)",
)

_UNARY = """
    abs acos acosh asin asinh atanh bitcast bitcast-convert cbrt ceil convert copy cosh cosine erf exp2
    exponential exponential-minus-one floor log log-plus-one log2 logistic negate opt-barrier
    round-nearest-afz round-nearest-even rsqrt sign sine sinh sqrt tan tanh
"""
_BINARY = "add atan2 divide maximum minimum multiply power remainder subtract"
_INTEGER_UNARY = "count-leading-zeros not popcnt"
_INTEGER_BINARY = "and mulhi or shift-left shift-right-arithmetic shift-right-logical xor"
GATHER = (
    "gather(p0, p1), offset_dims={1}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1,"
    " slice_sizes={1}"
)
SCATTER = (
    "scatter(p0, p1, p2), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},"
    " index_vector_dim=1, to_apply=add"
)
INDEX = "s32[]"

ELEMENTWISE = {
    **{name: entry(f"f32[3,5] {name}(p0)", "f32[3,5]") for name in _UNARY.split()},
    **{name: entry(f"f32[3,5] {name}(p0, p1)", "f32[3,5]", "f32[3,5]") for name in _BINARY.split()},
    **{name: entry(f"s32[7] {name}(p0)", "s32[7]") for name in _INTEGER_UNARY.split()},
    **{name: entry(f"u32[7] {name}(p0, p1)", "u32[7]", "u32[7]") for name in _INTEGER_BINARY.split()},
    "clamp": entry("f32[9] clamp(p0, p1, p2)", "f32[]", "f32[9]", "f32[]"),
    "select": entry("f32[9] select(p0, p1, p2)", "pred[9]", "f32[9]", "f32[9]"),
    "compare": entry("pred[9] compare(p0, p1), direction=GE", "f32[9]", "f32[9]"),
    "is-finite": entry("pred[9] is-finite(p0)", "f32[9]"),
    "reduce-precision": entry("f32[9] reduce-precision(p0), exponent_bits=5, mantissa_bits=10", "f32[9]"),
    "stochastic-convert": entry("s8[9] stochastic-convert(p0, p1)", "f32[9]", "u32[9]"),
    "complex": entry("c64[9] complex(p0, p1)", "f32[9]", "f32[9]"),
    "real": entry("f64[9] real(p0)", "c128[9]"),
    "imag": entry("f32[9] imag(p0)", "c64[9]"),
    "complex product": entry("c64[9] multiply(p0, p1)", "c64[9]", "c64[9]"),
    "map": entry("f32[9] map(p0, p1), dimensions={0}, to_apply=heavy", "f32[9]", "f32[9]", before=HEAVY),
}
TYPES = {
    "f8": entry("f8e4m3fn[13] add(p0, p1)", "f8e4m3fn[13]", "f8e4m3fn[13]"),
    "f8 to f32": entry("f32[13] convert(p0)", "f8e5m2[13]"),
    "s4, a byte each": entry("s4[13] add(p0, p1)", "s4[13]", "s4[13]"),
    "s4, packed": entry("s4[13]{0:E(4)} add(p0, p1)", "s4[13]{0:E(4)}", "s4[13]{0:E(4)}"),
    "u2, packed": entry("u2[13]{0:E(2)} copy(p0)", "u2[13]{0:E(2)}"),
    "f4, packed": entry("f32[13] convert(p0)", "f4e2m1fn[13]{0:E(4)}"),
    "empty": entry("f32[0,7] negate(p0)", "f32[0,7]"),
    "dynamic": entry("f32[<=8,3] add(p0, p1)", "f32[<=8,3]", "f32[<=8,3]"),
    "dynamic member": entry("(f32[<=8,3], s8[]) opt-barrier(p0)", "(f32[<=8,3], s8[])"),
    "tiles": entry("f32[5,130]{1,0:T(8,128)} negate(p0)", "f32[5,130]{1,0:T(8,128)}"),
    "tiles, other order": entry("f32[5,130]{0,1:T(8,128)} negate(p0)", "f32[5,130]{0,1:T(8,128)}"),
    "tiles within tiles": entry(
        "bf16[3,5,130]{2,1,0:T(8,128)(2,1)} copy(p0)", "bf16[3,5,130]{2,1,0:T(8,128)(2,1)}"
    ),
    "tiles, packed": entry("s4[5,130]{1,0:T(8,128)(4,1)E(4)} copy(p0)", "s4[5,130]{1,0:T(8,128)(4,1)E(4)}"),
    "tile of more dimensions": entry("f32[7]{0:T(8,128)} negate(p0)", "f32[7]{0:T(8,128)}"),
    "tile of fewer dimensions": entry("f32[5,130]{1,0:T(256)} negate(p0)", "f32[5,130]{1,0:T(256)}"),
    "tiled number": entry("s32[]{:T(128)} negate(p0)", "s32[]{:T(128)}"),
    "tiled and dynamic": entry("f32[<=5,130]{1,0:T(8,128)} negate(p0)", "f32[<=5,130]{1,0:T(8,128)}"),
}
CONVOLUTIONS = {
    name: entry(f"{result} convolution(p0, p1), {attributes}", image, kernel)
    for name, (result, image, kernel, attributes) in {
        "plain": (
            "f32[2,6,6,4]",
            "f32[2,8,8,3]",
            "f32[3,3,3,4]",
            "window={size=3x3}, dim_labels=b01f_01io->b01f",
        ),
        "padding": (
            *("f32[2,8,8,4]", "f32[2,8,8,3]", "f32[3,3,3,4]"),
            "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
        ),
        "uneven padding, below 0": (
            *("f32[2,9,6,4]", "f32[2,8,8,3]", "f32[3,3,3,4]"),
            "window={size=3x3 pad=3_0x1_-1}, dim_labels=b01f_01io->b01f",
        ),
        "stride": (
            *("f32[2,4,3,4]", "f32[2,8,8,3]", "f32[3,3,3,4]"),
            "window={size=3x3 stride=2x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f",
        ),
        "dilated kernel": (
            *("f32[2,8,6,4]", "f32[2,8,8,3]", "f32[3,3,3,4]"),
            "window={size=3x3 pad=2_2x2_2 rhs_dilate=2x3}, dim_labels=b01f_01io->b01f",
        ),
        "dilated image": (
            *("f32[2,15,24,4]", "f32[2,8,8,3]", "f32[3,3,3,4]"),
            "window={size=3x3 pad=1_1x2_2 lhs_dilate=2x3}, dim_labels=b01f_01io->b01f",
        ),
        "all at once": (
            *("f32[2,6,9,4]", "f32[2,8,8,3]", "f32[3,4,3,4]"),
            "window={size=3x4 stride=4x2 pad=5_6x-1_4 lhs_dilate=3x2 rhs_dilate=2x1},"
            " dim_labels=b01f_01io->b01f",
        ),
        "groups": (
            *("f32[2,6,6,6]", "f32[2,8,8,9]", "f32[3,3,3,6]"),
            "window={size=3x3}, dim_labels=b01f_01io->b01f, feature_group_count=3",
        ),
        "batch groups": (
            *("f32[2,6,6,8]", "f32[4,8,8,3]", "f32[3,3,3,8]"),
            "window={size=3x3}, dim_labels=b01f_01io->b01f, batch_group_count=2",
        ),
        "order of dimensions": (
            *("f32[4,2,6,7]", "f32[3,8,2,9]", "f32[4,3,3,3]"),
            "window={size=3x3}, dim_labels=f0b1_oi01->fb01",
        ),
        "no spatial dimension": ("f32[5,7]", "f32[5,3]", "f32[3,7]", "dim_labels=bf_io->bf"),
        "as a diagonal": (
            *("f32[6,1,7]", "f32[6,1,7]", "f32[1,6,6]"),
            "window={size=6 stride=5 lhs_dilate=6}, dim_labels=0bf_i0o->0bf",
        ),
        "outer product": (
            *("f32[1,9,1]", "f32[1,1,1]", "f32[9,1,1]"),
            "window={size=9 pad=8_8}, dim_labels=b0f_0io->b0f",
        ),
    }.items()
}
REDUCTIONS = {
    "reduce": entry("f32[4] reduce(p0, p1), dimensions={1}, to_apply=add", "f32[4,9]", "f32[]", before=ADD),
    "reduce, transcendental": entry(
        "f32[] reduce(p0, p1), dimensions={0,1}, to_apply=heavy", "f32[4,9]", "f32[]", before=HEAVY
    ),
    "reduce, two results": entry(
        "(f32[4], s32[4]) reduce(p0, p1, p2, p3), dimensions={1}, to_apply=pair",
        *("f32[4,9]", "s32[4,9]", "f32[]", "s32[]"),
        before=PAIR,
    ),
    "reduce-window": entry(
        "f32[4,3] reduce-window(p0, p1), window={size=1x3 stride=1x3}, to_apply=add",
        *("f32[4,9]", "f32[]"),
        before=ADD,
    ),
    "reduce-window, cumulative": entry(
        "f32[4,9] reduce-window(p0, p1), window={size=1x9 pad=0_0x8_0}, to_apply=add",
        *("f32[4,9]", "f32[]"),
        before=ADD,
    ),
    "reduce-window that spans everything": entry(
        "f32[4,9] reduce-window(p0, p1), window={size=1x17 pad=0_0x8_8}, to_apply=heavy",
        *("f32[4,9]", "f32[]"),
        before=HEAVY,
    ),
    "reduce-window that spans nearly everything": entry(
        "f32[4,9] reduce-window(p0, p1), window={size=1x15 pad=0_0x7_7}, to_apply=add",
        *("f32[4,9]", "f32[]"),
        before=ADD,
    ),
    "reduce-window, two results": entry(
        "(f32[4,9], s32[4,9]) reduce-window(p0, p1, p2, p3), window={size=1x17 pad=0_0x8_8}, to_apply=pair",
        *("f32[4,9]", "s32[4,9]", "f32[]", "s32[]"),
        before=PAIR,
    ),
    "select-and-scatter": entry(
        "f32[4,8] select-and-scatter(p0, p1, p2), window={size=2x2 stride=2x2}, select=less, scatter=heavy",
        *("f32[4,8]", "f32[2,4]", "f32[]"),
        before=f"{LESS}\n{HEAVY}",
    ),
    "scan": entry(
        "(f32[3], f32[10,5]) scan(p0, p1), dimensions={0}, is_reverse=false, num_carries=1, to_apply=step",
        *("f32[3]", "f32[10,5]"),
        before=SCAN,
    ),
    "sort": entry("f32[7,9] sort(p0), dimensions={1}, to_apply=less", "f32[7,9]", before=LESS),
    "sort, two operands": entry(
        "(f32[7,9], s32[7,9]) sort(p0, p1), dimensions={1}, to_apply=less",
        *("f32[7,9]", "s32[7,9]"),
        before=LESS_OF_TWO,
    ),
    "sort of one": entry("f32[1] sort(p0), dimensions={0}, to_apply=less", "f32[1]", before=LESS),
    "sort of none": entry("f32[0] sort(p0), dimensions={0}, to_apply=less", "f32[0]", before=LESS),
    "scatter": entry(f"f32[100] {SCATTER}", "f32[100]", "s32[7,1]", "f32[7]", before=ADD),
    "scatter, transcendental": entry(
        f"f32[100] {SCATTER.replace('add', 'heavy')}", "f32[100]", "s32[7,1]", "f32[7]", before=HEAVY
    ),
    "scatter, two arrays": entry(
        "(f32[100], s32[100]) scatter(p0, p1, p2, p3, p4), update_window_dims={}, inserted_window_dims={0},"
        " scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=pair",
        *("f32[100]", "s32[100]", "s32[7,1]", "f32[7]", "s32[7]"),
        before=PAIR,
    ),
}
LINEAR_ALGEBRA = {
    "dot": entry(
        "f32[4,6] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "f32[4,5]", "f32[5,6]"
    ),
    "dot, batch and two contracted": entry(
        "bf16[2,4,6] dot(p0, p1), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1,3},"
        " rhs_contracting_dims={1,2}",
        *("bf16[2,3,4,5]", "bf16[2,3,5,6]"),
    ),
    "dot of vectors": entry(
        "f32[] dot(p0, p1), lhs_contracting_dims={0}, rhs_contracting_dims={0}", "f32[9]", "f32[9]"
    ),
    "outer dot": entry(
        "f32[9,8] dot(p0, p1), lhs_contracting_dims={}, rhs_contracting_dims={}", "f32[9]", "f32[8]"
    ),
    "dot of empty": entry(
        "f32[4,6] dot(p0, p1), lhs_contracting_dims={1}, rhs_contracting_dims={0}", "f32[4,0]", "f32[0,6]"
    ),
    "scaled-dot": entry(
        "f32[4,6] scaled-dot(p0, p1, p2, p3), lhs_contracting_dims={1}, rhs_contracting_dims={1}",
        *("f8e4m3fn[4,32]", "f8e4m3fn[6,32]", "f8e8m0fnu[4,1]", "f8e8m0fnu[6,1]"),
    ),
    "ragged-dot, rows in groups": entry(
        "f32[11,5] ragged-dot(p0, p1, p2), lhs_contracting_dims={1}, rhs_contracting_dims={1},"
        " lhs_ragged_dims={0}, rhs_group_dims={0}",
        *("f32[11,3]", "f32[2,3,5]", "s32[2]"),
    ),
    "ragged-dot, contracted in groups": entry(
        "f32[2,5,11] ragged-dot(p0, p1, p2), lhs_contracting_dims={1}, rhs_contracting_dims={0},"
        " lhs_ragged_dims={1}",
        *("f32[5,7]", "f32[7,11]", "s32[2]"),
    ),
    "fft": entry("c64[4,12,10] fft(p0), fft_type=FFT, fft_length={12,10}", "c64[4,12,10]"),
    "real fft": entry("c64[4,5] fft(p0), fft_type=RFFT, fft_length={8}", "f32[4,8]"),
    "inverse real fft": entry("f32[4,8] fft(p0), fft_type=IRFFT, fft_length={8}", "c64[4,5]"),
    "cholesky": entry("f32[3,5,5] cholesky(p0), lower=true", "f32[3,5,5]"),
    "triangular-solve": entry(
        "f32[3,4,2] triangular-solve(p0, p1), left_side=true, lower=true, unit_diagonal=false,"
        " transpose_a=NO_TRANSPOSE",
        *("f32[3,4,4]", "f32[3,4,2]"),
    ),
    "batch-norm-training": entry(
        "(f32[2,4], f32[4], f32[4]) batch-norm-training(p0, p1, p2), epsilon=0.1, feature_index=1",
        *("f32[2,4]", "f32[4]", "f32[4]"),
    ),
    "batch-norm-inference": entry(
        "f32[2,4] batch-norm-inference(p0, p1, p2, p3, p4), epsilon=0.1, feature_index=1",
        *("f32[2,4]", "f32[4]", "f32[4]", "f32[4]", "f32[4]"),
    ),
    "batch-norm-grad": entry(
        "(f32[2,4], f32[4], f32[4]) batch-norm-grad(p0, p1, p2, p3, p4), epsilon=0.1, feature_index=1",
        *("f32[2,4]", "f32[4]", "f32[4]", "f32[4]", "f32[2,4]"),
    ),
}
DATA_MOVEMENT = {
    "rng": entry("f32[8] rng(p0, p1), distribution=rng_normal", "f32[]", "f32[]"),
    "rng-bit-generator": entry("(u64[2], u32[8]) rng-bit-generator(p0), algorithm=rng_three_fry", "u64[2]"),
    "rng-get-and-update-state": entry("u64[2] rng-get-and-update-state(), delta=1"),
    "iota": entry("s32[8,3] iota(), iota_dimension=1"),
    "partition-id": entry("u32[] partition-id()"),
    "replica-id": entry("u32[] replica-id()"),
    "pad": entry("f32[20] pad(p0, p1), padding=5_5", "f32[10]", "f32[]"),
    "concatenate": entry("f32[17] concatenate(p0, p1), dimensions={0}", "f32[10]", "f32[7]"),
    "broadcast": entry("f32[10,4] broadcast(p0), dimensions={0}", "f32[10]"),
    "reshape": entry("f32[5,2] reshape(p0)", "f32[10]"),
    "reverse": entry("f32[10] reverse(p0), dimensions={0}", "f32[10]"),
    "transpose": entry("f32[2,3]{1,0} transpose(p0), dimensions={1,0}", "f32[3,2]{1,0}"),
    "transpose of one row": entry("f32[1,3]{1,0} transpose(p0), dimensions={1,0}", "f32[3,1]{1,0}"),
    "transpose of nothing but names": entry("f32[2,3]{1,0} transpose(p0), dimensions={1,0}", "f32[3,2]{0,1}"),
    "transpose of three": entry("f32[4,2,3]{1,0,2} transpose(p0), dimensions={2,0,1}", "f32[2,3,4]{0,2,1}"),
    "slice": entry("f32[3,2] slice(p0), slice={[0:3],[1:8:4]}", "f32[5,9]"),
    "dynamic-slice": entry(
        "f32[2,3] dynamic-slice(p0, p1, p2), dynamic_slice_sizes={2,3}", "f32[5,9]", INDEX, INDEX
    ),
    "dynamic-update-slice": entry(
        "f32[5,9] dynamic-update-slice(p0, p1, p2, p3)", "f32[5,9]", "f32[2,3]", INDEX, INDEX
    ),
    "gather": entry(f"f32[7,1] {GATHER}", "f32[100]", "s32[7,1]"),
    "topk": entry("(f32[4,3], s32[4,3]) topk(p0), k=3, largest=true", "f32[4,9]"),
    "tuple": entry("(f32[4], f32[3]) tuple(p0, p1)", "f32[4]", "f32[3]"),
    "get-tuple-element": entry("f32[3] get-tuple-element(p0), index=1", "(f32[4], f32[3])"),
    "opt-barrier of a nested tuple": entry(
        "((f32[2], f32[5]), f32[3], ()) opt-barrier(p0)", "((f32[2], f32[5]), f32[3], ())"
    ),
    "copy-start": entry("(f32[4], f32[4], u32[]) copy-start(p0)", "f32[4]"),
    "copy-done": entry("f32[4] copy-done(p0)", "(f32[4], f32[4], u32[])"),
    "after-all": entry("token[] after-all(p0, p1)", "token[]", "token[]"),
    "add-dependency": entry("f32[4] add-dependency(p0, p1)", "f32[4]", "token[]"),
    "infeed": entry("((f32[4], f32[5]), token[]) infeed(p0)", "token[]"),
    "outfeed": entry(
        "token[] outfeed(p0, p1), outfeed_shape=(f32[4], f32[3])", "(f32[4], f32[3])", "token[]"
    ),
    "domain": entry(
        'f32[4] domain(p0), domain={kind="sharding", entry={maximal device=0}, exit={maximal device=1}}',
        "f32[4]",
    ),
    "get-dimension-size": entry("s32[] get-dimension-size(p0), dimensions={0}", "f32[<=9]"),
    "set-dimension-size": entry("f32[<=9] set-dimension-size(p0, p1), dimensions={0}", "f32[9]", "s32[]"),
    "dynamic-reshape": entry("f32[<=9] dynamic-reshape(p0, p1)", "f32[9]", "s32[]"),
    "shuffle": entry("f32[10] shuffle(p0), dimensions={0}, mode=rotate, shifts={1}", "f32[10]"),
    "buffer": entry("b(f32[10]) copy(p0)", "b(f32[10])"),
}
COLLECTIVES = {
    "all-reduce": entry("f32[4] all-reduce(p0), replica_groups={}, to_apply=add", "f32[4]", before=ADD),
    "all-reduce of several": entry(
        "(f32[4], f32[5]) all-reduce(p0, p1), replica_groups={}, to_apply=add", "f32[4]", "f32[5]", before=ADD
    ),
    "all-reduce-start": entry(
        "(f32[4], f32[5]) all-reduce-start(p0, p1), replica_groups={}, to_apply=add",
        *("f32[4]", "f32[5]"),
        before=ADD,
    ),
    "all-reduce-done": entry("(f32[4], f32[5]) all-reduce-done(p0)", "(f32[4], f32[5])"),
    "all-gather": entry("f32[8] all-gather(p0), dimensions={0}", "f32[4]"),
    "all-gather-start": entry("(f32[4], f32[8]) all-gather-start(p0), dimensions={0}", "f32[4]"),
    "all-gather-done": entry("f32[8] all-gather-done(p0)", "(f32[4], f32[8])"),
    "reduce-scatter": entry("f32[4] reduce-scatter(p0), dimensions={0}, to_apply=add", "f32[8]", before=ADD),
    "collective-permute": entry("f32[4] collective-permute(p0), source_target_pairs={{0,1}}", "f32[4]"),
    "collective-permute-start": entry(
        "(f32[4], f32[4], u32[], u32[]) collective-permute-start(p0), source_target_pairs={{0,1}}", "f32[4]"
    ),
    "collective-permute-done": entry("f32[4] collective-permute-done(p0)", "(f32[4], f32[4], u32[], u32[])"),
    "collective-broadcast": entry("f32[4] collective-broadcast(p0), replica_groups={{0,1}}", "f32[4]"),
    "collective-reduce": entry(
        "f32[4] collective-reduce(p0), replica_groups={{0,1}}, to_apply=add", "f32[4]", before=ADD
    ),
    "all-to-all": entry("(f32[4], f32[4]) all-to-all(p0, p1), replica_groups={{0,1}}", "f32[4]", "f32[4]"),
    "ragged-all-to-all": entry(
        "f32[8] ragged-all-to-all(p0, p1, p2, p3, p4, p5), replica_groups={{0,1}}",
        *("f32[8]", "f32[8]", "s32[2]", "s32[2]", "s32[2]", "s32[2]"),
    ),
    "send": entry("(f32[4], u32[], token[]) send(p0, p1), channel_id=1", "f32[4]", "token[]"),
    "recv": entry("(f32[4], u32[], token[]) recv(p0), channel_id=1", "token[]"),
}
# jaxlib reads these from text only, and not from the module that it makes of it.
UNCHECKED = {
    "send-done": entry("token[] send-done(p0), channel_id=1", "(f32[4], u32[], token[])"),
    "recv-done": entry("(f32[4], token[]) recv-done(p0), channel_id=1", "(f32[4], u32[], token[])"),
}
