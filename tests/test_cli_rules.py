"""`tracewh rules`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner, Result

from tracewh.cli import main

from .small_warehouse import make_small_warehouse


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    """Run `base` has one op_name, jvp(block)/wi_0/mul, in capture 1."""
    path = make_small_warehouse(tmp_path / "small.duckdb")
    with duckdb.connect(str(path)) as connection:
        connection.execute("INSERT INTO names VALUES (50, 'jvp(block)/wi_0/mul')")
        connection.execute("INSERT INTO ops (capture_id, op_id, op_name_id) VALUES (1, 99, 50)")
        connection.execute(
            "INSERT INTO op_name_scopes (name_id, position, segment, scope, transforms, is_last) VALUES "
            "(50, 1, 'jvp(block)', 'block', 'jvp', FALSE), (50, 2, 'wi_0', 'wi_0', '', FALSE), "
            "(50, 3, 'mul', 'mul', '', TRUE)"
        )
    return path


def rules(warehouse: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["rules", *arguments, "-w", str(warehouse)])


def listed(warehouse: Path, *arguments: str) -> list[dict[str, Any]]:
    result = rules(warehouse, *arguments, "--json")
    assert result.exit_code == 0, result.output
    found: list[dict[str, Any]] = json.loads(result.stdout)
    return found


def explained(warehouse: Path, op_name: str, *arguments: str) -> dict[str, Any]:
    result = rules(warehouse, "explain", op_name, *arguments, "--json")
    assert result.exit_code == 0, result.output
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def test_shipped_rules_are_listed_with_what_they_decide(warehouse: Path) -> None:
    found = listed(warehouse)
    assert {rule["vocabulary"] for rule in found} == {"jax", "flax", "maxtext"}
    assert [rule["kind"] for rule in found] == sorted(
        (rule["kind"] for rule in found), key=["structure", "phase", "component"].index
    )
    deciding = {rule["pattern"]: rule["op_names"] for rule in found if rule["op_names"]}
    # jvp( tells the phase, and wi_0 the group.
    assert sorted(deciding.values()) == [1, 1]
    assert "^(.*[(])?jvp[(].*$" in deciding
    result = rules(warehouse)
    assert result.exit_code == 0
    assert "Expert MLP, forward" in result.stdout


def test_add_and_remove_a_component_rule(warehouse: Path) -> None:
    result = rules(warehouse, "add", "--component", "wi_[01]", "--group", "Up", "--phase", "forward")
    assert result.exit_code == 0, result.output
    assert result.stdout == "Added rule 1001: ^wi_[01]$.\n"
    assert result.stderr == f"Undo: tracewh rules -w {warehouse} rm 1001\n"
    (own,) = [rule for rule in listed(warehouse) if rule["vocabulary"] == "user"]
    assert (own["id"], own["group"], own["phase"], own["op_names"], own["run"]) == (
        1001,
        "Up",
        "forward",
        1,
        None,
    )
    assert explained(warehouse, "wi_1/add")["group"] == "Up"
    # The same pattern twice would never be asked.
    again = rules(warehouse, "add", "--component", "^wi_[01]$", "--group", "Other")
    assert again.exit_code == 1
    assert (
        "rule 1001 has the pattern ^wi_[01]$ already. Remove it first with `tracewh rules rm 1001`."
        in again.stderr
    )
    removed = rules(warehouse, "rm", "1001")
    assert (removed.exit_code, removed.stdout) == (0, "Removed rule 1001.\n")
    assert explained(warehouse, "wi_1/add")["group"] == "Expert MLP"


def test_rules_of_one_run(warehouse: Path) -> None:
    added = rules(warehouse, "add", "--phase", "update", "--segment", "my_opt", "--run", "base")
    assert added.exit_code == 0, added.output
    assert explained(warehouse, "my_opt/add")["phase"] == "unattributed"
    assert explained(warehouse, "my_opt/add", "--run", "base")["phase"] == "update"
    assert next(rule["run"] for rule in listed(warehouse) if rule["kind"] == "phase") == "base"
    in_base = [rule for rule in listed(warehouse, "--run", "base") if rule["kind"] == "phase"]
    assert in_base[0]["pattern"] == "^my_opt$"
    assert {rule["op_names"] for rule in in_base} == {0, 1}
    unknown = rules(warehouse, "add", "--structural", "a", "--run", "nowhere")
    assert unknown.exit_code == 1
    assert "no run nowhere; its runs: base" in unknown.stderr


def test_structure_rules(warehouse: Path) -> None:
    assert explained(warehouse, "wrapper/add")["component"] == "wrapper"
    assert rules(warehouse, "add", "--structural", "wrapper").exit_code == 0
    assert explained(warehouse, "wrapper/add")["component"] == "unattributed"
    assert rules(warehouse, "add", "--scope", "main").exit_code == 0
    assert explained(warehouse, "jit(f)/main/add")["component"] == "main"


def test_explain_shows_what_decided(warehouse: Path) -> None:
    op_name = "jit(f)/transpose(jvp(layers))/while/body/checkpoint/moe_block/wi_0/dot_general"
    found = explained(warehouse, op_name)
    assert (found["phase"], found["component"], found["group"]) == ("backward", "wi_0", "Expert MLP")
    (operation,) = found["operations"]
    shipped = {rule["id"]: rule for rule in listed(warehouse)}
    assert shipped[operation["phase_rule"]]["phase"] == "backward"
    assert shipped[operation["component_rule"]]["group"] == "Expert MLP"
    assert [segment["segment"] for segment in found["segments"] if segment["structural"]] == [
        "jit(f)", "while", "body", "checkpoint",
    ]  # fmt: skip
    text = rules(warehouse, "explain", op_name).stdout
    assert f"phase: backward by rule {operation['phase_rule']}" in text
    assert f"group: Expert MLP by rule {operation['component_rule']}" in text
    joined = rules(warehouse, "explain", "a/b;jvp(c)/d").stdout
    assert "it joins operations that differ" in joined
    assert explained(warehouse, "")["phase"] == "unattributed"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "give one of --component, --segment, --structural and --scope"),
        (["--component", "a"], "--component needs --group"),
        (["--segment", "a"], "--segment needs --phase"),
        (["--structural", "a", "--segment", "b"], "give one of"),
        (["--structural", "a", "--phase", "update"], "--phase does not go with --structural"),
        (["--segment", "a", "--phase", "update", "--direct"], "--direct does not go with --segment"),
        (["--structural", "a\\d"], "no backslash"),
        (["--segment", "a", "--phase", "unattributed"], "choose another"),
    ],
)
def test_what_is_no_rule(warehouse: Path, arguments: list[str], message: str) -> None:
    result = rules(warehouse, "add", *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_rules_that_cannot_be_removed(warehouse: Path) -> None:
    assert "no rule 7. `tracewh rules` lists them." in rules(warehouse, "rm", "7").stderr
    shipped = rules(warehouse, "rm", "101")
    assert shipped.exit_code == 1
    assert "rule 101 is shipped with tracewh" in shipped.stderr
    with duckdb.connect(str(warehouse)) as connection:
        connection.execute(
            "INSERT INTO phase_rules VALUES (1001, 1, 1, 'user', 100, '^a$', 'update', 'test')"
        )
    assert "rule 1001 is from a.xplane.pb of run base" in rules(warehouse, "rm", "1001").stderr


def test_the_warehouse_may_be_named_before_the_subcommand(warehouse: Path) -> None:
    result = CliRunner().invoke(main, ["rules", "-w", str(warehouse), "add", "--structural", "shell"])
    assert result.exit_code == 0, result.output
    assert [rule["pattern"] for rule in listed(warehouse) if rule["vocabulary"] == "user"] == ["^shell$"]
