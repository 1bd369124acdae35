"""Imports point one way, and the wheel's package list is the tree."""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
ALLOWED = {
    "ingest": {"ingest"},
    "views": {"views", "ingest"},
    "sql": {"sql", "ingest", "views"},
    "cli": {"cli", "sql", "ingest", "views"},
}


def imported_layers(path: Path) -> set[str]:
    layers = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "tracewh":
                names = [f"tracewh.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        layers |= {name.split(".")[1] for name in names if name.startswith("tracewh.")}
    return layers & set(ALLOWED)


@pytest.mark.parametrize("layer", ALLOWED)
def test_imports_point_one_way(layer: str) -> None:
    for path in (ROOT / layer).rglob("*.py"):
        assert imported_layers(path) <= ALLOWED[layer], path


def test_readers_know_no_database() -> None:
    for path in (ROOT / "ingest").rglob("*.py"):
        assert "duckdb" not in path.read_text(encoding="utf-8"), path


def test_package_list_is_the_tree() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    folders = {settings["package-dir"][package] for package in settings["packages"]}
    holding_python = {
        str(path.parent.relative_to(ROOT))
        for layer in ALLOWED
        for path in (ROOT / layer).rglob("*.py")
        if "__pycache__" not in path.parts
    }
    assert holding_python == folders


def test_the_package_for_mypy_has_every_module() -> None:
    links = {path.name for path in (ROOT / "tests" / "_pkg" / "tracewh").glob("*.py")}
    assert links == {path.name for path in (ROOT / "sql" / "api").glob("*.py")}


def test_every_sql_file_ships() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    assert settings["package-data"]["tracewh.sql"] == ["**/*.sql"]
    assert settings["package-data"]["tracewh.views"] == ["**/*.sql"]
