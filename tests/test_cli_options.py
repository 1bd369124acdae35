"""Commands that tracewh tells to type next: what a shell makes of them, and that they drive no terminal."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tracewh.cli import main
from tracewh.cli.options import plain_command

from .small_warehouse import make_small_warehouse

FIXTURES = Path(__file__).parents[1] / "fixtures"
NAMES = [
    "base",
    "two words",
    "it's",
    "$(touch x)`y`",
    "evil\x1b[31m",
    "'\\\x1b",
    "two\nlines\tand",
    "right\u202eto left",
    "\U000e0001tag",
    "größer",
    "",
]


def words_of(command: str) -> list[str]:
    """The words that bash makes of a command line."""
    result = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {command}"],
        capture_output=True,
        check=True,
        env={"LC_ALL": "C.UTF-8", "PATH": "/usr/bin:/bin"},
    )
    return result.stdout.decode("utf-8", "surrogateescape").split("\0")[:-1]


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash to read the commands")
@pytest.mark.parametrize("name", [*NAMES, "not utf-8 \udcff"])
def test_a_shell_reads_the_name_that_was_meant(name: str) -> None:
    command = plain_command("report", name)
    assert command.isprintable()
    assert words_of(command) == ["tracewh", "report", name]


def test_a_name_like_an_option_is_none() -> None:
    assert plain_command("report", "--help") == "tracewh report -- --help"


def invoke(*arguments: str) -> Result:
    return CliRunner().invoke(main, list(arguments))


@pytest.mark.parametrize(("name", "spelled"), [("--help", "-- --help"), ("evil\x1b[2J", "$'evil\\u001b[2J'")])
def test_what_ingest_says_next(tmp_path: Path, name: str, spelled: str) -> None:
    warehouse = tmp_path / "w.duckdb"
    result = invoke("ingest", "-w", str(warehouse), f"--run={name}", str(FIXTURES / "rocpd_train"))
    assert result.exit_code == 0
    assert "\x1b" not in result.output
    assert f"  tracewh report -w {warehouse} {spelled}\n" in result.stderr
    assert invoke("report", "-w", str(warehouse), "--", name).stdout.startswith(name.replace("\x1b", "\\x1b"))


def test_options_stand_before_a_name_like_one(tmp_path: Path) -> None:
    warehouse = make_small_warehouse(tmp_path / "small.duckdb")
    renamed = invoke("steps", "-w", str(warehouse), "base")
    assert f"tracewh steps -w {warehouse} base --step-marker REGEX" in renamed.stderr
