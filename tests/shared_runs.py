"""The runs that lie outside of the repository, by name: unpacked, and ingested for tests that query them."""

from __future__ import annotations

import json
import tarfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tracewh

from .xspace_expected import DEVICE_PLANE
from .xspace_files import PUBLIC, SHARED, file_id
from .xspace_oracle import XSpace, text


@dataclass(frozen=True)
class DeviceEvent:
    """An event of a stream as the file has it; times are in ps."""

    ordinal: int
    program_id: int | None
    hlo_op: str | None
    kernel: str
    is_copy: bool
    start: int
    end: int


@dataclass
class SharedRun:
    """A run in a warehouse of its own. `path` is its folder, or the one file that it is."""

    name: str
    path: Path
    connection: duckdb.DuckDBPyConnection

    def rows(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        return self.connection.execute(query, list(parameters)).fetchall()

    @cached_property
    def config(self) -> dict[str, Any]:
        """The config.json of a training run."""
        config: dict[str, Any] = json.loads((self.path / "config.json").read_text())
        return config

    @cached_property
    def profiled_steps(self) -> int:
        """Training steps in the capture, by timing.json."""
        return len(json.loads((self.path / "timing.json").read_text())["profiled_step_s"])

    @cached_property
    def dumped_text(self) -> str:
        """The optimized HLO as XLA dumped it, with the names that events refer to."""
        (path,) = self.path.glob("xla_dump/*after_optimizations.txt")
        return path.read_text()

    @cached_property
    def events(self) -> list[DeviceEvent]:
        """The device events of a run of one process on GPUs, by the oracle's reading."""
        (path,) = [self.path] if self.path.is_file() else self.path.rglob("*.xplane.pb")
        return list(_device_events(XSpace.FromString(path.read_bytes())))

    def events_by_op(self) -> dict[tuple[int, int, str], list[DeviceEvent]]:
        """Those that name an op, by device ordinal, program and op."""
        found: dict[tuple[int, int, str], list[DeviceEvent]] = defaultdict(list)
        for event in self.events:
            if event.hlo_op is not None and event.program_id is not None:
                found[event.ordinal, event.program_id, event.hlo_op].append(event)
        return found


def _device_events(message: Any) -> Iterator[DeviceEvent]:
    for plane in message.planes:
        device = DEVICE_PLANE.match(text(plane.name))
        if device is None:
            continue
        stat_names = {key: text(value.name) for key, value in plane.stat_metadata.items()}
        for line in plane.lines:
            for event in line.events:
                stats = {stat_names[stat.metadata_id]: stat for stat in event.stats}
                op, program = stats.get("hlo_op"), stats.get("program_id")
                start = line.timestamp_ns * 1000 + event.offset_ps
                yield DeviceEvent(
                    int(device[2]),
                    None if program is None else int(program.uint64_value or program.int64_value),
                    None if op is None else stat_names[op.ref_value] if op.ref_value else text(op.str_value),
                    text(plane.event_metadata[event.metadata_id].name),
                    any(name.lower() in ("memcpy_details", "memset_details") for name in stats),
                    start,
                    start + event.duration_ps,
                )


def find_run(name: str, folder: Path) -> Path:
    """A run of shared/, unpacked into `folder` where it is packed; skips the test where it is not at hand."""
    files = {file_id(path): path for path in PUBLIC}
    if name in files:
        if not files[name].exists():
            pytest.skip(f"{files[name].name} is not at hand: shared/data lies outside the repository")
        return files[name]
    archive = SHARED / "captures" / ("hist_01-08.tar.xz" if name.startswith("hist_") else f"{name}.tar.xz")
    if not archive.exists():
        pytest.skip(f"{archive.name} is not at hand: shared/captures lies outside the repository")
    with tarfile.open(archive) as packed:
        members = [item for item in packed.getmembers() if item.name.split("/")[0] == name]
        packed.extractall(folder, members, filter="data")
    return folder / name


@contextmanager
def ingested(name: str, folder: Path) -> Iterator[SharedRun]:
    """A run of shared/ in a new warehouse in `folder`; skips the test where it is not at hand."""
    path = find_run(name, folder)
    warehouse = folder / "w.duckdb"
    assert tracewh.ingest_run(path, warehouse=warehouse).status == "loaded"
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        yield SharedRun(name, path, connection)
