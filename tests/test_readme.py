"""The README tells the truth: its outputs are real, its commands and names exist."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest

from tracewh.cli import main as tracewh
from tracewh.views.catalog import load_views
from tracewh.views.macro_catalog import load_macros

ROOT = Path(__file__).parents[1]


def load_readme_tool():
    spec = importlib.util.spec_from_file_location("readme", ROOT / "tests" / "readme.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def text() -> str:
    return (ROOT / "README.md").read_text(encoding="utf-8")


def test_outputs_are_real(text: str, tmp_path: Path) -> None:
    examples = load_readme_tool().examples(tmp_path / "readme.duckdb", text)
    assert len(examples) == 21
    for match, output in examples:
        assert match["output"] == output, match["query"]


def test_views_and_macros_that_it_names_exist(text: str) -> None:
    named = set(re.findall(r"\bv1\.[a-z_]+", text))
    assert named
    assert named <= {item.name for item in (*load_views(), *load_macros())}


def test_commands_that_it_names_exist(text: str) -> None:
    named = set(re.findall(r"`tracewh ([a-z]+)", text))
    assert {"ingest", "report", "check", "sql", "ls", "hlo", "views", "rm"} <= named
    assert named <= set(tracewh.list_commands(None))


def test_options_of_ingest_are_listed(text: str) -> None:
    options = {
        option for parameter in tracewh.get_command(None, "ingest").params for option in parameter.opts
    }
    documented = set(re.findall(r"`(?:-w`, `)?(--[a-z-]+)", text))
    assert {option for option in options if option.startswith("--")} - {"--help"} <= documented
