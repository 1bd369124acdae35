"""Whether what a user says of a run, in files of it, still follows those files."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import duckdb

from tracewh.ingest.storable_text import storable
from tracewh.sql.loading import Source
from tracewh.sql.rows import first_row
from tracewh.sql.unfinished_runs import mark_unfinished
from tracewh.sql.warehouse import delete_everywhere, transaction

# What files of a kind hold.
_HELD = {"rules": "rules", "flop_ledger": "FLOPs"}


def follow_files(
    connection: duckdb.DuckDBPyConnection,
    run_id: int,
    path: Path,
    base: Path | None,
    sources: Sequence[Source],
) -> list[str]:
    """Drop what is from files that are gone; return warnings of that, and of files of which the former holds.

    `sources` are what was found at `path`, and paths of the run are relative to `base`.
    """
    warnings = [
        f"the {_HELD[source.artifact.kind]} that {source.path} had before stay, since it is rejected"
        for source in sources
        if source.artifact.kind in _HELD
        and source.error is not None
        and _is_held(connection, run_id, source.path)
    ]
    if base is not None and path.is_dir():
        below, found = Path(storable(str(path))), {source.path for source in sources}
        gone = _drop_gone(connection, run_id, base, below, found)
        warnings += [f"the {_HELD[kind]} of {file}, which is gone, are dropped" for file, kind in gone]
    return warnings


def is_gone(file: Path) -> bool:
    """Whether there is no such file; one that cannot be looked for is not gone."""
    try:
        file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError:
        return False
    return False


def _drop_gone(
    connection: duckdb.DuckDBPyConnection, run_id: int, base: Path, below: Path, found: Collection[str]
) -> list[tuple[str, str]]:
    """Drop what a run has from such files below a folder that are gone; return their paths and kinds.

    Paths of the run are relative to `base`; those `found` are there.
    """
    known = connection.execute(
        "SELECT artifact_id, path, kind, status FROM main.artifacts "
        "WHERE run_id = ? AND list_contains(?, kind) ORDER BY path",
        [run_id, list(_HELD)],
    ).fetchall()
    gone = [
        (artifact_id, path, kind, status)
        for artifact_id, path, kind, status in known
        if path not in found and (base / path).is_relative_to(below) and is_gone(base / path)
    ]
    if gone:
        with transaction(connection):
            mark_unfinished(connection, run_id)
            for artifact_id, _, _, _ in gone:
                delete_everywhere(connection, "artifact_id", artifact_id)
    return [(path, kind) for _, path, kind, status in gone if status == "loaded"]


def _is_held(connection: duckdb.DuckDBPyConnection, run_id: int, path: str) -> bool:
    """Whether the run has an earlier state of the file at `path`."""
    query = "SELECT 1 FROM main.artifacts WHERE run_id = ? AND path = ? AND status = 'loaded'"
    return first_row(connection, query, [run_id, path]) is not None
