"""An ingest that ends between two files: nobody reads what it left, and what comes next makes it whole."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner, Result

import tracewh
from tracewh.cli import main
from tracewh.ingest.errors import WarehouseError
from tracewh.sql.kept_views import KEPT_TABLES

from .ingest_runs import query, small_capture, write_run
from .processes import ENDLESS_QUERY, needs_proc, wait_until_busy

# Where the process dies by kill -9: once the first capture is committed, or all captures, or all files.
KILLED = """
import os, signal, sys
import tracewh
from tracewh.sql.artifact_loading import ArtifactLoader

def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

def load_one(self, source, *more):
    if source.path.endswith(sys.argv[3]):
        die()
    return load(self, source, *more)

load = ArtifactLoader.load
ArtifactLoader.load = load_one
ArtifactLoader.describe_run = die
tracewh.ingest_run(sys.argv[1], warehouse=sys.argv[2])
"""
INTERRUPTED = f"""
import signal
import sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from tracewh.cli import main
from tracewh.sql.artifact_loading import ArtifactLoader
from tracewh.sql.warehouse import transaction

def work(self, *arguments):
    print("working", flush=True)
    with transaction(self.connection):
        self.connection.execute({ENDLESS_QUERY!r})

ArtifactLoader.describe_run = work
main(["ingest", sys.argv[1], "-w", sys.argv[2]])
"""
POINTS = ["b.xplane.pb", "tracewh.toml", "nothing"]
RULES = "[[structure]]\nsegment = 'shell'\n"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    captures = {"a.xplane.pb": small_capture(steps=2), "b.xplane.pb": small_capture("other", steps=3)}
    return write_run(tmp_path / "run", captures, {"tracewh.toml": RULES})


def kill_ingest(run: Path, warehouse: Path, point: str) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(run), str(warehouse), point], check=False)
    assert done.returncode == -signal.SIGKILL


def command(warehouse: Path, *words: str) -> Result:
    return CliRunner().invoke(main, [*words, "-w", str(warehouse)])


def check_kept_rows(warehouse: Path) -> None:
    """What is kept is what the views say now, and there is some of it."""
    for table in KEPT_TABLES:
        columns = ", ".join(
            name for (name,) in query(warehouse, f"SELECT column_name FROM (DESCRIBE main.{table})")
        )
        rows = f"SELECT {columns} FROM main.{table} ORDER BY ALL"
        assert query(warehouse, rows) == query(warehouse, rows.replace("main.", "v1._")), table
    assert query(warehouse, "SELECT COUNT(*) > 0 FROM event_links") == [(True,)]


def steps_of(warehouse: Path) -> list[tuple[Any, ...]]:
    return query(warehouse, "SELECT capture_id, step_num FROM v1.steps ORDER BY ALL")


@pytest.mark.parametrize("point", POINTS)
def test_readers_are_told_and_the_next_ingest_repairs(run: Path, tmp_path: Path, point: str) -> None:
    warehouse = tmp_path / "w.duckdb"
    kill_ingest(run, warehouse, point)
    with pytest.raises(WarehouseError, match="the ingest of run run was cut short, so that answers would be"):
        tracewh.open(warehouse)
    for words in (("report", "run"), ("check",), ("sql", "SELECT 1"), ("ls",), ("steps", "run"), ("rules",)):
        result = command(warehouse, *words)
        assert result.exit_code == 1, words
        assert f"Ingest it again with `tracewh ingest {run} -w {warehouse}`" in result.stderr
        assert f"remove it with `tracewh rm run -w {warehouse}`" in result.stderr
    assert command(warehouse, "ingest", str(run)).exit_code == 0
    check_kept_rows(warehouse)
    assert len(steps_of(warehouse)) == 5
    assert query(warehouse, "SELECT pattern FROM scope_rules WHERE run_id IS NOT NULL") == [("^shell$",)]
    assert query(warehouse, "SELECT problem FROM ingest_problems") == []
    assert query(warehouse, "SELECT process_index FROM captures ORDER BY 1") == [(0,), (1,)]


@pytest.mark.parametrize(
    "words",
    [("rules", "add", "--structural", "a"), ("steps", "run", "--steps", "1"), ("rules", "rm", "1001")],
)
def test_any_change_repairs_what_is_there(run: Path, tmp_path: Path, words: tuple[str, ...]) -> None:
    warehouse = tmp_path / "w.duckdb"
    kill_ingest(run, warehouse, "b.xplane.pb")
    command(warehouse, *words)
    check_kept_rows(warehouse)
    assert steps_of(warehouse) == ([(1, 1)] if words[0] == "steps" else [(1, 0), (1, 1)])
    # That a part is missing is known until it is there.
    problems = "SELECT run_id, problem, place, occurrences, detail FROM ingest_problems"
    detail = "its ingest ended before all of its files were read; ingest it again"
    assert query(warehouse, problems) == [(1, "interrupted_ingest", str(run), 1, detail)]
    assert command(warehouse, "ingest", str(run)).exit_code == 0
    assert query(warehouse, problems) == []
    check_kept_rows(warehouse)


def test_removal_is_another_way_on(run: Path, tmp_path: Path) -> None:
    warehouse = tmp_path / "w.duckdb"
    other = write_run(tmp_path / "whole", {"c.xplane.pb": small_capture("whole")})
    assert command(warehouse, "ingest", str(other)).exit_code == 0
    kill_ingest(run, warehouse, "b.xplane.pb")
    assert command(warehouse, "rm", "run", "--yes").exit_code == 0
    assert query(warehouse, "SELECT run_name FROM runs") == [("whole",)]
    assert query(warehouse, "SELECT COUNT(*) FROM unfinished_runs") == [(0,)]
    check_kept_rows(warehouse)


def test_a_marker_holds_for_a_capture_whose_ingest_was_cut_short(run: Path, tmp_path: Path) -> None:
    warehouse = tmp_path / "w.duckdb"
    late = run / "profile" / "b.xplane.pb"
    data = late.read_bytes()
    late.unlink()
    tracewh.ingest_run(run, warehouse=warehouse, step_marker="train")
    late.write_bytes(data)
    kill_ingest(run, warehouse, "nothing")
    assert command(warehouse, "rules", "add", "--structural", "a").exit_code == 0
    assert query(warehouse, "SELECT capture_id, COUNT(*) FROM numbered_marks GROUP BY 1 ORDER BY 1") == [
        (1, 2),
        (2, 3),
    ]


@needs_proc
def test_ctrl_c_is_an_interrupt_and_leaves_a_mark(run: Path, tmp_path: Path) -> None:
    warehouse = tmp_path / "w.duckdb"
    with subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(run), str(warehouse)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "working\n"
            wait_until_busy(process.pid)
            process.send_signal(signal.SIGINT)
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, errors.splitlines()[-1]) == (130, "Interrupted."), errors
    with pytest.raises(WarehouseError, match="cut short"):
        tracewh.open(warehouse)
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        assert connection.execute("SELECT COUNT(*) FROM captures").fetchall() == [(2,)]
