"""Sampled program counters, and events of the driver, against what SQLite says of the same file."""

from __future__ import annotations

import struct
from pathlib import Path

import tracewh

from .generated_rocpd import device, host, write_file
from .ingest_runs import query as ask_warehouse
from .rocpd_files import query, read_one, rows, stats


def test_samples_with_packed_records(tmp_path: Path) -> None:
    path = write_file(tmp_path / "t.db", device.program_counter_samples, branches=("blobs",), counts=False)
    capture = read_one(path)
    origin = capture.origin_source_ns
    expected = query(
        path,
        "SELECT timestamp, dispatch_id, correlation_id, exec, code_object_id, code_object_offset, "
        "wave_in_group FROM rocpd_gpu_pc_sample ORDER BY id",
    )
    assert origin is not None
    assert len(expected) == 3
    columns = (
        *("sample_ps", "dispatch_id", "correlation_id", "execution_mask", "code_object_id"),
        *("code_object_offset_bytes", "wave_in_group"),
    )
    samples = rows(capture, "pc_samples")
    assert [tuple(row[column] for column in columns) for row in samples] == [
        ((timestamp - origin) * 1000, *others) for timestamp, *others in expected
    ]
    assert {capture.devices[row["device_index"]].device_type for row in samples} == {"GPU"}
    # The structure itself stays as bytes, with the tables that say what is in it.
    assert "blob_event.blob" not in stats(capture, "pc_sample", 0)
    packed = stats(capture, "pc_sample", 1)["blob_event.blob"]
    assert struct.unpack("<BBBxII", packed) == (1, 2, 0, 4, 0)


def test_samples_with_their_instruction_as_text(tmp_path: Path) -> None:
    path = write_file(tmp_path / "t.db", device.decoded_samples, branches=("pc_sampling",), counts=False)
    capture = read_one(path)
    origin = capture.origin_source_ns
    assert origin is not None
    expected = query(
        path,
        "SELECT timestamp, dispatch_id, exec_mask, correlation_id, instruction, "
        "NULLIF(instruction_comment, '') FROM rocpd_pc_sampling ORDER BY id",
    )
    columns = ("dispatch_id", "execution_mask", "correlation_id", "instruction_name", "comment_name")
    found = rows(capture, "pc_samples")
    assert [(row["sample_ps"], *(row[column] for column in columns)) for row in found] == [
        ((timestamp - origin) * 1000, *others) for timestamp, *others in expected
    ]
    assert found[1]["comment_name"] == "gemm.s:9"
    assert capture.problems == []


def test_events_of_the_driver(tmp_path: Path) -> None:
    path = write_file(tmp_path / "t.db", host.driver_events, counts=False)
    expected = query(
        path,
        "SELECT n.string, c.string, r.end - r.start, p.name, v.value FROM rocpd_region r "
        "JOIN rocpd_event e ON e.id = r.event_id JOIN rocpd_string n ON n.id = r.name_id "
        "JOIN rocpd_string c ON c.id = e.category_id JOIN rocpd_pmc_event v ON v.event_id = e.id "
        "JOIN rocpd_info_pmc p ON p.id = v.pmc_id ORDER BY r.id",
    )
    assert {row[1] for row in expected} >= {"KFD_PAGE_FAULT", "KFD_PAGE_MIGRATE", "KFD_QUEUE"}
    warehouse = tmp_path / "w.duckdb"
    tracewh.ingest_run(path, warehouse=warehouse)
    found = ask_warehouse(
        warehouse,
        "SELECT n.name, d.category, (h.end_ps - h.start_ps) // 1000, c.counter_name, v.value "
        "FROM counter_values v JOIN counters c USING (capture_id, counter_id) "
        "JOIN host_events h USING (capture_id, host_event_id) JOIN names n USING (name_id) "
        "JOIN call_details d USING (capture_id, call_details_id) ORDER BY h.host_event_id",
    )
    assert found == expected
    # They are no counters of dispatches: the times of the kernels are those of the program.
    assert ask_warehouse(warehouse, "SELECT DISTINCT role FROM device_events") == [("work",)]
