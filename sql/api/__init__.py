"""tracewh: a SQL-centric trace warehouse for JAX training runs.

import tracewh

tracewh.ingest_run("runs/baseline")
with tracewh.open("tracewh.duckdb") as warehouse:
    frame = warehouse.sql("SELECT phase, sum_ps FROM v1.phase_time").df()
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracewh.sql.ingestion import RunReport
    from tracewh.sql.warehouse import Warehouse

__version__ = "0.1.0"
__all__ = ["__version__", "ingest_run", "open"]


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
