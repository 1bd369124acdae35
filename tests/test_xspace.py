"""The XSpace reader on real files, against an independent reading of the same bytes."""

from __future__ import annotations

import functools
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tracewh

from .xspace_expected import (
    DEVICE_PLANE,
    DEVICE_QUERY,
    HOST_QUERY,
    STATS_QUERY,
    Row,
    compare,
    expected_events,
    rows_of,
    signed,
    stored,
    values_of,
)
from .xspace_files import BUNDLED, PUBLIC, file_id, read_file
from .xspace_oracle import Space, Stat, XSpace, fields, read_space


@dataclass
class Loaded:
    path: Path
    space: Space
    message: Any
    connection: duckdb.DuckDBPyConnection

    @functools.cached_property
    def expected(self) -> tuple[list[Row], list[Row], list[Row]]:
        return expected_events(self.space)


@pytest.fixture(scope="module", params=[*BUNDLED, *PUBLIC], ids=file_id)
def loaded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    path: Path = request.param
    data = read_file(path)
    warehouse = tmp_path_factory.mktemp("xspace") / "w.duckdb"
    tracewh.ingest_run(path, warehouse=warehouse)
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        yield Loaded(path, read_space(data), XSpace.FromString(data), connection)


def test_bundled_fixtures_are_there() -> None:
    assert {path.parents[1].name for path in BUNDLED} >= {"h200_moe", "h200_moe_direct", "cpu_train"}


def test_oracle_agrees_with_jaxlib(loaded: Loaded) -> None:
    profile_data = pytest.importorskip("jax.profiler").ProfileData
    profile = profile_data.from_serialized_xspace(loaded.message.SerializeToString())
    theirs = [(p.name, line.name, event) for p in profile.planes for line in p.lines for event in line.events]
    ours = [
        (p.name, line.name, event) for p in loaded.space.planes for line in p.lines for event in line.events
    ]
    assert len(theirs) == len(ours)
    for (plane, line, event), (our_plane, our_line, our_event) in zip(theirs, ours, strict=True):
        assert (plane, line, event.name) == (our_plane, our_line, our_event.name)
        # jaxlib tells whole nanoseconds.
        assert abs(event.start_ns - our_event.start_ps / 1000) < 1
        assert abs(event.duration_ns - our_event.duration_ps / 1000) < 1


def test_lines_become_tracks(loaded: Loaded) -> None:
    tracks, device_rows, host_rows = loaded.expected
    counts = Counter(row["track_id"] for row in device_rows + host_rows)
    found = rows_of(
        loaded.connection,
        """SELECT track_id, plane_name, track_name, t.native_id,
            (SELECT COUNT(*) FROM device_events AS e WHERE e.track_id = t.track_id)
            + (SELECT COUNT(*) FROM host_events AS h WHERE h.track_id = t.track_id) AS events
        FROM tracks AS t JOIN planes AS p USING (capture_id, plane_index) ORDER BY track_id""",
    )
    assert found == [
        {"track_id": index, **track, "events": counts[index]} for index, track in enumerate(tracks)
    ]


def test_device_events(loaded: Loaded) -> None:
    found = rows_of(loaded.connection, DEVICE_QUERY, 1)
    expected = loaded.expected[1]
    # Without its register count, what else the tracer claims of such a kernel is not trusted here.
    trusted = [row for row in found if "regs:2191" not in (row["details"] or "")]
    kept = [row for row in expected if "regs:2191" not in (row.get("details") or "")]
    columns = [column for column in (found[0] if found else ()) if column != "id"]
    compare(trusted, kept, columns)
    compare(found, expected, [column for column in columns if column != "static_shared_memory_bytes"])


def test_host_events(loaded: Loaded) -> None:
    found = rows_of(loaded.connection, HOST_QUERY, 1)
    columns = [column for column in (found[0] if found else ()) if column != "id"]
    compare(found, loaded.expected[2], columns)


def test_every_other_stat_is_kept(loaded: Loaded) -> None:
    _, device_rows, host_rows = loaded.expected
    kept: dict[tuple[str, int], Counter[tuple[str, str, Any]]] = {}
    for row in rows_of(loaded.connection, STATS_QUERY, 1):
        if row["owner"] not in ("device_event", "host_event"):
            continue
        kept.setdefault((row["owner"], row["owner_id"]), Counter())[stored(row)] += 1
    expected = {}
    for owner, query, rows in (
        ("device_event", DEVICE_QUERY, device_rows),
        ("host_event", HOST_QUERY, host_rows),
    ):
        ids = [row["id"] for row in rows_of(loaded.connection, query, 1)]
        assert len(ids) == len(rows)
        expected |= {(owner, key): row["rest"] for key, row in zip(ids, rows, strict=True) if row["rest"]}
    assert sorted(kept) == sorted(expected)
    for key, stats in expected.items():
        assert kept[key] == stats, key


def test_ids_count_from_zero(loaded: Loaded) -> None:
    for table, key in (("device_events", "device_event_id"), ("host_events", "host_event_id")):
        ids = values_of(loaded.connection, f"SELECT {key} FROM {table} ORDER BY 1")
        assert ids == list(range(len(ids)))


def test_planes_become_devices(loaded: Loaded) -> None:
    expected = set()
    for plane in loaded.space.planes:
        found = DEVICE_PLANE.match(plane.name)
        if found is None:
            continue
        stats = {stat.name: stat.value for stat in plane.stats}
        kind = stats.get("gpu_device_name") or stats.get("device_type_string")
        if kind is None and stats.get("device_vendor") == "AMD" and "compute_cap_major" in stats:
            targets = {(9, 0): "gfx90a", (9, 4): "gfx942", (9, 5): "gfx950"}
            kind = f"AMD {targets[stats['compute_cap_major'], stats['compute_cap_minor']]}"
        expected.add((found[1], int(found[2]), kind, stats.get("device_vendor")))
    if not expected:
        ordinals = {
            event.stat("device_ordinal") or 0
            for plane in loaded.space.planes
            for line in plane.lines
            for event in line.events
            if event.stat("hlo_op") is not None
        }
        expected = {("CPU", ordinal, "CPU", None) for ordinal in ordinals}
    assert (
        set(
            loaded.connection.execute(
                "SELECT device_type, device_ordinal, device_kind, vendor FROM devices"
            ).fetchall()
        )
        == expected
    )


def shown(stat: Stat) -> str | None:
    """A stat of a plane as the text that attributes hold."""
    if stat.type == "double":
        return repr(stat.value)
    return stat.value.hex() if isinstance(stat.value, bytes) else str(stat.value)


def test_device_attributes(loaded: Loaded) -> None:
    expected = {
        (found[1], int(found[2]), stat.name, shown(stat))
        for plane in loaded.space.planes
        if (found := DEVICE_PLANE.match(plane.name))
        for stat in plane.stats
    }
    found_rows = loaded.connection.execute(
        """SELECT device_type, device_ordinal, attribute, value
        FROM device_attributes JOIN devices USING (device_id)"""
    ).fetchall()
    assert set(found_rows) == expected
    assert len(found_rows) == len(expected)


def test_capture_row(loaded: Loaded) -> None:
    environment = next((p for p in loaded.space.planes if p.name == "Task Environment"), None)
    stats = {} if environment is None else {stat.name: stat for stat in environment.stats}
    start = stats["profile_start_time"].value if "profile_start_time" in stats else None
    vendors = {stat.value for p in loaded.space.planes for stat in p.stats if stat.name == "device_vendor"}
    is_tpu = any(plane.name.startswith("/device:TPU") for plane in loaded.space.planes)
    platform = {"Nvidia": "cuda", "AMD": "rocm"}[vendors.pop()] if vendors else "tpu" if is_tpu else "cpu"
    assert rows_of(
        loaded.connection, "SELECT source_kind, origin_unix_ns, hostname, platform FROM captures"
    ) == [
        {
            "source_kind": "xspace",
            "origin_unix_ns": start,
            # JAX names a file for its host.
            "hostname": (loaded.space.hostnames or loaded.path.name.split("."))[0],
            "platform": platform,
        }
    ]
    attributes = dict(loaded.connection.execute("SELECT attribute, value FROM capture_attributes").fetchall())
    assert {name: attributes.get(name) for name in stats} == {n: shown(s) for n, s in stats.items()}


def test_metadata_plane_becomes_modules(loaded: Loaded) -> None:
    expected = {}
    for key, metadata in loaded.space.plane("/host:metadata").event_metadata.items():
        protos = [stat.value for stat in metadata.stats if stat.name.lower() in ("hlo proto", "hlo_proto")]
        for proto in protos:
            module = dict(fields(proto))[1]
            name = next(value for number, value in fields(module) if number == 1).decode()
            computations = [value for number, value in fields(module) if number == 3]
            instructions = sum(
                number == 2 for computation in computations for number, _ in fields(computation)
            )
            program_id = next((s.value for s in metadata.stats if s.name == "program_id"), key)
            assert metadata.name == f"{name}({program_id % 2**64})"
            expected[signed(program_id % 2**64)] = (name, len(computations), instructions)
    found = loaded.connection.execute(
        """SELECT p.program_id, m.module_name,
            (SELECT COUNT(*) FROM hlo_computations AS c WHERE c.module_id = m.module_id),
            (SELECT COUNT(*) FROM hlo_instructions AS i WHERE i.module_id = m.module_id)
        FROM hlo_programs AS p JOIN hlo_modules AS m USING (module_id)"""
    ).fetchall()
    assert {row[0]: tuple(row[1:]) for row in found} == expected
    assert len(found) == len(expected)


def test_steps_are_the_events_with_r(loaded: Loaded) -> None:
    expected = [
        (event.stat("step_num"), event.name, event.start_ps, event.end_ps)
        for plane in loaded.space.planes
        for line in plane.lines
        for event in line.events
        if event.stat("_r") and not DEVICE_PLANE.match(plane.name)
    ]
    found = loaded.connection.execute(
        "SELECT step_num, name, start_ps, end_ps FROM steps JOIN names USING (name_id) ORDER BY step_id"
    ).fetchall()
    assert found == expected
    if "fixtures" in loaded.path.parts:
        assert len(expected) == 3


def test_problems_of_a_file(loaded: Loaded) -> None:
    garbage = Counter(
        f"{plane.name}, line {line.name!r}"
        for plane in loaded.space.planes
        for line in plane.lines
        for event in line.events
        if (found := re.search(r"regs:(\d+)", event.stat("kernel_details") or "")) and int(found[1]) > 1024
    )
    assert (
        dict(loaded.connection.execute("SELECT place, occurrences FROM ingest_problems").fetchall())
        == garbage
    )


def test_garbage_registers_come_with_garbage_shared_memory(loaded: Loaded) -> None:
    # regs and static_shared are the two halves of one stray pointer: 0x7ece829f.... for all such kernels.
    count = values_of(
        loaded.connection,
        """SELECT COUNT(*) FROM device_events JOIN launch_details USING (capture_id, launch_details_id)
        JOIN names ON names.name_id = details_name_id
        WHERE name LIKE 'regs:2191%' AND static_shared_memory_bytes IS NOT NULL""",
    )
    assert count == [0]
