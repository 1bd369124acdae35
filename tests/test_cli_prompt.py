"""The prompt of `tracewh sql`."""

import os
import pty
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tracewh.cli.prompt import run_prompt
from tracewh.cli.sql import answer
from tracewh.sql.warehouse import Warehouse

from .processes import ENDLESS_QUERY, needs_proc, wait_until_busy
from .small_warehouse import make_small_warehouse


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_small_warehouse(tmp_path_factory.mktemp("warehouse") / "small.duckdb")


@pytest.fixture(autouse=True)
def _own_history(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def type_lines(
    path: Path, lines: list[str | type[BaseException]], monkeypatch: pytest.MonkeyPatch
) -> list[str]:
    """Type the lines, an exception class standing for its key, then Ctrl-D; return the prompts shown."""
    prompts: list[str] = []
    typed = iter([*lines, EOFError])

    def read(prompt: str) -> str:
        prompts.append(prompt)
        line = next(typed)
        if isinstance(line, str):
            return line
        raise line

    monkeypatch.setattr("builtins.input", read)
    with Warehouse.open(path) as warehouse:
        run_prompt(warehouse, lambda statement: answer(warehouse, statement, "csv", None))
    return prompts


def test_a_statement_may_take_lines(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts = type_lines(path, ["SELECT", "  ';' AS a, -- not the end;", "2 AS b", ";"], monkeypatch)
    assert prompts == ["tracewh> ", *["    ...> "] * 3, "tracewh> "]
    assert capsys.readouterr().out.splitlines()[:2] == ["a,b", ";,2"]


def test_an_error_does_not_end_it(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines: list[str | type[BaseException]] = [
        "SELEC;",
        ".nonsense",
        ".schema a'b",
        "SELECT CAST('z' AS INT);",
        "SELECT 7 AS n;",
    ]
    type_lines(path, lines, monkeypatch)
    shown = capsys.readouterr()
    errors = [line for line in shown.err.splitlines() if line.startswith("Error: ")]
    assert len(errors) == 4
    assert "syntax error" in errors[0]
    assert ".help" in errors[1]
    assert shown.out.splitlines()[:2] == ["n", "7"]


def test_ctrl_c_drops_what_was_typed(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts = type_lines(path, ["SELECT 1 +", KeyboardInterrupt, "SELECT 2 AS n;"], monkeypatch)
    assert prompts == ["tracewh> ", "    ...> ", "tracewh> ", "tracewh> "]
    assert "n\n2\n" in capsys.readouterr().out


def test_dot_commands(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    named = [".schema v1.captures", ".schema runs", ".schema interval_gaps"]
    type_lines(path, [".tables", ".views", *named, ".help"], monkeypatch)
    shown = capsys.readouterr()
    assert "\nhost_events\n" in shown.out
    assert "v1.phase_time" in shown.out
    assert "device_kind  " in shown.out
    assert "run_name,VARCHAR" in shown.out
    assert "v1.interval_union" in shown.out
    assert "FROM v1.interval_gaps(p_intervals" in shown.out
    assert ".quit" in shown.err


@pytest.mark.parametrize("word", [".quit", ".exit"])
def test_quit(path: Path, monkeypatch: pytest.MonkeyPatch, word: str) -> None:
    assert type_lines(path, [word, "SELECT 1;"], monkeypatch) == ["tracewh> "]


def test_the_warehouse_is_not_changed(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    type_lines(path, ["DELETE FROM runs;", "SELECT count(*) AS n FROM runs;"], monkeypatch)
    shown = capsys.readouterr()
    assert "read-only" in shown.err
    assert "n\n2\n" in shown.out


def test_a_home_that_cannot_be_written_is_no_error(
    path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/dev/null")
    type_lines(path, ["SELECT 1 AS n;"], monkeypatch)
    assert "n\n1\n" in capsys.readouterr().out


class Terminal:
    """A `tracewh sql` on a terminal of its own."""

    def __init__(self, process: "subprocess.Popen[bytes]", controller: int) -> None:
        self.process = process
        self._controller = controller

    def send(self, text: str) -> None:
        os.write(self._controller, text.encode())

    def read_until(self, text: str) -> str:
        """What appears up to and including `text`; fails when nothing comes for a minute."""
        seen = b""
        while not seen.endswith(text.encode()):
            ready, _, _ = select.select([self._controller], [], [], 60)
            assert ready, f"{text!r} did not come after {seen!r}"
            seen += os.read(self._controller, 1)
        return seen.decode()


@contextmanager
def terminal(path: Path) -> Iterator[Terminal]:
    controller, end = pty.openpty()
    command = [sys.executable, "-m", "tracewh.cli", "sql", "-w", path]
    environment = {**os.environ, "TERM": "dumb", "COLUMNS": "80"}
    with subprocess.Popen(command, stdin=end, stdout=end, stderr=end, env=environment) as process:
        os.close(end)
        try:
            yield Terminal(process, controller)
        finally:
            process.kill()
            os.close(controller)


@needs_proc
def test_a_prompt_on_a_terminal(path: Path, tmp_path: Path) -> None:
    with terminal(path) as shell:
        shell.read_until("tracewh> ")
        shell.send("SELECT 40 + 2 AS answer;\n")
        shown = shell.read_until("(1 row)\r\n")
        assert "answer\r\n------\r\n    42\r\n" in shown
        shell.read_until("tracewh> ")
        shell.send(f"{ENDLESS_QUERY};\n")
        wait_until_busy(shell.process.pid)
        shell.process.send_signal(signal.SIGINT)
        shell.read_until("Interrupted.\r\n")
        shell.read_until("tracewh> ")
        shell.send("SELECT 'still here' AS a;\n")
        shell.read_until("(1 row)\r\n")
        shell.read_until("tracewh> ")
        shell.send("\x04")
        assert shell.process.wait(timeout=60) == 0
    assert "SELECT 40 + 2 AS answer;" in (tmp_path / "state" / "tracewh" / "sql_history").read_text()
