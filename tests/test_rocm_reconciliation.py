"""Rows in the file are rows that were loaded and rows that were rejected, table by table."""

from __future__ import annotations

import shutil
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from tracewh.ingest.capture import Capture

from .generated_rocpd import SOUND, Variants, damage, write_file
from .rocpd_damaged import spoil, write_every_record
from .rocpd_files import make_rocpd, query, read_all, rejected, rows

DEVICE_FACTS = {
    "kernel_dispatch": "kernel",
    "memory_copy": "memcpy",
    "graph_launch": "group",
    "hip_event": "barrier",
}
OWN_TABLES = {
    "memory_allocate": "memory_allocations",
    "gpu_pc_sample": "pc_samples",
    "pmc_event": "counter_values",
    "info_pmc": "counters",
    "info_kernel_symbol": "kernel_symbols",
}
# What describes others has no rows of its own in the warehouse: names, ids and attributes.
DESCRIPTIONS = {
    *("metadata", "string", "track", "info_agent", "info_node", "info_process", "info_thread", "info_queue"),
    *("info_stream", "info_code_object", "info_blob_schema", "info_blob_field"),
}
READABLE = [name for name in SOUND if name != "schema 4"]


def stored(path: Path) -> Counter[str]:
    """Rows of each table of the format by its base name, as SQLite counts them."""
    connection = sqlite3.connect(path)
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    suffixes = [name.removeprefix("rocpd_metadata") for name in names if name.startswith("rocpd_metadata")]
    found: Counter[str] = Counter()
    for name in names:
        for suffix in suffixes:
            if name.startswith("rocpd_") and name.endswith(suffix):
                count = connection.execute(f'SELECT count(*) FROM "{name}"').fetchone()[0]
                found[name.removeprefix("rocpd_").removesuffix(suffix)] += count
    connection.close()
    return found


def loaded(captures: list[Capture]) -> Counter[str]:
    found: Counter[str] = Counter()
    for capture in captures:
        kinds = Counter(row["kind"] for row in rows(capture, "device_events"))
        assert kinds.keys() <= set(DEVICE_FACTS.values())
        found.update({base: kinds[kind] for base, kind in DEVICE_FACTS.items()})
        found.update({base: capture.row_count(table) for base, table in OWN_TABLES.items()})
        found["region"] += capture.row_count("host_events")
        for row in rows(capture, "event_stats"):
            found["blob_event"] += row["stat_name"] == "blob_event.blob"
    return found


def arguments_loaded(path: Path, captures: list[Capture]) -> int:
    """How many stats fewer there are without the arguments."""
    bare = path.with_name(f"bare_{path.name}")
    shutil.copy(path, bare)
    connection = sqlite3.connect(bare)
    tables = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd_arg_%'"
    )
    for (table,) in tables.fetchall():
        connection.execute(f'DELETE FROM "{table}"')
    connection.commit()
    connection.close()
    return stats_of_rows(captures) - stats_of_rows(read_all(bare))


def stats_of_rows(captures: list[Capture]) -> int:
    """Stats that are not of the capture as a whole, as the types of arguments are."""
    return sum(row["owner"] != "capture" for capture in captures for row in rows(capture, "event_stats"))


def reconcile(path: Path) -> None:
    captures = read_all(path)
    in_file, found = stored(path), loaded(captures)
    # Samples are host events, after the regions.
    in_file["region"] += in_file.pop("sample", 0)
    in_file["gpu_pc_sample"] += in_file.pop("pc_sampling", 0)
    found["arg"] = arguments_loaded(path, captures)
    for base, count in in_file.items():
        if base in DESCRIPTIONS or base == "event":
            continue
        lost = sum(rejected(capture, f"rocpd_{base}") for capture in captures)
        lost += sum(rejected(capture, "rocpd_sample") for capture in captures) if base == "region" else 0
        assert count == found[base] + lost, base
    # Each row that was kept is known by its number, once.
    for capture in captures:
        for table, column in (("device_events", "device_event_id"), ("host_events", "host_event_id")):
            numbers = [row[column] for row in rows(capture, table)]
            assert numbers == list(range(len(numbers)))


@pytest.fixture(scope="module")
def variant(tmp_path_factory: pytest.TempPathFactory) -> Variants:
    return Variants(tmp_path_factory.mktemp("variants"))


@pytest.mark.parametrize("name", READABLE)
def test_sound_files(variant: Variants, name: str) -> None:
    path = variant(name)
    reconcile(path)
    # All that is not loaded is what has no place, and the events of that.
    problems = {(item.problem, item.place) for capture in read_all(path) for item in capture.problems}
    expected = {
        ("unsupported_table", "rocpd_event_operation"),
        ("orphan_event", "rocpd_event"),
    }
    assert problems == (expected if name == "complete" else set())


@pytest.mark.parametrize("name", damage.DAMAGE)
def test_spoiled_files(tmp_path: Path, name: str) -> None:
    reconcile(write_file(tmp_path / "t.db", damage.DAMAGE[name], enforce=False, steps=1))


def test_every_kind_of_record_with_every_kind_of_fault(tmp_path: Path) -> None:
    path = spoil(write_every_record(tmp_path / "t.db"))
    reconcile(path)
    (capture,) = read_all(path)
    kinds = {item.problem for item in capture.problems}
    assert kinds >= {
        *("missing_time", "zero_time", "negative_duration", "time_out_of_range", "missing_agent"),
        *("missing_counter", "orphan_argument", "orphan_event", "orphan_blob", "unsupported_table"),
        *("dangling_reference", "lost_owner", "not_an_integer", "not_a_number", "invalid_json"),
    }
    # Whole rows were rejected of all of these.
    for base in (*DEVICE_FACTS, "region", "sample", "memory_allocate", "gpu_pc_sample", "pmc_event", "arg"):
        assert rejected(capture, f"rocpd_{base}") > 0, base
        assert stored(path)[base] > 0
    assert all(loaded([capture])[base] > 0 for base in (*DEVICE_FACTS, *OWN_TABLES, "region", "blob_event"))


def test_events_that_nothing_loaded_refers_to(tmp_path: Path) -> None:
    """Counted by SQL: rejected facts leave their events behind, and several facts may share one."""
    path = spoil(write_every_record(tmp_path / "t.db"))
    (capture,) = read_all(path)
    facts = (*DEVICE_FACTS, "region", "sample", "memory_allocate", "gpu_pc_sample")
    # The views of the file are not to be trusted here, so each table is asked by its real name.
    suffix = make_rocpd.Run().table_suffix
    referred = " UNION ".join(f'SELECT event_id FROM "rocpd_{base}{suffix}"' for base in facts)
    ((never,),) = query(
        path,
        f'SELECT count(*) FROM "rocpd_event{suffix}" '
        f"WHERE id NOT IN (SELECT * FROM ({referred}) WHERE event_id IS NOT NULL)",
    )
    orphans = rejected(capture, "rocpd_event")
    rows_rejected = sum(rejected(capture, f"rocpd_{base}") for base in facts)
    assert 0 < never <= orphans <= never + rows_rejected


def test_several_processes_in_the_tables_of_one(tmp_path: Path) -> None:
    """Rows of each guid are of its capture, and rows of no guid are counted once."""
    path = write_every_record(tmp_path / "t.db")
    connection = sqlite3.connect(path)
    suffix = make_rocpd.Run().table_suffix
    for base in (
        "kernel_dispatch",
        "memory_copy",
        "region",
        "arg",
        "pmc_event",
        "event",
        "sample",
        "hip_event",
    ):
        connection.execute(f"UPDATE \"rocpd_{base}{suffix}\" SET guid = ' other\n' WHERE id % 3 = 0")
        connection.execute(f"UPDATE \"rocpd_{base}{suffix}\" SET guid = '{{{{guid}}}}' WHERE id % 11 = 0")
        connection.execute(f"UPDATE \"rocpd_{base}{suffix}\" SET guid = '' WHERE id % 13 = 0")
    connection.commit()
    connection.close()
    captures = read_all(path)
    assert [capture.attributes["guid"] for capture in captures] == [make_rocpd.GUID, "other"]
    reconcile(path)
    unassigned = [
        {item.place: item.occurrences for item in capture.problems if item.problem == "missing_guid"}
        for capture in captures
    ]
    ((expected,),) = query(
        path, f"SELECT count(*) FROM \"rocpd_region{suffix}\" WHERE trim(guid) IN ('', '{{{{guid}}}}')"
    )
    assert unassigned[0]["rocpd_region"] == expected > 0
    assert unassigned[1] == {}
