"""The rank of each capture's process in its run."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath

import duckdb

from tracewh.ingest.discovery import is_xspace_name
from tracewh.ingest.rocprof_files import process_prefix
from tracewh.ingest.run_metadata import RunMetadata

# Where rocprofv3 puts the process that it runs for each group of counters.
_PASS_FOLDER = re.compile(r"pass_\d+")
_NUMBER = re.compile(r"([0-9]+)")

#: A capture as its run knows it: the path of its file, and which of the file's captures it is, from 0.
Place = tuple[str, int]
_Process = tuple[str, str, int]


def known_ranks(connection: duckdb.DuckDBPyConnection, run_id: int | None) -> dict[Place, int | None]:
    """Each capture of a process of the run with its rank, None where it has none yet."""
    rows = connection.execute(
        "SELECT a.path, ROW_NUMBER() OVER (PARTITION BY c.artifact_id ORDER BY c.capture_id) - 1, "
        "c.process_index FROM main.captures AS c JOIN main.artifacts AS a USING (artifact_id) "
        "WHERE c.run_id = ? AND c.source_kind <> 'hlo' ORDER BY c.capture_id",
        [run_id],
    ).fetchall()
    return {(path, position): rank for path, position, rank in rows}


def set_ranks(connection: duckdb.DuckDBPyConnection, run_id: int, ranks: Mapping[Place, int]) -> None:
    """Give the captures of the run these ranks, in the caller's transaction."""
    for (path, position), rank in ranks.items():
        connection.execute(
            "UPDATE main.captures SET process_index = ? WHERE process_index IS DISTINCT FROM ? "
            "AND capture_id IN (SELECT c.capture_id FROM main.captures AS c "
            "JOIN main.artifacts AS a USING (artifact_id) WHERE c.run_id = ? AND a.path = ? "
            "QUALIFY ROW_NUMBER() OVER (PARTITION BY c.artifact_id ORDER BY c.capture_id) - 1 = ?)",
            [rank, rank, run_id, path, position],
        )


def process_ranks(
    captures: Iterable[Place],
    metadata: Mapping[str, RunMetadata],
    known: Mapping[Place, int],
) -> dict[Place, int]:
    """Position of each capture's process in the run, counted from 0; processes keep `known` ranks.

    The nearest config above a capture may state it. Else processes are told by where they write, in the
    order of the names, numbers by their value: captures of one process differ only in the session, the folder
    below `plugins/profile`, or in the format. Each profiler saw an execution of its own, and so did each pass
    of a counter run: their processes are counted apart.
    """
    stated = {
        PurePath(path).parent: item.process_index
        for path, item in metadata.items()
        if item.process_index is not None
    }
    order: dict[_Process, int] = {_process(place): rank for place, rank in known.items()}
    taken = {(execution, rank) for (execution, *_), rank in order.items()}
    free: defaultdict[str, Iterator[int]] = defaultdict(itertools.count)
    ranks = {}
    for place in sorted(captures, key=lambda place: _sorting(_process(place))):
        path, position = place
        above = next((folder for folder in PurePath(path).parents if folder in stated), None)
        process = _process(place)
        if above is not None:
            ranks[place] = stated[above] + position
            continue
        if process not in order:
            order[process] = next(rank for rank in free[process[0]] if (process[0], rank) not in taken)
        ranks[place] = order[process]
    return ranks


def _process(place: Place) -> _Process:
    """Which execution of the program a capture saw, by profiler and pass; where it lies; its position."""
    path, position = place
    folder = PurePath(path).parent
    if folder.parent.name == "profile" and folder.parent.parent.name == "plugins":
        folder = folder.parent
    profiler = "xspace" if is_xspace_name(PurePath(path).name) else "rocm"
    run_pass = next((part for part in folder.parts if _PASS_FOLDER.fullmatch(part)), "")
    return f"{profiler} {run_pass}", f"{folder}/{process_prefix(PurePath(path))}", position


def _sorting(process: _Process) -> tuple[str, list[str | int], str, int]:
    execution, place, position = process
    # Texts and numbers take turns. Names that differ in leading zeros only are still told apart.
    parts: list[str | int] = [
        int(part) if number % 2 else part for number, part in enumerate(_NUMBER.split(place))
    ]
    return execution, parts, place, position
