"""Captures of real training runs: times, steps, launches and kernels against independent computations."""

from __future__ import annotations

import functools
import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tracewh

from .shared_runs import find_run
from .xspace_expected import DEVICE_PLANE, DEVICE_QUERY, HOST_QUERY, compare, expected_events, rows_of
from .xspace_oracle import XSpace, measure, read_space, text, without

HISTORY = [f"hist_{number:02}" for number in range(1, 9)]
RUNS = [
    "h200x1_small",
    "h200x1_small_nocb",
    "h200x1_small_pytrace",
    "h200x2_medium_fsdp2",
    "h200x2_medium_fsdp2_nocb",
    "h200x2_medium_fsdp2_opt",
    "h200_2proc",
    "h200x1_big_nocb",
    *HISTORY,
]
PUBLIC = [
    "TraceLens-mi300-jax08_gemm",
    "TraceLens-mi300-jax08_conv",
    "TraceLens-mi300-jax_conv_legacy",
    "TraceLens-te_fused_attn",
    "xprof-tpu_inference_2",
]
COLLECTIVE = re.compile(
    r"%?(all-reduce|all-gather|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute|send|recv)"
    r"(-start|-done)?(\.\d+)*(-fusion(\.\d+)*)?"
)

# --- the same quantities, from the bytes --------------------------------------------------------------------

Interval = tuple[int, int]


@dataclass(frozen=True)
class Work:
    """A device event that counts."""

    start_ps: int
    end_ps: int
    event_class: str
    step: int | None
    has_launch: bool


def event_class(name: str, hlo_op: str | None, is_copy: bool) -> str:
    if name.startswith("nccl") or COLLECTIVE.fullmatch(hlo_op or ""):
        return "collective"
    # Copies of the ROCm runtime and of CUDA graphs run as kernels; on a TPU they are ops.
    is_copy_kernel = name.startswith(("__amd_rocclr_copy", "__amd_rocclr_fill")) or re.fullmatch(
        r"mem(cpy|set)\d+(_post)?", name
    )
    is_copy_op = re.fullmatch(r"(async-)?copy(-start|-done)?(\.\d+)*", hlo_op or "") and name == hlo_op
    return "copy" if is_copy or is_copy_kernel or is_copy_op or name == "async-copy" else "compute"


@dataclass
class Range:
    """Where a host thread works for a step."""

    start_ps: int
    end_ps: int
    step: int


def stat_value(stat: Any) -> Any:
    which = stat.WhichOneof("value")
    return None if which is None else getattr(stat, which)


def host_steps(message: Any) -> dict[int, int | None]:
    """Step of each correlation id: of the last range of its thread that is open when the call begins.

    Ranges are the step annotations, and the events of other threads that take work over from inside one.
    """
    wanted = {b"correlation_id", b"_r", b"step_num", b"_pt", b"_p", b"_ct", b"_c"}
    calls: list[tuple[int, int, int]] = []
    ranges: dict[int, list[Range]] = defaultdict(list)
    produced: list[tuple[int, int, Any]] = []
    consumed: list[tuple[int, int, int, Any]] = []
    line_number = 0
    for plane in message.planes:
        if DEVICE_PLANE.match(text(plane.name)):
            continue
        names = {key: value.name for key, value in plane.stat_metadata.items() if value.name in wanted}
        for line in plane.lines:
            line_number += 1
            for event in line.events:
                stats = {
                    names[stat.metadata_id]: stat_value(stat)
                    for stat in event.stats
                    if stat.metadata_id in names
                }
                if not stats:
                    continue
                start = line.timestamp_ns * 1000 + event.offset_ps
                if b"correlation_id" in stats:
                    calls.append((line_number, start, stats[b"correlation_id"]))
                if stats.get(b"_r") == 1:
                    ranges[line_number].append(Range(start, start + event.duration_ps, stats[b"step_num"]))
                if b"_p" in stats:
                    produced.append((line_number, start, (stats.get(b"_pt"), stats[b"_p"])))
                if b"_c" in stats:
                    end = start + event.duration_ps
                    consumed.append((line_number, start, end, (stats.get(b"_ct"), stats[b"_c"])))
    handed_over = {}
    for line_number, start, key in produced:
        for item in ranges[line_number]:
            if item.start_ps <= start < item.end_ps:
                handed_over[key] = item.step
    annotated = {number: list(items) for number, items in ranges.items()}
    for line_number, start, end, key in consumed:
        if key in handed_over and not annotated.get(line_number):
            ranges[line_number].append(Range(start, end, handed_over[key]))
    steps: dict[int, int | None] = {}
    for line_number, start, correlation_id in calls:
        open_ranges = [item for item in ranges[line_number] if item.start_ps <= start < item.end_ps]
        latest = max(open_ranges, key=lambda item: item.start_ps, default=None)
        steps[correlation_id] = None if latest is None else latest.step
    return steps


def device_work(message: Any) -> dict[tuple[str, int], list[Work]]:
    """The work of each device: what its streams ran, or on a TPU its op lines without enclosing loops."""
    steps = host_steps(message)
    result: dict[tuple[str, int], list[Work]] = {}
    for plane in message.planes:
        found = DEVICE_PLANE.match(text(plane.name))
        if found is None:
            continue
        stat_names = {key: text(value.name) for key, value in plane.stat_metadata.items()}
        event_names = {
            key: text(value.display_name or value.name) for key, value in plane.event_metadata.items()
        }
        work = result.setdefault((found[1], int(found[2])), [])
        for line in plane.lines:
            if found[1] == "TPU" and line.name not in (b"XLA Ops", b"Async XLA Ops"):
                continue
            for event in line.events:
                start = line.timestamp_ns * 1000 + event.offset_ps
                name, hlo_op, correlation_id, is_copy = event_names[event.metadata_id], None, None, False
                for stat in event.stats:
                    match stat_names[stat.metadata_id]:
                        case "hlo_op":
                            value = stat_value(stat)
                            hlo_op = text(value) if isinstance(value, bytes) else stat_names[value]
                        case "correlation_id":
                            correlation_id = stat_value(stat)
                        case "memcpy_details" | "Memset_details" | "memset_details":
                            is_copy = True
                if found[1] == "TPU":
                    hlo_op = name
                work.append(
                    Work(
                        start,
                        start + event.duration_ps,
                        event_class(name, hlo_op, is_copy),
                        steps.get(correlation_id) if correlation_id is not None else None,
                        correlation_id in steps,
                    )
                )
    return result


# --- captures -----------------------------------------------------------------------------------------------


@dataclass
class Run:
    """A run with the messages of its captures, in the order of their process."""

    name: str
    paths: list[Path]
    connection: duckdb.DuckDBPyConnection

    @functools.cached_property
    def messages(self) -> list[Any]:
        return [XSpace.FromString(path.read_bytes()) for path in self.paths]

    @functools.cached_property
    def work(self) -> list[dict[tuple[str, int], list[Work]]]:
        return [device_work(message) for message in self.messages]

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        return self.connection.execute(query).fetchall()


Load = Callable[[str], Run]


@pytest.fixture(scope="module")
def load(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Load]:
    """A function that ingests a run of shared/ once and keeps the last one."""
    opened: list[Run] = []

    def get(name: str) -> Run:
        if opened and opened[-1].name == name:
            return opened[-1]
        while opened:
            opened.pop().connection.close()
        path = find_run(name, tmp_path_factory.mktemp("run"))
        warehouse = tmp_path_factory.mktemp("warehouse") / "w.duckdb"
        report = tracewh.ingest_run(path, warehouse=warehouse)
        assert report.status == "loaded"
        paths = [path] if path.is_file() else sorted(path.rglob("*.xplane.pb"))
        opened.append(Run(name, paths, duckdb.connect(str(warehouse), read_only=True)))
        return opened[-1]

    yield get
    while opened:
        opened.pop().connection.close()


def parts_of(events: list[Work]) -> dict[str, int]:
    """Every column of v1.device_time, by set operations on merged intervals."""
    by_class: dict[str, list[Interval]] = defaultdict(list)
    for item in events:
        by_class[item.event_class].append((item.start_ps, item.end_ps))
    compute, communication, copy = (by_class[name] for name in ("compute", "collective", "copy"))
    window = max(item.end_ps for item in events) - min(item.start_ps for item in events)
    exposed_communication = without(communication, compute)
    exposed_copy = without(without(copy, compute), communication)
    busy = measure(compute + communication + copy)
    parts = {
        "window_ps": window,
        "busy_ps": busy,
        "idle_ps": window - busy,
        "compute_ps": measure(compute),
        "communication_ps": measure(communication),
        "copy_ps": measure(copy),
        "overlap_ps": measure(communication) - measure(exposed_communication),
        "exposed_communication_ps": measure(exposed_communication),
        "exposed_copy_ps": measure(exposed_copy),
    }
    assert busy == parts["compute_ps"] + parts["exposed_communication_ps"] + parts["exposed_copy_ps"]
    return parts


def scopes(run: Run) -> Iterator[tuple[tuple[int, str, int, int | None], list[Work]]]:
    """The work of each (process, device type, ordinal, step), and of each device with step None."""
    for process, devices in enumerate(run.work):
        for (device_type, ordinal), events in devices.items():
            if events:
                yield (process, device_type, ordinal, None), events
            by_step: dict[int, list[Work]] = defaultdict(list)
            for item in events:
                if item.step is not None:
                    by_step[item.step].append(item)
            for step, members in by_step.items():
                yield (process, device_type, ordinal, step), members


# Executions of a program that are steps for want of an annotation have a test of their own.
ANNOTATED = "(step_num IS NULL OR capture_id IN (SELECT capture_id FROM steps))"
DEVICE_TIME = f"""
    SELECT c.process_index, d.device_type, t.device_ordinal, t.step_num, t.window_ps, t.busy_ps, t.idle_ps,
        t.compute_ps, t.communication_ps, t.copy_ps, t.overlap_ps, t.exposed_communication_ps,
        t.exposed_copy_ps
    FROM v1.device_time AS t JOIN captures AS c USING (capture_id) JOIN devices AS d USING (device_id)
    WHERE {ANNOTATED}
"""


@pytest.fixture(scope="module", params=[*PUBLIC, *RUNS])
def run(request: pytest.FixtureRequest, load: Load) -> Run:
    return load(request.param)


def test_device_time(run: Run) -> None:
    expected = {key: parts_of(events) for key, events in scopes(run)}
    found = {
        row[:4]: dict(zip(next(iter(expected.values())), row[4:], strict=True))
        for row in run.rows(DEVICE_TIME)
    }
    assert found.keys() == expected.keys()
    for key, parts in expected.items():
        assert found[key] == parts, key
        shares = ("compute_ps", "exposed_communication_ps", "exposed_copy_ps", "idle_ps")
        assert sum(found[key][share] for share in shares) == found[key]["window_ps"]


def test_phases_and_components_add_up(run: Run) -> None:
    expected = {key: sum(item.end_ps - item.start_ps for item in events) for key, events in scopes(run)}
    keys = "c.process_index, d.device_type, t.device_ordinal, t.step_num"
    joins = (
        f"AS t JOIN captures AS c USING (capture_id) JOIN devices AS d USING (device_id) WHERE {ANNOTATED}"
    )
    phases = {
        row[:5]: row[5:] for row in run.rows(f"SELECT {keys}, phase, sum_ps FROM v1.phase_time {joins}")
    }
    summed: Counter[Any] = Counter()
    for key, (sum_ps,) in phases.items():
        summed[key[:4]] += sum_ps
    assert summed == expected
    summed = Counter()
    for *key, sum_ps in run.rows(f"SELECT {keys}, phase, sum_ps FROM v1.component_time {joins}"):
        summed[tuple(key)] += sum_ps
    assert summed == {key: sum_ps for key, (sum_ps,) in phases.items()}


def test_unions_of_phases_and_components(run: Run) -> None:
    # Which phase an event has is v1.attribution's word; that the unions are right is worked out here.
    by_phase: dict[Any, list[Interval]] = defaultdict(list)
    by_component: dict[Any, list[Interval]] = defaultdict(list)
    query = (
        """SELECT capture_id, device_id, step_num, phase, component, start_ps, end_ps FROM v1.attribution"""
    )
    for capture, device, step, phase, component, start, end in run.rows(query):
        for scope in {step, None}:
            by_phase[capture, device, scope, phase].append((start, end))
            by_component[capture, device, scope, phase, component].append((start, end))
    keys = "capture_id, device_id, step_num, phase"
    phases = {row[:4]: row[4] for row in run.rows(f"SELECT {keys}, union_ps FROM v1.phase_time")}
    assert phases == {key: measure(intervals) for key, intervals in by_phase.items()}
    components = {
        row[:5]: row[5] for row in run.rows(f"SELECT {keys}, component, union_ps FROM v1.component_time")
    }
    assert components == {key: measure(intervals) for key, intervals in by_component.items()}


def test_launches(run: Run) -> None:
    expected = Counter(item.has_launch for devices in run.work for work in devices.values() for item in work)
    statuses = dict(run.rows("SELECT link_status, COUNT(*) FROM v1.launches GROUP BY 1"))
    assert statuses.get("linked", 0) + statuses.get("ambiguous", 0) == expected[True]
    assert sum(statuses.values()) == sum(expected.values())
    if run.name not in PUBLIC:
        # Every kernel and copy of these runs was launched by a call that the capture holds, exactly one.
        assert statuses == {"linked": sum(expected.values())}
        (negative,) = run.rows("SELECT COUNT(*) FROM v1.launches WHERE queue_delay_ps < 0")
        assert negative == (0,)


# --- reference values of the public files -------------------------------------------------------------------

NS = 1000
REFERENCE = {
    ("TraceLens-mi300-jax08_conv", 0): (3_995_965, 138_470_832),
    ("TraceLens-mi300-jax08_conv", 1): (3_345_845, 112_106_106),
    ("TraceLens-mi300-jax_conv_legacy", 7): (3_586_493, 15_761_301),
    ("TraceLens-mi300-jax_conv_legacy", 0): (889_028, 27_867_728),
    ("TraceLens-te_fused_attn", 0): (12_133_127, 12_956_751),
    ("TraceLens-mi300-jax08_gemm", 0): (3_475_484, 9_456_212),
}
"""Busy time and span in ns, by file and device, as published with the files."""


@pytest.mark.parametrize(("name", "ordinal"), REFERENCE)
def test_reference_values(load: Load, name: str, ordinal: int) -> None:
    run = load(name)
    query = """SELECT device_ordinal, busy_ps, window_ps FROM v1.device_time
        WHERE step_num IS NULL AND busy_ps > 0"""
    found = {row[0]: row[1:] for row in run.rows(query)}
    if name == "TraceLens-te_fused_attn":
        # The file does not say which of the eight devices ran.
        (ordinal,) = found
    busy, span = REFERENCE[name, ordinal]
    assert found[ordinal] == (busy * NS, span * NS)


@pytest.mark.parametrize(
    ("name", "ordinal", "summed_ns"),
    [("TraceLens-mi300-jax08_conv", 0, 4_000_165), ("TraceLens-te_fused_attn", None, 12_133_585)],
)
def test_reference_sums(load: Load, name: str, ordinal: int | None, summed_ns: int) -> None:
    run = load(name)
    sums = dict(
        run.rows("SELECT device_ordinal, SUM(sum_ps) FROM v1.phase_time WHERE step_num IS NULL GROUP BY 1")
    )
    assert (max(sums.values()) if ordinal is None else sums[ordinal]) == summed_ns * NS


def test_reference_copies(load: Load) -> None:
    run = load("TraceLens-mi300-jax08_conv")
    query = """SELECT event_class, COUNT(*) FROM v1.attribution
        WHERE device_ordinal = 0 AND kernel_name = '__amd_rocclr_copyBuffer.kd' GROUP BY 1"""
    assert run.rows(query) == [("copy", 35)]
    run = load("TraceLens-mi300-jax_conv_legacy")
    query = "SELECT device_ordinal, event_class, COUNT(*) FROM v1.attribution GROUP BY ALL ORDER BY ALL"
    assert run.rows(query) == [(0, "copy", 53), (7, "compute", 25)]


def test_reference_gemm_rates(load: Load) -> None:
    # Five programs of one name, each with one GEMM: only the program id tells them apart.
    shapes = {
        21: (1024, 1024, 1024, 205.4),
        34: (4096, 4096, 4096, 917.7),
        49: (8192, 8192, 4096, 899.8),
        64: (2048, 2048, 8192, 585.2),
        79: (16384, 4096, 1024, 745.7),
    }
    run = load("TraceLens-mi300-jax08_gemm")
    query = """SELECT program_id, COUNT(*), SUM(end_ps - start_ps) FROM v1.attribution
        WHERE opcode = 'custom-call' GROUP BY 1"""
    found = {row[0]: row[1:] for row in run.rows(query)}
    assert found.keys() == shapes.keys()
    for program_id, (m, n, k, tflops) in shapes.items():
        count, time_ps = found[program_id]
        assert round(2 * m * n * k * count / time_ps, 1) == tflops


# --- steps and processes ------------------------------------------------------------------------------------


def test_steps_are_complete(run: Run) -> None:
    expected = set()
    for key, events in scopes(run):
        if key[3] is not None:
            start, end = min(item.start_ps for item in events), max(item.end_ps for item in events)
            expected.add((*key, start, end, end - start, len(events), True))
    found = run.rows(
        f"""SELECT c.process_index, d.device_type, s.device_ordinal, s.step_num, s.start_ps, s.end_ps,
            s.duration_ps, s.device_event_count, s.is_complete
        FROM v1.steps AS s JOIN captures AS c USING (capture_id) JOIN devices AS d USING (device_id)
        WHERE {ANNOTATED}"""
    )
    assert set(found) == expected
    assert len(found) == len(expected)


def test_every_event_of_a_large_step(load: Load) -> None:
    run = load("h200x2_medium_fsdp2_nocb")
    _, device_rows, host_rows = expected_events(read_space(run.paths[0].read_bytes()))
    for query, expected in ((DEVICE_QUERY, device_rows), (HOST_QUERY, host_rows)):
        found = rows_of(run.connection, query, 1)
        compare(found, expected, [column for column in found[0] if column != "id"])


def test_three_steps_on_both_devices(load: Load) -> None:
    run = load("h200x2_medium_fsdp2_nocb")
    found = run.rows("SELECT device_ordinal, step_num, is_complete FROM v1.steps ORDER BY ALL")
    assert found == [(device, step, True) for device in (0, 1) for step in (10, 11, 12)]
    # All work of the capture is work of one of the steps, since nothing else ran.
    (unplaced,) = run.rows("SELECT COUNT(*) FROM v1.attribution WHERE step_num IS NULL")
    assert unplaced == (0,)


def test_two_processes_of_one_run(load: Load) -> None:
    run = load("h200_2proc")
    captures = run.rows(
        "SELECT run_name, process_index, device_count, step_count FROM v1.captures ORDER BY process_index"
    )
    assert captures == [("h200_2proc", 0, 1, 3), ("h200_2proc", 1, 1, 3)]
    assert run.rows("SELECT device_type, device_ordinal FROM devices ORDER BY ALL") == [
        ("GPU", 0),
        ("GPU", 1),
    ]
    worked = run.rows(
        """SELECT DISTINCT c.process_index, e.device_id
        FROM device_events AS e JOIN captures AS c USING (capture_id) ORDER BY ALL"""
    )
    assert [process for process, _ in worked] == [0, 1]
    assert worked[0][1] != worked[1][1]
    # Each capture also has an empty plane for the other's device.
    seen = run.rows(
        "SELECT capture_id, COUNT(DISTINCT device_id) FROM device_attributes GROUP BY 1 ORDER BY 1"
    )
    assert [count for _, count in seen] == [2, 2]
    # The collectives of both wait for each other: in the wall clock the steps of the processes coincide.
    windows = run.rows(
        """WITH origins AS (SELECT capture_id, origin_unix_ns::HUGEINT * 1000 AS origin_ps FROM captures)
        SELECT s.step_num, MAX(c.origin_ps + s.start_ps) < MIN(c.origin_ps + s.end_ps)
        FROM v1.steps AS s JOIN origins AS c USING (capture_id) GROUP BY 1 HAVING COUNT(*) = 2"""
    )
    assert len(windows) == 3
    assert all(overlap for _, overlap in windows)


# --- kernels against XProf ----------------------------------------------------------------------------------


def xprof_kernels(path: Path, folder: Path) -> list[dict[str, Any]]:
    """Rows of XProf's kernel_stats."""
    convert = pytest.importorskip("xprof.convert.raw_to_tool_data", reason="xprof is not installed")
    # XProf writes a cache beside the file it reads.
    copied = folder / "vm.xplane.pb"
    copied.write_bytes(path.read_bytes())
    data, _ = convert.xspace_to_tool_data([str(copied)], "kernel_stats", {})
    table = json.loads(data)
    columns = [column["id"] for column in table["cols"]]
    rows = [dict(zip(columns, (cell["v"] for cell in row["c"]), strict=True)) for row in table["rows"]]
    assert 0 < len(rows) < 1000, "XProf cuts at 1000 rows"
    return rows


def nanoseconds(microseconds: float) -> int:
    return round(microseconds * 1000)


@pytest.mark.parametrize("name", ["h200x2_medium_fsdp2_nocb", "h200x1_small", "TraceLens-mi300-jax08_conv"])
def test_kernel_stats_agree_with_xprof(load: Load, name: str, tmp_path: Path) -> None:
    run = load(name)
    # XProf has only kernels with launch details. It splits a kernel and op by launch shape, too, and takes
    # what follows a colon in a name for a type.
    theirs: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in xprof_kernels(run.paths[0], tmp_path):
        theirs[row["kernel_name"], row["op_name"].removesuffix(":")].append(row)
    found = run.rows(
        """SELECT kernel_name, op_name, occurrences, total_ps, min_ps, max_ps, registers_per_thread,
            shared_memory_bytes, block, grid, occupancy_ratio FROM v1.kernel_stats"""
    )
    ours = {row[:2]: row[2:] for row in found}
    assert len(ours) == len(found)
    renamed = {
        row[0]
        for row in run.rows(
            """SELECT DISTINCT kernel_name FROM v1.attribution
            WHERE op_name_source NOT IN ('own', 'event') OR attribution_source <> 'hlo_op'"""
        )
    }
    for (kernel, op), rows in theirs.items():
        if op in ("", "XlaModule") or kernel in renamed:
            # The event names no op, or what its instruction begins with. tracewh finds one in the HLO.
            # Only the kernel's total can agree.
            continue
        count, total, shortest, longest, *shape = ours[kernel, op]
        assert count == sum(row["occurrences"] for row in rows)
        assert total == 1000 * sum(nanoseconds(row["total_duration_us"]) for row in rows)
        assert shortest == 1000 * min(nanoseconds(row["min_duration_us"]) for row in rows)
        assert longest == 1000 * max(nanoseconds(row["max_duration_us"]) for row in rows)
        if len(rows) == 1 and name not in PUBLIC:
            # XProf reads registers and shared memory of ROCm as 0.
            (row,) = rows
            assert shape == [
                row["registers_per_thread"],
                row["shmem_bytes"],
                row["block_dim"],
                row["grid_dim"],
                pytest.approx(row["occupancy_pct"] / 100),
            ]
    totals: dict[str, Counter[str]] = {"ours": Counter(), "theirs": Counter()}
    counts: dict[str, Counter[str]] = {"ours": Counter(), "theirs": Counter()}
    for (kernel, _), rows in theirs.items():
        for row in rows:
            totals["theirs"][kernel] += 1000 * nanoseconds(row["total_duration_us"])
            counts["theirs"][kernel] += int(row["occurrences"])
    copies = {row[0] for row in found if row[-2] is None and row[0].startswith("Mem")}
    for (kernel, _), (count, total, *_) in ours.items():
        if kernel not in copies:
            totals["ours"][kernel] += total
            counts["ours"][kernel] += count
    assert counts["ours"] == counts["theirs"]
    assert totals["ours"] == totals["theirs"]
