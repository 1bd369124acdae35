"""The instruction of each kernel in a CUDA graph, against the same programs compiled without graphs.

Their kernels name their instructions themselves. The truth files of fixtures/h200_graphs were read with jax's
own reader; changes to the captures are made with protobuf.
"""

from __future__ import annotations

import random
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from . import graph_captures
from .graph_captures import COMMAND_BUFFER, NAMES, Attributed, GraphEvent, graph_events, parsed
from .xspace_expected import DEVICE_PLANE
from .xspace_oracle import text

# --- the fixtures -------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def whole(name: str, tmp_path_factory: pytest.TempPathFactory) -> Attributed:
    """The capture as it is."""
    return graph_captures.ingested(graph_captures.read(name), tmp_path_factory.mktemp(name))


def comparable(runs: Counter[tuple[int, str, str]]) -> dict[tuple[int, str, str], int]:
    """Runs without memsets, under names of kernels that two compilations have in common.

    A copy in a graph runs as a kernel. Autotuning may take another kernel of one library for a matmul.
    """
    found: Counter[tuple[int, str, str]] = Counter()
    for (device, instruction, kernel), count in runs.items():
        if not kernel.startswith("Memset"):
            common = re.sub(r"^(Memcpy|memcpy).*", "copy", re.sub(r"^nvjet_.*", "nvjet", kernel))
            found[device, instruction, common] += count
    return dict(found)


def test_each_instruction_has_the_kernels_that_it_has_without_graphs(name: str, whole: Attributed) -> None:
    assert comparable(whole.runs) == comparable(graph_captures.true_runs(name))


def test_each_memset_belongs_to_what_has_one_without_graphs(name: str, whole: Attributed) -> None:
    """cuDNN clears some of its memory in memsets of its own, which a graph of it does not have."""
    expected: Counter[tuple[int, str]] = Counter()
    found: Counter[tuple[int, str]] = Counter()
    for runs, counts in ((graph_captures.true_runs(name), expected), (whole.runs, found)):
        for (device, instruction, kernel), count in runs.items():
            counts[device, instruction] += count * kernel.startswith("Memset")
    assert all(count <= expected[key] for key, count in found.items())


def test_nothing_is_left_over(name: str, whole: Attributed) -> None:
    assert len(whole.graph) == len(graph_events(parsed(name))) > 3000
    assert whole.sources.keys() == {"graph_name", "graph_position"}
    assert None not in whole.graph.values()
    assert not any(COMMAND_BUFFER.fullmatch(op) for _, op, _ in whole.runs)


def test_a_kernel_with_the_name_of_its_instruction_is_attributed_by_name(whole: Attributed) -> None:
    """More than half of the events, and not all: the rest is told by the position alone."""
    assert whole.sources["graph_name"] > whole.sources["graph_position"] > 500


# --- the fixtures, changed ----------------------------------------------------------------------------------


def reread(space: Any, folder: Path) -> Attributed:
    return graph_captures.ingested(space.SerializeToString(), folder)


def wrong(found: Attributed, whole: Attributed) -> dict[Any, tuple[str, str | None]]:
    """Events that are attributed to another instruction than in the whole capture."""
    return {
        key: (instruction, whole.graph[key])
        for key, instruction in found.graph.items()
        if instruction is not None and instruction != whole.graph[key]
    }


def attributed_share(found: Attributed) -> float:
    return sum(instruction is not None for instruction in found.graph.values()) / len(found.graph)


def test_without_the_hlo_nothing_is_attributed(name: str, tmp_path: Path) -> None:
    space = parsed(name)
    (place,) = [at for at, plane in enumerate(space.planes) if plane.name == b"/host:metadata"]
    del space.planes[place]
    found = reread(space, tmp_path)
    assert found.sources.keys() == {"none"}
    named = {item.key: item.op for item in graph_events(space)}
    assert set(found.graph.values()) == {None}
    assert named.keys() == found.graph.keys()
    buffers = Counter(op for _, op, _ in found.runs.elements())
    assert all(buffers[op] == count for op, count in Counter(named.values()).items())


def test_the_order_of_events_in_the_file_does_not_matter(
    name: str, whole: Attributed, tmp_path: Path
) -> None:
    space = parsed(name)
    rng = random.Random(5)
    for plane in space.planes:
        if DEVICE_PLANE.match(text(plane.name)):
            for line in plane.lines:
                events = [event.SerializeToString() for event in line.events]
                rng.shuffle(events)
                del line.events[:]
                for data in events:
                    line.events.add().ParseFromString(data)
    assert reread(space, tmp_path).graph == whole.graph


@pytest.mark.parametrize("side", ["start", "end"])
def test_a_capture_that_is_cut_within_a_launch(
    name: str, whole: Attributed, tmp_path: Path, side: str
) -> None:
    """What is left of the launch is still the same nodes."""
    space = parsed(name)
    launches: dict[tuple[int, int], list[GraphEvent]] = defaultdict(list)
    for item in graph_events(space):
        launches[item.key[:2]].append(item)
    times = {
        launch: sorted(item.line.timestamp_ns * 1000 + item.event.offset_ps for item in items)
        for launch, items in launches.items()
    }
    largest = max(len(found) for found in times.values())
    middles = sorted(found[len(found) // 2] for found in times.values() if len(found) == largest)
    moment = middles[0] if side == "start" else middles[-1]
    gone = [
        item
        for item in graph_events(space)
        if (item.line.timestamp_ns * 1000 + item.event.offset_ps < moment) == (side == "start")
    ]
    graph_captures.keep_events(space, gone)
    found = reread(space, tmp_path)
    assert 0 < len(found.graph) < len(whole.graph)
    assert len({key[:2] for key in found.graph} & {item.key[:2] for item in gone}) > 0
    assert wrong(found, whole) == {}
    assert attributed_share(found) == 1


def test_lost_events(name: str, whole: Attributed, tmp_path: Path) -> None:
    """Of each node that is left, some launch tells."""
    space = parsed(name)
    rng = random.Random(7)
    graph_captures.keep_events(space, [item for item in graph_events(space) if rng.random() < 0.3])
    found = reread(space, tmp_path)
    assert 0 < len(found.graph) < len(whole.graph)
    assert wrong(found, whole) == {}
    assert attributed_share(found) > 0.5


@pytest.mark.parametrize("seed", range(2))
def test_lost_nodes(name: str, whole: Attributed, tmp_path: Path, seed: int) -> None:
    """No launch has them: what could be another node is not attributed."""
    space = parsed(name)
    events = graph_events(space)
    rng = random.Random(seed)
    nodes: dict[str, set[int]] = defaultdict(set)
    for item in events:
        nodes[item.op].add(item.node_index)
    lost = {
        (op, index)
        for op, found in sorted(nodes.items())
        for index in rng.sample(sorted(found), min(2 * seed + 1, len(found)))
    }
    graph_captures.keep_events(space, [item for item in events if (item.op, item.node_index) in lost])
    found_then = reread(space, tmp_path)
    assert 0 < len(found_then.graph) < len(whole.graph)
    assert wrong(found_then, whole) == {}
    assert attributed_share(found_then) > 0


def test_buffers_that_are_numbered_in_another_way(name: str, whole: Attributed, tmp_path: Path) -> None:
    """The names of kernels tell where they begin."""
    space = parsed(name)
    changed = 0
    for plane in space.planes:
        for item in plane.stat_metadata.values():
            if number := COMMAND_BUFFER.fullmatch(text(item.name)):
                item.name = f"command_buffer_{int(number[1]) + 3}".encode()
                changed += 1
    found = reread(space, tmp_path)
    assert changed > 0
    assert wrong(found, whole) == {}
    assert attributed_share(found) > 0.95


def test_kernels_with_names_that_say_nothing(name: str, whole: Attributed, tmp_path: Path) -> None:
    space = parsed(name)
    for plane in space.planes:
        if DEVICE_PLANE.match(text(plane.name)):
            for number, item in plane.event_metadata.items():
                item.name = f"unknown_{number}".encode()
    found = reread(space, tmp_path)
    assert found.graph.keys() == whole.graph.keys()
    assert wrong(found, whole) == {}


def test_a_kernel_with_a_name_that_says_nothing(name: str, whole: Attributed, tmp_path: Path) -> None:
    """Each fifth of those that XLA made."""
    space = parsed(name)
    made = sorted({kernel for _, op, kernel in whole.runs if re.sub(r"[.-]", "_", op) == kernel})
    unknown = {kernel.encode() for kernel in made[::5]}
    for plane in space.planes:
        if DEVICE_PLANE.match(text(plane.name)):
            for number, item in plane.event_metadata.items():
                if item.name in unknown:
                    item.name = f"unknown_{number}".encode()
    found = reread(space, tmp_path)
    assert len(unknown) > 5
    assert wrong(found, whole) == {}
    assert attributed_share(found) > 0


def test_events_that_name_their_instruction_within_a_graph(
    name: str, whole: Attributed, tmp_path: Path
) -> None:
    """As XLA records them where it updates a graph: up to the first library call of each graph."""
    space = parsed(name)
    leading = graph_captures.leading_nodes(graph_events(space))
    for item in leading:
        item.op = whole.graph[item.key] or ""
    found = reread(space, tmp_path)
    assert found.graph == whole.graph
    assert found.sources["hlo_op"] == len(leading) > 400


def test_a_step_without_graphs_among_steps_with_graphs(name: str, whole: Attributed, tmp_path: Path) -> None:
    """XLA can run the thunks of a command buffer one by one: then each event names its instruction."""
    space = parsed(name)
    events = graph_events(space)
    last = {item.key[1] for item in events}
    last = set(sorted(last)[len(last) * 2 // 3 :])
    for item in events:
        if item.key[1] in last:
            item.op = whole.graph[item.key] or ""
            item.leave_graph()
    found = reread(space, tmp_path)
    assert 0 < len(found.graph) < len(whole.graph)
    assert wrong(found, whole) == {}
