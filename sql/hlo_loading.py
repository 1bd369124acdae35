"""An HLO module file into the warehouse: to the captures that ran it, or alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

import duckdb
import pyarrow as pa

from tracewh.ingest import hlo, hlo_files, hlo_text
from tracewh.ingest.capture import Capture, Interner
from tracewh.sql.loading import Loaded, Source, TableLoader, load_capture


def load_hlo(connection: duckdb.DuckDBPyConnection, run_id: int, artifact_id: int, source: Source) -> Loaded:
    """Give a module to the captures nearest to its file that lack it; alone, it is a capture itself.

    Runs in the caller's transaction. Raises UnreadableFile.
    """
    artifact, names = source.artifact, Interner()
    program_id = hlo_files.program_id_from_name(source.path)
    nearest = _nearest_captures(connection, run_id, source.path)
    data = artifact.read()
    if artifact.kind == "hlo_text":
        # Parsing text needs jaxlib and seconds; the captures mostly hold the module already.
        name = hlo_files.module_name_of_text(data)
        if nearest and name and not _lacking(connection, nearest, program_id, name):
            return _merged(name, nearest)
        text = data.decode("utf-8", "replace")
        module = hlo_text.read_text_module(text, program_id, names, source.problems, str(artifact.path))
    else:
        module = hlo.read_module(data, program_id, names, source.problems, str(artifact.path))
    targets = _lacking(connection, nearest, program_id, module.module_name)
    if nearest and not targets:
        return _merged(module.module_name, nearest)
    loaded = Loaded("loaded", modules=1)
    if not nearest:
        targets = [load_capture(connection, run_id, artifact_id, None, Capture("hlo"))[0]]
        loaded.captures = 1
    # A module without any number is the only one of its file: 0 serves.
    tables = hlo_tables({module.program_id or 0: module}, artifact_id)
    for capture_id in targets:
        loader = TableLoader(connection, capture_id, names.strings)
        for table, rows in tables.items():
            loader.load(table, rows)
        loader.split_op_names()
    loaded.capture_id = targets[0] if len(targets) == 1 else None
    return loaded


def hlo_tables(programs: Mapping[int, hlo.HloModule], artifact_id: int) -> dict[str, pa.Table]:
    """The HLO tables of modules by program id, as read from one artifact."""
    tables = hlo.module_tables([(module, program_id) for program_id, module in programs.items()])
    modules = tables["hlo_modules"]
    column = pa.array([artifact_id] * modules.num_rows, pa.int64())
    tables["hlo_modules"] = modules.append_column("artifact_id", column)
    return tables


def _merged(module_name: str, captures: Sequence[int]) -> Loaded:
    capture_id = captures[0] if len(captures) == 1 else None
    return Loaded("merged", f"{module_name} is in its capture already", capture_id=capture_id)


def _nearest_captures(connection: duckdb.DuckDBPyConnection, run_id: int, path: str) -> list[int]:
    """Captures of the run whose files share the most folders with `path`."""
    rows = connection.execute(
        "SELECT c.capture_id, a.path "
        "FROM main.captures AS c JOIN main.artifacts AS a USING (artifact_id) "
        "WHERE c.run_id = ? ORDER BY c.capture_id",
        [run_id],
    ).fetchall()
    shared = {capture_id: _shared_folders(path, other) for capture_id, other in rows}
    return [capture_id for capture_id, count in shared.items() if count == max(shared.values())]


def _lacking(
    connection: duckdb.DuckDBPyConnection, captures: Sequence[int], program_id: int | None, module_name: str
) -> list[int]:
    """Those captures that have no such program; without an id, no module of that name."""
    holding = connection.execute(
        "SELECT DISTINCT capture_id FROM main.hlo_modules WHERE list_contains(?, capture_id) "
        "AND CASE WHEN ? IS NULL THEN module_name = ? ELSE program_id = ? END",
        [list(captures), program_id, module_name, program_id],
    ).fetchall()
    held = {row[0] for row in holding}
    return [capture_id for capture_id in captures if capture_id not in held]


def _shared_folders(path: str, other: str) -> int:
    count = 0
    for mine, theirs in zip(PurePath(path).parent.parts, PurePath(other).parent.parts, strict=False):
        if mine != theirs:
            break
        count += 1
    return count
