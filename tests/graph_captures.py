"""The captures of fixtures/h200_graphs: what their events are attributed to, whole and after changes."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import duckdb

import tracewh

from .xspace_expected import DEVICE_PLANE
from .xspace_oracle import XSpace, text

FOLDER = Path(__file__).parents[1] / "fixtures" / "h200_graphs"
NAMES = ("cudnn", "fsdp2")
COMMAND_BUFFER = re.compile(r"command_buffer_(\d+)")

# device ordinal, correlation id of the launch, graph_node_id
EventKey = tuple[int, int, int]
Instructions = dict[EventKey, str | None]


@cache
def read(name: str) -> bytes:
    """The XSpace of a capture."""
    return gzip.decompress((FOLDER / f"{name}.xplane.pb.gz").read_bytes())


def true_runs(name: str) -> Counter[tuple[int, str, str]]:
    """How often each kernel ran for each instruction without graphs: by device, instruction, kernel."""
    found: dict[str, dict[str, list[int]]] = json.loads((FOLDER / f"{name}.truth.json").read_text())
    return Counter(
        {
            (device, instruction, kernel): count
            for instruction, kernels in found.items()
            for kernel, counts in kernels.items()
            for device, count in enumerate(counts)
        }
    )


@dataclass
class GraphEvent:
    """An event of a graph in a space that may be changed."""

    device: int
    plane: Any
    line: Any
    event: Any
    stats: dict[str, Any]

    @property
    def key(self) -> EventKey:
        correlation, node = self.stats["correlation_id"], self.stats["cuda_graph_node_id"]
        return self.device, _number(correlation), _number(node)

    @property
    def node_index(self) -> int:
        """The lower half of the id."""
        return self.key[2] % 2**32

    @property
    def op(self) -> str:
        """What the event names: a command buffer or an instruction."""
        return text(self.plane.stat_metadata[self.stats["hlo_op"].ref_value].name)

    @op.setter
    def op(self, value: str) -> None:
        known = {text(item.name): number for number, item in self.plane.stat_metadata.items()}
        number = known.get(value, max(known.values()) + 1)
        self.plane.stat_metadata[number].id = number
        self.plane.stat_metadata[number].name = value.encode()
        self.stats["hlo_op"].ref_value = number

    def leave_graph(self) -> None:
        """Make it an event of a launch without a graph."""
        self.event.stats.remove(self.stats.pop("cuda_graph_node_id"))


def _number(stat: Any) -> int:
    return int(stat.uint64_value or stat.int64_value)


def graph_events(space: Any) -> list[GraphEvent]:
    """The events of graphs on all devices of an XSpace."""
    return list(_graph_events(space))


def _graph_events(space: Any) -> Iterator[GraphEvent]:
    for plane in space.planes:
        if device := DEVICE_PLANE.match(text(plane.name)):
            names = {key: text(value.name) for key, value in plane.stat_metadata.items()}
            for line in plane.lines:
                for event in line.events:
                    stats = {names[stat.metadata_id]: stat for stat in event.stats}
                    if "cuda_graph_node_id" in stats:
                        yield GraphEvent(int(device[2]), plane, line, event, stats)


def parsed(name: str) -> Any:
    """A capture as a message of its own, to be changed."""
    return XSpace.FromString(read(name))


def keep_events(space: Any, dropped: list[GraphEvent]) -> None:
    """Leave the dropped events out of the space."""
    by_line: dict[int, tuple[Any, set[int]]] = {}
    for item in dropped:
        by_line.setdefault(id(item.line), (item.line, set()))[1].add(id(item.event))
    for line, gone in by_line.values():
        kept = [event.SerializeToString() for event in line.events if id(event) not in gone]
        del line.events[:]
        for data in kept:
            line.events.add().ParseFromString(data)


@dataclass
class Attributed:
    """What a warehouse says of one capture.

    graph: instruction of each event of a graph; None where it is not attributed.
    runs: events by device, what they name, and kernel.
    sources: events of graphs by attribution_source.
    """

    graph: Instructions
    runs: Counter[tuple[int, str, str]]
    sources: Counter[str]


def ingested(data: bytes, folder: Path) -> Attributed:
    """Load a serialized XSpace into a warehouse in `folder`, and read it back."""
    capture, warehouse = folder / "vm.xplane.pb", folder / "w.duckdb"
    capture.write_bytes(data)
    assert tracewh.ingest_run(capture, warehouse=warehouse).status == "loaded"
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        rows = connection.execute(
            "SELECT a.device_ordinal, e.correlation_id, e.graph_node_id, a.hlo_op, a.kernel_name,"
            " a.attribution_source FROM v1.attribution AS a"
            " JOIN device_events AS e USING (capture_id, device_event_id)"
        ).fetchall()
    warehouse.unlink()
    graph: Instructions = {}
    runs: Counter[tuple[int, str, str]] = Counter()
    sources: Counter[str] = Counter()
    for device, correlation, node, op, kernel, source in rows:
        runs[device, op, kernel] += 1
        if node is not None:
            assert (device, correlation, node) not in graph
            graph[device, correlation, node] = None if source == "none" else op
            sources[source] += 1
    return Attributed(graph, runs, sources)


def leading_nodes(events: list[GraphEvent]) -> list[GraphEvent]:
    """Of each graph the events of its first nodes, up to the first node without an event."""
    nodes: dict[tuple[int, int], set[int]] = defaultdict(set)
    for item in events:
        nodes[item.device, item.key[2] >> 32].add(item.node_index)
    first_gap = {graph: min(set(range(max(found) + 2)) - found) for graph, found in nodes.items()}
    return [item for item in events if item.node_index < first_gap[item.device, item.key[2] >> 32]]
