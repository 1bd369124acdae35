"""What the command line says of itself, and how little it imports to say it."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

from tracewh import __version__
from tracewh.cli import COMMANDS, main

HEAVY_MODULES = ("duckdb", "pyarrow", "rich", "sqlglot", "jax", "numpy")


def run(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_command_has_a_sentence_and_an_example(name: str) -> None:
    text = run(name, "--help")
    sentence = text.split("\n\n")[1].strip()
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert f"Example:\n    tracewh {name}" in text


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_is_explained(name: str) -> None:
    context = click.Context(main)
    command = main.get_command(context, name)
    assert command is not None
    for parameter in command.params:
        if isinstance(parameter, click.Option):
            assert parameter.help, parameter.name


def test_help_lists_every_command_in_order_of_use() -> None:
    text = run("--help")
    listed = [line.split()[0] for line in text.split("Commands:\n")[1].split("\n\n")[0].splitlines()]
    assert listed == list(COMMANDS)
    assert listed == [
        "ingest",
        "ls",
        "steps",
        "report",
        "metrics",
        "diff",
        "gate",
        "history",
        "baseline",
        "sql",
        "check",
        "hlo",
        "views",
        "rules",
        "peaks",
        "rm",
    ]
    assert "Example:\n    tracewh ingest" in text


def test_warehouse_option_names_its_default_and_variable() -> None:
    for name in ("ingest", "ls", "sql", "rm"):
        text = " ".join(run(name, "--help").split())
        assert "-w, --warehouse FILE" in text
        assert "env var: TRACEWH_DB" in text
        assert "default: tracewh.duckdb" in text


def test_version() -> None:
    assert run("--version") == f"tracewh, version {__version__}\n"


def test_unknown_command_is_wrong_usage() -> None:
    result = CliRunner().invoke(main, ["frobnicate"])
    assert result.exit_code == 2
    assert "No such command 'frobnicate'" in result.stderr


def test_help_imports_nothing_heavy() -> None:
    # All command modules are imported: the help text of the group needs the first line of each.
    program = (
        "import sys; from tracewh.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        f"sys.stderr.write(' '.join(name for name in {HEAVY_MODULES} if name in sys.modules))"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (result.returncode, result.stderr) == (0, ""), result.stderr
    assert "Commands:" in result.stdout
