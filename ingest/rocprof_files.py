"""Which files in a folder are those of ROCm's profilers, and which of them only together make a capture."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path, PurePath

from tracewh.ingest.content import uncompressed_name
from tracewh.ingest.errors import UnreadableFile

_RESULTS = re.compile(r"_?results\.(db|json)$")
_MAIN_TABLES = ("kernel_trace", "pmc_perf")


def is_package_index(path: Path) -> bool:
    """Whether the file is the index of a package of rocpd databases."""
    if path.suffix != ".yaml":
        return False
    from tracewh.ingest.rocpd_package import INDEX_NAME, is_package

    return path.name == INDEX_NAME and is_package(path.parent)


def packaged(index: Path) -> Sequence[Path]:
    """The databases that a package lists and that are there; of an index that cannot be read none."""
    from tracewh.ingest.rocpd_package import package_files

    try:
        return package_files(index)[0]
    except UnreadableFile:
        return ()


def pending_log(database: Path) -> Path | None:
    """The write-ahead log with what a SQLite database lacks; None where it lacks nothing."""
    log = Path(f"{database.resolve()}-wal")
    try:
        return log if log.stat().st_size else None
    except OSError:
        return None


def json_kind(head: bytes) -> str | None:
    """The kind of a JSON file by its first bytes; None for another file."""
    from tracewh.ingest.rocprof_json import looks_like_json_results

    return "rocprof_json" if looks_like_json_results(head) else None


def csv_kind(name: str, head: bytes) -> str | None:
    """The kind of a CSV by its first bytes; None for another file."""
    from tracewh.ingest import rocprof_compute_csv, rocprof_csv_kinds

    if rocprof_csv_kinds.kind_of(name, head) is not None:
        return "rocprof_csv"
    return "rocprof_compute_csv" if rocprof_compute_csv.kind_of(name, head) is not None else None


def group_of(path: Path, kind: str) -> tuple[Path, str] | None:
    """What the files of one capture have in common; None for a file that is one by itself."""
    from tracewh.ingest import rocprof_compute_csv, rocprof_csv_kinds

    if kind == "rocprof_csv":
        return path.parent, rocprof_csv_kinds.prefix_of(path.name)
    if kind == "rocprof_compute_csv":
        return path.parent, rocprof_compute_csv.prefix_of(path.name)
    return None


def process_prefix(capture: PurePath) -> str:
    """What the names of the files of one process have in common, whatever their formats."""
    from tracewh.ingest import rocprof_csv_kinds

    name = uncompressed_name(capture.name)
    if name.endswith(".csv"):
        return rocprof_csv_kinds.prefix_of(name)
    return _RESULTS.sub("", name)


def is_secondary(path: Path) -> bool:
    """Whether another file of its capture stands for it better, if there is one."""
    return not any(table in path.name for table in _MAIN_TABLES)
