"""The calls of CSVs are below the call around them, though the files do not say so."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tracewh

from .generated_rocpd import twins, write_file
from .ingest_runs import query
from .rocprof_csv_files import API_HEADER, problems, read, read_one, rows, text_of

HIP, HSA, RCCL = "HIP_RUNTIME_API_EXT", "HSA_CORE_API", "RCCL_API"
Call = tuple[str, int, int, int, int]

LAUNCHES = (
    "SELECT e.start_ps, n.name, l.api_name, l.link_status, l.launch_latency_ps, l.queue_delay_ps "
    "FROM v1.launches AS l JOIN device_events AS e USING (capture_id, device_event_id) "
    "JOIN names AS n ON n.name_id = e.name_id ORDER BY ALL"
)
PARENTS = (
    "SELECT p.correlation_id, p.parent_correlation_id FROM call_parents AS p "
    "JOIN host_events AS h USING (capture_id) JOIN call_details AS d USING (capture_id, call_details_id) "
    "WHERE h.correlation_id = p.parent_correlation_id AND d.category NOT LIKE 'MARKER%' ORDER BY ALL"
)


def parents(*calls: Call) -> dict[int, int]:
    """The parent of each call that has one; a call is domain, thread, correlation id, start and end."""
    lines = [[domain, "f", 55, thread, number, start, end] for domain, thread, number, start, end in calls]
    process = read_one(_regions_trace=text_of(API_HEADER, *lines))
    assert problems(process) == {}
    found = {row["event.stack_id"]: row.get("event.parent_stack_id") for row in rows(process, "region")}
    return {number: parent for number, parent in found.items() if parent is not None}


@pytest.mark.parametrize(
    ("start", "end", "is_within"),
    [
        (100, 200, True),
        (100, 100, True),
        (200, 200, True),
        (150, 160, True),
        (99, 200, False),
        (100, 201, False),
        (50, 60, False),
        (99, 99, False),
        (201, 250, False),
        (50, 250, False),
    ],
)
def test_within_are_the_edges_too(start: int, end: int, is_within: bool) -> None:
    assert parents((HIP, 7, 1, 100, 200), (HSA, 7, 2, start, end)) == ({2: 1} if is_within else {})


def test_only_calls_of_the_same_thread() -> None:
    assert parents((HIP, 7, 1, 100, 200), (HSA, 8, 2, 150, 160)) == {}
    assert parents((HIP, 6, 1, 100, 200), (HIP, 8, 2, 90, 210), (HSA, 7, 3, 150, 160)) == {}
    assert parents((HIP, 8, 1, 100, 200), (HIP, 7, 2, 90, 210), (HSA, 8, 3, 150, 160)) == {3: 1}


def test_no_call_around() -> None:
    assert parents((HSA, 7, 1, 100, 200), (HSA, 7, 2, 120, 130)) == {}
    assert parents((HIP, 7, 1, 100, 200), (HIP, 7, 2, 120, 130)) == {}
    # HIP is not called by HSA.
    assert parents((HSA, 7, 1, 100, 200), (HIP, 7, 2, 120, 130)) == {}


def test_the_innermost_call_is_the_last_one_begun_that_has_not_ended() -> None:
    short = [(HIP, 7, number, 10 * number, 10 * number + 5) for number in range(20, 60)]
    # Behind many calls that are over, another one goes on.
    assert parents((HIP, 7, 1, 100, 1_000), *short, (HSA, 7, 2, 900, 910)) == {2: 1}
    assert parents((HIP, 7, 1, 100, 1_000), *short, (HSA, 7, 2, 302, 303)) == {2: 30}
    nested = [(HIP, 7, number, 100 + number, 1_000 - number) for number in range(1, 6)]
    assert parents(*reversed(nested), (HSA, 7, 9, 104, 300)) == {9: 4}
    assert parents(*nested, (HSA, 7, 9, 200, 997)) == {9: 3}


def test_layers() -> None:
    assert parents((RCCL, 7, 1, 100, 200), (HIP, 7, 2, 110, 190), (HSA, 7, 3, 120, 130)) == {2: 1, 3: 2}
    # All three have one time.
    assert parents((HSA, 7, 3, 100, 200), (HIP, 7, 2, 100, 200), (RCCL, 7, 1, 100, 200)) == {2: 1, 3: 2}
    assert parents((RCCL, 7, 1, 100, 200), (HIP, 7, 2, 110, 120), (HSA, 7, 3, 130, 140)) == {2: 1, 3: 1}
    # Spelled as rocprof-sys does, and in any case.
    assert parents(("rocm_hip_api", 7, 1, 100, 200), ("rocm_hsa_api", 7, 2, 110, 120)) == {2: 1}
    assert parents(("ROCDECODE_API", 7, 1, 100, 200), ("hip_compiler_api_ext", 7, 2, 110, 120)) == {2: 1}
    assert parents(("MARKER_CORE_RANGE_API", 7, 1, 100, 200), (HIP, 7, 2, 110, 120)) == {}
    assert parents((HIP, 7, 1, 100, 200), ("MARKER_CORE_RANGE_API", 7, 2, 110, 120)) == {}


def test_calls_that_cannot_be_told() -> None:
    # Neither an id nor times, and an end before the start.
    assert parents((HIP, 7, 0, 100, 200), (HSA, 7, 2, 110, 120)) == {}
    assert parents((HIP, 7, 1, 90, 300), (HIP, 7, 0, 100, 200), (HSA, 7, 2, 110, 120)) == {2: 1}
    assert parents((HIP, 7, 1, 0, 200), (HSA, 7, 2, 110, 120)) == {}
    assert parents((HIP, 7, 1, 100, 200), (HSA, 7, 2, 130, 120)) == {}
    lines = [[HIP, "f", 55, "", 1, 100, 200], [HSA, "f", 55, "", 2, 110, 120], ["", "f", 55, 7, 3, 110, 120]]
    process = read_one(_regions_trace=text_of(API_HEADER, *lines, [HIP, "f", 55, 7, 4, "", 120]))
    assert "event.parent_stack_id" not in process.reference("region").table.column_names


def test_calls_of_several_files_and_of_one_process_each() -> None:
    of_one = text_of(API_HEADER, [HIP, "hipMalloc", 55, 7, 1, 100, 200])
    of_two = text_of(API_HEADER, [HSA, "hsa_init", 55, 7, 2, 110, 120], [HSA, "hsa_init", 66, 7, 2, 110, 120])
    first, second = read(out_hsa_api_trace=of_two, out_hip_api_trace=of_one)
    assert [row.get("event.parent_stack_id") for row in rows(first, "region")] == [1, None]
    assert [row.get("event.parent_stack_id") for row in rows(second, "region")] == [None]


_CALLS = st.lists(
    st.tuples(st.sampled_from([RCCL, HIP, HSA]), st.integers(1, 2), st.integers(1, 12), st.integers(0, 8)),
    min_size=1,
    max_size=24,
)


@given(_CALLS)
def test_any_calls(found: list[tuple[str, int, int, int]]) -> None:
    calls = [
        (domain, thread, number, start, start + length)
        for number, (domain, thread, start, length) in zip(count(1), found, strict=False)
    ]
    layers = {RCCL: 0, HIP: 1, HSA: 2}
    expected = {}
    for domain, thread, number, start, end in calls:
        around = [
            (other[3], -other[4], layers[other[0]], other[2])
            for other in calls
            if layers[other[0]] < layers[domain]
            and other[1] == thread
            and other[3] <= start
            and end <= other[4]
        ]
        if around:
            expected[number] = max(around)[-1]
    assert parents(*calls) == expected


@pytest.mark.parametrize("write", [twins.write_csv, twins.write_converted_csv])
def test_launches_of_a_database_and_of_its_csvs(tmp_path: Path, write: Callable[[Path, Path], Any]) -> None:
    database = write_file(tmp_path / "database" / "41337_results.db", steps=1, counts=False)
    write(database, tmp_path / "csv")
    found = {}
    for name in ("database", "csv"):
        tracewh.ingest_run(tmp_path / name, warehouse=tmp_path / f"{name}.duckdb")
        found[name] = [query(tmp_path / f"{name}.duckdb", text) for text in (LAUNCHES, PARENTS)]
    assert found["csv"] == found["database"]
    launches, nested = found["csv"]
    assert {"hipModuleLaunchKernel", "hipGraphLaunch"} <= {row[2] for row in launches}
    assert not any(row[2] is not None and row[2].startswith("hsa_") for row in launches)
    assert len(nested) > len(launches) / 2
