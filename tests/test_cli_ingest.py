"""`tracewh ingest`, on the runs of fixtures/."""

import json
import os
import pty
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from tracewh.cli import main
from tracewh.cli.progress import IngestProgress, byte_text
from tracewh.ingest.discovery import Artifact

FIXTURES = Path(__file__).parents[1] / "fixtures"
CPU_RUN = FIXTURES / "cpu_train"
ROCPD_RUN = FIXTURES / "rocpd_train"
EVERY_ROW = (
    "SELECT table_name, estimated_size FROM duckdb_tables() WHERE schema_name = 'main' ORDER BY table_name"
)


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "w.duckdb"


def ingest(warehouse: Path, *arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["ingest", "-w", str(warehouse), *map(str, arguments)])


def fetch(warehouse: Path, query: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        return connection.execute(query).fetchall()


def broken_run(tmp_path: Path) -> Path:
    """The rocpd run with a second capture in it, cut in its middle."""
    run = tmp_path / "run"
    shutil.copytree(ROCPD_RUN, run)
    database = (run / "mi300x_results.db").read_bytes()
    (run / "cut_results.db").write_bytes(database[: len(database) // 2])
    return run


def test_the_table_counts_what_was_loaded(warehouse: Path) -> None:
    result = ingest(warehouse, CPU_RUN)
    assert result.exit_code == 0, result.output
    header, _, row = result.stdout.splitlines()
    assert header.split() == [
        *("run", "status", "captures", "devices", "events", "modules", "steps", "problems", "seconds"),
    ]
    name, status, *counts = row.replace(",", "").split()
    assert (name, status) == ("cpu_train", "loaded")
    counted = fetch(
        warehouse,
        "SELECT (SELECT count(*) FROM captures), (SELECT count(*) FROM devices), "
        "(SELECT count(*) FROM device_events) + (SELECT count(*) FROM host_events), "
        "(SELECT count(*) FROM hlo_programs), (SELECT count(*) FROM steps), "
        "(SELECT count(*) FROM ingest_problems)",
    )
    assert [int(count) for count in counts[:-1]] == list(counted[0])


def test_stderr_says_what_was_found_and_what_to_type_next(warehouse: Path) -> None:
    result = ingest(warehouse, CPU_RUN)
    found = [line.split() for line in result.stderr.splitlines() if line.startswith("  found")]
    assert [line[-1] for line in found] == ["config", "timing", "xspace"]
    size = (CPU_RUN / "profile" / "cpu.xplane.pb.gz").stat().st_size
    assert found[2][1:5] == ["1", "file", *byte_text(size).split()]
    following = [shlex.split(line) for line in result.stderr.split("Next:\n")[1].splitlines()]
    assert [words[:4] for words in following] == [
        ["tracewh", "ls", "-w", str(warehouse)],
        ["tracewh", "report", "-w", str(warehouse)],
        ["tracewh", "sql", "-w", str(warehouse)],
    ]
    for words in following:
        ran = CliRunner().invoke(main, words[1:])
        assert ran.exit_code == 0, ran.output
        assert len(ran.stdout.splitlines()) > 2


def test_what_to_type_next_leaves_out_a_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TRACEWH_DB", raising=False)
    result = CliRunner().invoke(main, ["ingest", str(ROCPD_RUN)])
    assert (tmp_path / "tracewh.duckdb").exists()
    assert "\n  tracewh ls\n" in result.stderr


def test_the_same_bytes_again_change_nothing(warehouse: Path) -> None:
    ingest(warehouse, CPU_RUN)
    before = fetch(warehouse, EVERY_ROW)
    result = ingest(warehouse, CPU_RUN)
    assert result.exit_code == 0
    assert "already there" in result.stdout
    assert fetch(warehouse, EVERY_ROW) == before
    forced = ingest(warehouse, CPU_RUN, "--force")
    assert forced.exit_code == 0
    assert "already there" not in forced.stdout
    assert fetch(warehouse, "SELECT run_name FROM v1.captures") == [("cpu_train",)]


def test_a_bad_file_is_named_last_and_the_good_ones_load(warehouse: Path, tmp_path: Path) -> None:
    result = ingest(warehouse, broken_run(tmp_path))
    assert result.exit_code == 1
    assert "loaded, 1 rejected" in result.stdout
    last = result.stderr.splitlines()[-1]
    assert last.startswith("Error: ")
    assert last.count("cut_results.db") == 1
    assert fetch(warehouse, "SELECT source_kind FROM captures") == [("rocpd",)]


@pytest.mark.parametrize("content", [None, {"notes.txt": "nothing to see"}])
def test_nothing_usable_is_an_error_and_leaves_nothing(
    warehouse: Path, tmp_path: Path, content: dict[str, str] | None
) -> None:
    run = tmp_path / "run"
    run.mkdir()
    for name, text in (content or {}).items():
        (run / name).write_text(text)
    result = ingest(warehouse, run)
    assert (result.exit_code, result.stdout) == (1, "")
    assert f"Error: {run}: " in result.stderr
    assert not warehouse.exists()


def test_several_runs_of_which_one_is_unusable(warehouse: Path, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    result = ingest(warehouse, CPU_RUN, nothing, ROCPD_RUN)
    assert result.exit_code == 1
    assert [line.split()[0] for line in result.stdout.splitlines()[2:]] == ["cpu_train", "rocpd_train"]
    assert result.stderr.splitlines()[-1].startswith(f"Error: {nothing}: ")


def test_json_reports(warehouse: Path, tmp_path: Path) -> None:
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    result = ingest(warehouse, broken_run(tmp_path), nothing, "--json")
    assert result.exit_code == 1
    report, failure = json.loads(result.stdout)
    assert (report["captures"], report["devices"], report["steps"]) == (1, 2, 3)
    statuses = {artifact["path"]: artifact["status"] for artifact in report["artifacts"]}
    assert statuses["mi300x_results.db"] == "loaded"
    assert statuses["cut_results.db"] == "rejected"
    assert (failure["path"], failure["status"]) == (str(nothing), "failed")
    assert str(nothing) in failure["error"]
    assert "Next:" not in result.stderr


def test_what_the_user_says_of_a_run_is_kept(warehouse: Path) -> None:
    said = ("--run", "base", "--commit", "4f2a91c", "--label", "batch=64", "--label", "note=a=b")
    assert ingest(warehouse, CPU_RUN, *said).exit_code == 0
    assert fetch(warehouse, "SELECT run_name, commit_sha FROM runs") == [("base", "4f2a91c")]
    labels = fetch(warehouse, "SELECT label, value FROM run_labels ORDER BY label")
    assert labels == [("batch", "64"), ("note", "a=b")]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--label", "batch"], "'batch' is not of the form K=V"),
        (["--label", "=64"], "'=64' is not of the form K=V"),
        (["--label", "a=1", "--label", "a=2"], "'a' is given twice"),
        (["--run", "x", str(ROCPD_RUN)], "--run names one run"),
    ],
)
def test_wrong_usage_loads_nothing(warehouse: Path, arguments: list[str], complaint: str) -> None:
    result = ingest(warehouse, CPU_RUN, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert complaint in result.stderr
    assert not warehouse.exists()


def test_ctrl_c(warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tracewh.sql.ingestion.ingest_path", interrupted)
    result = ingest(warehouse, CPU_RUN)
    assert (result.exit_code, result.stdout) == (130, "")
    assert result.stderr.splitlines()[-1] == "Interrupted."


def test_a_terminal_sees_a_bar_and_a_pipe_does_not(warehouse: Path) -> None:
    command = [sys.executable, "-m", "tracewh.cli", "ingest", "-w", warehouse, "--force", ROCPD_RUN]
    piped = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "\x1b" not in piped.stderr
    assert "%" not in piped.stderr
    controller, terminal = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=terminal, env=environment) as process:
        os.close(terminal)
        shown = b""
        while chunk := _read(controller):
            shown += chunk
    os.close(controller)
    assert process.returncode == 0
    assert b"%" in shown


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1000)
    except OSError:  # how a pty says that its other end is closed
        return b""


def test_found_groups_by_kind(capsys: pytest.CaptureFixture[str]) -> None:
    artifacts = [
        Artifact(path=Path("a"), kind="xspace", size_bytes=1_500_000),
        Artifact(path=Path("b"), kind="xspace", size_bytes=500_000),
        Artifact(path=Path("c"), kind="config", size_bytes=12),
    ]
    IngestProgress().found(artifacts)
    assert [line.split() for line in capsys.readouterr().err.splitlines()] == [
        ["found", "1", "file", "12", "B", "config"],
        ["found", "2", "files", "2.0", "MB", "xspace"],
    ]


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1.0 kB"),
        (999_949, "999.9 kB"),
        (999_950, "1.0 MB"),
        (71_234_567, "71.2 MB"),
        (2 * 10**9, "2.0 GB"),
        (3 * 10**12, "3.0 TB"),
        (5 * 10**15, "5000.0 TB"),
    ],
)
def test_sizes_for_people(size: int, text: str) -> None:
    assert byte_text(size) == text


def test_a_path_that_does_not_exist_is_named_and_the_others_load(tmp_path: Path) -> None:
    fixture = Path(__file__).parents[1] / "fixtures" / "cpu_train"
    arguments = ["ingest", "-w", str(tmp_path / "w.duckdb"), str(tmp_path / "nowhere"), str(fixture)]
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 1
    assert f"{tmp_path / 'nowhere'}: no such file or directory" in result.stderr
    assert "cpu_train" in result.stdout
