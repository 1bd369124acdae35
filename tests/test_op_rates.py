"""Executions and rates of ops in real captures, against shapes, kernel counts and the model on paper."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import product

import pytest

from .hlo_text_walk import Program
from .moe_model import Model
from .shared_runs import DeviceEvent, SharedRun, ingested
from .xspace_oracle import measure

Load = Callable[[str], SharedRun]


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Load]:
    """A function that ingests a run of shared/, once."""
    with ExitStack() as stack:
        loaded: dict[str, SharedRun] = {}

        def get(name: str) -> SharedRun:
            if name not in loaded:
                loaded[name] = stack.enter_context(ingested(name, tmp_path_factory.mktemp("run")))
            return loaded[name]

        yield get


def busy(events: list[DeviceEvent]) -> int:
    return measure((event.start, event.end) for event in events)


# --- matrix products ----------------------------------------------------------------------------------------


def test_five_products_under_one_name(load: Load) -> None:
    # Program: m, n, k, and the rate that was published with the file.
    shapes = {
        21: (1024, 1024, 1024, 205.4),
        34: (4096, 4096, 4096, 917.7),
        49: (8192, 8192, 4096, 899.8),
        64: (2048, 2048, 8192, 585.2),
        79: (16384, 4096, 1024, 745.7),
    }
    run = load("TraceLens-mi300-jax08_gemm")
    rows = run.rows(
        """SELECT program_id, hlo_op, opcode, flops_per_execution, bytes_per_execution, executions,
            flops_per_s, cost_evidence
        FROM v1.op_stats WHERE opcode = 'custom-call'"""
    )
    assert {row[0] for row in rows} == shapes.keys()
    for program_id, name, _, flops, size, executions, rate, evidence in rows:
        m, n, k, tflops = shapes[program_id]
        assert (name, flops, evidence) == ("custom-call.1", 2 * m * n * k, "analytical")
        events = run.events_by_op()[0, program_id, name]
        assert executions == len(events) == 3
        assert math.isclose(rate, 3 * 2e12 * m * n * k / busy(events))
        # Both factors and the result, two bytes each.
        assert size == 2 * (m * k + k * n + m * n)
        assert round(rate / 1e12, 1) == tflops


# --- a convolution of two kernels ---------------------------------------------------------------------------


def valid_taps() -> int:
    """Pairs of an output position and a tap of the kernel that lies on the input, by trying each.

    Input 32 x 60 x 104 with a border of one, windows of 1 x 2 x 2, strides of 1, 2 and 2.
    """
    total = 1
    for size, taps, positions, stride in ((32, 1, 34, 1), (60, 2, 31, 2), (104, 2, 53, 2)):
        pairs = product(range(positions), range(taps))
        total *= sum(0 <= position * stride + tap - 1 < size for position, tap in pairs)
    return total


def test_a_convolution_counts_once_for_its_two_kernels(load: Load) -> None:
    run = load("TraceLens-mi300-jax08_conv")
    channels, filters = 16, 5120
    flops = 2 * valid_taps() * channels * filters
    assert (flops, round(flops / 1e9, 1)) == (32_715_571_200, 32.7)
    # With the border it would be 36.61 GFLOP.
    assert round(2 * filters * 34 * 31 * 53 * channels * 4 / 1e9, 2) == 36.61
    by_op = {key: events for key, events in run.events_by_op().items() if key[2] == "cudnn-conv.1"}
    rows = run.rows(
        """SELECT device_ordinal, program_id, hlo_op, executions, kernel_count, flops_per_execution,
            flops_per_s
        FROM v1.op_stats WHERE hlo_op = 'cudnn-conv.1'"""
    )
    assert {row[:3] for row in rows} == by_op.keys()
    assert len(rows) == len(by_op) == 8
    for *key, executions, kernel_count, flops_per_execution, rate in rows:
        events = by_op[tuple(key)]
        if key[0] == 0:
            # Of its first execution on the first device one of the two kernels names no op: its place tells.
            (unnamed,) = [e for e in run.events if e.hlo_op is None and e.kernel == "Im3d2Col.kd"]
            events = sorted([*events, unnamed], key=lambda event: event.start)
        kernels = Counter(event.kernel for event in events)
        gathered = kernels.pop("Im3d2Col.kd")
        ((name, multiplied),) = kernels.items()
        assert name.startswith("Cijk_")
        assert kernel_count == gathered + multiplied
        assert executions == gathered == multiplied == 5
        assert flops_per_execution == flops
        assert math.isclose(rate, 5e12 * flops / busy(events))


# --- attention ----------------------------------------------------------------------------------------------


def test_fused_attention_and_the_products_around_it(load: Load) -> None:
    batch, length, heads, width, model_width = 2, 2048, 16, 128, 2048
    tokens, hidden = batch * length, 3 * heads * width
    # Of each product of queries, keys and values half of the pairs count, since the mask is causal. Forward
    # there are two products, and backward five: the scores again, and a gradient for each factor.
    attention = 2 * batch * heads * (length * length // 2) * width
    run = load("TraceLens-te_fused_attn")
    rows = run.rows(
        """SELECT hlo_op, executions, kernels_per_execution, flops_per_execution, flops_per_s
        FROM v1.op_stats WHERE opcode = 'custom-call' OR hlo_op LIKE '%gemm%'"""
    )
    found = {row[0]: row[1:] for row in rows}
    products = {name for name in found if not name.startswith("te_")}
    assert products == {
        "custom-call.1",
        *(f"gemm_fusion_dot{suffix}" for suffix in ("", ".1", ".3", ".6", ".7")),
    }
    expected = {
        "te_fused_attn_forward_ffi.10": (2, 2 * attention),
        "te_fused_attn_forward_ffi.15": (2, 2 * attention),
        "te_fused_attn_backward_ffi.12": (5, 5 * attention),
        "te_fused_attn_backward_ffi.18": (5, 5 * attention),
        # Forward and both gradients of the projection of two layers.
        **dict.fromkeys(products, (1, 2 * tokens * model_width * hidden)),
    }
    assert found.keys() == expected.keys()
    by_op = {key[2]: events for key, events in run.events_by_op().items()}
    for name, (executions, kernels, flops, rate) in found.items():
        assert (executions, kernels, flops) == (5, *expected[name])
        assert math.isclose(rate, 5e12 * flops / busy(by_op[name]))


# --- a training step ----------------------------------------------------------------------------------------

TRAINED = "h200x2_medium_fsdp2_nocb"


def test_every_op_runs_as_often_as_its_loops_let_it(load: Load) -> None:
    run = load(TRAINED)
    model = Model(run.config)
    runs = run.profiled_steps * run.config["devices"]
    assert (runs, model.microbatches, model.turns) == (3 * 2, 2, 2 * 8)
    program = Program(run.dumped_text)
    loops = {item.name: program.executions[item.computation] for item in program.instructions}
    rows = run.rows(
        """SELECT hlo_op, program_device_count, program_runs, executions_per_run, expected, actual, status
        FROM v1.occurrences"""
    )
    assert len(rows) > 300
    for name, devices, program_runs, per_run, *counts in rows:
        assert (devices, program_runs) == (2, runs)
        assert per_run == loops[name]
        assert counts == [runs * per_run, runs * per_run, "complete"]
    assert {row[3] for row in rows} == {1, model.microbatches, model.turns}


@pytest.mark.parametrize("name", [TRAINED, "h200x1_small_nocb"])
def test_executions_are_the_counts_of_kernels(load: Load, name: str) -> None:
    run = load(name)
    by_op = run.events_by_op()
    rows = run.rows(
        """SELECT device_ordinal, program_id, hlo_op, executions, kernel_count, kernels_per_execution
        FROM v1.op_stats"""
    )
    assert {row[:3] for row in rows} == by_op.keys()
    for *key, executions, kernel_count, ratio in rows:
        kernels = Counter(event.kernel for event in by_op[tuple(key)])
        assert kernel_count == kernels.total() == executions * ratio
        # An execution launches each of its kernels once: two of some library calls, else one.
        assert set(kernels.values()) == {executions}
        assert ratio == len(kernels) == 1 or (key[2].startswith("custom-call") and len(kernels) == 2)
