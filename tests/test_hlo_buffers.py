"""Static memory of modules, against XLA's own reports, XProf's memory viewer and hand-made messages."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.hlo_buffers import buffer_rows
from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_heap import MAX_BYTES
from tracewh.ingest.hlo_proto import HloModuleProto, HloProto
from tracewh.ingest.xspace_messages import MESSAGES

from .hlo_dumps import read_dumps
from .static_memory import StaticMemory, static_memory
from .xspace_files import ARCHIVES, BUNDLED, PUBLIC, ROOT, file_id, read_file

os.environ["JAX_PLATFORMS"] = "cpu"
HOST_SPACE = 5

COLUMNS = {
    "hlo_buffers": (
        "allocation_index allocation_kind bytes memory_space parameter_number parameter_shape_index "
        "is_live_out is_aliased is_tuple"
    ),
    "hlo_logical_buffers": (
        "buffer_id instruction_id shape_index bytes memory_space allocation_index offset_bytes live_from "
        "live_until is_live_at_peak"
    ),
    "hlo_heap_events": (
        "allocation_index event_index event_kind buffer_id instruction_id canonical_buffer_id live_bytes "
        "is_peak"
    ),
}


class Read:
    """What was read of a module, its rows as dictionaries."""

    def __init__(self, proto: Any) -> None:
        self.counter = ProblemCounter()
        self.graph = ModuleGraph(proto.hlo_module)
        rows = buffer_rows(self.graph, proto.hlo_module, proto.buffer_assignment, self.counter, "test.pb")
        tables = {
            table: [dict(zip(columns.split(), row, strict=True)) for row in rows[table]]
            for table, columns in COLUMNS.items()
        }
        self.memory = static_memory(tables)
        self.allocations, self.buffers, self.events = tables.values()

    @property
    def problems(self) -> dict[str, int]:
        assert all(problem.place == "test.pb" for problem in self.counter.problems())
        return {problem.problem: problem.occurrences for problem in self.counter.problems()}

    def name(self, buffer: dict[str, Any]) -> str:
        """As XLA's reports call it."""
        instruction = self.graph.instructions[buffer["instruction_id"]]
        return str(instruction.name.decode()) + str(buffer["shape_index"])


def parsed(data: bytes) -> Read:
    return Read(HloProto.FromString(data))


def module_protos(space: bytes) -> Iterator[tuple[str, bytes]]:
    """Name and HloProto of each module in an XSpace."""
    for plane in MESSAGES["XSpace"].FromString(space).planes:
        if plane.name == b"/host:metadata":
            for entry in plane.event_metadata:
                for stat in entry.value.stats:
                    if stat.HasField("bytes_value"):
                        yield entry.value.name.decode(), stat.bytes_value


def check_memory_analysis(read: Read, analysis: dict[str, int]) -> None:
    """Every figure of JAX's memory analysis that is about buffers."""
    device = [memory for memory in read.memory if memory.memory_space != HOST_SPACE]
    host = [memory for memory in read.memory if memory.memory_space == HOST_SPACE]
    for prefix, memories in (("", device), ("host_", host)):
        assert analysis[f"{prefix}argument_size_in_bytes"] == sum(it.argument_bytes for it in memories)
        assert analysis[f"{prefix}output_size_in_bytes"] == sum(it.live_out_bytes for it in memories)
        assert analysis[f"{prefix}alias_size_in_bytes"] == sum(it.alias_bytes for it in memories)
        assert analysis[f"{prefix}temp_size_in_bytes"] == sum(it.temporary_bytes for it in memories)
    (memory,) = device
    assert memory.output_bytes == memory.live_out_bytes - memory.alias_bytes
    assert analysis["total_allocation_bytes"] == memory.allocated_bytes
    assert analysis["indefinite_allocations"] == memory.allocated_bytes - memory.temporary_bytes
    assert analysis["peak_memory_in_bytes"] == memory.peak_bytes


def check_consistency(read: Read) -> None:
    """What holds of any sound module, by sums over all events and over all pairs of buffers."""
    assert read.problems == {}
    assert [event["event_index"] for event in read.events] == list(range(len(read.events)))
    sizes = {buffer["buffer_id"]: buffer["bytes"] for buffer in read.buffers}
    owners: dict[int, int] = {}
    for event in read.events:
        if event["event_kind"] != "free":
            shared = event["canonical_buffer_id"]
            owners[event["buffer_id"]] = event["buffer_id"] if shared is None else owners[shared]
    live = {owner: np.zeros(len(read.events), bool) for owner in owners.values()}
    traced = [buffer for buffer in read.buffers if buffer["live_from"] is not None]
    assert {buffer["buffer_id"] for buffer in traced} == owners.keys()
    for buffer in traced:
        begin, end = (read.events[buffer[edge]] for edge in ("live_from", "live_until"))
        assert (begin["buffer_id"], end["buffer_id"]) == (buffer["buffer_id"], buffer["buffer_id"])
        assert (begin["event_kind"] == "free", end["event_kind"]) == (False, "free")
        assert begin["instruction_id"] == end["instruction_id"] == buffer["instruction_id"]
        assert begin["allocation_index"] == end["allocation_index"] == buffer["allocation_index"]
        live[owners[buffer["buffer_id"]]][buffer["live_from"] : buffer["live_until"]] = True

    spaces = {allocation["allocation_index"]: allocation["memory_space"] for allocation in read.allocations}
    event_spaces = np.array([spaces[event["allocation_index"]] for event in read.events])
    found = np.array([event["live_bytes"] for event in read.events], np.int64)
    for memory in read.memory:
        events = event_spaces == memory.memory_space
        total = np.zeros(len(read.events), np.int64)
        for owner, when in live.items():
            total[when & events] += sizes[owner]
        assert (total[events] == found[events]).all()
        peaks = [event["event_index"] for event in read.events if event["is_peak"]]
        if events.any():
            (peak,) = (it for it in peaks if events[it])
            assert total[peak] == total.max() == memory.heap_peak_bytes
            assert peak == np.flatnonzero(events)[np.argmax(total[events])]
            assert {buffer["buffer_id"] for buffer in traced if buffer["is_live_at_peak"]} >= {
                buffer["buffer_id"]
                for buffer in traced
                if buffer["live_from"] <= peak < buffer["live_until"] and events[buffer["live_from"]]
            }
        # What is live at the peak, each place counted once, is all of it.
        places: dict[tuple[int, int], int] = {}
        for buffer in read.buffers:
            if buffer["is_live_at_peak"] and spaces[buffer["allocation_index"]] == memory.memory_space:
                place = buffer["allocation_index"], buffer["offset_bytes"]
                places[place] = max(places.get(place, 0), buffer["bytes"])
        if memory.peak_bytes is not None:
            assert sum(places.values()) == memory.peak_bytes
            assert memory.peak_bytes <= memory.reserved_bytes <= memory.allocated_bytes
    check_places(traced, owners)


def check_places(traced: list[dict[str, Any]], owners: dict[int, int]) -> None:
    """Buffers that are live at once are apart, unless one shares the memory of the other."""
    columns = ("live_from", "live_until", "offset_bytes", "bytes", "allocation_index")
    start, end, offset, size, allocation = (
        np.array([buffer[column] for buffer in traced], np.int64) for column in columns
    )
    owner = np.array([owners[buffer["buffer_id"]] for buffer in traced], np.int64)
    for here, buffer in enumerate(traced):
        at_once = (start < buffer["live_until"]) & (buffer["live_from"] < end)
        overlaps = (offset < buffer["offset_bytes"] + buffer["bytes"]) & (
            buffer["offset_bytes"] < offset + size
        )
        same = allocation == buffer["allocation_index"]
        assert (at_once & overlaps & same <= (owner == owner[here])).all()


# --- real modules -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [*BUNDLED, *PUBLIC], ids=file_id)
def test_modules_of_captures_are_consistent(path: Path) -> None:
    events = 0
    for _, data in module_protos(read_file(path)):
        read = parsed(data)
        check_consistency(read)
        events += len(read.events)
    assert events > 0


@pytest.mark.parametrize("run", ["h200_moe", "h200_moe_direct"])
def test_bundled_runs_agree_with_their_memory_analysis(run: str) -> None:
    folder = ROOT / "fixtures" / run
    modules = dict(module_protos(gzip.decompress((folder / "profile" / "vm.xplane.pb.gz").read_bytes())))
    read = parsed(modules["jit_train_step(2011)"])
    check_memory_analysis(read, json.loads((folder / "memory_analysis.json").read_text()))
    (memory,) = read.memory
    assert memory == StaticMemory(
        memory_space=0,
        argument_bytes=171_572_228,
        alias_bytes=171_568_132,
        output_bytes=344,  # the loss and the step's pointers, the rest of the output is donated
        constant_bytes=28,
        thread_local_bytes=828,
        temporary_bytes=155_953_136,
        heap_peak_bytes=155_937_820,
        peak_bytes=327_510_420,
        reserved_bytes=327_525_736,
    )
    # The allocator of the device rounded each allocation up to 256 bytes.
    statistics = json.loads((folder / "memory_stats.json").read_text())["end"]["cuda:0"]
    assert statistics["peak_bytes_in_use"] == 327_527_168


# Bytes of the temporary allocation beyond the heap's peak: alignment, gaps between buffers, and the pointer
# tables of tuples, which no heap trace has.
PLACEMENT_LOSS = {
    "h200_2proc/proc0": 21_728,
    "h200_2proc/proc1": 21_728,
    "h200x1_big_nocb": 15_316,
    "h200x1_small": 15_316,
    "h200x1_small_nocb": 15_316,
    "h200x1_small_pytrace": 15_316,
    "h200x2_medium_fsdp2": 1_087_200,
    "h200x2_medium_fsdp2_nocb": 1_087_200,
    "h200x2_medium_fsdp2_opt": 40_172,
    **{f"hist_0{number}": 15_316 for number in range(1, 7)},
    "hist_07": 59_360,
    "hist_08": 727_008,
}


@pytest.mark.parametrize("archive", ARCHIVES, ids=file_id)
def test_sums_agree_with_memory_analysis_and_report(archive: Path) -> None:
    for dump in read_dumps(archive):
        read = parsed(dump.files["hlo"])
        check_consistency(read)
        check_memory_analysis(read, dump.memory_analysis)
        assert {it.memory_space: it.allocated_bytes for it in read.memory} == dump.report_totals()
        (memory,) = read.memory
        assert memory.heap_peak_bytes is not None
        loss = memory.temporary_bytes - memory.heap_peak_bytes
        assert loss == PLACEMENT_LOSS[dump.folder]
        tables = [
            buffer["bytes"]
            for buffer in read.buffers
            if buffer["live_from"] is None and kind_of(read, buffer) == "temporary"
        ]
        assert 0 < sum(tables) <= loss


def kind_of(read: Read, buffer: dict[str, Any]) -> str:
    (allocation,) = (it for it in read.allocations if it["allocation_index"] == buffer["allocation_index"])
    return str(allocation["allocation_kind"])


@pytest.mark.parametrize("archive", ARCHIVES, ids=file_id)
def test_allocations_and_buffers_agree_with_the_listing(archive: Path) -> None:
    for dump in read_dumps(archive):
        read = parsed(dump.files["hlo"])
        allocations, buffers = dump.buffer_assignment()
        assert [it["allocation_index"] for it in read.allocations] == list(allocations)
        aliases = dump.aliases()
        assert aliases
        for row in read.allocations:
            listed = allocations[row["allocation_index"]]
            attributes = listed.attributes
            assert row["bytes"] == listed.size
            assert row["is_live_out"] == ("maybe-live-out" in attributes)
            if row["allocation_kind"] == "parameter":
                assert f"parameter {row['parameter_number']}, shape |" in attributes
                assert f"at ShapeIndex {row['parameter_shape_index']}" in attributes
                assert row["is_aliased"] == (
                    (row["parameter_number"], row["parameter_shape_index"]) in aliases
                )
                continue
            assert "at ShapeIndex" not in attributes
            assert (row["parameter_number"], row["parameter_shape_index"], row["is_aliased"]) == (
                None,
                None,
                False,
            )
            assert (row["allocation_kind"] == "constant") == ("constant" in attributes)
            assert (row["allocation_kind"] == "thread_local") == ("thread-local" in attributes)
            assert (row["allocation_kind"] == "temporary") == ("preallocated-temp" in attributes)
        assert len(read.buffers) == len(buffers)
        for row in read.buffers:
            value = buffers[row["buffer_id"]]
            assert (row["allocation_index"], row["offset_bytes"], row["bytes"], read.name(row)) == (
                value.allocation,
                value.offset,
                value.size,
                value.name,
            )


@pytest.mark.parametrize("archive", ARCHIVES, ids=file_id)
def test_lives_agree_with_the_live_ranges(archive: Path) -> None:
    """Each event lies in program order: at the time XLA says that its buffer begins, or ends."""
    for dump in read_dumps(archive):
        read = parsed(dump.files["hlo"])
        ranges = dump.live_ranges().ranges
        names = {buffer["buffer_id"]: read.name(buffer) for buffer in read.buffers}
        assert times_of(read, names, ranges) == sorted(times_of(read, names, ranges))
        _, listed = dump.buffer_assignment()
        for buffer in read.buffers:
            if buffer["live_from"] is None and kind_of(read, buffer) == "temporary":
                assert listed[buffer["buffer_id"]].shape.startswith("(")


def times_of(read: Read, names: dict[int, str], ranges: dict[str, tuple[int, int]]) -> list[tuple[int, bool]]:
    """Of each event, the position in the schedule, and whether it comes after what begins there.

    A buffer ends after the instruction that uses it last, but before, if the result takes over its memory.
    """
    times = []
    for event, following in zip(read.events, [*read.events[1:], None], strict=True):
        is_free = event["event_kind"] == "free"
        is_taken_over = following is not None and following["canonical_buffer_id"] == event["buffer_id"]
        times.append((ranges[names[event["buffer_id"]]][is_free], is_free and not is_taken_over))
    return times


@pytest.mark.parametrize("archive", ARCHIVES, ids=file_id)
def test_live_buffers_agree_with_the_moment_that_xla_lists(archive: Path) -> None:
    """XLA lists the live buffers of one moment.

    It calls that the peak, but chooses it by counting elements of tuples as pointer tables, and counts memory
    once per buffer that shares it: the heap's peak is elsewhere.
    """
    for dump in read_dumps(archive):
        read = parsed(dump.files["hlo"])
        listed = dump.live_ranges()
        names = {buffer["buffer_id"]: read.name(buffer) for buffer in read.buffers}
        moment = (listed.listed_time, False)
        times = times_of(read, names, listed.ranges)
        position = max(index for index, time in enumerate(times) if time <= moment)
        traced = [buffer for buffer in read.buffers if buffer["live_from"] is not None]
        live = {
            read.name(buffer): buffer["bytes"]
            for buffer in traced
            if buffer["live_from"] <= position < buffer["live_until"]
        }
        traced_names = {read.name(buffer) for buffer in traced}
        assert live == {name: size for name, size in listed.listed_sizes.items() if name in traced_names}
        assert live
        (peak,) = (event for event in read.events if event["is_peak"])
        assert peak["live_bytes"] >= read.events[position]["live_bytes"]


# --- XProf's memory viewer ----------------------------------------------------------------------------------


def memory_viewer(folder: Path, data: bytes, memory_space: int) -> dict[str, Any]:
    """What XProf shows of one memory space of a module."""
    plugin = pytest.importorskip("xprof.convert._pywrap_profiler_plugin", reason="xprof is not installed")
    # XProf looks for the modules of a capture in files beside it.
    (folder / "module.hlo_proto.pb").write_bytes(data)
    (folder / "vm.xplane.pb").write_bytes(b"")
    options = {"module_name": "module", "memory_space": str(memory_space)}
    text, is_done = plugin.xspace_to_tools_data([str(folder / "vm.xplane.pb")], "memory_viewer", options)
    assert is_done, text
    viewed: dict[str, Any] = json.loads(text)
    return viewed


def in_bytes(mebibytes: float) -> int:
    return round(mebibytes * 2**20)


@pytest.mark.parametrize("path", [*BUNDLED, *PUBLIC], ids=file_id)
def test_agrees_with_the_memory_viewer(path: Path, tmp_path: Path) -> None:
    for _, data in module_protos(read_file(path)):
        read = parsed(data)
        spaces = {it["allocation_index"]: it["memory_space"] for it in read.allocations}
        for memory in read.memory:
            viewed = memory_viewer(tmp_path, data, memory.memory_space)
            assert in_bytes(viewed.get("totalBufferAllocationMib", 0)) == memory.reserved_bytes
            assert in_bytes(viewed.get("entryComputationParametersMib", 0)) == memory.argument_bytes
            assert in_bytes(viewed.get("maybeLiveOutMib", 0)) == memory.live_out_bytes
            if memory.peak_bytes is not None:
                assert in_bytes(viewed.get("peakHeapMib", 0)) == memory.peak_bytes
            events = [it for it in read.events if spaces[it["allocation_index"]] == memory.memory_space]
            # The viewer's first size is that before the first event.
            sizes = [in_bytes(size) for size in viewed.get("heapSizes", [0])]
            assert [size - sizes[0] for size in sizes[1:]] == [event["live_bytes"] for event in events]
            if events:
                peaks = [index for index, event in enumerate(events) if event["is_peak"]]
                assert peaks == [viewed.get("peakHeapSizePosition", 0)]
                check_spans(read, events, viewed["logicalBufferSpans"])


def check_spans(read: Read, events: list[dict[str, Any]], spans: dict[str, dict[str, int]]) -> None:
    """XProf has the span of all that use one piece of memory, until it is freed, under the first of them."""
    owners: dict[int, int] = {}
    for event in events:
        if event["event_kind"] != "free":
            shared = event["canonical_buffer_id"]
            owners[event["buffer_id"]] = event["buffer_id"] if shared is None else owners[shared]
    buffers = {buffer["buffer_id"]: buffer for buffer in read.buffers}
    first = events[0]["event_index"]
    for owner in set(owners.values()):
        users = sorted(
            (buffers[buffer_id]["live_from"], buffers[buffer_id]["live_until"])
            for buffer_id in owners
            if owners[buffer_id] == owner
        )
        start, end = users[0]
        for user_start, user_end in users:
            end = max(end, user_end) if user_start <= end else end
        span = spans[str(owner)]
        assert (span.get("start", 0), span["limit"]) == (start - first, end - first)


# --- a program compiled here --------------------------------------------------------------------------------


def test_agrees_with_the_memory_analysis_of_a_compilation() -> None:
    """On CPU, JAX's memory analysis has no heap traces, so no heap peak, and its peak lacks the heap."""
    import jax
    import jax.numpy as jnp

    def step(state: Any, inputs: Any) -> Any:
        hidden = jnp.sort(jnp.tanh(inputs @ state["weights"]), axis=1)
        table = jnp.arange(64, dtype=jnp.float32).reshape(8, 8) * 0.5
        return {"weights": state["weights"] + hidden.T @ hidden, "step": state["step"] + 1}, hidden[
            :8, :8
        ] @ table

    state = {"weights": jnp.ones((64, 64)), "step": jnp.zeros((), jnp.int32)}
    compiled = jax.jit(step, donate_argnums=0).lower(state, jnp.ones((32, 64))).compile()
    analysis = compiled.memory_analysis()
    if not hasattr(analysis, "serialized_buffer_assignment_proto"):
        pytest.skip("this jaxlib does not give the buffer assignment")
    module = compiled.runtime_executable().hlo_modules()[0].as_serialized_hlo_module_proto()
    proto = HloProto(hlo_module=HloModuleProto.FromString(module))
    proto.buffer_assignment.MergeFromString(analysis.serialized_buffer_assignment_proto)

    read = Read(proto)
    assert read.problems == {}
    (memory,) = read.memory
    assert memory.argument_bytes == analysis.argument_size_in_bytes == 4 * (64 * 64 + 1 + 32 * 64)
    assert memory.alias_bytes == analysis.alias_size_in_bytes == 4 * (64 * 64 + 1)
    assert memory.live_out_bytes == analysis.output_size_in_bytes
    assert memory.output_bytes == analysis.output_size_in_bytes - analysis.alias_size_in_bytes
    assert memory.temporary_bytes == analysis.temp_size_in_bytes > 0
    assert (
        memory.output_bytes + memory.argument_bytes + memory.constant_bytes == analysis.peak_memory_in_bytes
    )
    assert (memory.heap_peak_bytes, memory.peak_bytes, read.events) == (None, None, [])
    assert all(buffer["live_from"] is None for buffer in read.buffers)


# --- hand-made modules --------------------------------------------------------------------------------------


class Handmade:
    """An HloProto with instructions i1, i2, ... of computation main, and a BufferAssignmentProto to fill."""

    def __init__(self, instructions: int = 6) -> None:
        self.proto = HloProto()
        computation = self.proto.hlo_module.computations.add(name=b"main", id=1)
        for number in range(1, instructions + 1):
            computation.instructions.add(name=b"i%d" % number, id=number)
        self.assignment = self.proto.buffer_assignment
        self.assignment.SetInParent()

    def allocation(self, index: int, size: int, *buffers: int, **fields: Any) -> Any:
        """An allocation with room for 100 bytes per buffer."""
        allocation = self.assignment.buffer_allocations.add(index=index, size=size, **fields)
        for place, buffer_id in enumerate(buffers):
            allocation.assigned.add(logical_buffer_id=buffer_id, offset=100 * place, size=1)
        return allocation

    def buffer(self, buffer_id: int, size: int, *shape_index: int, **fields: Any) -> Any:
        """A buffer that the instruction of its id defines."""
        buffer = self.assignment.logical_buffers.add(id=buffer_id, size=size, **fields)
        buffer.defined_at.instruction_id = buffer_id
        buffer.defined_at.shape_index.extend(shape_index)
        return buffer

    def trace(self, allocation: int, *events: tuple[int, ...], named: bool = True) -> Any:
        trace = self.assignment.heap_simulator_traces.add(buffer_allocation_index=allocation)
        for kind, buffer_id, *shared in events:
            event = trace.events.add(kind=kind, buffer_id=buffer_id)
            if named:
                event.computation_name, event.instruction_name = b"main", b"i%d" % buffer_id
            for canonical_id in shared:
                event.share_with_canonical_id = canonical_id
        return trace

    def alias(self, output_index: list[int], parameter: int, parameter_index: list[int]) -> None:
        self.proto.hlo_module.input_output_alias.entries.add(
            output_shape_index=output_index,
            parameter_number=parameter,
            parameter_shape_index=parameter_index,
        )

    def read(self) -> Read:
        return parsed(self.proto.SerializeToString())


ALLOC, FREE, SHARE = range(3)


def test_allocations() -> None:
    made = Handmade()
    made.allocation(0, 10, is_entry_computation_parameter=True, maybe_live_out=True)
    made.allocation(
        1, 20, is_entry_computation_parameter=True, parameter_number=1, parameter_shape_index=[0, 1], color=5
    )
    made.allocation(2, 30, is_entry_computation_parameter=True, parameter_number=1, maybe_live_out=True)
    made.allocation(3, 40, maybe_live_out=True, is_tuple=True)
    made.allocation(4, 50, is_constant=True, maybe_live_out=True)
    made.allocation(5, 60, is_constant=True)
    made.allocation(6, 70, is_thread_local=True)
    made.allocation(9, 80)
    made.alias([0], 0, [])
    made.alias([1, 2], 1, [0, 1])
    read = made.read()
    assert [tuple(row.values()) for row in read.allocations] == [
        (0, "parameter", 10, 0, 0, "{}", True, True, False),
        (1, "parameter", 20, 5, 1, "{0,1}", False, True, False),
        (2, "parameter", 30, 0, 1, "{}", True, False, False),
        (3, "output", 40, 0, None, None, True, False, True),
        (4, "constant", 50, 0, None, None, True, False, False),
        (5, "constant", 60, 0, None, None, False, False, False),
        (6, "thread_local", 70, 0, None, None, False, False, False),
        (9, "temporary", 80, 0, None, None, False, False, False),
    ]
    main, host = read.memory
    assert main == StaticMemory(
        memory_space=0,
        argument_bytes=10 + 30,
        alias_bytes=10,
        output_bytes=40,
        constant_bytes=50 + 60,
        thread_local_bytes=70,
        temporary_bytes=80,
        heap_peak_bytes=None,  # temporaries, but no heap trace
        peak_bytes=None,
        reserved_bytes=10 + 30 + 40 + 50 + 60 + 80,
    )
    assert host == StaticMemory(5, 20, 20, 0, 0, 0, 0, 0, 20, 20)
    assert read.problems == {}


def test_buffers_and_events() -> None:
    made = Handmade()
    made.allocation(0, 100, 1, is_entry_computation_parameter=True)
    # The trace has the index that the allocation had before others were merged into it: 0 is another one.
    made.allocation(1, 500, 2, 3, 5).assigned.add(logical_buffer_id=4, offset=100, size=1)
    made.buffer(1, 100)
    made.buffer(2, 60)
    made.buffer(3, 70, 1, 0)
    made.buffer(4, 70, 0)
    made.buffer(5, 16)  # a pointer table: in no trace
    made.trace(0, (ALLOC, 2), (ALLOC, 3), (FREE, 2), (SHARE, 4, 3), (FREE, 3), (FREE, 4))
    read = made.read()
    assert [tuple(row.values()) for row in read.buffers] == [
        (1, 1, "{}", 100, 0, 0, 0, None, None, True),
        (2, 2, "{}", 60, 0, 1, 0, 0, 2, True),
        (3, 3, "{1,0}", 70, 0, 1, 100, 1, 4, True),
        (4, 4, "{0}", 70, 0, 1, 100, 3, 5, False),
        (5, 5, "{}", 16, 0, 1, 200, None, None, False),
    ]
    assert [tuple(row.values()) for row in read.events] == [
        (1, 0, "alloc", 2, 2, None, 60, False),
        (1, 1, "alloc", 3, 3, None, 130, True),
        (1, 2, "free", 2, 2, None, 70, False),
        (1, 3, "share", 4, 4, 3, 70, False),
        (1, 4, "free", 3, 3, None, 70, False),
        (1, 5, "free", 4, 4, None, 0, False),
    ]
    (memory,) = read.memory
    assert (memory.heap_peak_bytes, memory.peak_bytes, memory.reserved_bytes) == (130, 230, 600)
    check_consistency(read)


def test_events_without_names_are_of_the_instruction_that_defines_the_buffer() -> None:
    made = Handmade()
    made.allocation(0, 100, 2)
    made.buffer(2, 60)
    made.trace(0, (ALLOC, 2), (FREE, 2), named=False)
    read = made.read()
    assert [event["instruction_id"] for event in read.events] == [2, 2]
    assert read.problems == {}


def test_no_buffer_assignment() -> None:
    module = Handmade().proto.hlo_module
    rows = buffer_rows(ModuleGraph(module), module, None, ProblemCounter(), "test.pb")
    assert rows == {"hlo_buffers": [], "hlo_logical_buffers": [], "hlo_heap_events": []}
    assert static_memory({"hlo_buffers": [], "hlo_heap_events": []}) == []


def two_heaps() -> Handmade:
    made = Handmade()
    made.allocation(0, 100, 1)
    made.allocation(1, 100, 2)
    made.buffer(1, 60)
    made.buffer(2, 70)
    return made


def test_a_trace_that_fills_two_allocations_is_read_once() -> None:
    made = two_heaps()
    for allocation in (0, 1):
        made.trace(allocation, (ALLOC, 1), (ALLOC, 2), (FREE, 1), (FREE, 2))
    read = made.read()
    assert [(row["allocation_index"], row["live_bytes"]) for row in read.events] == [
        (0, 60),
        (1, 130),
        (0, 70),
        (1, 0),
    ]
    assert [memory.heap_peak_bytes for memory in read.memory] == [130]
    check_consistency(read)


def test_traces_of_several_memory_spaces_have_peaks_of_their_own() -> None:
    made = two_heaps()
    made.assignment.buffer_allocations[1].color = 1
    made.trace(9)  # on TPU the first one is empty
    made.trace(0, (ALLOC, 1), (FREE, 1))
    made.trace(1, (ALLOC, 2), (FREE, 2))
    read = made.read()
    assert [tuple(row.values()) for row in read.events] == [
        (0, 0, "alloc", 1, 1, None, 60, True),
        (0, 1, "free", 1, 1, None, 0, False),
        (1, 2, "alloc", 2, 2, None, 70, True),
        (1, 3, "free", 2, 2, None, 0, False),
    ]
    lives = [(row["live_from"], row["live_until"], row["is_live_at_peak"]) for row in read.buffers]
    assert lives == [(0, 1, True), (2, 3, True)]
    assert [(memory.memory_space, memory.heap_peak_bytes) for memory in read.memory] == [(0, 60), (1, 70)]
    check_consistency(read)


def test_traces_of_one_memory_space_have_no_common_order() -> None:
    made = two_heaps()
    made.trace(0, (ALLOC, 1), (FREE, 1))
    made.trace(1, (ALLOC, 2), (FREE, 2))
    read = made.read()
    assert [memory.heap_peak_bytes for memory in read.memory] == [70]
    assert read.problems == {"unaligned_heap_traces": 1}


def test_a_buffer_in_two_traces_lives_as_the_first_says() -> None:
    made = two_heaps()
    made.trace(0, (ALLOC, 1), (FREE, 1))
    made.trace(1, (ALLOC, 2), (ALLOC, 1), (FREE, 2), (FREE, 1))
    read = made.read()
    assert [(row["live_from"], row["live_until"]) for row in read.buffers] == [(0, 1), (2, 4)]
    assert read.problems == {"unaligned_heap_traces": 1, "inconsistent_heap_trace": 1}


# --- broken modules -----------------------------------------------------------------------------------------


def test_contradictions_in_a_trace_are_counted() -> None:
    made = two_heaps()
    made.trace(0, (FREE, 1), (ALLOC, 1), (ALLOC, 1), (SHARE, 2, 2), (7, 1))
    read = made.read()
    assert [event["event_kind"] for event in read.events] == ["free", "alloc", "alloc", "share", "kind 7"]
    assert [event["live_bytes"] for event in read.events] == [0, 60, 60, 130, 130]
    # A free and an alloc too many, a share with what is not there, an unknown kind, two buffers left.
    assert read.problems == {"inconsistent_heap_trace": 5}


def test_missing_references_are_counted() -> None:
    made = two_heaps()
    made.allocation(2, 100, 77)
    made.buffer(78, 10)
    made.trace(5, (ALLOC, 78), (ALLOC, 79), (FREE, 78), (FREE, 79))
    read = made.read()
    assert [tuple(row.values()) for row in read.events] == [
        (5, 0, "alloc", 78, 78, None, 10, True),
        (5, 1, "alloc", 79, None, None, 10, False),
        (5, 2, "free", 78, 78, None, 0, False),
        (5, 3, "free", 79, None, None, 0, False),
    ]
    assert tuple(read.buffers[-1].values()) == (78, 78, "{}", 10, 0, None, None, 0, 2, True)
    assert read.problems == {
        "dangling_buffer": 2,  # 77 in an allocation, 79 in the trace
        "dangling_buffer_instruction": 1,
        "dangling_heap_event": 4,
        "inconsistent_heap_trace": 1,  # 78 is in no allocation
    }


def test_repeated_ids_and_places_are_counted() -> None:
    made = two_heaps()
    made.allocation(1, 300, 1, 2)
    made.buffer(2, 5)
    made.trace(0, (ALLOC, 2), (FREE, 2))
    read = made.read()
    assert [row["bytes"] for row in read.allocations] == [100, 100, 300]
    assert [(row["buffer_id"], row["bytes"], row["allocation_index"]) for row in read.buffers] == [
        (1, 60, 0),
        (2, 70, 1),
        (2, 5, 1),
    ]
    assert [event["live_bytes"] for event in read.events] == [70, 0]
    assert read.problems == {"duplicate_allocation_id": 1, "duplicate_buffer_id": 1, "buffer_placed_twice": 2}


@pytest.mark.parametrize(("offset", "size"), [(-1, 5), (96, 5), (2**63 - 1, 2**63 - 1)])
def test_a_buffer_outside_of_its_allocation_is_counted(offset: int, size: int) -> None:
    made = Handmade()
    made.allocation(0, 100).assigned.add(logical_buffer_id=1, offset=offset, size=size)
    made.buffer(1, 5)
    read = made.read()
    assert read.buffers[0]["offset_bytes"] == offset
    assert read.problems == {"buffer_outside_allocation": 1}


def test_negative_sizes_become_zero() -> None:
    made = Handmade()
    made.allocation(0, -5)
    made.allocation(1, 100, 1)
    made.buffer(1, -(2**63))
    made.trace(0, (ALLOC, 1), (FREE, 1))
    read = made.read()
    assert [row["bytes"] for row in (*read.allocations, *read.buffers)] == [0, 100, 0]
    assert [event["live_bytes"] for event in read.events] == [0, 0]
    assert read.problems == {"negative_buffer_size": 2}


def test_a_module_of_more_bytes_than_a_bigint_holds_has_no_buffers() -> None:
    made = Handmade()
    made.allocation(0, MAX_BYTES, is_entry_computation_parameter=True)
    assert [row["bytes"] for row in made.read().allocations] == [MAX_BYTES]
    made.allocation(1, 1)
    read = made.read()
    assert (read.allocations, read.buffers, read.events, read.memory) == ([], [], [], [])
    assert read.problems == {"memory_overflow": 1}


def test_more_live_bytes_than_a_bigint_holds() -> None:
    made = Handmade()
    made.allocation(0, 10, 1, 2)
    for buffer_id in (1, 2):
        made.buffer(buffer_id, MAX_BYTES)
    made.trace(0, (ALLOC, 1), (ALLOC, 2), (FREE, 1), (FREE, 2))
    read = made.read()
    assert read.memory == []
    assert read.problems.keys() >= {"memory_overflow", "inconsistent_heap_trace"}
