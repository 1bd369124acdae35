"""Clocks of the processes of a real run, and its scope ranges, against the same quantities from the bytes."""

from __future__ import annotations

import tarfile
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pytest

import tracewh

from .xspace_oracle import Event, Space, XSpace, read_space

ARCHIVE = Path(__file__).parents[1].parent / "shared" / "captures" / "h200_2proc.tar.xz"
SCOPES = b"/host:__ScopeRangeCallStack__"


@dataclass
class Run:
    """The ingested run, and the parsed capture of each process."""

    connection: duckdb.DuckDBPyConnection
    spaces: list[Space]
    files: list[bytes]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    if not ARCHIVE.exists():
        pytest.skip(f"{ARCHIVE.name} is not at hand: shared/captures lies outside the repository")
    folder = tmp_path_factory.mktemp("run")
    with tarfile.open(ARCHIVE) as packed:
        packed.extractall(folder, filter="data")
    warehouse = folder / "w.duckdb"
    tracewh.ingest_run(folder / "h200_2proc", warehouse=warehouse)
    paths = [next((folder / "h200_2proc" / process).rglob("*.xplane.pb")) for process in ("proc0", "proc1")]
    files = [path.read_bytes() for path in paths]
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        yield Run(connection, [read_space(data) for data in files], files)


def device_work(space: Space) -> list[Event]:
    """Events of the streams of all GPUs."""
    return [
        event
        for plane in space.planes
        if plane.name.startswith("/device:GPU:")
        for line in plane.lines
        if line.name.startswith("Stream #")
        for event in line.events
    ]


def collective_ends(space: Space) -> dict[tuple[str, str], npt.NDArray[np.int64]]:
    """Ends of the NCCL kernels of each module and op, in order."""
    ends = defaultdict(list)
    for event in device_work(space):
        if event.name.startswith("nccl"):
            ends[event.stat("hlo_module"), event.stat("hlo_op")].append(event.end_ps)
    return {key: np.sort(np.array(values)) for key, values in ends.items()}


def profile_start_ns(space: Space) -> int:
    return next(
        int(stat.value) for stat in space.plane("Task Environment").stats if stat.name == "profile_start_time"
    )


def scope_parents(data: bytes) -> dict[int, int]:
    """The scope that each scope lies in. A stat of the plane has the scope for its id, and seldom a name."""
    plane = next(plane for plane in XSpace.FromString(data).planes if plane.name == SCOPES)
    names = {key: value.name for key, value in plane.stat_metadata.items()}
    return {stat.metadata_id: stat.int64_value for stat in plane.stats if not names.get(stat.metadata_id)}


def test_second_process_is_moved_by_wall_clock_and_collectives(run: Run) -> None:
    first, second = (collective_ends(space) for space in run.spaces)
    start_offset_ps = 1000 * (profile_start_ns(run.spaces[1]) - profile_start_ns(run.spaces[0]))
    # Every op runs equally often in both processes, so that matching within a step is matching in order.
    differences = np.sort(
        np.concatenate([ends - (second[key] + start_offset_ps) for key, ends in first.items()])
    )
    assert differences.size > 100
    assert differences.size % 2 == 1  # so that the median is one of them
    refinement_ps = int(np.median(differences))
    residuals = np.sort(np.abs(differences - refinement_ps))

    rows = run.connection.execute(
        "SELECT process_index, aligned_by, start_offset_ps, refinement_ps, offset_ps, matched_collectives, "
        "residual_ps, p95_residual_ps, max_residual_ps "
        "FROM v1.clock_alignment JOIN captures USING (capture_id) ORDER BY process_index"
    ).fetchall()
    assert rows == [
        (0, "reference", 0, None, 0, 0, None, None, None),
        (
            1,
            "collectives",
            start_offset_ps,
            refinement_ps,
            start_offset_ps + refinement_ps,
            differences.size,
            int(np.median(residuals)),
            int(np.percentile(residuals, 95, method="inverted_cdf")),
            int(residuals[-1]),
        ),
    ]


@pytest.mark.parametrize("process", [0, 1])
def test_scope_ranges_nest_as_the_file_says(run: Run, process: int) -> None:
    space = run.spaces[process]
    parents = scope_parents(run.files[process])
    work: dict[int, list[Event]] = defaultdict(list)
    for event in device_work(space):
        if event.stat("scope_range_id") is not None:
            work[event.stat("scope_range_id")].append(event)
    expected = set()
    for scope in parents.keys() | set(parents.values()) | work.keys():
        outermost, depth = scope, 1
        while outermost in parents:
            outermost, depth = parents[outermost], depth + 1
        ops = {event.stat("hlo_op") for event in work[scope]}
        name = "jit_train_step" if depth == 1 else next(iter(ops)) if len(ops) == 1 else None
        duration_ps = sum(event.duration_ps for event in work[scope])
        expected.add((scope, parents.get(scope), outermost, depth, name, len(work[scope]), duration_ps))

    rows = run.connection.execute(
        "SELECT scope_range_id, parent_scope_range_id, outermost_scope_range_id, depth, scope_name, "
        "device_event_count, sum_ps FROM v1.scope_ranges JOIN captures USING (capture_id) "
        "WHERE process_index = ?",
        [process],
    ).fetchall()
    assert max(depth for _, _, _, depth, *_ in expected) == 6
    assert len(rows) == len(expected)
    assert set(rows) == expected
