"""`tracewh rules`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner, Result

from tracewh.cli import main

from .small_warehouse import EVIL_NAME, make_small_warehouse


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
    assert result.stderr == (
        f"It matches a scope of 1 op_name.\nUndo: tracewh rules -w {warehouse} rm 1001\n"
    )
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


def test_the_warehouse_may_be_named_before_the_subcommand(warehouse: Path) -> None:
    result = CliRunner().invoke(main, ["rules", "-w", str(warehouse), "add", "--structural", "shell"])
    assert result.exit_code == 0, result.output
    assert [rule["pattern"] for rule in listed(warehouse) if rule["vocabulary"] == "user"] == ["^shell$"]


def run_with_file(warehouse: Path, folder: Path) -> Path:
    """Say that `base` lies in a folder, and has a rule from the file there; return the file."""
    file = folder / "tracewh.toml"
    file.write_text("[[structure]]\nsegment = 'wi_0'\n")
    with duckdb.connect(str(warehouse)) as connection:
        connection.execute("UPDATE runs SET path = ? WHERE run_id = 1", [str(folder)])
        connection.execute(
            "INSERT INTO artifacts (artifact_id, run_id, path, kind, sha256, bytes, reader, reader_version, "
            "status) VALUES (9, 1, 'tracewh.toml', 'rules', '09', 1, 'run_metadata', 1, 'loaded')"
        )
        connection.execute("INSERT INTO scope_rules VALUES (1001, 1, 9, 'user', 50, '^wi_0$', TRUE, 'test')")
    return file


def test_a_rule_of_a_file_goes_with_it(warehouse: Path, tmp_path: Path) -> None:
    file = run_with_file(warehouse, tmp_path)
    kept = rules(warehouse, "rm", "1001")
    assert kept.exit_code == 1
    assert f"rule 1001 is from {file} of run base. Change that file" in kept.stderr
    file.unlink()
    assert rules(warehouse, "rm", "1001").exit_code == 0
    assert not [rule for rule in listed(warehouse) if rule["id"] == 1001]
    with duckdb.connect(str(warehouse)) as connection:
        # Should the file come back, its bytes are new ones.
        assert connection.execute("SELECT sha256 FROM artifacts WHERE artifact_id = 9").fetchall() == [("",)]


def test_a_rule_may_override_one_of_a_file(warehouse: Path, tmp_path: Path) -> None:
    file = run_with_file(warehouse, tmp_path)
    behind = rules(warehouse, "add", "--scope", "wi_0", "--run", "base")
    assert behind.exit_code == 0, behind.output
    assert f"Rule 1001 of {file} has the same pattern and is asked before it." in behind.stderr
    assert explained(warehouse, "wi_0/mul", "--run", "base")["component"] == "unattributed"
    assert rules(warehouse, "rm", "1002").exit_code == 0
    before = rules(warehouse, "add", "--scope", "wi_0", "--run", "base", "--priority", "49")
    assert "has the same pattern" not in before.stderr
    assert explained(warehouse, "wi_0/mul", "--run", "base")["component"] == "wi_0"


@pytest.mark.parametrize(
    ("arguments", "remark"),
    [
        (["--component", "wi_.*", "--group", "A"], "It matches a scope of 1 op_name."),
        (["--segment", "jvp[(].*", "--phase", "forward", "--run", "base"], "a segment of 1 op_name of base."),
        # The scope is block, the segment is not.
        (["--structural", "block"], "It matches no segment of any op_name. `tracewh rules explain"),
        (["--component", "a", "--group", "A", "--run", "base"], "no scope of any op_name of base."),
        (["--structural", "mul", "--run", EVIL_NAME], "It matches no segment of any op_name of evil"),
        (["--segment", "a", "--phase", "upadte"], "It makes a new phase, upadte: did you mean update?"),
        (
            ["--component", "a", "--group", "A", "--phase", "eval"],
            "It makes a new phase, eval: beside backward, ",
        ),
    ],
)
def test_what_is_said_of_an_added_rule(warehouse: Path, arguments: list[str], remark: str) -> None:
    result = rules(warehouse, "add", *arguments)
    assert result.exit_code == 0, result.output
    assert remark in result.stderr
    assert result.stderr.count("new phase") == remark.count("new phase")


def test_a_phase_is_new_once(warehouse: Path) -> None:
    assert "new phase" in rules(warehouse, "add", "--segment", "a", "--phase", "eval").stderr
    assert "new phase" not in rules(warehouse, "add", "--segment", "b", "--phase", "eval").stderr


def test_rules_of_a_run_without_captures(warehouse: Path) -> None:
    run = EVIL_NAME
    assert rules(warehouse, "add", "--structural", "shell", "--run", run).exit_code == 0
    for found in (listed(warehouse), listed(warehouse, "--run", run)):
        assert [(rule["pattern"], rule["run"]) for rule in found if rule["vocabulary"] == "user"] == [
            ("^shell$", run)
        ]
    assert explained(warehouse, "shell/add", "--run", run)["component"] == "unattributed"


def test_a_rule_without_a_phase_takes_none_away(warehouse: Path) -> None:
    # A rotary table that the compiler moved out of the model: nothing but the shipped rule tells its phase.
    assert explained(warehouse, "rope/sin")["phase"] == "forward"
    assert rules(warehouse, "add", "--component", "rope", "--group", "Positions").exit_code == 0
    found = explained(warehouse, "rope/sin")
    assert (found["phase"], found["group"]) == ("forward", "Positions")


def test_answers_of_patterns_go_with_their_rule(warehouse: Path) -> None:
    def known() -> list[Any]:
        with duckdb.connect(str(warehouse), read_only=True) as connection:
            return connection.execute(
                "SELECT text FROM pattern_matches WHERE pattern IN ('^shell_.*$', '^mu.$') ORDER BY 1"
            ).fetchall()

    rules(warehouse, "add", "--component", "mu.", "--group", "A", "--inside", "shell_.*")
    assert sorted(set(known())) == [("block",), ("jvp(block)",), ("mul",), ("wi_0",)]
    rules(warehouse, "rm", "1001")
    assert known() == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["add", "--structural", "\udcff"], "it is no UTF-8 text"),
        (["add", "--component", "a", "--group", "\udcff"], "cannot be shown"),
        (["add", "--component", "a", "--group", "A", "--inside", "\udcff"], "it is no UTF-8 text"),
        (["add", "--structural", "a", "--reason", "\udcff"], "reason is no UTF-8 text"),
        (["add", "--structural", "a", "--run", "\udcff"], "has no run"),
        (["explain", "\udcff/b"], "the op_name is no UTF-8 text"),
    ],
)
def test_arguments_that_are_no_text(warehouse: Path, arguments: list[str], message: str) -> None:
    result = rules(warehouse, *arguments)
    assert result.exit_code in (1, 2)
    assert message in result.stderr
    assert "Conversion" not in result.stderr
