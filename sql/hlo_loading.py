"""An HLO module file into the warehouse: to the captures that ran it, or alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath

import duckdb
import pyarrow as pa

from tracewh.ingest import hlo, hlo_files, hlo_text
from tracewh.ingest.capture import Capture, Interner, ProblemCounter
from tracewh.ingest.hlo_tables import module_tables
from tracewh.sql.loading import Loaded, Source, TableLoader, insert_rows, load_capture, next_id
from tracewh.sql.rows import first_row


def load_hlo(connection: duckdb.DuckDBPyConnection, run_id: int, artifact_id: int, source: Source) -> Loaded:
    """Give a module to the captures nearest to its file that lack it; alone, it is a capture itself.

    Runs in the caller's transaction. Raises UnreadableFile.
    """
    artifact = source.artifact
    place = str(artifact.path)
    program_id = hlo_files.program_id_from_name(source.path)
    nearest = _nearest_captures(connection, run_id, source.path)
    data = artifact.read()
    if artifact.kind == "hlo_text":
        # Parsing text needs jaxlib and seconds; the captures mostly hold the module already.
        name = hlo_files.module_name_of_text(data)
        if nearest and name and not _lacking(connection, nearest, program_id, name):
            return _merged(name, nearest)
        program = hlo_text.read_text_program(data.decode("utf-8", "replace"), program_id, place)
    else:
        program = hlo.read_program(data, program_id, place)
    targets = _lacking(connection, nearest, program_id, program.module.name)
    if nearest and not targets:
        return _merged(program.module.name, nearest)
    loaded = Loaded("loaded", modules=1)
    if not nearest:
        targets = [load_capture(connection, run_id, artifact_id, Capture("hlo"))[0]]
        loaded.captures = 1
    module_ids = load_modules(connection, [program], source.problems)
    for capture_id in targets:
        add_programs(connection, capture_id, artifact_id, module_ids)
    loaded.capture_id = targets[0] if len(targets) == 1 else None
    return loaded


def load_modules(
    connection: duckdb.DuckDBPyConnection, programs: Iterable[hlo.HloProgram], problems: ProblemCounter
) -> dict[int, int]:
    """Load the modules of programs; returns the module's id by program id, for `add_programs`.

    A second program with the same id is left out and counted. A module that the warehouse holds is not
    loaded again, unless it has problems, which each capture counts.
    """
    module_ids: dict[int, int] = {}
    loaded: dict[str, int] = {}
    for program in programs:
        # A module without any number is the only one of its file: 0 serves.
        program_id = 0 if program.program_id is None else program.program_id
        if program_id in module_ids:
            problems.add("duplicate_program", f"program {program_id}", f"{program.module.name} is left out")
            continue
        digest = program.module.sha256
        if digest not in loaded:
            loaded[digest] = _module_id(connection, program, problems)
        module_ids[program_id] = loaded[digest]
    return module_ids


def add_programs(
    connection: duckdb.DuckDBPyConnection, capture_id: int, artifact_id: int, module_ids: Mapping[int, int]
) -> None:
    """Say of a capture which modules ran in it, by program id, as read from one artifact."""
    columns = {
        "capture_id": [capture_id] * len(module_ids),
        "program_id": list(module_ids),
        "module_id": list(module_ids.values()),
        "artifact_id": [artifact_id] * len(module_ids),
    }
    rows = pa.table({column: pa.array(values, pa.int64()) for column, values in columns.items()})
    insert_rows(connection, "hlo_programs", rows)


def _module_id(
    connection: duckdb.DuckDBPyConnection, program: hlo.HloProgram, problems: ProblemCounter
) -> int:
    """Id of the program's module, which is loaded where the warehouse lacks it."""
    known = first_row(
        connection, "SELECT module_id FROM main.hlo_modules WHERE sha256 = ?", [program.module.sha256]
    )
    if known is not None:
        return int(known[0])
    module_id, names = next_id(connection, "hlo_modules", "module_id"), Interner()
    own_problems = ProblemCounter()
    tables = module_tables(program.module, names, own_problems, program.place)
    found = own_problems.problems()
    for problem in found:
        problems.add(problem.problem, problem.place, problem.detail, problem.occurrences)
    if found:
        tables["hlo_modules"] = tables["hlo_modules"].drop_columns("sha256")
    loader = TableLoader(connection, "module_id", module_id, names.strings)
    for table, rows in tables.items():
        loader.load(table, rows)
    loader.split_op_names()
    return module_id


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
        "SELECT DISTINCT p.capture_id FROM main.hlo_programs AS p "
        "JOIN main.hlo_modules AS m USING (module_id) WHERE list_contains(?, p.capture_id) "
        "AND CASE WHEN ? IS NULL THEN m.module_name = ? ELSE p.program_id = ? END",
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
