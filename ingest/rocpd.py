"""Reader of rocpd databases of rocprofiler-sdk (schema 3.x): one capture per process in the file.

Two rules about problems. A place that is a table (`rocpd_region`) counts whole rows that were rejected; a
place that is a column (`rocpd_region.tid`) counts values that were dropped from rows that were kept. So rows
loaded plus rows rejected make the rows of the table.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import Capture
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.rocpd_counters import add_arguments, counter_values, counters
from tracewh.ingest.rocpd_database import FACT_TABLES, Shard, family_of, shards_of
from tracewh.ingest.rocpd_device_events import device_events
from tracewh.ingest.rocpd_devices import Tracks
from tracewh.ingest.rocpd_facts import Events, read_facts
from tracewh.ingest.rocpd_host_events import host_events
from tracewh.ingest.rocpd_source import ENVIRONMENT_COLUMN, Source
from tracewh.ingest.sqlite_file import Rows, SqliteFile

READER_VERSION = 1

_REFUSALS = {
    "rpd_v2": "an RPD trace of rocmProfileData, another format called rocpd; profile with "
    "rocprofv3 --output-format rocpd",
    "rocpd_v4_draft": "a rocpd database of the unfinished schema 4, which tracewh does not read yet; convert "
    "it with the rocpd tool that came with the profiler, or profile with a released rocprofv3",
    "rocprof_compute": "an analysis database of rocprof-compute, which holds no trace; give the *_results.db "
    "file that rocprofv3 wrote",
    "not_rocpd": "a SQLite database without the tables of rocprofiler-sdk (rocpd_metadata_<id> and "
    "rocpd_event_<id> with a stack_id); give the *_results.db file that rocprofv3 wrote",
}
# Tables about the facts, with the columns that have a place of their own. The rest is kept as stats of the
# capture, named `<table>.<column>`, with the row's id as owner_id.
_DESCRIPTIONS = {
    "info_thread": ("id", "nid", "pid", "tid", "name"),
    "info_queue": ("id", "nid", "pid", "name"),
    "info_stream": ("id", "nid", "pid", "name"),
    "info_code_object": ("id", "nid", "pid"),
    "info_kernel_symbol": ("id", "nid", "pid"),
    "track": ("id", "nid", "pid", "tid", "name_id"),
}
_READ_TABLES = {
    *FACT_TABLES,
    *_DESCRIPTIONS,
    *(
        "metadata",
        "string",
        "info_node",
        "info_process",
        "info_agent",
        "info_pmc",
        "event",
        "arg",
        "pmc_event",
    ),
}


def detect(path: Path) -> str:
    """Return what the file is, by its structure.

    One of `rocpd_v3` (what `read` reads), `rpd_v2`, `rocpd_v4_draft`, `rocprof_compute`, `not_rocpd`, and
    `not_sqlite` for everything that SQLite cannot open, damaged databases included.
    """
    try:
        with SqliteFile(path) as file:
            return family_of(file)
    except UnreadableFile:
        return "not_sqlite"


def read(path: Path) -> list[Capture]:
    """Read the captures of a rocpd database: one per guid, so several of a merged file.

    Times are ps from the earliest start of the capture; `origin_source_ns` is that start on the profiler's
    clock, which is not the wall's. Raises UnreadableFile where the file is damaged or of another family.
    """
    with SqliteFile(path) as file:
        family = family_of(file)
        if family != "rocpd_v3":
            raise UnreadableFile(f"{path} is {_REFUSALS[family]}.")
        file.check_complete()
        return [_capture(file, shard) for shard in shards_of(file)]


def _capture(file: SqliteFile, shard: Shard) -> Capture:
    source = Source(file, shard)
    process_id, hostname, attributes = _identity(source)
    facts, origin_ns = read_facts(source)
    events = Events(source)
    tracks = Tracks(source)
    agents, device_tables = device_events(source, facts, events, tracks, hostname)
    host_tables = host_events(source, facts, events, tracks)
    counter_table = counters(source, agents)
    names = counter_table.column("counter_name").combine_chunks()
    tables = {
        "tracks": tracks.table(),
        **device_tables,
        **host_tables,
        "counters": counter_table,
        "counter_values": counter_values(source, events, names),
    }
    add_arguments(source, events, host_tables["host_events"])
    events.count_unclaimed()
    _describe(source, agents.ids)
    _count_unread(source)
    tables["event_stats"] = source.stats.table()
    return Capture(
        source_kind="rocpd",
        hostname=hostname,
        process_id=process_id,
        platform="rocm",
        origin_source_ns=origin_ns,
        attributes=attributes,
        names=source.names,
        devices=agents.devices,
        tables=tables,
        problems=source.problems.problems(),
    )


def _identity(source: Source) -> tuple[int | None, str, dict[str, str | None]]:
    """Return process id, host name and attributes; of several processes or nodes the first counts."""
    shard = source.shard
    attributes: dict[str, str | None] = {**shard.metadata, "guid": shard.guid}
    first: dict[str, dict[str, object]] = {}
    for base in ("info_process", "info_node"):
        rows = source.reference(base)
        first[base] = next(iter(rows.table.slice(0, 1).to_pylist()), {})
        label = base.removeprefix("info_")
        for column, value in first[base].items():
            if column not in ("id", "nid", "hostname") and value not in (None, ""):
                attributes["command" if column == "command" else f"{label}.{column}"] = str(value)
        others = Rows(rows.place, rows.table.slice(1), source.problems)
        source.add_remaining("capture", others.integers("id"), others, ("id",), prefix=f"{base}.")
    process_table = shard.tables.get("info_process")
    if process_table is not None and ENVIRONMENT_COLUMN in source.file.columns(process_table):
        attributes[ENVIRONMENT_COLUMN] = "not stored"
    process_ids = source.reference("info_process").integers("pid")
    hostname = str(first["info_node"].get("hostname") or "")
    return (process_ids[0].as_py() if len(process_ids) else None), hostname, attributes


def _describe(source: Source, device_agents: pa.Array) -> None:
    """Keep what the tables about queues, code objects, kernels and so on say beyond the columns used."""
    for base, mapped in _DESCRIPTIONS.items():
        rows = source.reference(base)
        source.add_remaining("capture", rows.integers("id"), rows, mapped, prefix=f"{base}.")
    agents = source.reference("info_agent")
    others = agents.where(pc.invert(pc.is_in(agents.integers("id"), value_set=device_agents)))
    source.add_remaining("capture", others.integers("id"), others, ("id", "nid", "pid"), prefix="info_agent.")


def _count_unread(source: Source) -> None:
    """Count the rows of tables that have no place in the warehouse yet, and rows of no process."""
    for base, table in sorted(source.shard.tables.items()):
        count = source.file.count(table) if base not in _READ_TABLES else 0
        if count:
            source.problems.add(
                "unsupported_table",
                f"rocpd_{base}",
                "rows rejected: tracewh has no place for this table yet",
                count,
            )
    for base, count in source.shard.rows_without_guid.items():
        source.problems.add(
            "missing_guid", f"rocpd_{base}", "row rejected: it names no process of the file", count
        )
