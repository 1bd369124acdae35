"""The rocpd reader against what SQLite itself says of the same file, and against databases that go wrong."""

from __future__ import annotations

import importlib.util
import json
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tracewh.ingest import rocpd
from tracewh.ingest.capture import Capture
from tracewh.ingest.errors import UnreadableFile

ROOT = Path(__file__).parents[1]
FIXTURE = ROOT / "fixtures" / "rocpd_train" / "mi300x_results.db"
SHARED = ROOT.parent / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the folder of public test files is not here")


def _load_generator() -> Any:
    spec = importlib.util.spec_from_file_location("make_rocpd", ROOT / "fixtures" / "make_rocpd.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_rocpd"] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


make_rocpd = _load_generator()
Change = Callable[[Any], None]


def write(path: Path, change: Change | None = None, *, enforce: bool = False, **run: Any) -> Path:
    """Write one run; `change` may add rows through the writer, by default with foreign keys off."""
    (writer,) = make_rocpd.write_database(path, [make_rocpd.Run(**run)])
    writer.connection.commit()
    if change is not None:
        writer.connection.execute(f"PRAGMA foreign_keys = {'ON' if enforce else 'OFF'}")
        change(writer)
    writer.connection.commit()
    writer.connection.close()
    return path


def read_one(path: Path) -> Capture:
    (capture,) = rocpd.read(path)
    return capture


def query(path: Path, sql: str) -> list[tuple[Any, ...]]:
    """Ask SQLite, through the file's own un-suffixed views."""
    connection = sqlite3.connect(path)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def rows(capture: Capture, table: str) -> list[dict[str, Any]]:
    """Rows of a table with names in place of name ids."""
    result = []
    for row in capture.tables[table].to_pylist():
        named = {}
        for column, value in row.items():
            if column.endswith("name_id"):
                column = column.removesuffix("_id")
                value = None if value is None else capture.names.strings[value]
            named[column] = value
        result.append(named)
    return result


def stats(capture: Capture, owner: str, owner_id: int) -> dict[str, Any]:
    """Stats of one owner: name to value."""
    found = {}
    for row in rows(capture, "event_stats"):
        if (row["owner"], row["owner_id"]) == (owner, owner_id):
            values = (row["int_value"], row["double_value"], row["value_name"], row["bytes_value"])
            found[row["stat_name"]] = next((value for value in values if value is not None), None)
    return found


def problems(capture: Capture) -> dict[tuple[str, str], int]:
    return {(item.problem, item.place): item.occurrences for item in capture.problems}


def rejected(capture: Capture, table: str) -> int:
    """Rows of a table that were not loaded: problems whose place is the table itself."""
    return sum(item.occurrences for item in capture.problems if item.place == table)


def kind(capture: Capture, wanted: str) -> list[dict[str, Any]]:
    return [row for row in rows(capture, "device_events") if row["kind"] == wanted]


@pytest.fixture(scope="module")
def train() -> Capture:
    return read_one(FIXTURE)


@pytest.fixture(scope="module")
def origin() -> int:
    """Earliest start in the fixture, in ns."""
    tables = ("kernel_dispatch", "memory_copy", "region", "memory_allocate")
    return min(query(FIXTURE, f"SELECT min(start) FROM rocpd_{table}")[0][0] for table in tables)


# The committed fixture


def test_fixture_is_what_the_generator_writes(tmp_path: Path) -> None:
    path = write(tmp_path / "again.db")
    dumps = []
    for file in (FIXTURE, path):
        connection = sqlite3.connect(file)
        dumps.append(list(connection.iterdump()))
        connection.close()
    assert dumps[0] == dumps[1]
    assert query(FIXTURE, "PRAGMA foreign_key_check") == []
    assert FIXTURE.stat().st_size < 300_000


def test_identity(train: Capture, origin: int) -> None:
    assert rocpd.detect(FIXTURE) == "rocpd_v3"
    assert (train.source_kind, train.platform) == ("rocpd", "rocm")
    assert (train.hostname, train.process_id) == ("mi300x-node", 41_337)
    assert (train.origin_source_ns, train.origin_unix_ns) == (origin, None)
    assert train.attributes["schema_version"] == "3.0.0"
    assert train.attributes["guid"] == make_rocpd.GUID
    assert train.attributes["command"] == "python train.py --layers 3"
    assert train.problems == []


def test_environment_is_never_read(train: Capture) -> None:
    assert train.attributes["environment"] == "not stored"
    texts = [*train.names.strings, *train.attributes, *map(str, train.attributes.values())]
    assert not any("TOKEN" in text or "not-for-a-warehouse" in text for text in texts)


def test_devices_are_the_gpus(train: Capture) -> None:
    described = [(device.device_type, device.ordinal, device.kind, device.vendor) for device in train.devices]
    assert described == [("GPU", 0, "AMD Instinct MI300X", "AMD"), ("GPU", 1, "AMD Instinct MI300X", "AMD")]
    attributes = dict(train.devices[1].attributes)
    assert (attributes["name"], attributes["cu_count"], attributes["absolute_index"]) == (
        "gfx942",
        "304",
        "3",
    )
    assert attributes["max_engine_clk_fcompute"] == "2100"
    assert json.loads(attributes["mem_banks"] or "")[0]["width"] == 8192
    # The CPU agents hold no events, so they are no devices; what they say is kept.
    assert stats(train, "capture", 0)["info_agent.type"] == "CPU"


def test_kernels_match_sqlite(train: Capture, origin: int) -> None:
    expected = query(
        FIXTURE,
        "SELECT D.dispatch_id, S.display_name, D.start, D.end, E.stack_id, D.queue_id, D.stream_id, A.type_index, "
        "D.grid_size_x / D.workgroup_size_x, D.grid_size_y / D.workgroup_size_y, D.workgroup_size_x "
        "FROM rocpd_kernel_dispatch D JOIN rocpd_info_kernel_symbol S ON S.id = D.kernel_id "
        "JOIN rocpd_event E ON E.id = D.event_id JOIN rocpd_info_agent A ON A.id = D.agent_id ORDER BY D.id",
    )
    found = [
        (
            row["dispatch_id"],
            row["name"],
            origin + row["start_ps"] // 1000,
            origin + row["end_ps"] // 1000,
            row["correlation_id"],
            row["queue_id"],
            row["stream_id"],
            train.devices[row["device_index"]].ordinal,
            row["grid_x"],
            row["grid_y"],
            row["block_x"],
        )
        for row in kind(train, "kernel")
    ]
    # 3 steps x 2 GPUs x (3 layers x (2 forward, 1 backward, 1 all-reduce) + 3 graph nodes)
    assert len(expected) == 3 * 2 * (3 * 4 + 3)
    assert found == expected
    assert {row["role"] for row in rows(train, "device_events")} == {"work"}
    assert all(row["start_ps"] % 1000 == 0 for row in rows(train, "device_events"))


def test_kernel_resources(train: Capture) -> None:
    first = {row["name"]: row for row in reversed(kind(train, "kernel"))}
    gemm = first["Cijk_Alik_Bljk_BBS_BH_MT256x256x64_MI16x16x1"]
    assert (gemm["grid_x"], gemm["grid_y"], gemm["grid_z"]) == (16, 14, 1)
    assert (gemm["block_x"], gemm["block_y"], gemm["block_z"]) == (256, 1, 1)
    registers = ("registers_per_thread", "accum_registers_per_thread", "scalar_registers")
    assert [gemm[column] for column in registers] == [128, 256, 96]
    assert (gemm["static_shared_memory_bytes"], gemm["dynamic_shared_memory_bytes"]) == (65_536, 0)
    attention = first["fmha_fwd_d128_bf16"]
    assert (attention["static_shared_memory_bytes"], attention["dynamic_shared_memory_bytes"]) == (
        16_384,
        1_024,
    )
    reduce = first["ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)"]
    assert reduce["private_memory_bytes"] == 544
    assert stats(train, "capture", 1)["info_kernel_symbol.kernel_name"].endswith(".kd")


def test_copies(train: Capture) -> None:
    copies = kind(train, "memcpy")
    assert len(copies) == 3 * 2
    assert {(row["name"], row["copy_kind"], row["copy_bytes"]) for row in copies} == {
        ("MEMORY_COPY_HOST_TO_DEVICE", "H2D", 2 * 1_024 * 4)
    }
    assert [row["device_index"] for row in copies] == [0, 1, 0, 1, 0, 1]
    assert all(row["end_ps"] - row["start_ps"] == 12_000_000 for row in copies)
    extra = stats(train, "device_event", copies[1]["device_event_id"])
    assert (extra["src_agent_id"], extra["dst_agent_id"]) == (0, 3)
    assert extra["dst_address"] == 0x7F10_0000_0000


def test_all_kernels_of_a_graph_launch_correlate_with_it(train: Capture) -> None:
    launches = [row for row in rows(train, "host_events") if row["name"] == "hipGraphLaunch"]
    assert len(launches) == 3 * 2
    for launch in launches:
        nodes = [
            row["name"] for row in kind(train, "kernel") if row["correlation_id"] == launch["correlation_id"]
        ]
        assert nodes == [kernel.name for kernel in make_rocpd.OPTIMIZER]


def test_every_device_event_has_one_launching_call(train: Capture) -> None:
    calls = [row["correlation_id"] for row in rows(train, "host_events") if row["correlation_id"] is not None]
    assert len(calls) == len(set(calls))
    assert {row["correlation_id"] for row in rows(train, "device_events")} <= set(calls)


def test_collectives_overlap_compute(train: Capture) -> None:
    kernels = kind(train, "kernel")
    collectives = [row for row in kernels if row["name"].startswith("ncclDevKernel")]
    overlapped = [
        one
        for one in collectives
        if any(
            one["start_ps"] < other["end_ps"] and other["start_ps"] < one["end_ps"]
            for other in kernels
            if other["device_index"] == one["device_index"] and other["track_id"] != one["track_id"]
        )
    ]
    # The last all-reduce of a step has nothing behind it to hide in.
    assert (len(collectives), len(overlapped)) == (3 * 2 * 3, 3 * 2 * 2)


def test_host_events_match_sqlite(train: Capture, origin: int) -> None:
    expected = query(
        FIXTURE,
        "SELECT S.string, C.string, R.start, R.end, E.stack_id, nullif(E.parent_stack_id, 0), "
        "json_extract(E.extdata, '$.message') FROM rocpd_region R JOIN rocpd_string S ON S.id = R.name_id "
        "JOIN rocpd_event E ON E.id = R.event_id JOIN rocpd_string C ON C.id = E.category_id ORDER BY R.id",
    )
    found = [
        (
            row["name"],
            row["category"],
            origin + row["start_ps"] // 1000,
            origin + row["end_ps"] // 1000,
            row["correlation_id"],
            row["parent_correlation_id"],
            row["message_name"],
        )
        for row in rows(train, "host_events")
        if row["category"] != "MEMORY_ALLOCATION"
    ]
    assert found == expected


def test_allocation_is_a_host_event_inside_its_call(train: Capture) -> None:
    (allocation,) = [row for row in rows(train, "host_events") if row["category"] == "MEMORY_ALLOCATION"]
    (call,) = [row for row in rows(train, "host_events") if row["name"] == "hipMalloc"]
    assert (allocation["name"], allocation["native_device_id"]) == ("ALLOC", 2)
    assert allocation["correlation_id"] is None
    assert allocation["parent_correlation_id"] == call["correlation_id"]
    assert call["start_ps"] < allocation["start_ps"] < allocation["end_ps"] < call["end_ps"]
    extra = stats(train, "host_event", allocation["host_event_id"])
    assert (extra["size"], extra["level"], extra["address"]) == (2 * 8_388_608, "REAL", 0x7F00_0000_0000)


def test_arguments_are_stats_of_the_call(train: Capture) -> None:
    (call, *_) = [row for row in rows(train, "host_events") if row["name"] == "hipModuleLaunchKernel"]
    assert stats(train, "host_event", call["host_event_id"]) == {
        "gridDimX": "16",
        "gridDimY": "14",
        "gridDimZ": "1",
    }
    assert stats(train, "capture", 1)["hipModuleLaunchKernel(gridDimY)"] == "unsigned int"
    argument_names = {name for (name,) in query(FIXTURE, "SELECT DISTINCT name FROM rocpd_arg")}
    loaded = [row for row in rows(train, "event_stats") if row["stat_name"] in argument_names]
    of_host = [row for row in loaded if row["owner"] == "host_event"]
    sizes_of_allocations = 1  # the size of the allocation is a stat named like hipMalloc's argument
    assert len(of_host) - sizes_of_allocations == query(FIXTURE, "SELECT count(*) FROM rocpd_arg")[0][0]


def test_steps(train: Capture, origin: int) -> None:
    expected = query(
        FIXTURE,
        "SELECT json_extract(E.extdata, '$.message'), R.start, R.end FROM rocpd_region R "
        "JOIN rocpd_event E ON E.id = R.event_id JOIN rocpd_string S ON S.id = R.name_id "
        "WHERE S.string = 'roctxThreadRangeA' ORDER BY R.start",
    )
    steps = rows(train, "steps")
    assert [row["step_num"] for row in steps] == [0, 1, 2]
    assert {row["source"] for row in steps} == {"roctx"}
    found = [(row["name"], origin + row["start_ps"] // 1000, origin + row["end_ps"] // 1000) for row in steps]
    assert found == expected


@pytest.mark.parametrize(
    ("message", "step"),
    [
        ("train 3", 3),
        ("step_12", 12),
        ("Train_Step 0", 0),
        ("training_step#step_num=7#", 7),
        ("train#_r=1,step_num=41,foo=2#", 41),
        (" step 5 ", 5),
        ("eval 3", None),
        ("train", None),
        ("train 3 warmup", None),
        ("train -1", None),
        ("step 99999999999999999999", None),
        ("training_data 4", None),
        ("", None),
        (None, None),
    ],
)
def test_step_markers(message: str | None, step: int | None) -> None:
    from tracewh.ingest.rocpd_host_events import step_number

    assert step_number(message) == step


def test_counters(train: Capture) -> None:
    described = [(row["counter_name"], row["device_index"], row["block"]) for row in rows(train, "counters")]
    assert described == [(make_rocpd.COUNTER, 0, "SQ"), (make_rocpd.COUNTER, 1, "SQ")]
    assert [row["is_derived"] for row in rows(train, "counters")] == [False, False]
    gemms = [row for row in kind(train, "kernel") if row["name"] == make_rocpd.FORWARD_GEMM.name][: 3 * 2]
    expected = [
        (gemm["device_index"], gemm["device_event_id"], instance, make_rocpd.counter_value(layer, instance))
        for layer, gemm in zip([0, 1, 2, 0, 1, 2], gemms, strict=True)
        for instance in (0, 1)
    ]
    values = rows(train, "counter_values")
    columns = ("counter_id", "device_event_id", "instance", "value")
    assert [tuple(row[column] for column in columns) for row in values] == expected


def test_tracks(train: Capture) -> None:
    tracks = rows(train, "tracks")
    assert [row["track_id"] for row in tracks] == list(range(len(tracks)))
    of_gpu_1 = [(row["track_kind"], row["track_name"]) for row in tracks if row["device_index"] == 1]
    # Copies name no queue.
    assert of_gpu_1 == [
        ("queue", "Queue 3, Stream 3"),
        ("queue", "Queue 4, Stream 4"),
        ("stream", "Stream 3"),
    ]
    assert [row["track_name"] for row in tracks if row["track_kind"] == "thread"] == ["python"]
    assert tracks[-1]["native_id"] == 41_337


# Other layouts that real writers produce


def test_merged_file_has_a_capture_per_guid(tmp_path: Path) -> None:
    other = "0198c3d4-5e6f-7a8b-9c0d-ffffffffffff"
    runs = [make_rocpd.Run(), make_rocpd.Run(guid=other, process_id=7, steps=1, clock_start_ns=5_000_000)]
    writers = make_rocpd.write_database(tmp_path / "merged.db", runs)
    writers[0].connection.commit()
    writers[0].connection.close()
    captures = rocpd.read(tmp_path / "merged.db")
    assert [capture.attributes["guid"] for capture in captures] == [make_rocpd.GUID, other]
    assert [capture.process_id for capture in captures] == [41_337, 7]
    assert [len(kind(capture, "kernel")) for capture in captures] == [90, 30]
    assert [capture.origin_source_ns for capture in captures] == [make_rocpd.CLOCK_START_NS, 5_000_000]
    assert [capture.problems for capture in captures] == [[], []]


def test_suffix_that_is_the_tail_of_another(tmp_path: Path) -> None:
    runs = [make_rocpd.Run(suffix="_b_a"), make_rocpd.Run(guid="other", suffix="_a", steps=1)]
    writers = make_rocpd.write_database(tmp_path / "tails.db", runs)
    writers[0].connection.commit()
    writers[0].connection.close()
    found = {
        capture.attributes["guid"]: len(kind(capture, "kernel"))
        for capture in rocpd.read(tmp_path / "tails.db")
    }
    assert found == {make_rocpd.GUID: 90, "other": 30}


def test_md5_suffix_and_placeholder_guid(tmp_path: Path) -> None:
    suffix = "_9e107d9d372bb6826bd81d3542a419d6"
    path = write(tmp_path / "sys.db", suffix=suffix, guid_default="{{guid}}", steps=1)
    capture = read_one(path)
    assert capture.attributes["guid"] == make_rocpd.GUID
    assert len(kind(capture, "kernel")) == 30
    assert capture.problems == []


def test_placeholder_guid_everywhere_falls_back_to_the_suffix(tmp_path: Path) -> None:
    path = write(tmp_path / "t.db", guid="{{guid}}", suffix="_0011_2233", steps=1)
    capture = read_one(path)
    assert capture.attributes["guid"] == "0011-2233"
    assert len(kind(capture, "kernel")) == 30


def test_several_guids_in_the_tables_of_one_suffix(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        table = writer.run.table("kernel_dispatch")
        writer.connection.execute(f"UPDATE \"{table}\" SET guid = ' other\n' WHERE id <= 10")
        writer.connection.execute(f"UPDATE \"{table}\" SET guid = '{{{{guid}}}}' WHERE id = 11")

    path = write(tmp_path / "two.db", change, steps=1)
    first, second = rocpd.read(path)
    assert (first.attributes["guid"], second.attributes["guid"]) == (make_rocpd.GUID, "other")
    # The ten rows of the other guid find no agent of that guid: ids count within a guid.
    assert len(kind(first, "kernel")) == 30 - 10 - 1
    assert problems(first)[("missing_guid", "rocpd_kernel_dispatch")] == 1
    assert (len(kind(second, "kernel")), rejected(second, "rocpd_kernel_dispatch")) == (0, 10)


@pytest.mark.parametrize("version", ["3.0.2", "3.0.3"])
def test_graph_columns_of_later_schemas(tmp_path: Path, version: str) -> None:
    capture = read_one(write(tmp_path / "t.db", schema_version=version, steps=1))
    nodes = [row for row in kind(capture, "kernel") if row["graph_id"] is not None]
    assert [(row["graph_id"], row["graph_node_id"]) for row in nodes] == [(7, 1), (7, 2), (7, 3)] * 2
    assert all(row["graph_node_id"] is None for row in kind(capture, "kernel") if row["graph_id"] is None)
    launches = kind(capture, "group")
    assert [(row["role"], row["graph_id"], row["device_index"]) for row in launches] == [
        ("enclosing", 7, 0),
        ("enclosing", 7, 1),
    ]
    assert stats(capture, "device_event", launches[0]["device_event_id"])["kernel_dispatch_count"] == 3
    assert launches[0]["start_ps"] == nodes[0]["start_ps"]
    assert launches[0]["end_ps"] == nodes[2]["end_ps"]
    assert capture.problems == []


def test_values_of_streaming_monitors_belong_to_no_dispatch(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        run = writer.run
        track = writer.insert(
            "track", nid=1, pid=run.process_id, tid=run.process_id, name_id=writer.string("SPM")
        )
        event = writer.connection.execute(
            f'SELECT event_id FROM "{run.table("kernel_dispatch")}"'
        ).fetchone()[0]
        sample = writer.insert("sample", track_id=track, timestamp=run.clock_start_ns + 5)
        for instance in (0, 1):
            writer.insert(
                "pmc_event", event_id=event, pmc_id=100, value=3.5, sample_id=sample, xcc=6, instance=instance
            )

    capture = read_one(write(tmp_path / "t.db", change, enforce=True, schema_version="3.0.3", steps=1))
    *_, first, second = rows(capture, "counter_values")
    assert [first["device_event_id"], first["instance"], first["value"]] == [None, 0, 3.5]
    assert [second["device_event_id"], second["instance"], second["value"]] == [None, 1, 3.5]
    number = len(rows(capture, "counter_values")) - 1
    assert stats(capture, "capture", number)["counter_value.xcc"] == 6
    (sample,) = [row for row in rows(capture, "host_events") if row["name"] == "SPM"]
    assert (sample["start_ps"], sample["end_ps"]) == (5_000, 5_000)


def test_value_of_a_host_event_is_its_stat(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        run = writer.run
        track = writer.insert("track", nid=1, pid=run.process_id, name_id=writer.string("GPU busy"))
        event = writer.event("amd_smi_busy_gfx", 0)
        writer.insert("sample", track_id=track, timestamp=run.clock_start_ns + 1_000, event_id=event)
        counter = writer.insert(
            "info_pmc", nid=1, pid=run.process_id, name="busy", symbol="busy", is_derived=1
        )
        writer.insert("pmc_event", event_id=event, pmc_id=counter, value=87.0)

    capture = read_one(write(tmp_path / "t.db", change, enforce=True, steps=1))
    sample = rows(capture, "host_events")[-1]
    assert (sample["name"], sample["category"]) == ("GPU busy", "amd_smi_busy_gfx")
    assert sample["correlation_id"] is None
    assert stats(capture, "host_event", sample["host_event_id"]) == {"busy": 87.0}
    assert rows(capture, "counter_values")[-1]["device_event_id"] is None
    assert rows(capture, "counters")[-1]["is_derived"] is True
    assert capture.problems == []


def test_empty_fact_tables(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        for base in (
            "arg",
            "pmc_event",
            "region",
            "kernel_dispatch",
            "memory_copy",
            "memory_allocate",
            "event",
        ):
            writer.connection.execute(f'DELETE FROM "{writer.run.table(base)}"')

    capture = read_one(write(tmp_path / "t.db", change))
    assert capture.origin_source_ns is None
    assert len(capture.devices) == 2
    assert all(capture.row_count(table) == 0 for table in ("device_events", "host_events", "steps", "tracks"))
    assert capture.problems == []


def test_missing_tables_and_columns(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        for base in (
            "memory_copy",
            "memory_allocate",
            "sample",
            "track",
            "arg",
            "info_code_object",
            "info_stream",
        ):
            writer.connection.execute(f'DROP TABLE "{writer.run.table(base)}"')
        writer.connection.execute(f'DROP VIEW "rocpd_kernel_dispatch"')
        writer.connection.execute('DROP VIEW "kernels"')
        table = writer.run.table("kernel_dispatch")
        writer.connection.execute(f'ALTER TABLE "{table}" DROP COLUMN group_segment_size')
        writer.connection.execute(f'ALTER TABLE "{table}" DROP COLUMN extdata')

    capture = read_one(write(tmp_path / "t.db", change))
    kernels = kind(capture, "kernel")
    assert len(kernels) == 90
    assert {row["dynamic_shared_memory_bytes"] for row in kernels} == {None}
    assert kernels[0]["static_shared_memory_bytes"] == 65_536
    assert problems(capture)[("dangling_reference", "rocpd_kernel_dispatch.stream_id")] == 90


def test_nulls_and_unknown_references(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        table = writer.run.table("kernel_dispatch")
        for column, value, row in (
            ("event_id", "NULL", 1),
            ("tid", "NULL", 2),
            ("event_id", 999_999, 3),
            ("kernel_id", 888_888, 4),
            ("tid", 777_777, 5),
            ("agent_id", 666_666, 6),
            ("queue_id", 555_555, 7),
            ("region_name_id", "NULL", 8),
        ):
            writer.connection.execute(f'UPDATE "{table}" SET {column} = {value} WHERE id = {row}')

    capture = read_one(write(tmp_path / "t.db", change, steps=1))
    by_id = {row["dispatch_id"]: row for row in kind(capture, "kernel")}
    assert set(by_id) == set(range(1, 31)) - {6}
    assert by_id[1]["correlation_id"] is None
    assert by_id[3]["correlation_id"] is None
    assert by_id[4]["name"] == "kernel 888888"
    assert by_id[4]["registers_per_thread"] is None
    assert "tid" not in stats(capture, "device_event", by_id[2]["device_event_id"])
    assert stats(capture, "device_event", by_id[5]["device_event_id"])["tid"] == 777_777
    assert by_id[7]["queue_id"] == 555_555
    place = "rocpd_kernel_dispatch"
    assert problems(capture) == {
        ("dangling_reference", f"{place}.event_id"): 1,
        ("missing_agent", place): 1,
        ("dangling_reference", f"{place}.queue_id"): 1,
        ("dangling_reference", f"{place}.tid"): 1,
        ("dangling_reference", f"{place}.kernel_id"): 1,
        # Rows 1 and 3 let go of an event, and the rejected row 6 takes its own along.
        ("orphan_event", "rocpd_event"): 3,
        # Rows 1 and 3 are forward GEMMs of the first step: two counter instances each.
        ("lost_owner", "rocpd_pmc_event.event_id"): 4,
    }


def test_dangling_region_argument_and_counter(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        run = writer.run
        writer.insert(
            "region",
            id=5_000,
            **writer.place(31),
            start=run.clock_start_ns + 1,
            end=run.clock_start_ns + 1,
            name_id=4_444,
        )
        writer.insert("arg", event_id=3_333, position=0, type="int", name="lost", value="1")
        writer.insert("pmc_event", event_id=None, pmc_id=2_222, value=1.0)
        writer.insert("pmc_event", event_id=None, pmc_id=100, value=None)

    path = write(tmp_path / "t.db", change, steps=1)
    capture = read_one(path)
    region = next(row for row in rows(capture, "host_events") if row["name"] == "region 4444")
    assert region["start_ps"] == region["end_ps"] == 1_000
    assert rows(capture, "tracks")[region["track_id"]]["track_name"] == "Thread 31"
    assert rows(capture, "counter_values")[-1]["value"] is None
    assert problems(capture) == {
        ("dangling_reference", "rocpd_region.tid"): 1,
        ("dangling_reference", "rocpd_region.name_id"): 1,
        ("dangling_reference", "rocpd_pmc_event.pmc_id"): 1,
        ("missing_counter", "rocpd_pmc_event"): 1,
        ("dangling_reference", "rocpd_arg.event_id"): 1,
        ("orphan_argument", "rocpd_arg"): 1,
    }
    counted = query(path, "SELECT count(*) FROM rocpd_pmc_event")[0][0]
    assert capture.row_count("counter_values") + rejected(capture, "rocpd_pmc_event") == counted


# Values that are not what the schema says


def test_bad_times_are_rejected_and_counted(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        table = writer.run.table("kernel_dispatch")
        for row, assignment in enumerate(
            (
                'start = 0, "end" = 0',
                '"end" = start - 1',
                '"end" = 0',
                '"end" = 18446744073709551615',  # stored as REAL
                "start = 'soon'",
                "start = 0",
                "start = -5",
                '"end" = 9223372036854775807',
            ),
            start=1,
        ):
            writer.connection.execute(f'UPDATE "{table}" SET {assignment} WHERE id = {row}')

    path = write(tmp_path / "t.db", change, steps=1)
    capture = read_one(path)
    place = "rocpd_kernel_dispatch"
    found = problems(capture)
    assert found[("zero_time", place)] == 3
    assert found[("negative_duration", place)] == 2
    assert found[("missing_time", place)] == 2
    assert found[("time_out_of_range", place)] == 1
    assert found[("not_an_integer", f"{place}.end")] == 1
    assert found[("not_an_integer", f"{place}.start")] == 1
    assert found[("orphan_event", "rocpd_event")] == 8
    kept = [row["dispatch_id"] for row in kind(capture, "kernel")]
    assert kept == list(range(9, 31))
    assert len(kept) + rejected(capture, place) == 30


def test_a_start_far_before_the_rest_is_no_origin(tmp_path: Path) -> None:
    up_for_100_days = 100 * 86_400 * 10**9

    def change(writer: Any) -> None:
        writer.connection.execute(f'UPDATE "{writer.run.table("region")}" SET start = 12 WHERE id = 1')

    capture = read_one(write(tmp_path / "t.db", change, steps=1, clock_start_ns=up_for_100_days))
    assert problems(capture)[("time_out_of_range", "rocpd_region")] == 1
    # Region 1 is the hipMalloc, and the allocation inside it begins 500 ns later.
    assert capture.origin_source_ns == up_for_100_days + 500


def test_zero_duration_is_a_fact_not_a_problem(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        writer.connection.execute(f'UPDATE "{writer.run.table("region")}" SET "end" = start WHERE id = 3')

    path = write(tmp_path / "t.db", change, steps=1)
    capture = read_one(path)
    assert capture.row_count("host_events") == query(path, "SELECT count(*) FROM rocpd_region")[0][0] + 1
    assert capture.problems == []


def test_rows_that_are_not_in_time_order(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        early = writer.run.clock_start_ns - 10_000
        table = writer.run.table("kernel_dispatch")
        writer.connection.execute(f'UPDATE "{table}" SET start = {early}, "end" = {early + 7} WHERE id = 30')

    capture = read_one(write(tmp_path / "t.db", change, steps=1))
    assert capture.origin_source_ns == make_rocpd.CLOCK_START_NS - 10_000
    *_, last = kind(capture, "kernel")
    assert (last["start_ps"], last["end_ps"]) == (0, 7_000)


def test_values_of_the_wrong_type_become_null(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        kernels, copies = writer.run.table("kernel_dispatch"), writer.run.table("memory_copy")
        execute = writer.connection.execute
        execute(f"UPDATE \"{kernels}\" SET grid_size_x = 'wide', private_segment_size = 1.5 WHERE id = 1")
        execute(
            f'UPDATE "{copies}" SET size = 18446744073709551615, dst_address = 18446744073709551600 WHERE id = 1'
        )
        execute(f"UPDATE \"{writer.run.table('pmc_event')}\" SET value = 'nan' WHERE id = 1")
        execute(f'UPDATE "{writer.run.table("pmc_event")}" SET value = 9e999 WHERE id = 2')
        execute(
            f"UPDATE \"{writer.run.table('string')}\" SET string = CAST(X'68ff' AS TEXT) WHERE string = 'hipMalloc'"
        )

    capture = read_one(write(tmp_path / "t.db", change, steps=1))
    kernel, copy = kind(capture, "kernel")[0], kind(capture, "memcpy")[0]
    assert (kernel["grid_x"], kernel["grid_y"]) == (None, 14)
    assert kernel["private_memory_bytes"] == 0  # what the kernel's symbol says
    assert copy["copy_bytes"] is None
    assert [row["value"] for row in rows(capture, "counter_values")[:3]] == [None, None, 1_001_000.0]
    assert rows(capture, "host_events")[0]["name"] == "h\\xff"
    assert problems(capture) == {
        ("not_an_integer", "rocpd_kernel_dispatch.grid_size_x"): 1,
        ("not_an_integer", "rocpd_kernel_dispatch.private_segment_size"): 1,
        ("not_an_integer", "rocpd_memory_copy.size"): 1,
        ("not_an_integer", "rocpd_memory_copy.dst_address"): 1,
        ("not_a_number", "rocpd_pmc_event.value"): 2,
    }


def test_columns_declared_with_other_types(tmp_path: Path) -> None:
    """A table that someone copied with text columns still reads as numbers."""

    def change(writer: Any) -> None:
        table = writer.run.table("memory_copy")
        writer.connection.execute('DROP VIEW "rocpd_memory_copy"')
        writer.connection.execute(f'ALTER TABLE "{table}" RENAME TO original')
        writer.connection.execute(
            f'CREATE TABLE "{table}" AS SELECT id, guid, CAST(start AS TEXT) AS start, CAST("end" AS TEXT) AS "end", '
            "name_id, dst_agent_id, src_agent_id, CAST(size AS TEXT) AS size, stream_id, event_id FROM original"
        )

    capture = read_one(write(tmp_path / "t.db", change, steps=1))
    copies = kind(capture, "memcpy")
    assert [(row["copy_bytes"], row["end_ps"] - row["start_ps"]) for row in copies] == [
        (8_192, 12_000_000)
    ] * 2
    assert capture.problems == []


def test_partial_workgroups_and_shared_memory_that_does_not_add_up(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        table = writer.run.table("kernel_dispatch")
        writer.connection.execute(
            f'UPDATE "{table}" SET grid_size_x = 1000, group_segment_size = 16 WHERE id = 1'
        )
        writer.connection.execute(f'UPDATE "{table}" SET workgroup_size_y = 0 WHERE id = 2')

    capture = read_one(write(tmp_path / "t.db", change, steps=1))
    first, second = kind(capture, "kernel")[:2]
    assert (first["grid_x"], first["block_x"]) == (4, 256)  # 1000 work-items need 3.9 blocks
    assert stats(capture, "device_event", 0)["grid_size_x"] == 1000
    assert (first["static_shared_memory_bytes"], first["dynamic_shared_memory_bytes"]) == (65_536, 0)
    assert stats(capture, "device_event", 0)["group_segment_size"] == 16
    assert (second["grid_y"], second["block_y"]) == (None, None)
    assert problems(capture) == {("empty_workgroup", "rocpd_kernel_dispatch.workgroup_size_y"): 1}


def test_dispatch_without_a_region(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        for base in ("region", "arg"):
            writer.connection.execute(f'DELETE FROM "{writer.run.table(base)}"')

    capture = read_one(write(tmp_path / "t.db", change, steps=1))
    assert {row["correlation_id"] for row in kind(capture, "kernel")} == {
        stack for (stack,) in query(tmp_path / "t.db", "SELECT stack_id FROM kernels")
    }
    assert [row["name"] for row in rows(capture, "host_events")] == ["ALLOC"]
    assert capture.row_count("steps") == 0


def test_unknown_columns_and_extdata_are_kept(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        table, events = writer.run.table("kernel_dispatch"), writer.run.table("event")
        execute = writer.connection.execute
        execute(f'ALTER TABLE "{table}" ADD COLUMN replay_pass INTEGER')
        execute(f'ALTER TABLE "{table}" ADD COLUMN payload BLOB')
        extdata = json.dumps(
            {"big": 2**64 - 1, "huge": 2**70, "on": True, "none": None, "list": [1], "ratio": 0.5}
        )
        execute(
            f"UPDATE \"{table}\" SET replay_pass = 4, payload = X'00ff', extdata = ? WHERE id = 1", (extdata,)
        )
        execute(f"UPDATE \"{table}\" SET extdata = 'not json' WHERE id = 2")
        first = execute(f'SELECT event_id FROM "{table}" WHERE id = 1').fetchone()
        execute(
            f'UPDATE "{events}" SET correlation_id = 77, parent_stack_id = 1, call_stack = \'["f","g"]\', '
            "category_id = ? WHERE id = ?",
            (writer.string("ODD"), *first),
        )

    capture = read_one(write(tmp_path / "t.db", change, steps=1))
    found = stats(capture, "device_event", 0)
    assert (found["replay_pass"], found["payload"]) == (4, b"\x00\xff")
    assert found["big"] == -1  # the BIGINT of the same bits
    assert (found["huge"], found["on"], found["list"], found["ratio"]) == (str(2**70), "true", "[1]", 0.5)
    assert found["none"] is None
    assert (found["external_correlation_id"], found["parent_stack_id"]) == (77, 1)
    assert (found["call_stack"], found["category"]) == ('["f","g"]', "ODD")
    assert stats(capture, "device_event", 1)["extdata"] == "not json"
    assert problems(capture) == {("invalid_json", "rocpd_kernel_dispatch.extdata"): 1}
    big = next(row for row in rows(capture, "event_stats") if row["stat_name"] == "big")
    assert big["value_type"] == "uint64"


def test_events_and_tables_without_a_place_are_counted(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        writer.event("HIP_RUNTIME_API_EXT", 12_345)
        writer.connection.execute(
            f'CREATE TABLE "{writer.run.table("hip_event")}" (id INTEGER, start INTEGER)'
        )
        writer.connection.execute(f'INSERT INTO "{writer.run.table("hip_event")}" VALUES (1, 2), (2, 3)')

    capture = read_one(write(tmp_path / "t.db", change, steps=1))
    assert problems(capture) == {
        ("orphan_event", "rocpd_event"): 1,
        ("unsupported_table", "rocpd_hip_event"): 2,
    }


@pytest.mark.parametrize(
    ("name", "source", "target", "expected"),
    [
        ("MEMORY_COPY_DEVICE_TO_HOST", 2, 0, "D2H"),
        ("MEMORY_COPY_DEVICE_TO_DEVICE", 2, 2, "D2D"),
        ("MEMORY_COPY_DEVICE_TO_DEVICE", 2, 3, "P2P"),
        ("MEMORY_COPY_HOST_TO_HOST", 0, 1, "H2H"),
        ("CopyHostToDevice", None, 3, "H2D"),
        ("copy", 0, 3, "H2D"),
        ("copy", 3, 0, "D2H"),
        ("copy", None, 3, "unknown"),
    ],
)
def test_copy_kinds(tmp_path: Path, name: str, source: int | None, target: int | None, expected: str) -> None:
    def change(writer: Any) -> None:
        writer.connection.execute(
            f'UPDATE "{writer.run.table("memory_copy")}" SET name_id = ?, src_agent_id = ?, dst_agent_id = ? '
            "WHERE id = 1",
            (writer.string(name), source, target),
        )

    capture = read_one(write(tmp_path / "t.db", change, steps=1))
    copy = kind(capture, "memcpy")[0]
    assert copy["copy_kind"] == expected
    device = capture.devices[copy["device_index"]]
    gpu = next((agent for agent in (target, source) if agent in (2, 3)), None)
    # On the GPU it goes to, else the GPU it comes from, else on the socket it goes to.
    assert (device.device_type, device.ordinal) == (("GPU", gpu - 2) if gpu else ("CPU", target))


def test_agents_without_a_usable_index_count_in_node_order(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        writer.connection.execute(
            f'UPDATE "{writer.run.table("info_agent")}" SET type_index = 0, product_name = NULL'
        )

    capture = read_one(write(tmp_path / "t.db", change, steps=1))
    assert [(device.ordinal, device.kind) for device in capture.devices] == [(0, "gfx942"), (1, "gfx942")]
    assert dict(capture.devices[1].attributes)["agent_id"] == "3"


# Files that are not to be trusted


def test_stored_code_is_never_run(tmp_path: Path) -> None:
    endless = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t) SELECT max(n) AS {} FROM t"

    def change(writer: Any) -> None:
        execute = writer.connection.execute
        execute("DROP VIEW rocpd_string")
        execute(f"CREATE VIEW rocpd_string AS {endless.format('string')}")
        execute(f"CREATE VIEW rocpd_metadata_zz AS {endless.format('tag')}")
        execute(f"CREATE VIEW rocpd_event_zz AS {endless.format('stack_id')}")
        execute(
            f'ALTER TABLE "{writer.run.table("event")}" ADD COLUMN trap INTEGER '
            "GENERATED ALWAYS AS (abs(-9223372036854775807 - 1)) VIRTUAL"
        )
        execute(
            f'CREATE TRIGGER trap AFTER INSERT ON "{writer.run.table("string")}" BEGIN '
            f'DELETE FROM "{writer.run.table("event")}"; END'
        )

    path = write(tmp_path / "t.db", change, steps=1)
    with pytest.raises(sqlite3.OperationalError, match="integer overflow"):
        query(path, f'SELECT trap FROM "rocpd_event_{make_rocpd.GUID.replace("-", "_")}"')
    capture = read_one(path)
    assert len(kind(capture, "kernel")) == 30
    assert capture.problems == []


def test_a_view_cannot_be_read_even_by_name(tmp_path: Path) -> None:
    from tracewh.ingest.capture import ProblemCounter
    from tracewh.ingest.sqlite_file import SqliteFile

    with SqliteFile(write(tmp_path / "t.db")) as file:
        assert "kernels" not in file.tables
        with pytest.raises(UnreadableFile, match="kernels"):
            file.read("kernels", "kernels", ProblemCounter())


def test_tables_of_other_tools_are_ignored(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        writer.connection.execute("CREATE TABLE roc_optiq_notes (id INTEGER, note TEXT)")
        writer.connection.execute("INSERT INTO roc_optiq_notes VALUES (1, 'hello')")
        writer.connection.execute(f'CREATE INDEX roc_optiq_i ON "{writer.run.table("event")}" (stack_id)')

    assert read_one(write(tmp_path / "t.db", change, steps=1)).problems == []


def test_reading_leaves_the_directory_as_it_was(tmp_path: Path) -> None:
    path = write(tmp_path / "t.db", steps=1)
    before = path.read_bytes()
    rocpd.read(path)
    assert [file.name for file in tmp_path.iterdir()] == ["t.db"]
    assert path.read_bytes() == before


def test_write_ahead_log_is_part_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "wal.db"
    (writer,) = make_rocpd.write_database(path, [make_rocpd.Run(steps=1)])
    connection = writer.connection
    connection.commit()
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute(f'DELETE FROM "{writer.run.table("kernel_dispatch")}" WHERE id > 20')
    connection.commit()
    assert (tmp_path / "wal.db-wal").stat().st_size > 0
    assert len(kind(read_one(path), "kernel")) == 20  # 30 of them in the file proper
    connection.close()
    # Closed: the log is merged, and the header still says WAL.
    assert not (tmp_path / "wal.db-wal").exists()
    assert len(kind(read_one(path), "kernel")) == 20


def test_path_with_characters_of_a_uri(tmp_path: Path) -> None:
    assert len(rocpd.read(write(tmp_path / "100%25 a?b#c.db", steps=1))) == 1


def test_text_file_named_db(tmp_path: Path) -> None:
    path = tmp_path / "notes.db"
    path.write_text("these are not the rows you are looking for\n")
    assert rocpd.detect(path) == "not_sqlite"
    with pytest.raises(UnreadableFile, match=r"notes\.db is not a SQLite database"):
        rocpd.read(path)


@pytest.mark.parametrize("content", [b"", b"SQLite format 3", bytes(range(256)) * 64])
def test_files_that_are_no_database(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(content)
    assert rocpd.detect(path) == "not_sqlite"
    with pytest.raises(UnreadableFile, match=r"x\.db"):
        rocpd.read(path)


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableFile, match=r"nowhere\.db cannot be read"):
        rocpd.read(tmp_path / "nowhere.db")
    with pytest.raises(UnreadableFile, match="cannot be read"):
        rocpd.read(tmp_path)


@pytest.mark.parametrize("kept_ratio", [0.02, 0.3, 0.75, 0.999])
def test_truncated_database(tmp_path: Path, kept_ratio: float) -> None:
    path = tmp_path / "cut.db"
    content = FIXTURE.read_bytes()
    path.write_bytes(content[: int(len(content) * kept_ratio)])
    with pytest.raises(UnreadableFile, match=r"cut\.db") as raised:
        rocpd.read(path)
    assert "copy it again" in str(raised.value)


def test_damaged_pages(tmp_path: Path) -> None:
    path = tmp_path / "bad.db"
    content = bytearray(FIXTURE.read_bytes())
    for page in range(1, len(content) // 4096):
        content[page * 4096 : page * 4096 + 64] = b"\xa5" * 64
    path.write_bytes(content)
    with pytest.raises(UnreadableFile, match=r"bad\.db cannot be read as a SQLite database"):
        rocpd.read(path)


# Other formats called rocpd


def make_tables(path: Path, *statements: str) -> Path:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()
    return path


def draft(writer: Any) -> None:
    table = writer.run.table("kernel_dispatch")
    writer.connection.execute(f'ALTER TABLE "{table}" ADD COLUMN track_id INTEGER')


def category_table(writer: Any) -> None:
    writer.connection.execute(f'CREATE TABLE "{writer.run.table("info_category")}" (id INTEGER)')


def compressed(writer: Any) -> None:
    writer.insert("metadata", tag="compression", value="lz4-frame-v1")


@pytest.mark.parametrize("change", [draft, category_table, compressed])
def test_drafts_of_schema_4_are_refused(tmp_path: Path, change: Change) -> None:
    path = write(tmp_path / "t.db", change)
    assert rocpd.detect(path) == "rocpd_v4_draft"
    with pytest.raises(UnreadableFile, match="schema 4"):
        rocpd.read(path)


def test_databases_of_other_programs(tmp_path: Path) -> None:
    other = make_tables(tmp_path / "other.db", "CREATE TABLE customers (id INTEGER)")
    assert rocpd.detect(other) == "not_rocpd"
    with pytest.raises(UnreadableFile, match="rocprofv3"):
        rocpd.read(other)
    rpd = make_tables(
        tmp_path / "trace.rpd",
        "CREATE TABLE rocpd_metadata (tag TEXT, value TEXT)",
        "INSERT INTO rocpd_metadata VALUES ('schema_version', '3')",
        "CREATE TABLE rocpd_api (id INTEGER)",
        "CREATE TABLE rocpd_op (id INTEGER)",
    )
    assert rocpd.detect(rpd) == "rpd_v2"
    odd = make_tables(
        tmp_path / "odd.db",
        "CREATE TABLE rocpd_metadata_1 (tag TEXT, value TEXT)",
        "CREATE TABLE rocpd_event_1 (id INTEGER)",
    )
    assert rocpd.detect(odd) == "not_rocpd"


@needs_shared
@pytest.mark.parametrize(
    ("name", "family", "message"),
    [
        ("rocpd/rocmProfileData-matmul_result.rpd", "rpd_v2", "rocmProfileData"),
        ("rocprof/roc-optiq-rocprof_compute_23ed6f36.db", "rocprof_compute", "rocprof-compute"),
        ("negative/babeltrace2-rocpd-plugin-test_rocm_database.db", "not_rocpd", "rocprofv3"),
    ],
)
def test_public_files_of_other_families(name: str, family: str, message: str) -> None:
    assert rocpd.detect(SHARED / name) == family
    with pytest.raises(UnreadableFile, match=message) as raised:
        rocpd.read(SHARED / name)
    assert Path(name).name in str(raised.value)


@needs_shared
@pytest.mark.parametrize("rank", [0, 1])
def test_public_synthetic_ranks_reconcile(rank: int) -> None:
    path = SHARED / "rocpd" / f"SYNTH-rank{rank}_results.db"
    capture = read_one(path)

    def stored(base: str) -> int:
        connection = sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)
        count = int(connection.execute(f"SELECT count(*) FROM rocpd_{base}").fetchone()[0])
        connection.close()
        return count

    loaded = {
        "kernel_dispatch": len(kind(capture, "kernel")),
        "memory_copy": len(kind(capture, "memcpy")),
        "pmc_event": capture.row_count("counter_values"),
        "info_pmc": capture.row_count("counters"),
        "arg": sum(row["stat_name"] == "function_address" for row in rows(capture, "event_stats")),
    }
    for base, count in loaded.items():
        assert count + rejected(capture, f"rocpd_{base}") == stored(base) > 0, base
    host_tables = ("region", "sample", "memory_allocate")
    assert capture.row_count("host_events") == sum(map(stored, host_tables))
    assert not any(rejected(capture, f"rocpd_{base}") for base in (*host_tables, "event"))
    assert [row["step_num"] for row in rows(capture, "steps")] == [1]
