"""What marks steps in whole captures: annotations, ranges of other tracers, the user's word, program runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tracewh
from tracewh.sql.step_choices import StepChoiceError

from .generated_rocpd import write_file
from .shared_runs import find_run
from .xspace_files import BUNDLED, file_id, read_file
from .xspace_ingest import Ingest, ingesting
from .xspace_oracle import SpaceBuilder, Unsigned, XSpace

STEPS = """
    SELECT device_ordinal, start_ps, end_ps, step_num, found_by, mark_source, is_complete
    FROM v1.steps ORDER BY device_ordinal, start_ps
"""
# JAX calls it PjitFunction(train_step) or, from 0.11 on, PjitFunction(jit(train_step)).
CALL = "PjitFunction[(](jit[(])?train_step[)]*"


@pytest.fixture
def ingest(tmp_path: Path) -> Iterator[Ingest]:
    yield from ingesting(tmp_path)


def without_annotations(data: bytes) -> bytes:
    """The capture without what StepTraceAnnotation wrote."""
    space = XSpace.FromString(data)
    removed = 0
    for plane in space.planes:
        roots = {key for key, value in plane.stat_metadata.items() if value.name == b"_r"}
        for line in plane.lines:
            kept = [event for event in line.events if not roots & {stat.metadata_id for stat in event.stats}]
            removed += len(line.events) - len(kept)
            del line.events[:]
            line.events.extend(kept)
    assert removed
    return bytes(space.SerializeToString())


def rows_after_ingest(data: bytes, path: Path, query: str, **options: Any) -> list[tuple[Any, ...]]:
    path.write_bytes(data)
    warehouse = path.with_suffix(".duckdb")
    assert tracewh.ingest_run(path, warehouse=warehouse, **options).warnings == []
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        return connection.execute(query).fetchall()


def check_program_runs(data: bytes, folder: Path) -> None:
    """Without annotations, the executions of the program have the windows that the annotated steps had."""
    annotated = rows_after_ingest(data, folder / "annotated.xplane.pb", STEPS)
    stripped = without_annotations(data)
    found = rows_after_ingest(stripped, folder / "stripped.xplane.pb", STEPS)
    assert [row[:3] for row in found] == [row[:3] for row in annotated]
    assert {row[3] for row in found} == {0, 1, 2}
    assert {row[4:] for row in found} == {("program_run", "program_run", True)}
    marked = rows_after_ingest(stripped, folder / "marked.xplane.pb", STEPS, step_marker=CALL)
    assert [row[:4] for row in marked] == [row[:4] for row in found]
    assert {row[5:] for row in marked} == {("marker", True)}


@pytest.mark.parametrize("path", BUNDLED, ids=file_id)
def test_program_runs_of_bundled_captures(path: Path, tmp_path: Path) -> None:
    check_program_runs(read_file(path), tmp_path)


@pytest.mark.parametrize("name", ["h200x2_medium_fsdp2_nocb", "h200x1_small_nocb"])
def test_program_runs_of_recorded_captures(name: str, tmp_path: Path) -> None:
    (path,) = find_run(name, tmp_path).rglob("*.xplane.pb")
    check_program_runs(path.read_bytes(), tmp_path)


@pytest.mark.parametrize(
    ("name", "program", "devices", "steps", "events"),
    [
        ("TraceLens-mi300-jax08_conv", "jit_forward_3d_conv", 8, 5, 5),
        # Six programs of that name ran three times each; one has over half of the device time.
        ("TraceLens-mi300-jax08_gemm", "jit_dot", 1, 3, 1),
        ("TraceLens-te_fused_attn", "jit_loss_fn", 1, 5, 30),
        ("xprof-tpu_inference_2", "jit_f(12190760917235803885)", 4, 100, 15),
    ],
)
def test_program_runs_of_public_captures(
    name: str, program: str, devices: int, steps: int, events: int, tmp_path: Path
) -> None:
    path = find_run(name, tmp_path)
    warehouse = tmp_path / "w.duckdb"
    tracewh.ingest_run(path, warehouse=warehouse)
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        found = connection.execute(
            "SELECT step_name, COUNT(DISTINCT device_id), COUNT(DISTINCT step_num), COUNT(*), "
            "MIN(device_event_count), BOOL_AND(is_complete) FROM v1.steps GROUP BY 1"
        ).fetchall()
    assert found == [(program, devices, steps, devices * steps, events, True)]


# --- ranges of other tracers --------------------------------------------------------------------------------


def space_with_ranges(*names: str, annotated: bool = False) -> SpaceBuilder:
    """Each range launches one kernel of 100 ns, 50 ns after it began; ranges are 1000 ns apart."""
    space = SpaceBuilder()
    host, gpu = space.plane("/host:CPU").line("python"), space.gpu().line("Stream #1(Compute)")
    for number, name in enumerate(names):
        start, link = 1_000_000 * number, {"correlation_id": Unsigned(number + 1)}
        host.event(name, start, 900_000, {"_r": 1, "step_num": 70 + number} if annotated else {})
        host.event("cuLaunchKernel", start + 50_000, 10, link)
        gpu.event("gemm", start + 2_000_000, 100_000, link)
    return space


def test_ranges_of_an_xspace_that_are_named_as_steps(ingest: Ingest) -> None:
    names = ("train_step 4", "train_step#step_num=5#", "train_step 6", "evaluate 6")
    connection = ingest(space_with_ranges(*names))
    rows = connection.execute(
        "SELECT step_num, start_ps, end_ps, found_by, mark_source, step_name FROM v1.steps ORDER BY 1"
    ).fetchall()
    assert rows == [
        (step, at, at + 100_000, "launch", "annotation", "train_step")
        for step, at in ((4, 2_000_000), (5, 3_000_000), (6, 4_000_000))
    ]
    assert connection.execute("SELECT DISTINCT source FROM steps").fetchall() == [("marker",)]


def test_an_annotation_that_is_named_as_a_step_is_one_step(ingest: Ingest) -> None:
    connection = ingest(space_with_ranges("step 1", "step 1", annotated=True))
    rows = connection.execute("SELECT step_num, source FROM steps ORDER BY 1").fetchall()
    assert rows == [(70, "step_trace_annotation"), (71, "step_trace_annotation")]


@pytest.mark.parametrize(
    ("names", "marker", "steps"),
    [
        (("loop 3", "loop 4"), "loop .*", [3, 4]),
        (("loop (3)", "loop (4)"), "loop .*", [3, 4]),
        # A number that all have numbers nothing, unless the pattern says so.
        (("loop 3 of 10", "loop 4 of 10"), "loop .*", [0, 1]),
        (("loop 3 of 10", "loop 4 of 10"), "loop ([0-9]) of [0-9]+", [3, 4]),
        (("loop 3 of 10", "loop 4 of 10"), "loop [34] of ([0-9]+)", [10]),
        (("loop 3", "loop 4"), "(loop) [34]", [3, 4]),
        (("loop 3", "loop 4", "other"), "(loop 3|other)", [0, 1]),
        # The number is of the group that matched, in whichever alternative.
        (("it 3 of 10", "it 4 of 10"), "it ([0-9]+) of [0-9]+|eval ([0-9]+)", [3, 4]),
        (("it 3 of 10", "eval 5 of 10"), "it ([0-9]+) of [0-9]+|(eval|test) ([0-9]+) of 10", [3, 5]),
        (("it 3 of 10", "it 4 of 10"), "^(it ([0-9]) of .*|eval)$", [3, 4]),
        (("v1.5 of 10", "v2.5 of 10"), "v([0-9.]+) of [0-9]+", [0, 1]),
        (("a1 of 9", "a2 of 9"), "a()()()()()()()()()()([0-9]) of 9", [1, 2]),
    ],
)
def test_numbers_of_the_users_marker(
    names: tuple[str, ...], marker: str, steps: list[int], tmp_path: Path
) -> None:
    space, query = space_with_ranges(*names), "SELECT step_num FROM v1.steps ORDER BY 1"
    found = rows_after_ingest(space.serialize(), tmp_path / "a.xplane.pb", query, step_marker=marker)
    assert found == [(step,) for step in steps]


# --- rocpd of a whole program -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def whole_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fourteen marked steps on two GPUs, from the start of the program to its end."""
    return write_file(tmp_path_factory.mktemp("rocpd") / "1_results.db", steps=14, counts=False)


def test_steps_10_to_12_of_a_whole_program(whole_program: Path, tmp_path: Path) -> None:
    query = (
        "SELECT step_num, device_ordinal, start_ps, end_ps, gap_before_ps, is_complete "
        "FROM v1.steps ORDER BY 1, 2"
    )
    every, chosen = tmp_path / "every.duckdb", tmp_path / "chosen.duckdb"
    assert tracewh.ingest_run(whole_program, warehouse=every).steps == 14
    report = tracewh.ingest_run(
        whole_program, warehouse=chosen, steps="10-12", step_marker="train_step ([0-9]+)"
    )
    assert (report.steps, report.warnings) == (3, [])
    with duckdb.connect(str(every), read_only=True) as connection:
        whole = connection.execute(query).fetchall()
    with duckdb.connect(str(chosen), read_only=True) as connection:
        part = connection.execute(query).fetchall()
        scopes = connection.execute(
            "SELECT DISTINCT step_num FROM v1.device_time ORDER BY 1 NULLS LAST"
        ).fetchall()
    assert [row[:2] for row in whole] == [(step, device) for step in range(14) for device in range(2)]
    assert part == [row for row in whole if 10 <= row[0] <= 12]
    assert scopes == [(10,), (11,), (12,), (None,)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"steps": "20-30"}, ("none of steps 20-30", "0-13")),
        ({"steps": "12-20"}, ("of steps 12-20 only 12-13", "0-13")),
        ({"step_marker": "train_step"}, ("a part of", "train_step 0", ".*")),
        ({"step_marker": "evaluation"}, ("no host event or marker", "tracewh sql")),
    ],
)
def test_choices_that_fit_nothing_are_warnings(
    whole_program: Path, tmp_path: Path, options: dict[str, str], words: tuple[str, ...]
) -> None:
    report = tracewh.ingest_run(whole_program, warehouse=tmp_path / "w.duckdb", **options)  # type: ignore[arg-type]
    (warning,) = report.warnings
    assert all(word in warning for word in words)
    is_kept = options == {"steps": "12-20"}
    with duckdb.connect(str(tmp_path / "w.duckdb"), read_only=True) as connection:
        assert connection.execute("SELECT COUNT(*) FROM step_choices").fetchall() == [(int(is_kept),)]
        assert connection.execute("SELECT COUNT(*) FROM step_marker_texts").fetchall() == [(0,)]
    assert report.steps == (2 if is_kept else 14)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"steps": "12-10"}, "Write 10-12"),
        ({"steps": "x"}, "as 10-12"),
        ({"steps": "-3"}, "as 10-12"),
        ({"step_marker": r"step \d"}, "no backslash"),
        ({"step_marker": "(?:step)"}, "lookaround"),
        ({"step_marker": "("}, "character 1"),
        ({"step_marker": ""}, "empty"),
    ],
)
def test_malformed_choices_are_refused_before_anything_is_read(
    tmp_path: Path, options: dict[str, str], words: str
) -> None:
    with pytest.raises(StepChoiceError, match=words):
        tracewh.ingest_run(tmp_path / "nothing", warehouse=tmp_path / "w.duckdb", **options)  # type: ignore[arg-type]
    assert not (tmp_path / "w.duckdb").exists()


def test_a_later_capture_of_the_run_is_marked_too(tmp_path: Path) -> None:
    warehouse, folder = tmp_path / "w.duckdb", tmp_path / "run"
    folder.mkdir()
    (folder / "a.xplane.pb").write_bytes(space_with_ranges("loop 1", "loop 2").serialize())
    tracewh.ingest_run(folder, warehouse=warehouse, step_marker="loop [0-9]")
    (folder / "b.xplane.pb").write_bytes(space_with_ranges("loop 3", "loop 4", "other").serialize())
    tracewh.ingest_run(folder, warehouse=warehouse)
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        rows = connection.execute("SELECT capture_id, step_num FROM v1.steps ORDER BY 1, 2").fetchall()
    assert rows == [(1, 1), (1, 2), (2, 3), (2, 4)]


def test_a_marker_that_fits_nothing_leaves_the_former_one(tmp_path: Path) -> None:
    warehouse, folder = tmp_path / "w.duckdb", tmp_path / "run"
    folder.mkdir()
    (folder / "a.xplane.pb").write_bytes(space_with_ranges("loop 1", "loop 2").serialize())
    tracewh.ingest_run(folder, warehouse=warehouse, step_marker="loop [0-9]")
    (folder / "b.xplane.pb").write_bytes(space_with_ranges("loop 3", "loop 4", "other").serialize())
    for choice in ({"steps": "99-100"}, {"step_marker": "nothing"}):
        report = tracewh.ingest_run(folder, warehouse=warehouse, **choice)  # type: ignore[arg-type]
        assert "the steps are not chosen" in report.warnings[0]
        with duckdb.connect(str(warehouse), read_only=True) as connection:
            rows = connection.execute("SELECT capture_id, step_num FROM v1.steps ORDER BY 1, 2").fetchall()
        assert rows == [(1, 1), (1, 2), (2, 3), (2, 4)]


def test_a_marker_around_no_launch_is_refused(tmp_path: Path) -> None:
    warehouse, path = tmp_path / "w.duckdb", tmp_path / "a.xplane.pb"
    space = space_with_ranges("loop 1", "loop 2")
    other = space.plane("/host:CPU").line("other")
    # Beside the calls, on a thread of their own: two texts, three events.
    for start, name in ((5_000_000, "sleep 1"), (6_000_000, "sleep 2"), (7_000_000, "sleep 2")):
        other.event(name, start, 10)
    path.write_bytes(space.serialize())
    report = tracewh.ingest_run(path, warehouse=warehouse, step_marker="sleep.*")
    assert report.warnings == [
        "the steps are not chosen: sleep.* matches 2 texts of host events, but no device work was launched in"
        " them. Name events around the launches."
    ]
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        assert connection.execute("SELECT COUNT(*) FROM step_choices").fetchall() == [(0,)]
    report = tracewh.ingest_run(path, warehouse=warehouse, step_marker="sleep 1|loop.*")
    assert report.warnings == []
