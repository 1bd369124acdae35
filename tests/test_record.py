"""tracewh.record writes the directory of a run, and ingest needs nothing else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tracewh
from tracewh.ingest.hlo_proto import HloProto

from .ingest_runs import commits, query, small_capture, statuses, write_run
from .recorded_runs import TRAIN, commit_program, git, readme_example, run_program

TWO_DEVICES = "--xla_force_host_platform_device_count=2"


class Recorded:
    """A program that recorded itself, its directory in a warehouse."""

    def __init__(self, folder: Path, program: str, *xla_flags: str) -> None:
        self.commit = commit_program(folder / "repository", program)
        self.printed = run_program(folder / "repository", *xla_flags)
        self.directory = folder / "repository" / "runs" / "mine"
        self.warehouse = folder / "warehouse.duckdb"
        self.statuses = statuses(tracewh.ingest_run(self.directory, warehouse=self.warehouse))

    def query(self, text: str) -> list[tuple[Any, ...]]:
        return query(self.warehouse, text)

    def params(self) -> dict[str, str | None]:
        rows = self.query("SELECT param, value FROM run_params")
        assert len(rows) == len(dict(rows))
        return dict(rows)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Recorded:
    folder = tmp_path_factory.mktemp("recorded")
    dump = [f"--xla_dump_to={folder / 'dump'}", "--xla_dump_hlo_as_proto", "--xla_dump_hlo_as_text"]
    return Recorded(folder, TRAIN, TWO_DEVICES, *dump)


@pytest.fixture(scope="module")
def told(recorded: Recorded) -> dict[str, Any]:
    """What JAX itself told of the program."""
    return json.loads(recorded.printed)


def test_ingest_reads_every_file(recorded: Recorded) -> None:
    written = {str(path.relative_to(recorded.directory)) for path in recorded.directory.rglob("*.*")}
    # JAX writes the XSpace a second time, for Perfetto.
    written = {name for name in written if (recorded.directory / name).is_file()}
    exports = {name for name in written if name.endswith((".trace.json.gz", ".pbtxt"))}
    assert written - exports == set(recorded.statuses)
    assert set(recorded.statuses.values()) <= {"loaded", "merged", "recorded"}
    assert {"config.json", "timing.json", "cost_analysis.json", "memory_analysis.json"} < written
    assert {"optimized_hlo.pb", "device_memory.prof", "tracewh_record.json"} < written
    assert recorded.query("SELECT problem, place FROM ingest_problems") == []


def test_steps_are_complete(recorded: Recorded) -> None:
    found = recorded.query("SELECT device_ordinal, step_num, is_complete FROM v1.steps ORDER BY ALL")
    assert found == [(device, step, True) for device in (0, 1) for step in (10, 11, 12)]


def test_step_times(recorded: Recorded, told: dict[str, Any]) -> None:
    found = recorded.query(
        "SELECT step_num, value FROM timing_samples WHERE NOT is_profiled ORDER BY sample_index"
    )
    assert found == [(None, value) for value in told["seconds"]]
    assert len(found) == 5
    profiled = recorded.query(
        "SELECT step_num, value > 0 FROM timing_samples WHERE is_profiled AND metric = 'step_time_s' "
        "ORDER BY sample_index"
    )
    assert profiled == [(10, True), (11, True), (12, True)]


def test_costs_and_sizes_are_those_of_jax(recorded: Recorded, told: dict[str, Any]) -> None:
    assert float(recorded.params()["cost_analysis.flops"]) == told["flops"]
    sizes = dict(recorded.query("SELECT kind, bytes FROM memory_samples WHERE evidence = 'compiler'"))
    for kind in ("argument", "output", "temporary"):
        assert sizes[kind] == told[f"{kind}_bytes"]


def test_module_with_buffer_assignment(recorded: Recorded, told: dict[str, Any], tmp_path: Path) -> None:
    assert ("jit_train_step",) in recorded.query("SELECT module_name FROM hlo_modules")
    proto = HloProto()
    proto.ParseFromString((recorded.directory / "optimized_hlo.pb").read_bytes())
    again = HloProto()
    again.buffer_assignment.ParseFromString(bytes.fromhex(told["buffer_assignment"]))
    assert proto.buffer_assignment == again.buffer_assignment
    # Alone too, without the XSpace, whose copy of the module ingest takes first.
    alone = tmp_path / "alone.duckdb"
    tracewh.ingest_run(recorded.directory / "optimized_hlo.pb", warehouse=alone)
    sizes = query(alone, "SELECT bytes FROM hlo_buffers WHERE allocation_kind = 'parameter' ORDER BY bytes")
    assert [size for (size,) in sizes] == sorted(told["parameter_bytes"])
    assert query(alone, "SELECT problem FROM ingest_problems") == []


def test_dump_of_the_program(recorded: Recorded) -> None:
    dumped = sorted(path.name for path in (recorded.directory / "xla_dump").iterdir())
    assert all(".jit_train_step." in name for name in dumped)
    assert len({name.split(".")[0] for name in dumped}) == 1
    assert any(name.endswith("after_optimizations.hlo.pb") for name in dumped)
    assert any(name.endswith("buffer-assignment.txt") for name in dumped)
    assert not any("before_optimizations" in name or name.endswith((".ll", ".o")) for name in dumped)
    dump = recorded.directory.parents[2] / "dump"
    for path in (recorded.directory / "xla_dump").iterdir():
        assert path.read_bytes() == (dump / path.name).read_bytes()


def test_commit_and_environment(recorded: Recorded, told: dict[str, Any]) -> None:
    assert commits(recorded.warehouse) == [(recorded.commit, "config")]
    params = recorded.params()
    assert params["record.hlo_module"] == "jit_train_step"
    assert params["record.commit"] == recorded.commit
    assert params["record.git_has_changes"] == "false"
    assert params["record.environment.jax"] == told["jax"]
    assert params["record.environment.device_count"] == "2"
    assert params["record.environment.mesh.data"] == "2"
    assert TWO_DEVICES in (params["record.environment.xla_flags"] or "")
    assert params["record.errors.memory_stats_after"] == "the backend gives no allocator statistics"


def test_config_without_secrets(recorded: Recorded) -> None:
    config = json.loads((recorded.directory / "config.json").read_text())
    assert config == {
        "width": 64,
        "batch": 32,
        "dtype": "float32",
        "hf_token": None,
        "services": {"wandb": {"api_key": None}, "url": None},
    }
    assert recorded.params()["width"] == "64"
    for path in recorded.directory.glob("*.json"):
        assert "s3cret" not in path.read_text(), path


def test_changes_of_the_checkout_are_seen(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    sha = commit_program(repository, "")
    (repository / "train.py").write_text("changed")
    (repository / "notes.txt").write_text("not tracked")
    assert git(repository, "status", "--porcelain") == "M train.py\n?? notes.txt"
    script = (
        "import json, sys; from tracewh.record_environment import commit; "
        "errors = {}; print(json.dumps([commit(sys.argv[1], errors), errors]))"
    )
    answers = []
    for folder in (repository, tmp_path):
        command = [sys.executable, "-c", script, str(folder)]
        answers.append(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))
    assert answers[0] == [{"commit": sha, "git_has_changes": True}, {}]
    assert answers[1] == [{}, {"commit": f"git tells no commit for {tmp_path}"}]


def test_readme_example(tmp_path: Path) -> None:
    program = readme_example()
    assert program.count("\n") <= 25
    recorded = Recorded(tmp_path, program)
    assert set(recorded.statuses.values()) <= {"loaded", "merged", "recorded"}
    assert recorded.query("SELECT step_num, is_complete FROM v1.steps ORDER BY ALL") == [
        (step, True) for step in (10, 11, 12)
    ]
    assert recorded.query("SELECT COUNT(*) FROM timing_samples WHERE NOT is_profiled") == [(8,)]
    assert recorded.params()["learning_rate"] == "0.1"
    assert commits(recorded.warehouse) == [(recorded.commit, "config")]


def test_the_recorder_needs_no_database_and_tracewh_no_jax() -> None:
    script = (
        "import sys, tracewh\nassert 'jax' not in sys.modules and 'duckdb' not in sys.modules\n"
        "import tracewh.recorder, tracewh.step_times\n"
        "assert not {'duckdb', 'tracewh.sql.warehouse'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_steps_of_a_record_that_are_none_are_counted(tmp_path: Path) -> None:
    run, warehouse = tmp_path / "run", tmp_path / "w.duckdb"
    steps = [{"step_num": 3, "seconds": 0.5}, {"step_num": 4}, {"step_num": 1.5, "seconds": 1}, "5", None]
    record = {"commit": "c0ffee", "profiled_steps": steps, "argv": ["--hf_token", "s3cret"]}
    write_run(run, {"a.xplane.pb": small_capture()}, {"tracewh_record.json": record})
    tracewh.ingest_run(run, warehouse=warehouse)
    assert query(warehouse, "SELECT step_num, value, is_profiled FROM timing_samples") == [(3, 0.5, True)]
    problems = "SELECT problem, SUM(occurrences) FROM ingest_problems GROUP BY 1 ORDER BY 1"
    assert query(warehouse, problems) == [("not_a_number", 4), ("secret_dropped", 1)]
    assert commits(warehouse) == [("c0ffee", "config")]
    assert b"s3cret" not in warehouse.read_bytes()
