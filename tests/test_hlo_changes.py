"""What is told to differ between optimized programs, against the text of the same programs."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import duckdb
import pytest

import tracewh

from .hlo_text_walk import Instruction, Program
from .live_views import new_warehouse
from .shared_runs import find_run

FSDP = "h200x2_medium_fsdp2"
RUNS = ("hist_01", "hist_02", "hist_06", "hist_07", FSDP, f"{FSDP}_nocb", f"{FSDP}_opt")
# Compiled again, with nothing changed that the compiler knows of.
SAME = [("hist_01", "hist_02"), ("hist_02", "hist_06"), (FSDP, f"{FSDP}_nocb")]
OTHER = [("hist_06", "hist_07"), (FSDP, f"{FSDP}_opt")]
NO_WORK = ("parameter", "constant", "tuple", "get-tuple-element", "bitcast")
Structure = tuple[int, ...]
# Of instructions that are the same, in whichever program.
NUMBERS: dict[Any, int] = {}
NO_WORK_ON_TOP = (*NO_WORK, "while", "async-start", "async-done")
ATTRIBUTES = (r"kind=(\w+)", r'target="([^"]*)"', r"replica_groups=(.*?\})", r"backend_config=(.*)")


@dataclass
class Captured:
    """The runs, ingested together, and the text that XLA dumped of each one's training step."""

    connection: duckdb.DuckDBPyConnection
    programs: dict[str, Program]

    def changes(self, base: str, head: str) -> list[dict[str, Any]]:
        """The rows of v1.hlo_changes for the step programs of two runs."""
        found = self.connection.execute(
            "SELECT c.* FROM v1.hlo_changes AS c WHERE c.base_module_id = $1 AND c.head_module_id = $2",
            [self.module(base), self.module(head)],
        )
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def module(self, run: str) -> int:
        ((module_id,),) = self.connection.execute(
            "SELECT module_id FROM v1._run_modules JOIN main.runs USING (run_id) WHERE run_name = $1",
            [run],
        ).fetchall()
        return int(module_id)

    def flops(self, run: str) -> float:
        """FLOPs of one run of the program."""
        ((flops,),) = self.connection.execute(
            "SELECT DISTINCT c.flops FROM v1.program_costs AS c "
            "JOIN main.hlo_programs AS p USING (capture_id, program_id) WHERE p.module_id = $1",
            [self.module(run)],
        ).fetchall()
        return float(flops)


@pytest.fixture(scope="module")
def captured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Captured]:
    folder = tmp_path_factory.mktemp("runs")
    path = folder / "w.duckdb"
    programs = {}
    for name in RUNS:
        run = find_run(name, folder)
        assert tracewh.ingest_run(run, warehouse=path).status == "loaded"
        (text,) = run.glob("xla_dump/*after_optimizations.txt")
        programs[name] = Program(text.read_text())
    with duckdb.connect(str(path), read_only=True) as connection:
        yield Captured(connection, programs)


def plain(op_name: str) -> str:
    """An op_name without markers of rematerialization, and without the number of one that XLA made up."""
    if "/" not in op_name:
        return re.sub(r"\.\d+$", "", op_name)
    return re.sub(r"/(checkpoint|rematted_computation)(?=/)", "", op_name)


def content(program: Program, instruction: Instruction) -> tuple[tuple[str, str, str], ...]:
    """Opcode, op_name and shape of what a fusion or a reduction calls."""
    return tuple(
        sorted(
            (item.opcode, plain(item.op_name), re.sub(r"\{.*?\}", "", item.shape))
            for computation in called_by(instruction)
            for item in program.computations[computation].values()
            if item.opcode not in NO_WORK
        )
    )


def taken(program: Program, instruction: Instruction) -> list[str]:
    """Shapes of operands; elements of tuples, written as %param.36#24, only where a fusion takes them."""
    if instruction.opcode == "fusion":
        body = program.computations[instruction.attribute(r"calls=%([\w.\-]+)")]
        return sorted(item.shape for item in body.values() if item.opcode == "parameter")
    shapes = (program.computations[instruction.computation][name].shape for name in instruction.operands)
    return sorted(shape for shape in shapes if not shape.startswith("("))


def called_by(item: Instruction) -> list[str]:
    return re.findall(r"(?:calls|to_apply)=%([\w.\-]+)", item.attributes)


def structures(program: Program) -> dict[str, Structure]:
    """What each computation is apart from names and numbers: its instructions, operands by what they are."""
    found: dict[str, Structure] = {}
    for name, computation in program.computations.items():
        numbers: dict[str, int] = {}
        for item in computation.values():
            attributes = re.split(
                r", (?:metadata|backend_config|frontend_attributes|control-predecessors)=", item.attributes
            )
            key = (
                item.opcode,
                item.shape,
                tuple(numbers[operand] for operand in item.operands) or item.arguments,
                re.sub(r"%[\w.\-]+|channel_id=\d+", "", attributes[0]),
                tuple(found[called] for called in called_by(item)),
            )
            numbers[item.name] = NUMBERS.setdefault(key, len(NUMBERS))
        found[name] = tuple(sorted(numbers.values()))
    return found


def work(program: Program) -> Counter[tuple[object, ...]]:
    """What the program executes, each with all that the text says of it but names and numbers."""
    found: Counter[tuple[object, ...]] = Counter()
    structure = structures(program)
    fused = {
        name
        for instruction in program.instructions
        if instruction.opcode not in ("while", "async-start")
        for name in called_by(instruction)
    }
    for name, computation in program.computations.items():
        for item in computation.values():
            if name in fused or item.opcode in NO_WORK_ON_TOP:
                continue
            found[
                item.opcode,
                item.op_name if "/" in item.op_name else plain(item.op_name),
                item.shape,
                tuple(taken(program, item)),
                str([re.findall(pattern, item.attributes) for pattern in ATTRIBUTES]),
                content(program, item),
                tuple(structure[called] for called in called_by(item)),
                program.executions[name],
            ] += 1
    return found


def total(rows: list[dict[str, Any]], column: str) -> Any:
    return sum(row[column] for row in rows)


@pytest.mark.parametrize(("base", "head"), [*SAME, *OTHER])
def test_as_many_differ_as_in_the_texts(captured: Captured, base: str, head: str) -> None:
    rows = captured.changes(base, head)
    ours, theirs = work(captured.programs[base]), work(captured.programs[head])
    assert total(rows, "base_count") == (ours - theirs).total() > 0
    assert total(rows, "head_count") == (theirs - ours).total() > 0


@pytest.mark.parametrize(("base", "head"), SAME)
def test_compiling_again_changes_the_tuning_alone(captured: Captured, base: str, head: str) -> None:
    rows = captured.changes(base, head)
    assert {row["change"] for row in rows} == {"config_changed"}
    assert {(row["flops_change"], row["base_count"] - row["head_count"]) for row in rows} == {(0.0, 0)}


@pytest.mark.parametrize(("base", "head"), OTHER)
def test_changes_add_up_to_the_flops_of_the_programs(captured: Captured, base: str, head: str) -> None:
    rows = [row for row in captured.changes(base, head) if row["flops_change"] is not None]
    assert total(rows, "flops_change") == captured.flops(head) - captured.flops(base) != 0


def test_more_capacity_of_the_experts_is_in_the_shapes(captured: Captured) -> None:
    rows = captured.changes("hist_06", "hist_07")
    changes = {row["change"] for row in rows}
    assert changes == {"shape_changed", "fusion_changed", "config_changed", "added", "removed"}
    shapes = [row for row in rows if row["change"] == "shape_changed"]
    odd = []
    for row in shapes:
        numbers = [list(map(int, re.findall(r"\d+", row[side]))) for side in ("base_value", "head_value")]
        pairs = {pair for pair in zip(*numbers, strict=True) if pair[0] != pair[1]}
        # A capacity factor of 2.0 instead of 1.25.
        if not all(old * 8 == new * 5 for old, new in pairs):
            odd.append((row["op_name"].split("/")[-2], pairs))
    # What adds the partial sums of the experts' GEMM: there are twice as many now.
    assert odd == [("moe_residual", {(4, 8)})]
    experts = {name for row in shapes for name in ("wi_0", "wi_1", "wo") if f"/{name}/" in row["op_name"]}
    assert experts == {"wi_0", "wi_1", "wo"}
    # All else is of the expert layer, or what norms sum up of its output.
    others = {row["op_name"] for row in rows if row["change"] != "config_changed"}
    assert [name for name in others if not re.search("moe_block|moe_residual|_norm/", name)] == []


def test_the_capacity_that_is_compared_with_is_a_constant_within_a_fusion(captured: Captured) -> None:
    """The opcodes and shapes of what drops tokens are the same."""
    (row,) = [
        row
        for row in captured.changes("hist_06", "hist_07")
        if (row["base_value"] or "").startswith("structure ")
    ]
    assert (row["change"], row["base_count"], row["head_count"]) == ("fusion_changed", 1, 1)
    constants = []
    for run, side in (("hist_06", "base_instruction"), ("hist_07", "head_instruction")):
        program = captured.programs[run]
        (fusion,) = [item for item in program.instructions if item.name == row[side]]
        constants.append(
            Counter(
                item.arguments
                for called in called_by(fusion)
                for item in program.computations[called].values()
                if item.opcode == "constant"
            )
        )
    assert (constants[0] - constants[1], constants[1] - constants[0]) == (Counter(["40"]), Counter(["64"]))


def test_less_is_done_again_in_the_backward_pass(captured: Captured) -> None:
    rows = captured.changes(FSDP, f"{FSDP}_opt")
    base, head = (
        Counter(
            item.op_name
            for item in captured.programs[run].instructions
            if item.opcode == "custom-call" and "/rematted_computation/" in item.op_name
        )
        for run in (FSDP, f"{FSDP}_opt")
    )
    removed = [row for row in rows if row["change"] == "removed" and row["opcode"] == "custom-call"]
    assert Counter(row["op_name"] for row in removed) == base - head
    assert not head - base
    assert {row["op_name"].split("/")[-3] for row in removed} == {"dispatch", "wi_0", "wi_1", "wo"}


@pytest.mark.parametrize(("base", "head"), [*SAME[:1], *OTHER])
def test_sides_are_treated_alike(captured: Captured, base: str, head: str) -> None:
    swapped = {"added": "removed", "removed": "added"}
    pairs = [
        ("base_instruction", "head_instruction"),
        ("base_value", "head_value"),
        ("base_count", "head_count"),
    ]

    def described(rows: list[dict[str, Any]], *, turned: bool) -> list[str]:
        return sorted(
            json.dumps(
                [
                    swapped.get(row["change"], row["change"]) if turned else row["change"],
                    row["opcode"],
                    row["op_name"],
                    [[row[pair[turned]], row[pair[not turned]]] for pair in pairs],
                    None if row["flops_change"] is None else row["flops_change"] * (-1) ** turned + 0.0,
                ]
            )
            for row in rows
        )

    there, back = captured.changes(base, head), captured.changes(head, base)
    assert described(there, turned=False) == described(back, turned=True)


@pytest.mark.parametrize("run", [FSDP, "hist_01"])
def test_a_program_differs_in_nothing_from_itself(captured: Captured, run: str) -> None:
    assert captured.changes(run, run) == []


def test_instructions_of_other_modules_are_not_read() -> None:
    with new_warehouse() as connection:
        connection.execute(
            """
            INSERT INTO main.names SELECT range, 'name.' || range FROM range(100);
            INSERT INTO main.hlo_modules (module_id, module_name, proto_bytes, has_schedule,
                has_buffer_assignment)
            SELECT range, 'jit_f', 0, TRUE, TRUE FROM range(1, 9);
            INSERT INTO main.hlo_computations (module_id, computation_id, computation_name, computation_role,
                executions, loop_depth)
            SELECT range, 1 + range % 2, 'c', CASE range % 2 WHEN 0 THEN 'entry' ELSE 'fusion' END, 1, 0
            FROM range(1, 9);
            INSERT INTO main.hlo_instructions (module_id, instruction_id, computation_id, position, name_id,
                opcode, op_name_id, shape, is_root, operand_count)
            SELECT 1 + range % 8, range, 1 + range % 2, range, range % 100,
                CASE range % 3 WHEN 0 THEN 'add' WHEN 1 THEN 'get-tuple-element' ELSE 'all-reduce-done' END,
                range % 100, 'f32[2]{0}', FALSE, 1
            FROM range(8000);
            INSERT INTO main.hlo_operands SELECT 1 + range % 8, range, 0, range - 8 FROM range(8000);
            INSERT INTO main.hlo_calls SELECT 1 + range % 8, range, 0, 2 FROM range(8000);
            INSERT INTO main.hlo_collectives (module_id, instruction_id, collective_kind, is_done,
                group_set_id)
            SELECT 1 + range % 8, range, 'all-reduce', FALSE, 1 FROM range(8000);
            INSERT INTO main.hlo_replica_groups SELECT 1 + range % 8, 1, 0, range, range FROM range(800);
            INSERT INTO main.hlo_costs (module_id, instruction_id, cost_rule) SELECT 1 + range % 8, range, 'x'
            FROM range(8000);
            """
        )
        ((_, plan),) = connection.execute(
            "EXPLAIN (FORMAT JSON) "
            "SELECT * FROM v1.hlo_changes WHERE base_module_id = 3 AND head_module_id = 5"
        ).fetchall()
    scans = list(scanned(json.loads(plan)))
    assert {table for table, _ in scans} > {
        "hlo_instructions",
        "hlo_operands",
        "hlo_calls",
        "hlo_replica_groups",
    }
    assert [scan for scan in scans if not re.search(r"\bmodule_id = [35]\b", scan[1])] == []


def scanned(operators: list[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """The tables of HLO that a plan scans, with the filters of each scan."""
    for operator in operators:
        info = operator["extra_info"]
        table = str(info.get("Table", "")).rsplit(".", 1)[-1].strip('"')
        if table.startswith("hlo_"):
            yield table, str(info.get("Filters"))
        yield from scanned(operator["children"])
