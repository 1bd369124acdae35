"""tracewh: a SQL-centric trace warehouse for JAX training runs.

import tracewh

tracewh.ingest_run("runs/baseline")
with tracewh.open("tracewh.duckdb") as warehouse:
    frame = warehouse.sql("SELECT phase, sum_ps FROM v1.phase_time").df()
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import jax

    from tracewh.recorder import Recorder
    from tracewh.sql.ingestion import RunReport
    from tracewh.sql.warehouse import Warehouse
    from tracewh.step_times import StepTimes

__version__ = "0.1.0"
__all__ = ["__version__", "ingest_run", "open", "record", "time_steps"]


def _warehouse_path(path: str | os.PathLike[str] | None) -> str:
    """The path given, else the command line's default."""
    return os.fspath(path) if path is not None else os.environ.get("TRACEWH_DB") or "tracewh.duckdb"


def open(path: str | os.PathLike[str] | None = None, *, read_only: bool = True) -> Warehouse:
    """Open a warehouse; `.sql(query)` of the handle is a DuckDB relation (`.df()`, `.pl()`, `.arrow()`).

    Without a path it is `$TRACEWH_DB`, else `tracewh.duckdb`, as on the command line. For writing, the file
    is created where it is missing. Raises WarehouseError where it cannot be opened.
    """
    from tracewh.sql.warehouse import Warehouse

    return Warehouse.open(_warehouse_path(path), read_only=read_only)


def ingest_run(
    path: str | os.PathLike[str],
    *,
    warehouse: str | os.PathLike[str] | None = None,
    run_name: str | None = None,
    commit_sha: str | None = None,
    labels: Mapping[str, str] | None = None,
    force: bool = False,
    steps: str | None = None,
    step_marker: str | None = None,
) -> RunReport:
    """Load the run at `path`, a directory or one file, as `tracewh ingest` does; return what was loaded.

    `steps`, as "10-12", are those that count; `step_marker` is a regular expression: host events whose name
    or marker text it matches are the steps. A choice that fits nothing is in the report's `warnings`.

    Raises NothingToIngest where there is nothing to read, UnreadableFile where nothing there can be read,
    StepChoiceError where `steps` or `step_marker` is malformed.
    """
    from pathlib import Path

    from tracewh.sql.ingestion import IngestOptions, SilentProgress, ingest_path
    from tracewh.sql.step_choices import StepChoice

    choice = StepChoice.parse(steps, step_marker)
    options = IngestOptions(run_name, commit_sha, dict(labels or {}), force, choice)
    with open(warehouse, read_only=False) as handle:
        return ingest_path(handle, Path(path), options, SilentProgress())


def record(
    out_dir: str | os.PathLike[str],
    *,
    step: int | None = None,
    compiled: jax.stages.Compiled | None = None,
    config: Any | None = None,
    mesh: jax.sharding.Mesh | None = None,
    repository: str | os.PathLike[str] | None = None,
    profiler_options: jax.profiler.ProfileOptions | None = None,
    exist_ok: bool = False,
) -> Recorder:
    """Profile the block of a `with` statement; write to `out_dir` all that `tracewh ingest` can use of it.

    with tracewh.record("runs/mine", compiled=train_step, config=config) as recorder:
        for number in range(10, 13):
            with recorder.step(number):
                state, loss = recorder.wait(train_step(state, batch))

    Run the step some times before: what is compiled or tuned in the block is in its times. With `step`, the
    whole block is the one update of that number. `compiled`, from `jax.jit(f).lower(...).compile()`, gives
    the optimized HLO with buffer assignment, and memory and cost analysis; its part of the dump by
    XLA_FLAGS=--xla_dump_to is copied. `config` is a dict, a dataclass, an argparse.Namespace, or an object
    with `get_keys`, `to_dict` or `model_dump`; values whose names say that they are secret are not written.
    The commit is that of `repository`, else of the program's main script. Each process of a distributed run
    calls this with the same directory, which they share.

    An analysis that the backend does not give is noted with the reason. After an exception in the block, what
    was recorded up to there is written, and the exception goes on. Raises RecordError for a directory that is
    not empty (but for step times), unless `exist_ok`, with which an earlier record is replaced.
    """
    from tracewh.recorder import Recorder

    return Recorder(
        out_dir,
        step=step,
        compiled=compiled,
        config=config,
        mesh=mesh,
        repository=repository,
        profiler_options=profiler_options,
        exist_ok=exist_ok,
    )


def time_steps(
    out_dir: str | os.PathLike[str],
    update: Callable[[Any], Any],
    state: Any,
    *,
    steps: int = 8,
    warmup: int = 2,
    repository: str | os.PathLike[str] | None = None,
    exist_ok: bool = False,
) -> StepTimes:
    """Time `steps` calls of `update` without a profiler; write their seconds to `timing.json` in `out_dir`.

    `update` takes the state and returns the next one, any tree of arrays, so that the step may donate its
    buffers. The `warmup` calls before, which compile and tune, are not timed. Each call begins on an idle
    device and ends when the state that it returned is computed; what else `update` does, such as fetching the
    next batch, is in its time. Returns the last state and the seconds of each timed call.

    Raises RecordError for a directory that has step times, or files that are not of `tracewh.record`, unless
    `exist_ok`.
    """
    from tracewh import step_times

    return step_times.time_steps(
        out_dir, update, state, steps=steps, warmup=warmup, repository=repository, exist_ok=exist_ok
    )
