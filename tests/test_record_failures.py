"""What goes wrong while a run is recorded: the program keeps its own error, and no file is half written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import pytest

import tracewh
from tracewh.ingest.discovery import STAGING_FOLDER, discover
from tracewh.ingest.errors import RecordError
from tracewh.ingest.run_directories import run_directories

from .ingest_runs import query, statuses

Compiled = Any


def double(x: jax.Array) -> jax.Array:
    return jnp.sin(x) * 2


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return jax.jit(double).lower(jnp.ones((8, 8))).compile()


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "run"


def record_once(out: Path, **options: Any) -> None:
    with tracewh.record(out, step=7, **options):
        jax.block_until_ready(jnp.ones((8, 8)))


def noted(out: Path) -> dict[str, Any]:
    return json.loads((out / "tracewh_record.json").read_text())


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


# --- errors of the program ----------------------------------------------------------------------------------


class Broken(Exception):
    pass


def test_an_exception_leaves_a_readable_record(out: Path, compiled: Compiled, tmp_path: Path) -> None:
    raised = Broken("at step 11")

    def train() -> None:
        with tracewh.record(out, compiled=compiled) as recorder:
            with recorder.step(10):
                recorder.wait(compiled(jnp.ones((8, 8))))
            with recorder.step(11):
                raise raised

    with pytest.raises(Broken) as caught:
        train()
    assert caught.value is raised
    assert not hasattr(raised, "__notes__")
    assert noted(out)["errors"]["block"] == "Broken: at step 11"
    assert [step["step_num"] for step in noted(out)["profiled_steps"]] == [10]
    report = tracewh.ingest_run(out, warehouse=tmp_path / "w.duckdb")
    assert "rejected" not in statuses(report).values()
    assert query(tmp_path / "w.duckdb", "SELECT step_num FROM timing_samples") == [(10,)]
    # The profiler is free again.
    record_once(tmp_path / "next")
    assert "block" not in noted(tmp_path / "next")["errors"]


def test_an_exception_in_a_block_that_is_one_step(out: Path) -> None:
    with pytest.raises(KeyboardInterrupt), tracewh.record(out, step=3):
        raise KeyboardInterrupt
    assert noted(out)["profiled_steps"] == []
    assert "steps" in noted(out)["errors"]
    assert (out / "profile").is_dir()


def test_a_failing_disk_does_not_hide_the_exception(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device", str(self))

    def train() -> None:
        with tracewh.record(out, step=3):
            monkeypatch.setattr(Path, "write_bytes", full)
            raise Broken

    with pytest.raises(Broken) as caught:
        train()
    monkeypatch.undo()
    assert "No space left" in caught.value.__notes__[0]
    with pytest.raises(RecordError, match="not empty"):
        record_once(out)


def test_a_computation_that_fails_later(out: Path) -> None:
    def fail(x: Any) -> Any:
        raise Broken("in a callback")

    def train() -> jax.Array:
        with tracewh.record(out) as recorder, recorder.step(1):
            return jax.pure_callback(fail, jax.ShapeDtypeStruct((), jnp.float32), jnp.float32(1))

    with pytest.raises(jax.errors.JaxRuntimeError, match="in a callback"):
        train()
    assert "in a callback" in noted(out)["errors"]["block"]


# --- what JAX does not give ---------------------------------------------------------------------------------


def unavailable(*_: Any) -> Any:
    raise NotImplementedError("not on this backend")


@pytest.mark.parametrize(
    ("method", "replacement", "missing", "reason"),
    [
        ("memory_analysis", unavailable, "memory_analysis.json", "NotImplementedError: not on this backend"),
        (
            "memory_analysis",
            lambda _: None,
            "memory_analysis.json",
            "ValueError: the backend gives no memory",
        ),
        ("cost_analysis", unavailable, "cost_analysis.json", "NotImplementedError: not on this backend"),
        ("cost_analysis", lambda _: None, "cost_analysis.json", "ValueError: the backend gives no cost"),
        ("runtime_executable", unavailable, "optimized_hlo.pb", "NotImplementedError: not on this backend"),
    ],
)
def test_missing_analyses_are_noted(
    out: Path,
    compiled: Compiled,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    replacement: Callable[..., Any],
    missing: str,
    reason: str,
) -> None:
    monkeypatch.setattr(jax.stages.Compiled, method, replacement)
    record_once(out, compiled=compiled)
    assert not (out / missing).exists()
    assert noted(out)["errors"][missing.split(".")[0]].startswith(reason)
    assert (out / "optimized_hlo.txt").exists() == (method == "runtime_executable")
    expected = {"memory_analysis.json", "cost_analysis.json", "optimized_hlo.pb"} - {missing}
    assert expected <= set(os.listdir(out))


class Device:
    """A device as JAX has it on an accelerator."""

    platform, id, local_hardware_id = "gpu", 9, 1

    def memory_stats(self) -> dict[str, int]:
        return {"bytes_in_use": 5, "peak_bytes_in_use": 2**40}


def test_allocator_statistics(out: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(jax, "local_devices", lambda: [Device()])
    record_once(out)
    tracewh.ingest_run(out, warehouse=tmp_path / "w.duckdb")
    assert query(
        tmp_path / "w.duckdb",
        "SELECT sample_label, kind, bytes, evidence FROM memory_samples ORDER BY sample_label DESC, kind",
    ) == [
        (when, kind, size, "measured")
        for when in ("before", "after")
        for kind, size in (("bytes_in_use", 5), ("peak_bytes_in_use", 2**40))
    ]
    # By its place in the host: 1 is not its number in the run.
    assert list(json.loads((out / "memory_stats.json").read_text())["after"]) == ["gpu:1"]


def test_a_release_without_profiler_options(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(jax.profiler, "ProfileOptions")
    start = jax.profiler.start_trace

    def old_start(log_dir: str | os.PathLike[str], create_perfetto_link: bool = False) -> None:
        start(log_dir)

    monkeypatch.setattr(jax.profiler, "start_trace", old_start)
    record_once(out)
    assert len(list(out.rglob("*.xplane.pb"))) == 1


def test_a_profiler_that_does_not_start_leaves_nothing(out: Path, compiled: Compiled, tmp_path: Path) -> None:
    jax.profiler.start_trace(tmp_path / "other")
    try:
        with pytest.raises(RuntimeError, match="one profile"):
            record_once(out, compiled=compiled, config={"a": 1})
    finally:
        jax.profiler.stop_trace()
    assert not out.exists()


def test_a_profile_that_cannot_be_written_is_an_error(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = jax.profiler.stop_trace

    def failing_stop() -> None:
        stop()
        raise RuntimeError("export failed")

    monkeypatch.setattr(jax.profiler, "stop_trace", failing_stop)
    with pytest.raises(RecordError, match="export failed"):
        record_once(out)
    assert noted(out)["errors"]["profile"] == "RuntimeError: export failed"


def test_a_dump_without_the_program_is_noted(
    out: Path, compiled: Compiled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dump").mkdir()
    monkeypatch.setenv("XLA_FLAGS", f"--xla_dump_to=/nowhere --xla_dump_to={tmp_path / 'dump'}")
    record_once(out, compiled=compiled)
    assert str(tmp_path / "dump") in noted(out)["errors"]["xla_dump"]
    assert not (out / "xla_dump").exists()


# --- directories --------------------------------------------------------------------------------------------


def test_a_directory_with_files_is_refused(out: Path) -> None:
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    for call in (record_once, time_once):
        with pytest.raises(RecordError, match=r"not empty, it has notes\.txt"):
            call(out)
    assert files_of(out) == {"notes.txt": b"mine"}


def test_a_file_is_refused(out: Path) -> None:
    out.write_text("mine")
    for call in (record_once, time_once):
        with pytest.raises(RecordError, match="no directory can be made"):
            call(out)


def test_files_beside_the_record_stay(out: Path) -> None:
    out.mkdir()
    (out / "notes.txt").write_text("mine")
    record_once(out, exist_ok=True)
    time_once(out, exist_ok=True)
    assert (out / "notes.txt").read_text() == "mine"
    assert (out / "timing.json").exists()


@pytest.mark.parametrize("name", ["config.json", "profile/h.xplane.pb"])
def test_files_of_the_user_are_never_replaced(out: Path, name: str) -> None:
    (out / name).parent.mkdir(parents=True)
    (out / name).write_text("mine")
    with pytest.raises(RecordError, match="would replace"):
        record_once(out, config={"a": 1}, exist_ok=True)
    assert files_of(out) == {name: b"mine"}


def test_a_record_is_replaced_whole(out: Path, compiled: Compiled) -> None:
    record_once(out, compiled=compiled, config={"a": 1})
    time_once(out)
    first = files_of(out)
    with pytest.raises(RecordError, match="exist_ok"):
        record_once(out)
    with pytest.raises(RecordError, match="exist_ok"):
        time_once(out)
    assert files_of(out) == first
    record_once(out, exist_ok=True)
    assert not {"config.json", "optimized_hlo.pb", "cost_analysis.json"} & set(os.listdir(out))
    assert len(list(out.rglob("*.xplane.pb"))) == 1
    assert (out / "timing.json").read_bytes() == first["timing.json"]


def test_what_is_not_complete_is_no_run(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that is killed in the block leaves a profile that is none, and that ingest leaves alone."""
    with tracewh.record(out, step=1, config={"a": 1}):
        (out / STAGING_FOLDER / "profile" / "half.xplane.pb").write_bytes(b"\n\xff")
        (out / "whole.xplane.pb").write_bytes(b"")
        assert {artifact.path.name for artifact in discover(out)} == {"config.json", "whole.xplane.pb"}


def test_no_file_is_half_written(out: Path, compiled: Compiled, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Path.write_bytes

    def stopped(self: Path, data: bytes) -> int:
        if self.name == "cost_analysis.json":
            write(self, data[:5])
            raise OSError(28, "No space left on device")
        return write(self, data)

    monkeypatch.setattr(Path, "write_bytes", stopped)
    record_once(out, compiled=compiled)
    assert "No space left" in noted(out)["errors"]["cost_analysis"]
    assert "cost_analysis.json" not in {path.name for path in out.rglob("*")}
    assert not (out / STAGING_FOLDER).exists()


# --- several processes --------------------------------------------------------------------------------------


def test_processes_share_a_directory(
    out: Path, compiled: Compiled, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    seconds = []
    for index in (1, 0):
        monkeypatch.setattr(jax, "process_index", lambda index=index: index)
        seconds.append(time_once(out))
        record_once(out, compiled=compiled, config={"layers": 2})
        with pytest.raises(RecordError, match="not empty"):
            record_once(out, compiled=compiled)
    assert {path.name for path in out.iterdir()} == {
        *("process_0", "process_1", "config.json", "timing.json"),
        *("optimized_hlo.pb", "memory_analysis.json", "cost_analysis.json"),
    }
    for index in (0, 1):
        assert noted(out / f"process_{index}")["process_index"] == index
        assert len(list((out / f"process_{index}" / "profile").rglob("*.xplane.pb"))) == 1
    assert run_directories(tmp_path) == [out]
    warehouse = tmp_path / "w.duckdb"
    report = tracewh.ingest_run(out, warehouse=warehouse)
    assert set(statuses(report).values()) <= {"loaded", "merged", "recorded"}
    assert query(
        warehouse,
        "SELECT a.path LIKE 'process_1/%', c.process_index FROM captures AS c JOIN artifacts AS a "
        "USING (artifact_id) ORDER BY c.process_index",
    ) == [(False, 0), (True, 1)]
    # The times are those of the run, told once.
    assert query(
        warehouse, "SELECT value FROM timing_samples WHERE NOT is_profiled ORDER BY sample_index"
    ) == [(value,) for value in seconds[1]]
    assert query(warehouse, "SELECT step_num FROM timing_samples WHERE is_profiled") == [(7,)]


def test_a_process_refuses_what_is_of_no_process(out: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    record_once(out)
    monkeypatch.setattr(jax, "process_count", lambda: 2)
    monkeypatch.setattr(jax, "process_index", lambda: 1)
    with pytest.raises(RecordError, match="not empty"):
        record_once(out)


# --- misuse -------------------------------------------------------------------------------------------------


def time_once(out: Path, **options: Any) -> list[float]:
    step = jax.jit(double)
    return tracewh.time_steps(out, step, jnp.ones((8, 8)), steps=2, **options).seconds


def test_steps_where_there_can_be_none(out: Path) -> None:
    with tracewh.record(out, step=1) as recorder, pytest.raises(RecordError, match="open already"):
        recorder.step(2)
    with pytest.raises(RecordError, match="not within"):
        recorder.step(3)
    with pytest.raises(RecordError, match="records once"), recorder:
        pass
    assert [step["step_num"] for step in noted(out)["profiled_steps"]] == [1]


def test_what_is_not_compiled_is_refused(out: Path) -> None:
    with pytest.raises(RecordError, match=r"lower\(state, batch\)\.compile\(\)"):
        tracewh.record(out, compiled=jax.jit(double))
    assert not out.exists()


def test_compilation_in_the_block_is_told(out: Path) -> None:
    with pytest.warns(UserWarning, match="compiled while the profiler ran"), tracewh.record(out, step=1):
        jax.block_until_ready(jax.jit(lambda x: jnp.cos(x) + 12345)(jnp.ones((3, 5))))
    assert noted(out)["compilations"] > 0


def test_compilation_in_timed_steps_is_told(out: Path) -> None:
    def grow(x: jax.Array) -> jax.Array:
        return jnp.concatenate([x, x])

    with pytest.warns(UserWarning, match="compiled in the timed steps"):
        tracewh.time_steps(out, jax.jit(grow), jnp.ones(3), steps=2, warmup=1)
    assert json.loads((out / "timing.json").read_text())["compilations"] >= 2


def test_time_steps_carries_the_state(out: Path) -> None:
    seen = []

    def update(state: dict[str, jax.Array]) -> dict[str, jax.Array]:
        seen.append(int(state["n"]))
        return {"n": jax.jit(lambda n: n + 1, donate_argnums=0)(state["n"])}

    with pytest.warns(UserWarning, match="compiled"):
        state, seconds = tracewh.time_steps(out, update, {"n": jnp.int32(0)}, steps=3, warmup=2)
    assert seen == [0, 1, 2, 3, 4]
    assert int(state["n"]) == 5
    timing = json.loads((out / "timing.json").read_text())
    assert timing["unprofiled_step_s"] == seconds
    assert len(seconds) == 3
    assert timing["warmup"] == 2


@pytest.mark.parametrize("options", [{"steps": 0}, {"warmup": -1}])
def test_counts_that_make_no_sense(out: Path, options: dict[str, int]) -> None:
    with pytest.raises(RecordError, match="at least one step"):
        tracewh.time_steps(out, double, jnp.ones(3), **options)
    assert not out.exists()


def test_an_update_that_returns_nothing_to_wait_for(out: Path) -> None:
    with pytest.raises(RecordError, match="without any array"):
        tracewh.time_steps(out, lambda x: None, jnp.ones(3))
    assert files_of(out) == {}
