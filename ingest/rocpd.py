"""Reader of rocpd databases of rocprofiler-sdk (schema 3.x): one process per guid in the file."""

from __future__ import annotations

from pathlib import Path

from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.rocpd_database import family_of, shards_of
from tracewh.ingest.rocpd_process import DatabaseProcess
from tracewh.ingest.sqlite_file import SqliteFile

READER_VERSION = 2

_REFUSALS = {
    "rocpd_v4_draft": "a rocpd database of the unfinished schema 4, which tracewh does not read yet; convert "
    "it with the rocpd tool that came with the profiler, or profile with a released rocprofv3",
    "not_rocpd": "a SQLite database without the tables of rocprofiler-sdk (rocpd_metadata_<id> and "
    "rocpd_event_<id> with a stack_id); give the *_results.db file that rocprofv3 wrote",
}


def detect(path: Path) -> str:
    """Return what the file is, by its structure.

    One of `rocpd_v3` (what `read_processes` reads), `rpd_v2`, `rocpd_v4_draft`, `rocprof_compute`,
    `not_rocpd`, and `not_sqlite` for everything that SQLite cannot open, damaged databases included.
    """
    try:
        with SqliteFile(path) as file:
            return family_of(file)
    except UnreadableFile:
        return "not_sqlite"


def read_processes(file: SqliteFile) -> list[DatabaseProcess]:
    """Return the processes of a rocpd database, several of a merged file.

    Raises UnreadableFile where the file is damaged or of another family.
    """
    family = family_of(file)
    if family != "rocpd_v3":
        raise UnreadableFile(f"{file.path} is {_REFUSALS[family]}.")
    file.check_complete()
    return [DatabaseProcess(file, shard) for shard in shards_of(file)]
