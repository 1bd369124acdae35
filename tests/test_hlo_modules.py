"""Modules are stored once, however many programs and captures ran them, and as long as one did."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracewh
from tracewh.ingest import hlo
from tracewh.ingest.hlo_proto import HloProto
from tracewh.sql.warehouse import Warehouse

from .ingest_runs import CAPTURES, query
from .xspace_oracle import SpaceBuilder

MODULE_TABLES = (
    *("hlo_modules", "hlo_computations", "hlo_instructions", "hlo_operands", "hlo_calls", "hlo_stack_frames"),
    *("hlo_control_edges", "hlo_costs", "hlo_flops", "hlo_collectives", "hlo_replica_groups"),
    *("hlo_buffers", "hlo_logical_buffers", "hlo_heap_events"),
)


def module(number: int, name: str = "jit_f") -> bytes:
    """A module of one instruction, compiled as the process's module of that number."""
    proto = HloProto()
    proto.hlo_module.name = name.encode()
    proto.hlo_module.id = proto.hlo_module.pjrt_id = number
    proto.hlo_module.entry_computation_id = 1
    computation = proto.hlo_module.computations.add(name=b"main", id=1, root_id=1)
    computation.instructions.add(name=b"p.1", opcode=b"parameter", id=1, shape=b"\x10\x0b\x1a\x01\x08")
    data: bytes = proto.SerializeToString()
    return data


def capture(modules: dict[int, bytes]) -> bytes:
    space = SpaceBuilder()
    space.gpu().line("Stream #1").event(f"k{len(modules)}", 0, 1)
    plane = space.plane("/host:metadata")
    for program_id, proto in modules.items():
        plane.metadata(f"jit({program_id})", stats={"Hlo Proto": proto}, key=program_id)
    data: bytes = space.serialize()
    return data


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "w.duckdb"


def write(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def programs(warehouse: Path) -> list[tuple[int, int, int]]:
    return query(warehouse, "SELECT capture_id, program_id, module_id FROM hlo_programs ORDER BY ALL")


def counts(warehouse: Path) -> dict[str, int]:
    return {table: query(warehouse, f"SELECT COUNT(*) FROM {table}")[0][0] for table in MODULE_TABLES}


def test_equal_programs_of_a_capture_are_one_module(tmp_path: Path, warehouse: Path) -> None:
    modules = {number: module(number) for number in range(1, 501)} | {501: module(501, "jit_g")}
    tracewh.ingest_run(write(tmp_path / "run" / "a.xplane.pb", capture(modules)), warehouse=warehouse)
    assert query(warehouse, "SELECT module_name FROM hlo_modules ORDER BY 1") == [("jit_f",), ("jit_g",)]
    assert query(warehouse, "SELECT COUNT(*) FROM hlo_instructions") == [(2,)]
    assert len({module_id for _, program_id, module_id in programs(warehouse) if program_id <= 500}) == 1
    assert [program_id for _, program_id, _ in programs(warehouse)] == [*range(1, 502)]


def test_equal_dumps_are_one_module(tmp_path: Path, warehouse: Path) -> None:
    for number in range(20):
        name = f"module_{number:04}.jit_f.gfx950_gpu_after_optimizations.hlo.pb"
        write(tmp_path / "run" / name, module(number))
    report = tracewh.ingest_run(tmp_path / "run", warehouse=warehouse)
    assert (report.captures, report.modules) == (1, 20)
    assert query(warehouse, "SELECT COUNT(*) FROM hlo_modules") == [(1,)]
    assert [program_id for _, program_id, _ in programs(warehouse)] == [*range(20)]


def test_captures_of_other_runs_share_modules_until_the_last_is_removed(
    tmp_path: Path, warehouse: Path
) -> None:
    real = CAPTURES["h200_moe_direct"]
    for name in ("first", "second"):
        run = tmp_path / name
        write(run / "a.xplane.pb", capture({1: module(1), 2: module(2, f"jit_{name}")}))
        tracewh.ingest_run(run, warehouse=warehouse)
    before = counts(warehouse)
    assert before["hlo_modules"] == 3
    tracewh.ingest_run(write(tmp_path / "third" / real.name, real.read_bytes()).parent, warehouse=warehouse)
    grown = {table for table, count in counts(warehouse).items() if count > before[table]}
    # It has no collectives.
    assert grown >= set(MODULE_TABLES) - {"hlo_collectives", "hlo_replica_groups", "hlo_control_edges"}
    with Warehouse.open(warehouse, read_only=False) as opened:
        opened.remove_run("third")
        assert counts_of(opened) == before
        opened.remove_run("first")
        assert [row[0] for row in names_of(opened)] == ["jit_f", "jit_second"]
        opened.remove_run("second")
        assert set(counts_of(opened).values()) == {0}


def counts_of(opened: Warehouse) -> dict[str, int]:
    return {
        table: opened.connection.execute(f"SELECT COUNT(*) FROM {table}").fetchall()[0][0]
        for table in MODULE_TABLES
    }


def names_of(opened: Warehouse) -> list[tuple[str]]:
    return opened.connection.execute("SELECT module_name FROM hlo_modules ORDER BY 1").fetchall()


def test_a_dump_that_changed_replaces_its_module(tmp_path: Path, warehouse: Path) -> None:
    dump = tmp_path / "run" / "module_0003.jit_f.gfx950_gpu_after_optimizations.hlo.pb"
    tracewh.ingest_run(write(dump, module(3)).parent, warehouse=warehouse)
    tracewh.ingest_run(write(dump, module(3, "jit_g")).parent, warehouse=warehouse)
    assert query(warehouse, "SELECT module_name FROM hlo_modules") == [("jit_g",)]
    assert len(programs(warehouse)) == 1


def test_of_two_programs_with_one_number_one_is_left_out_and_counted(tmp_path: Path, warehouse: Path) -> None:
    space = SpaceBuilder()
    space.gpu().line("Stream #1").event("k", 0, 1)
    plane = space.plane("/host:metadata")
    for key, name in ((1, "jit_f"), (2, "jit_g")):
        plane.metadata(f"{name}(7)", stats={"Hlo Proto": module(7, name)}, key=key)
    tracewh.ingest_run(write(tmp_path / "a.xplane.pb", space.serialize()), warehouse=warehouse)
    # The order of a map's entries in a file is not ours.
    ((kept,),) = query(warehouse, "SELECT module_name FROM hlo_modules")
    (left_out,) = {"jit_f", "jit_g"} - {kept}
    assert query(warehouse, "SELECT problem, place, detail FROM ingest_problems") == [
        ("duplicate_program", "program 7", f"{left_out} is left out")
    ]


def test_force_reads_a_module_again(tmp_path: Path, warehouse: Path) -> None:
    """What an older version made of it does not stay, and what is wrong with it is counted again."""
    damaged = HloProto.FromString(module(7))
    damaged.hlo_module.computations[0].instructions[0].operand_ids.append(99)
    run = write(tmp_path / "run" / "host.xplane.pb", capture({7: damaged.SerializeToString()})).parent
    problems = "SELECT problem, occurrences FROM ingest_problems WHERE problem LIKE 'dangling%'"
    tracewh.ingest_run(run, warehouse=warehouse)
    with Warehouse.open(warehouse, read_only=False) as opened:
        opened.connection.execute("UPDATE hlo_costs SET cost_rule = 'old'")
    tracewh.ingest_run(run, warehouse=warehouse, force=True)
    assert query(warehouse, "SELECT cost_rule FROM hlo_costs") == [("no_work",)]
    assert query(warehouse, problems) == [("dangling_operand", 1)]
    assert len(programs(warehouse)) == 1


def damaged(number: int) -> bytes:
    proto = HloProto.FromString(module(number))
    proto.hlo_module.computations[0].instructions[0].operand_ids.append(99)
    data: bytes = proto.SerializeToString()
    return data


def test_each_run_counts_the_problems_of_a_module_that_others_have_too(
    tmp_path: Path, warehouse: Path
) -> None:
    for name in ("first", "second"):
        # Two programs of it in each run: within a capture it is one module.
        data = capture({1: damaged(1), 2: damaged(2), len(name): module(9, f"jit_{name}")})
        tracewh.ingest_run(write(tmp_path / name / "a.xplane.pb", data).parent, warehouse=warehouse)
    problems = (
        "SELECT run_name, problem, occurrences FROM ingest_problems JOIN runs USING (run_id) ORDER BY 1"
    )
    assert query(warehouse, problems) == [
        ("first", "dangling_operand", 1),
        ("second", "dangling_operand", 1),
    ]
    assert query(warehouse, "SELECT COUNT(*) FROM hlo_modules WHERE module_name = 'jit_f'") == [(2,)]
    with Warehouse.open(warehouse, read_only=False) as opened:
        opened.remove_run("first")
    assert query(warehouse, problems) == [("second", "dangling_operand", 1)]


def test_a_later_reader_reads_a_module_again(
    tmp_path: Path, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for version in (1001, 1002):
        monkeypatch.setattr(hlo, "READER_VERSION", version)
        data = capture({1: module(1), version: module(9, f"jit_{version}")})
        tracewh.ingest_run(write(tmp_path / str(version) / "a.xplane.pb", data).parent, warehouse=warehouse)
    assert query(warehouse, "SELECT COUNT(*) FROM hlo_modules WHERE module_name = 'jit_f'") == [(2,)]
