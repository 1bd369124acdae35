"""Layouts of rocpd databases that writers produce, and rows whose values are not what the schema says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from .rocpd_files import (
    calls,
    kind,
    make_rocpd,
    problems,
    query,
    read_all,
    read_one,
    rejected,
    rows,
    stats,
    write,
)


def test_merged_file_has_a_capture_per_guid(tmp_path: Path) -> None:
    other = "0198c3d4-5e6f-7a8b-9c0d-ffffffffffff"
    runs = [make_rocpd.Run(), make_rocpd.Run(guid=other, process_id=7, steps=1, clock_start_ns=5_000_000)]
    writers = make_rocpd.write_database(tmp_path / "merged.db", runs)
    writers[0].connection.commit()
    writers[0].connection.close()
    captures = read_all(tmp_path / "merged.db")
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
        for capture in read_all(tmp_path / "tails.db")
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
    first, second = read_all(path)
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
    assert rows(capture, "graph_launches") == [
        {"device_event_id": launch["device_event_id"], "kernel_dispatch_count": 3} for launch in launches
    ]
    assert launches[0]["start_ps"] == nodes[0]["start_ps"]
    assert launches[0]["end_ps"] == nodes[2]["end_ps"]
    assert capture.problems == []


def test_values_of_streaming_monitors_are_samples_during_a_dispatch(tmp_path: Path) -> None:
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
    (sample,) = [row for row in rows(capture, "host_events") if row["name"] == "SPM"]
    assert (sample["start_ps"], sample["end_ps"]) == (5_000, 5_000)
    assert rows(capture, "counter_values")[-2:] == [
        {
            "counter_id": 0,
            "device_event_id": 0,
            "host_event_id": sample["host_event_id"],
            "instance": instance,
            "xcc": 6,
            "shader_engine": None,
            "shader_array": None,
            "workgroup_processor": None,
            "value": 3.5,
        }
        for instance in (0, 1)
    ]


def test_values_read_while_a_kernel_ran_do_not_slow_it_down(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        run = writer.run
        writer.connection.execute(f'DELETE FROM "{run.table("pmc_event")}"')
        event = writer.connection.execute(
            f'SELECT event_id FROM "{run.table("kernel_dispatch")}"'
        ).fetchone()[0]
        track = writer.insert("track", nid=1, pid=run.process_id, name_id=writer.string("SPM"))
        sample = writer.insert("sample", track_id=track, timestamp=run.clock_start_ns + 5)
        writer.insert("pmc_event", event_id=event, pmc_id=100, value=3.5, sample_id=sample)

    capture = read_one(write(tmp_path / "t.db", change, enforce=True, schema_version="3.0.3", steps=1))
    assert {(row["kind"], row["role"]) for row in rows(capture, "device_events")} == {
        ("kernel", "work"),
        ("memcpy", "work"),
        ("group", "enclosing"),
    }


def test_value_of_a_host_event(tmp_path: Path) -> None:
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
    sample = calls(capture)[-1]
    assert (sample["name"], sample["category"]) == ("GPU busy", "amd_smi_busy_gfx")
    assert sample["correlation_id"] is None
    assert stats(capture, "host_event", sample["host_event_id"]) == {}
    value = rows(capture, "counter_values")[-1]
    assert (value["device_event_id"], value["host_event_id"]) == (None, sample["host_event_id"])
    assert (value["value"], value["instance"]) == (87.0, 0)
    counter = rows(capture, "counters")[value["counter_id"]]
    assert (counter["counter_name"], counter["device_index"], counter["is_derived"]) == ("busy", None, True)
    assert capture.problems == []


def test_range_around_a_launch(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        range_id = writer.string("train_step 0")
        for base in ("kernel_dispatch", "memory_copy"):
            writer.connection.execute(
                f'UPDATE "{writer.run.table(base)}" SET region_name_id = ? WHERE id = 1', (range_id,)
            )

    capture = read_one(write(tmp_path / "t.db", change, enforce=True, steps=1))
    for base in ("kernel", "memcpy"):
        first, second, *_ = kind(capture, base)
        # The writers give '' where there is no range.
        assert (first["nvtx_range_name"], second["nvtx_range_name"]) == ("train_step 0", None)
        assert (first["op_id"], second["op_id"]) == (0, None)
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
    assert len(capture.devices) == 4
    assert capture.fingerprint is None
    assert all(capture.row_count(table) == 0 for table in ("device_events", "host_events", "steps", "tracks"))
    assert capture.problems == []


def test_missing_tables_and_columns(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        execute, table = writer.connection.execute, writer.run.table("kernel_dispatch")
        execute("DROP VIEW kernels")
        execute("DROP VIEW rocpd_kernel_dispatch")
        execute(f'ALTER TABLE "{table}" DROP COLUMN group_segment_size')
        execute(f'ALTER TABLE "{table}" DROP COLUMN extdata')
        dropped = "memory_copy memory_allocate sample track arg info_code_object info_stream"
        for base in dropped.split():
            execute(f'DROP TABLE "{writer.run.table(base)}"')

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
    assert by_id[1]["thread_id"] == 41_337
    assert by_id[2]["thread_id"] is None
    assert by_id[5]["thread_id"] == 777_777
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
        ("orphan_argument", "rocpd_arg"): 1,
    }
    counted = query(path, "SELECT count(*) FROM rocpd_pmc_event")[0][0]
    assert capture.row_count("counter_values") + rejected(capture, "rocpd_pmc_event") == counted


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


def test_a_capture_whose_only_row_has_an_impossible_end(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        for base in ("kernel_dispatch", "memory_copy", "memory_allocate"):
            writer.connection.execute(f'DELETE FROM "{writer.run.table(base)}"')
        table = writer.run.table("region")
        writer.connection.execute(f'DELETE FROM "{table}" WHERE id > 1')
        writer.connection.execute(f'UPDATE "{table}" SET "end" = 9223372036854775807')

    capture = read_one(write(tmp_path / "t.db", change, steps=1))
    assert capture.row_count("host_events") == 0
    assert problems(capture)[("time_out_of_range", "rocpd_region")] == 1


def test_zero_duration_is_a_fact_not_a_problem(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        writer.connection.execute(f'UPDATE "{writer.run.table("region")}" SET "end" = start WHERE id = 3')

    path = write(tmp_path / "t.db", change, steps=1)
    capture = read_one(path)
    ((expected,),) = query(path, "SELECT count(*) FROM rocpd_region")
    assert capture.row_count("host_events") == expected
    assert [row["host_event_id"] for row in calls(capture) if row["start_ps"] == row["end_ps"]] == [2]
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
            f'UPDATE "{copies}" SET size = 18446744073709551615, dst_address = 18446744073709551600 '
            "WHERE id = 1"
        )
        execute(f"UPDATE \"{writer.run.table('pmc_event')}\" SET value = 'nan' WHERE id = 1")
        execute(f'UPDATE "{writer.run.table("pmc_event")}" SET value = 9e999 WHERE id = 2')
        execute(
            f"UPDATE \"{writer.run.table('string')}\" SET string = CAST(X'68ff' AS TEXT) "
            "WHERE string = 'hipMalloc'"
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
            f'CREATE TABLE "{table}" AS SELECT id, guid, CAST(start AS TEXT) AS start, '
            'CAST("end" AS TEXT) AS "end", name_id, dst_agent_id, src_agent_id, '
            "CAST(size AS TEXT) AS size, stream_id, event_id FROM original"
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
    assert [capture.row_count(table) for table in ("host_events", "call_parents", "steps")] == [0, 0, 0]
    assert [row["operation"] for row in rows(capture, "memory_allocations")] == ["alloc"]


def test_unknown_columns_and_extdata_are_kept(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        table, events = writer.run.table("kernel_dispatch"), writer.run.table("event")
        execute = writer.connection.execute
        execute(f'ALTER TABLE "{table}" ADD COLUMN novelty INTEGER')
        execute(f'ALTER TABLE "{table}" ADD COLUMN payload BLOB')
        extdata = json.dumps(
            {"big": 2**64 - 1, "huge": 2**70, "on": True, "none": None, "list": [1], "ratio": 0.5}
        )
        execute(
            f"UPDATE \"{table}\" SET novelty = 4, payload = X'00ff', extdata = ? WHERE id = 1", (extdata,)
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
    assert (found["novelty"], found["payload"]) == (4, b"\x00\xff")
    assert found["big"] == -1  # the BIGINT of the same bits
    assert (found["huge"], found["on"], found["list"], found["ratio"]) == (str(2**70), "true", "[1]", 0.5)
    assert found["none"] is None
    assert (found["external_correlation_id"], found["parent_stack_id"]) == (77, 1)
    assert (found["call_stack"], found["category"]) == ('["f","g"]', "ODD")
    assert stats(capture, "device_event", 1)["extdata"] == "not json"
    assert problems(capture) == {("invalid_json", "rocpd_kernel_dispatch.extdata"): 1}
    big = next(row for row in rows(capture, "event_stats") if row["stat_name"] == "big")
    assert big["value_type"] == "uint64"


def test_json_that_spells_no_text_is_kept_as_it_is(tmp_path: Path) -> None:
    half_a_pair = '{"message": "\\ud800"}'

    def change(writer: Any) -> None:
        table = writer.run.table("event")
        writer.connection.execute(f'UPDATE "{table}" SET extdata = ? WHERE id = 1', (half_a_pair,))

    capture = read_one(write(tmp_path / "t.db", change, steps=1))
    assert stats(capture, "host_event", 0)["extdata"] == half_a_pair
    assert problems(capture) == {("invalid_json", "rocpd_region.event.extdata"): 1}


def test_passes_of_a_kernel_that_was_run_again(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        table = writer.run.table("kernel_dispatch")
        writer.connection.execute(f'UPDATE "{table}" SET dispatch_id = 1, replay_pass = id - 1 WHERE id <= 2')

    capture = read_one(write(tmp_path / "t.db", change, enforce=True, schema_version="3.0.5", steps=1))
    found = [(row["dispatch_id"], row["replay_pass"]) for row in kind(capture, "kernel")]
    assert found[:3] == [(1, 0), (1, 1), (3, None)]


def test_events_of_the_runtime_are_barriers(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        run = writer.run
        for number, (operation, source) in enumerate((("HIP_EVENT_RECORD", None), ("HIP_EVENT_WAIT", 1))):
            writer.insert(
                "hip_event",
                **writer.place(),
                start=run.clock_start_ns + 100 + number,
                end=run.clock_start_ns + 200,
                name_id=writer.string(operation),
                agent_id=3,
                queue_id=2,
                stream_id=2,
                hip_event_handle=0x55AA,
                source_queue_id=source,
                event_id=writer.event("HIP_EVENT", 900 + number, 900 + number),
            )

    capture = read_one(write(tmp_path / "t.db", change, enforce=True, schema_version="3.0.4", steps=1))
    barriers = kind(capture, "barrier")
    assert [(row["name"], row["role"], row["device_index"], row["queue_id"]) for row in barriers] == [
        ("HIP_EVENT_RECORD", "marker", 1, 2),
        ("HIP_EVENT_WAIT", "marker", 1, 2),
    ]
    assert [(row["start_ps"], row["end_ps"]) for row in barriers] == [(100_000, 200_000), (101_000, 200_000)]
    assert [row["correlation_id"] for row in barriers] == [900, 901]
    assert [stats(capture, "device_event", row["device_event_id"]) for row in barriers] == [
        {"hip_event_handle": 0x55AA},
        {"hip_event_handle": 0x55AA, "source_queue_id": 1},
    ]
    assert capture.problems == []


def test_events_and_tables_without_a_place_are_counted(tmp_path: Path) -> None:
    def change(writer: Any) -> None:
        writer.event("HIP_RUNTIME_API_EXT", 12_345)
        writer.connection.execute(f'CREATE TABLE "{writer.run.table("novelty")}" (id INTEGER, start INTEGER)')
        writer.connection.execute(f'INSERT INTO "{writer.run.table("novelty")}" VALUES (1, 2), (2, 3)')

    capture = read_one(write(tmp_path / "t.db", change, steps=1))
    assert problems(capture) == {
        ("orphan_event", "rocpd_event"): 1,
        ("unsupported_table", "rocpd_novelty"): 2,
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
    assert [(device.ordinal, device.kind) for device in capture.devices] == [
        (0, "gfx942"),
        (1, "gfx942"),
        (0, "AMD EPYC 9654"),
        (1, "AMD EPYC 9654"),
    ]
    assert dict(capture.devices[1].attributes)["agent_id"] == "3"
