"""Which run a path is: its name, its place and its commit."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import duckdb

from tracewh.ingest.content import uncompressed_name
from tracewh.ingest.piped import PIPED_CAPTURE, PIPED_RUN
from tracewh.ingest.run_metadata import RunMetadata
from tracewh.ingest.storable_text import storable
from tracewh.sql.git_state import git_head
from tracewh.sql.rows import first_row
from tracewh.sql.warehouse import transaction


@dataclass
class Run:
    """A run by name; `run_id` is None until its first artifact is loaded."""

    name: str
    run_id: int | None


@dataclass(frozen=True)
class Commit:
    """A commit with who said so: option, config or git; both None where nobody did."""

    sha: str | None
    source: str | None


def find_run(
    connection: duckdb.DuckDBPyConnection, path: Path, name: str | None, digests: Sequence[str]
) -> Run:
    """Find the run of `path`: by `name`, by captures already held, or by the path; else a new one.

    A new run is named for its directory (or file), with as much of the path in front as makes it unique. What
    comes by a pipe is no part of an earlier run unless the name or the bytes say so.
    """
    if name is not None:
        row = first_row(connection, "SELECT run_id FROM main.runs WHERE run_name = ?", [name])
        return Run(name, None if row is None else int(row[0]))
    held = connection.execute(
        "SELECT DISTINCT r.run_name, r.run_id FROM main.runs AS r JOIN main.artifacts AS a USING (run_id) "
        "WHERE a.status <> 'rejected' AND list_contains(?, a.sha256)",
        [list(digests)],
    ).fetchall()
    if len(held) == 1:
        return Run(*held[0])
    path = Path(storable(str(path)))
    row = first_row(connection, "SELECT run_name, run_id FROM main.runs WHERE path = ?", [str(path)])
    if row is not None and path != PIPED_RUN:
        return Run(*row)
    taken = {row[0] for row in connection.execute("SELECT run_name FROM main.runs").fetchall()}
    parts = [part for part in path.parts if part != path.anchor]
    parts[-1] = uncompressed_name(parts[-1]).removesuffix(".xplane.pb").removesuffix(".db")
    candidates = ["/".join(parts[start:]) for start in range(len(parts) - 1, -1, -1)]
    candidates += [f"{candidates[-1]} ({number})" for number in range(2, len(taken) + 3)]
    return Run(next(candidate for candidate in candidates if candidate not in taken), None)


def read_elsewhere(connection: duckdb.DuckDBPyConnection, run: Run, path: Path) -> str | None:
    """Where the run was read from before, if neither from `path` nor from a folder above or below it."""
    row = first_row(connection, "SELECT path FROM main.runs WHERE run_id = ?", [run.run_id])
    if row is None or PIPED_RUN in (path, Path(row[0])):
        return None
    known, path = Path(row[0]), Path(storable(str(path)))
    is_near = known == path or known in path.parents or path in known.parents
    return None if is_near else str(known)


def rebase(connection: duckdb.DuckDBPyConnection, run: Run, path: Path, digests: Sequence[str]) -> Path:
    """The folder that paths of the run's files are relative to, when it is read from `path`.

    As the warehouse has it: bytes that are no UTF-8 are escaped.
    A run that is read again from a folder below the one known keeps its paths, and so does a copy of it
    elsewhere, known by a capture in `digests`. Another folder brings more of the run, such as the captures
    of another host: the run moves up to the folder above both, and the paths that it has with it. A run of
    piped bytes lies where its first file does.
    """
    row = first_row(connection, "SELECT path FROM main.runs WHERE run_id = ?", [run.run_id])
    root = path if path.is_dir() else path.parent
    path, root = (Path(storable(str(place))) for place in (path, root))
    if row is None:
        return root
    known = Path(row[0])
    if known == PIPED_RUN:
        connection.execute("UPDATE main.runs SET path = ? WHERE run_id = ?", [str(path), run.run_id])
        return root
    known_root = known.parent if known.is_file() or (known == path and path != root) else known
    if root == known_root or known_root in root.parents:
        return known_root
    is_above = root in known_root.parents
    held = first_row(
        connection,
        "SELECT 1 FROM main.artifacts WHERE run_id = ? AND list_contains(?, sha256)",
        [run.run_id, list(digests)],
    )
    if held is not None and not is_above:
        return root
    common = root if is_above else Path(os.path.commonpath([root, known_root]))
    between = known_root.relative_to(common)
    with transaction(connection):
        connection.execute("UPDATE main.runs SET path = ? WHERE run_id = ?", [str(common), run.run_id])
        connection.execute(
            "UPDATE main.artifacts SET path = ? || path WHERE run_id = ?", [f"{between}/", run.run_id]
        )
    return common


def piped_path(connection: duckdb.DuckDBPyConnection, run: Run, sha256: str) -> str:
    """Path in the run of a capture that comes by a pipe: that of its file, where the run knows it by one."""
    row = first_row(
        connection,
        "SELECT path FROM main.artifacts WHERE run_id = ? AND sha256 = ? AND status <> 'rejected' "
        "ORDER BY artifact_id LIMIT 1",
        [run.run_id, sha256],
    )
    return PIPED_CAPTURE if row is None else str(row[0])


def place_piped(connection: duckdb.DuckDBPyConnection, run: Run, sha256: str, path: str) -> None:
    """Give a capture of the run that came by a pipe the path of the file that holds its bytes."""
    connection.execute(
        "UPDATE main.artifacts SET path = ? WHERE run_id = ? AND path = ? AND sha256 = ?",
        [path, run.run_id, PIPED_CAPTURE, sha256],
    )


def find_commit(root: Path | None, given: str | None, metadata: Iterable[RunMetadata]) -> Commit:
    """The commit by the caller's word, else the run's config, else git where `root` lies in a checkout.

    A run of piped bytes has no `root`.
    """
    if given is not None:
        return Commit(given, "option")
    for item in metadata:
        if item.commit_sha is not None:
            return Commit(item.commit_sha, "config")
    if root is None:
        return Commit(None, None)
    sha = git_head(root)
    return Commit(None, None) if sha is None else Commit(sha, "git")
