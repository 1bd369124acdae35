"""Exit codes and streams of the real process: errors, Ctrl-C, closed pipes."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .processes import ENDLESS_QUERY, needs_proc, wait_until_busy
from .small_warehouse import EVIL_NAME, make_small_warehouse

COMMAND = [sys.executable, "-m", "tracewh.cli"]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_small_warehouse(tmp_path_factory.mktemp("warehouse") / "small.duckdb")


def run(*arguments: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=cwd, check=False
    )


def test_results_go_to_stdout_alone(warehouse: Path) -> None:
    result = run("sql", "-w", warehouse, "SELECT 42 AS answer", "--format", "csv")
    assert (result.returncode, result.stdout, result.stderr) == (0, "answer\n42\n", "")


@pytest.mark.parametrize("command", [["ls"], ["sql", "SELECT 1"], ["ls", "base"]])
def test_a_missing_warehouse_is_one_line_with_the_next_step(tmp_path: Path, command: list[str]) -> None:
    result = run(*command, cwd=tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith("Error: tracewh.duckdb: ")
    assert "tracewh ingest" in result.stderr
    assert result.stderr.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_warehouse(tmp_path: Path) -> None:
    other = tmp_path / "notes.duckdb"
    other.write_text("these are notes\n" * 1000)
    result = run("ls", "-w", other)
    assert (result.returncode, result.stdout) == (1, "")
    assert result.stderr.startswith(f"Error: {other}: ")
    assert result.stderr.count("\n") == 1


def test_a_place_that_cannot_be_written(warehouse: Path, tmp_path: Path) -> None:
    result = run("sql", "-w", warehouse, "SELECT 1", "-o", tmp_path / "no" / "such" / "out.csv")
    assert result.returncode == 1
    assert result.stderr.startswith("Error: ")
    assert "No such file or directory" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_name_cannot_drive_the_terminal(warehouse: Path) -> None:
    for arguments in (["ls"], ["ls", "nobody"], ["sql", "SELECT run_name FROM runs"]):
        result = run(*arguments, "-w", warehouse)
        assert "\x1b" not in result.stdout + result.stderr
        assert EVIL_NAME.replace("\x1b", "\\x1b") in result.stdout + result.stderr


def test_data_in_a_pipe_is_utf_8_whatever_the_locale(warehouse: Path) -> None:
    command = [
        *COMMAND,
        "sql",
        "-w",
        warehouse,
        "SELECT 'gr' || chr(246) || chr(26085) AS a",
        "--format",
        "csv",
    ]
    environment = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}
    result = subprocess.run(command, capture_output=True, env=environment, check=True)
    assert result.stdout.decode("utf-8") == "a\ngrö日\n"


def test_wrong_usage_exits_2() -> None:
    for arguments in (["ls", "--nope"], ["ingest"], ["rm"], ["sql", "-w"]):
        result = run(*arguments)
        assert (result.returncode, result.stdout) == (2, ""), arguments
        assert "Error: " in result.stderr


def test_a_closed_pipe_ends_quietly(warehouse: Path) -> None:
    query = "SELECT i, repeat('x', 100) AS x FROM range(1000000) AS t(i)"
    for format_name in ("table", "csv", "json", "parquet"):
        command = [*COMMAND, "sql", "-w", warehouse, query, "--format", format_name]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.read(10)
            process.stdout.close()
            assert process.stderr.read() == b"", format_name
        assert process.returncode == 141


@pytest.mark.parametrize("arguments", [["SELECT 1"], ["SELECT 1", "--format", "csv"]])
def test_a_pipe_closed_before_the_first_byte_ends_quietly(warehouse: Path, arguments: list[str]) -> None:
    command = [*COMMAND, "sql", "-w", warehouse, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""


@needs_proc
def test_ctrl_c_stops_a_query(warehouse: Path) -> None:
    # Under nohup or a job without a terminal the tests ignore SIGINT, and a child would inherit that. DuckDB
    # takes a Python without a main file for an interactive one, and shows a progress bar after two seconds.
    heeding = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); __file__ = 'main'; "
        "from tracewh.cli import main; main(sys.argv[1:])"
    )
    command = [sys.executable, "-c", heeding, "sql", "-w", warehouse, ENDLESS_QUERY]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            wait_until_busy(process.pid)
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=60)
        finally:
            process.kill()
    assert (process.returncode, stdout, stderr) == (130, "", "Interrupted.\n")
