"""Collectives and memory of a real training step: the compiler's text, the model on paper, the intervals."""

from __future__ import annotations

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from .hlo_text_walk import Collective, Program
from .moe_model import Model
from .shared_runs import SharedRun, ingested
from .xspace_oracle import measure, without

# What NCCL's tests call the bus bandwidth: the part of the payload that each of n devices sends.
BUS_PARTS = {"all-gather": 1, "reduce-scatter": 1, "all-to-all": 1, "all-reduce": 2}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SharedRun]:
    with ingested("h200x2_medium_fsdp2_nocb", tmp_path_factory.mktemp("run")) as run:
        yield run


@pytest.fixture(scope="module")
def program(run: SharedRun) -> Program:
    return Program((run.path / "optimized_hlo.txt").read_text())


@pytest.fixture(scope="module")
def by_op(run: SharedRun, program: Program) -> dict[str, Collective]:
    """The collectives by the name that events have for them.

    The two texts of the program name them differently, and have their channels in common. That of the loss is
    in a fusion: its kernel is one of the compiler, and named like the fusion.
    """
    instructions = list(Program(run.dumped_text).instructions)
    fusions = {
        item.attribute(r"calls=%([\w.-]+)"): item.name for item in instructions if item.opcode == "fusion"
    }
    channels = {item.channel: item for item in instructions if item.channel is not None}
    names = {channel: fusions.get(item.computation, item.name) for channel, item in channels.items()}
    found = {names[channel]: collective for channel, collective in program.collectives().items()}
    fused = [found[name] for name in fusions.values() if name in found]
    assert [(item.kind, item.payload) for item in fused] == [("all-reduce", 4)]
    return found


def rows_by_op(run: SharedRun, columns: str) -> dict[tuple[int, str], tuple[Any, ...]]:
    rows = run.rows(f"SELECT device_ordinal, hlo_op, {columns} FROM v1.collectives")
    found = {row[:2]: row[2:] for row in rows}
    assert len(found) == len(rows)
    return found


def test_the_text_has_the_collectives_of_the_model(run: SharedRun, program: Program) -> None:
    found = Counter((item.kind, item.payload, item.executions) for item in program.collectives().values())
    assert found == Model(run.config).collectives()


def test_collectives_are_those_of_the_text(run: SharedRun, by_op: dict[str, Collective]) -> None:
    devices = run.config["devices"]
    found = rows_by_op(run, "kind, payload_bytes, group_size, executions, kernel_count, unknown_reason")
    expected = {}
    for name, item in by_op.items():
        # Both axes of the mesh, or the first: the second has one device.
        for axis, size in item.axes.items():
            assert size == run.config["mesh"].get(axis, devices)
        group_size = math.prod(item.axes.values())
        count = run.profiled_steps * item.executions
        for ordinal in range(devices):
            expected[ordinal, name] = item.kind, item.payload, group_size, count, count, None
    assert found == expected
    assert len(found) == 2 * 21
    assert {row[2] for row in found.values()} == {devices}


def test_time_and_exposed_time_are_those_of_the_intervals(
    run: SharedRun, by_op: dict[str, Collective]
) -> None:
    compute: dict[int, list[tuple[int, int]]] = defaultdict(list)
    communication: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    for event in run.events:
        if event.kernel.startswith("nccl"):
            assert event.hlo_op in by_op
        if event.hlo_op in by_op:
            communication[event.ordinal, event.hlo_op].append((event.start, event.end))
        elif not (event.is_copy or re.fullmatch(r"mem(cpy|set)\d+(_post)?", event.kernel)):
            compute[event.ordinal].append((event.start, event.end))
    expected = {}
    for (ordinal, name), spans in communication.items():
        exposed = measure(without(spans, compute[ordinal]))
        expected[ordinal, name] = (
            len(spans),
            sum(end - start for start, end in spans),
            measure(spans),
            exposed,
        )
    found = rows_by_op(run, "kernel_count, sum_ps, union_ps, exposed_ps")
    assert found == expected
    # Some are hidden, some are not, and the others in part.
    shares = [exposed / union for _, _, union, exposed in expected.values()]
    assert min(shares) == 0
    assert max(shares) == 1
    assert sum(0.1 < share < 0.9 for share in shares) > 10


def test_bandwidths(run: SharedRun, by_op: dict[str, Collective]) -> None:
    spans: dict[tuple[int, str], list[tuple[int, int]]] = defaultdict(list)
    for event in run.events:
        if event.hlo_op is not None:
            spans[event.ordinal, event.hlo_op].append((event.start, event.end))
    for (ordinal, name), (algorithm, bus) in rows_by_op(
        run, "algorithm_bytes_per_s, bus_bytes_per_s"
    ).items():
        item = by_op[name]
        seconds = measure(spans[ordinal, name]) / 1e12
        size = math.prod(item.axes.values())
        moved = item.payload * item.executions * run.profiled_steps
        assert math.isclose(algorithm, moved / seconds)
        assert math.isclose(bus, moved / seconds * BUS_PARTS[item.kind] * (size - 1) / size)
        # Two H200 have 450 GB/s between them in each direction.
        assert bus < 450e9


def test_memory_is_what_the_compiler_reports(run: SharedRun) -> None:
    report = json.loads((run.path / "memory_analysis.json").read_text())
    rows = run.rows(
        """SELECT device_ordinal, kind, bytes, is_worst_device FROM v1.memory
        WHERE source = 'buffer_assignment' AND module_name = 'jit_train_step' AND memory_space = 0"""
    )
    found = {(ordinal, kind): size for ordinal, kind, size, _ in rows}
    for ordinal in range(run.config["devices"]):
        memory = {kind: size for (device, kind), size in found.items() if device == ordinal}
        assert memory["argument"] == report["argument_size_in_bytes"]
        assert memory["alias"] == report["alias_size_in_bytes"]
        assert memory["output"] + memory["alias"] == report["output_size_in_bytes"]
        assert memory["temporary"] == report["temp_size_in_bytes"]
        assert memory["peak"] == report["peak_memory_in_bytes"]
        assert memory["reserved"] + memory["thread_local"] == report["total_allocation_bytes"]
    # No other program of the run takes as much, and both devices run it.
    assert {worst for _, kind, _, worst in rows if kind in ("peak", "reserved", "temporary")} == {True}


def test_buffers_at_the_peak_are_the_peak(run: SharedRun) -> None:
    rows = run.rows(
        """WITH pieces AS (
            SELECT capture_id, program_id, memory_space, SUM(bytes) AS bytes
            FROM v1.peak_buffers GROUP BY ALL
        )
        SELECT DISTINCT m.module_name, p.bytes, m.bytes
        FROM v1.memory AS m LEFT JOIN pieces AS p USING (capture_id, program_id, memory_space)
        WHERE m.source = 'buffer_assignment' AND m.kind = 'peak'"""
    )
    assert len(rows) == 4
    assert [name for name, pieces, peak in rows if pieces != peak] == []
