"""v1.kernel_matches against a loop over random kernels of two captures."""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass

import duckdb
import pytest

from .live_views import live_warehouse

SEEDS = range(40)
STEP_PS = 1000
# What each is called in the XSpace and in the ROCm capture, and how they meet.
KERNELS = {
    "fusion": ("fusion.kd", "fusion", "full_name"),
    "k": ("void n::k<A>(int)", "void n::k<1>(int)", "stable_name"),
    "x": ("only_here", None, None),
    "r": (None, "only_there", None),
}
NAMES = sorted({name for spelled in KERNELS.values() for name in spelled[:2] if name is not None})
Sides = tuple[list["Kernel"], list["Kernel"]]
Row = tuple[int | None, str, str, int, int | None, int | None, str, str | None]


@dataclass(frozen=True)
class Kernel:
    number: int
    start_ps: int
    kernel: str
    grid: int
    step: int | None


def random_kernels(rng: random.Random, side: int, steps: list[int]) -> list[Kernel]:
    names = [kernel for kernel, spelled in KERNELS.items() if spelled[side] is not None]
    kernels = []
    for step in [None, *steps]:
        first = 0 if step is None else STEP_PS * step
        starts = rng.sample(range(first, first + STEP_PS // 2), rng.randrange(1, 12))
        kernels += [(start, rng.choice(names), rng.choice([8, 16]), step) for start in starts]
    rng.shuffle(kernels)
    return [Kernel(number, *kernel) for number, kernel in enumerate(kernels)]


def expected_rows(sides: Sides) -> set[Row]:
    steps = [{kernel.step for kernel in side} - {None} for side in sides]
    has_common_step = bool(steps[0] & steps[1])
    groups: dict[tuple[str, int, int | None], tuple[list[Kernel], list[Kernel]]] = defaultdict(
        lambda: ([], [])
    )
    for side, kernels in enumerate(sides):
        for kernel in sorted(kernels, key=lambda kernel: kernel.start_ps):
            scope = kernel.step if has_common_step else None
            groups[kernel.kernel, kernel.grid, scope][side].append(kernel)
    rows = set()
    for (name, grid, _), (xspace, rocm) in groups.items():
        matched_by = KERNELS[name][2] if xspace and rocm else None
        status = "matched" if len(xspace) == len(rocm) else "ambiguous"
        if not xspace or not rocm:
            status = "only_xspace" if xspace else "only_rocm"
        for index in range(max(len(xspace), len(rocm))):
            pair = [side[index] if index < len(side) else None for side in (xspace, rocm)]
            found = [kernel.step for kernel in pair if kernel is not None and kernel.step is not None]
            numbers = [None if kernel is None else kernel.number for kernel in pair]
            step = min(found, default=None)
            rows.add((step, name, f"{grid},1,1", index + 1, numbers[0], numbers[1], status, matched_by))
    return rows


def random_sides(seed: int) -> Sides:
    rng = random.Random(seed)
    rocm_steps = [[1, 2], [2, 3], [], [3, 4]][seed % 4]
    return random_kernels(rng, 0, [1, 2]), random_kernels(rng, 1, rocm_steps)


@pytest.fixture(scope="module")
def matches() -> dict[int, list[Row]]:
    """What the view says of the kernels of each seed, which are a run each."""
    with live_warehouse() as connection:
        connection.executemany("INSERT INTO main.names (name_id, name) VALUES (?, ?)", list(enumerate(NAMES)))
        for seed in SEEDS:
            load(connection, seed)
        rows = connection.execute(
            "SELECT run_id, step_num, stable_name, grid, occurrence, xspace_device_event_id, "
            "rocm_device_event_id, match_status, matched_by FROM v1.kernel_matches"
        ).fetchall()
    found: dict[int, list[Row]] = {seed: [] for seed in SEEDS}
    called = {"only_here": "x", "only_there": "r"}
    for seed, step, name, *others in rows:
        found[seed].append((step, called.get(name, name), *others))
    return found


@pytest.mark.parametrize("seed", SEEDS)
def test_matches(matches: dict[int, list[Row]], seed: int) -> None:
    assert len(matches[seed]) == len(set(matches[seed]))
    assert set(matches[seed]) == expected_rows(random_sides(seed))


def load(connection: duckdb.DuckDBPyConnection, seed: int) -> None:
    """Insert the two captures of the run `seed`."""
    connection.execute(
        "INSERT INTO main.devices (device_id, run_id, hostname, device_type, device_ordinal) "
        "VALUES ($1, $1, '', 'GPU', 0)",
        [seed],
    )
    for side, kernels in enumerate(random_sides(seed)):
        capture_id = 2 * seed + side
        connection.execute(
            "INSERT INTO main.captures (capture_id, run_id, artifact_id, source_kind, process_index) "
            "VALUES (?, ?, 0, ?, ?)",
            [capture_id, seed, ("xspace", "rocpd")[side], side],
        )
        connection.execute(
            "INSERT INTO main.tracks (capture_id, track_id, track_kind, track_name) "
            "VALUES ($1, 0, 'thread', ''), ($1, 1, 'stream', '')",
            [capture_id],
        )
        connection.execute(
            "INSERT INTO main.launch_details (capture_id, launch_details_id, grid_x, grid_y, grid_z, "
            "block_x, block_y, block_z) VALUES ($1, 8, 8, 1, 1, 64, 1, 1), ($1, 16, 16, 1, 1, 64, 1, 1)",
            [capture_id],
        )
        for step in {kernel.step for kernel in kernels} - {None}:
            connection.execute(
                "INSERT INTO main.steps (capture_id, step_id, step_num, name_id, track_id, start_ps, end_ps, "
                "source) VALUES ($1, $2, $2, 0, 0, $3, $4, 'test')",
                [capture_id, step, STEP_PS * step, STEP_PS * (step + 1)],
            )
        # A launch has the time of its kernel, so that it lies in the annotation of its step.
        connection.executemany(
            "INSERT INTO main.host_events (capture_id, host_event_id, track_id, name_id, start_ps, "
            "end_ps, correlation_id) VALUES ($1, $2, 0, 0, $3, $3, $2)",
            [[capture_id, kernel.number, kernel.start_ps] for kernel in kernels],
        )
        connection.executemany(
            "INSERT INTO main.device_events (capture_id, device_event_id, device_id, track_id, name_id, "
            "start_ps, end_ps, kind, role, correlation_id, launch_details_id) "
            "VALUES ($1, $2, $3, 1, $4, $5, $5 + 1, 'kernel', 'work', $2, $6)",
            [
                [
                    capture_id,
                    kernel.number,
                    seed,
                    NAMES.index(str(KERNELS[kernel.kernel][side])),
                    kernel.start_ps,
                    kernel.grid,
                ]
                for kernel in kernels
            ],
        )
