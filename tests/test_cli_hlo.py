"""`tracewh hlo`."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner, Result

import tracewh
from tracewh.cli import main

from .ingest_runs import FIXTURES, query
from .small_warehouse import make_small_warehouse

RUN = "h200_moe_direct"


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("hlo") / "hlo.duckdb"
    tracewh.ingest_run(FIXTURES / RUN, warehouse=path)
    return path


def hlo(warehouse: Path, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["hlo", "-w", str(warehouse), *arguments])


def as_json(warehouse: Path, *arguments: str) -> Any:
    result = hlo(warehouse, *arguments, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def longest_op(warehouse: Path) -> str:
    """The op with most device time, by a sum over the events themselves."""
    ((name,),) = query(
        warehouse,
        """SELECT n.name FROM device_events AS e JOIN ops AS o USING (capture_id, op_id)
        JOIN names AS n ON n.name_id = o.hlo_op_name_id WHERE e.role = 'work'
        GROUP BY n.name ORDER BY sum(e.end_ps - e.start_ps) DESC LIMIT 1""",
    )
    return str(name)


def test_programs_and_ops(warehouse: Path) -> None:
    found = as_json(warehouse, RUN, "--top", "3")
    modules = query(warehouse, "SELECT module_name FROM hlo_modules")
    assert sorted(program["module"] for program in found["programs"]) == sorted(name for (name,) in modules)
    first = found["programs"][0]
    memory = json.loads((FIXTURES / RUN / "memory_analysis.json").read_text())
    assert (first["module"], first["program"]) == ("jit_train_step", 2011)
    assert first["peak_bytes"] == memory["peak_memory_in_bytes"]
    assert first["runs"] == 3
    assert len(found["ops"]) == 3
    assert found["ops"][0]["op"] == longest_op(warehouse)
    times = [op["union_ps"] for op in found["ops"]]
    assert times == sorted(times, reverse=True)
    assert found["nameless_share"] == 0


def test_programs_and_ops_as_a_table(warehouse: Path) -> None:
    result = hlo(warehouse, RUN, "--top", "2")
    assert result.exit_code == 0
    op = longest_op(warehouse)
    assert f"tracewh hlo -w {warehouse} {RUN} --op {op}" in result.stderr
    lines = result.stdout.splitlines()
    # Ids have no thousands separator; one capture, and one program of these ops, need no column.
    assert any(line.split()[:2] == ["2011", "jit_train_step"] for line in lines if line)
    (start,) = (number for number, line in enumerate(lines) if line.split()[:2] == ["op", "times"])
    assert lines[start + 2].split()[:2] == [op, "24"]
    assert len(lines) == start + 4


def test_an_op_with_its_neighbours(warehouse: Path) -> None:
    (found,) = as_json(warehouse, RUN, "--op", longest_op(warehouse))
    neighbours = query(
        warehouse,
        f"""SELECT o.operand_index, n.name FROM hlo_operands AS o
        JOIN hlo_instructions AS i USING (module_id, instruction_id) JOIN names AS m USING (name_id)
        JOIN hlo_instructions AS p
            ON p.module_id = o.module_id AND p.instruction_id = o.operand_instruction_id
        JOIN names AS n ON n.name_id = p.name_id WHERE m.name = '{longest_op(warehouse)}' ORDER BY 1""",
    )
    assert [(operand["index"], operand["op"]) for operand in found["operands"]] == neighbours
    for user in found["users"]:
        (seen,) = as_json(warehouse, RUN, "--op", user["op"])
        assert longest_op(warehouse) in [operand["op"] for operand in seen["operands"]]
    assert found["program"] == 2011
    assert found["source_file"].endswith("moe_step.py")
    assert found["stack"][0]["source_line"] == found["source_line"]
    assert found["stack"][-1]["function_name"] == "<module>"
    (measured,) = found["measured"]
    assert measured["executions"] == 3 * found["executions_per_run"]


def test_an_op_as_text(warehouse: Path) -> None:
    name = longest_op(warehouse)
    result = hlo(warehouse, RUN, "--op", name)
    assert (result.exit_code, result.stderr) == (0, "")
    first, *lines = result.stdout.splitlines()
    assert first == f"{name}  in jit_train_step, program 2011"
    titles = {line.split()[0] for line in lines if re.match(r"[a-z]", line)}
    assert {"opcode", "shape", "op_name", "source", "runs", "cost", "measured", "operands", "users"} <= titles
    assert {"callers", "stack"} <= titles
    assert hlo(warehouse, RUN, "--op", f"%{name}").stdout == result.stdout


def test_a_configuration_too_long_to_show(warehouse: Path, tmp_path: Path) -> None:
    copy, op = tmp_path / "copy.duckdb", longest_op(warehouse)
    shutil.copy(warehouse, copy)
    with duckdb.connect(str(copy)) as connection:
        connection.execute(
            "UPDATE hlo_instructions SET backend_config = ? "
            "WHERE name_id = (SELECT name_id FROM names WHERE name = ?)",
            ["x" * 2_000_000, op],
        )
    result = hlo(copy, RUN, "--op", op)
    assert "The first of 2,000,000 characters" in result.stdout
    assert result.stdout.count("x") < 11_000
    assert {len(found["backend_config"]) for found in as_json(copy, RUN, "--op", op)} == {2_000_000}


def test_one_name_in_several_programs(warehouse: Path) -> None:
    ((name, programs),) = query(
        warehouse,
        """SELECT n.name, list(DISTINCT p.program_id ORDER BY p.program_id) FROM hlo_programs AS p
        JOIN hlo_instructions AS i USING (module_id) JOIN names AS n USING (name_id)
        GROUP BY n.name HAVING count(DISTINCT p.program_id) > 1 ORDER BY n.name LIMIT 1""",
    )
    found = as_json(warehouse, RUN, "--op", name)
    assert sorted(record["program"] for record in found) == programs
    (chosen,) = as_json(warehouse, RUN, "--op", name, "--program", str(found[-1]["program"]))
    assert chosen == found[-1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((RUN, "--op", "custom-call.222"), r"no HLO op custom-call\.222 in run .* Near: custom-call\.2,"),
        ((RUN, "--op", "custom-call.2", "--program", "1"), r"in program 1 of run h200_moe_direct.*lists ops"),
        ((RUN, "--op", "?"), r"`tracewh hlo h200_moe_direct` lists ops"),
        (("other",), r"has no run other; its runs: h200_moe_direct\."),
    ],
)
def test_what_is_not_there(warehouse: Path, arguments: tuple[str, ...], message: str) -> None:
    result = hlo(warehouse, *arguments)
    assert result.exit_code == 1
    assert re.search(message, result.stderr)
    assert result.stdout == ""


def test_a_program_without_an_op_is_wrong_usage(warehouse: Path) -> None:
    result = hlo(warehouse, RUN, "--program", "3")
    assert result.exit_code == 2
    assert "--program needs --op NAME" in result.stderr


def test_device_time_of_command_buffers_is_named(tmp_path: Path) -> None:
    warehouse = tmp_path / "graphs.duckdb"
    tracewh.ingest_run(FIXTURES / "h200_moe", warehouse=warehouse)
    assert "is not in these ops" not in hlo(warehouse, "h200_moe").stderr
    with duckdb.connect(str(warehouse)) as connection:
        # As if what follows a node could not be told.
        connection.execute("DELETE FROM main.graph_ops WHERE node_index > 20")
    result = hlo(warehouse, "h200_moe")
    assert result.exit_code == 0
    ((nameless, total),) = query(
        warehouse,
        """SELECT sum(end_ps - start_ps) FILTER (attribution_source = 'none'), sum(end_ps - start_ps)
        FROM v1.attribution WHERE event_class <> 'copy'""",
    )
    assert f"{nameless / total:.0%} of the device time, copies aside, is not in these ops" in result.stderr


def test_names_that_would_drive_the_terminal(warehouse: Path, tmp_path: Path) -> None:
    copy, op = tmp_path / "copy.duckdb", longest_op(warehouse)
    shutil.copy(warehouse, copy)
    evil = f"{op}\x1b]0;owned\x07\x9b31m"
    with duckdb.connect(str(copy)) as connection:
        connection.execute("UPDATE names SET name = ? WHERE name = ?", [evil, op])
    for arguments in ((), ("--op", evil), ("--op", op)):
        result = hlo(copy, RUN, *arguments)
        assert op in result.output
        assert all(character == "\n" or character.isprintable() for character in result.output)


def test_a_run_without_hlo_says_where_to_get_it(tmp_path: Path) -> None:
    result = hlo(make_small_warehouse(tmp_path / "small.duckdb"), "base")
    assert result.exit_code == 0
    assert "--xla_dump_to" in result.stderr
