"""The layout of rocpd databases: which family a file belongs to, and which tables hold which process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocm_process import FACT_TIMES
from tracewh.ingest.sqlite_file import SqliteFile

PREFIX = "rocpd_"
_TEMPLATE_START = "{{"  # builds that forgot to fill in a template leave {{guid}}
#: The guid of a row as the shards have it.
GUID = "coalesce(trim(guid, char(9, 10, 13, 32)), '')"


@dataclass(frozen=True)
class Shard:
    """The tables of one process. `tables` maps a base name such as `kernel_dispatch` to the real table."""

    guid: str
    suffix: str
    tables: Mapping[str, str]
    metadata: Mapping[str, str]
    shares_tables: bool
    rows_without_guid: Mapping[str, int]


def family_of(file: SqliteFile) -> str:
    """Return which of the formats called rocpd this is, by structure: version numbers do not tell them apart.

    One of `rocpd_v3`, `rpd_v2`, `rocpd_v4_draft`, `rocprof_compute`, `not_rocpd`.
    """
    if "compute_metadata" in file.tables:
        return "rocprof_compute"
    if {"rocpd_api", "rocpd_op"} <= file.tables and "rocpd_event" not in file.tables:
        return "rpd_v2"
    groups = _tables_by_suffix(file).values()
    if any(_is_draft(file, tables) for tables in groups):
        return "rocpd_v4_draft"
    has_events = ["event" in tables and "stack_id" in file.columns(tables["event"]) for tables in groups]
    return "rocpd_v3" if has_events and all(has_events) else "not_rocpd"


def shards_of(file: SqliteFile) -> list[Shard]:
    """Return one shard per guid, in the order of the table suffixes."""
    shards = []
    for suffix, tables in sorted(_tables_by_suffix(file).items()):
        metadata = _metadata(file, tables)
        guids = _guids(file, tables) or [_claimed_guid(metadata, suffix)]
        for guid in guids:
            unassigned = (
                _rows_without_guid(file, tables, guids) if guid == guids[0] and len(guids) > 1 else {}
            )
            shards.append(Shard(guid, suffix, tables, metadata, len(guids) > 1, unassigned))
    return shards


def _tables_by_suffix(file: SqliteFile) -> dict[str, dict[str, str]]:
    marker = f"{PREFIX}metadata"
    suffixes = [name.removeprefix(marker) for name in file.tables if name.startswith(marker)]
    # Longest first: one suffix may be the tail of another.
    suffixes.sort(key=len, reverse=True)
    groups: dict[str, dict[str, str]] = {suffix: {} for suffix in suffixes}
    for name in sorted(file.tables):
        for suffix in suffixes:
            base = name.removeprefix(PREFIX).removesuffix(suffix)
            if name.startswith(PREFIX) and name.endswith(suffix) and base:
                groups[suffix][base] = name
                break
    return {suffix: tables for suffix, tables in groups.items() if {"event", *FACT_TIMES} & tables.keys()}


def _is_draft(file: SqliteFile, tables: Mapping[str, str]) -> bool:
    if {"info_category", "timestamp"} & tables.keys() or "compression" in _metadata(file, tables):
        return True
    facts = [file.columns(tables[base]) for base in ("kernel_dispatch", "region") if base in tables]
    return any("track_id" in columns or "start" not in columns for columns in facts)


def _metadata(file: SqliteFile, tables: Mapping[str, str]) -> dict[str, str]:
    if not {"tag", "value"} <= file.columns(tables["metadata"]).keys():
        return {}
    rows = file.read(tables["metadata"], f"{PREFIX}metadata", ProblemCounter())
    pairs = zip(rows.texts("tag").to_pylist(), rows.texts("value").to_pylist(), strict=True)
    return {tag: (value or "").strip() for tag, value in pairs if tag}


def _guids(file: SqliteFile, tables: Mapping[str, str]) -> list[str]:
    """Return the guids of the rows: some builds leave a placeholder in the metadata."""
    found: set[str] = set()
    for base in (*FACT_TIMES, "info_process"):
        if base in tables and "guid" in file.columns(tables[base]):
            found.update(guid.strip() for guid in file.distinct(tables[base], "guid"))
    return sorted(guid for guid in found if guid and not guid.startswith(_TEMPLATE_START))


def _claimed_guid(metadata: Mapping[str, str], suffix: str) -> str:
    claimed = metadata.get("guid", "")
    return (
        suffix.strip("_").replace("_", "-") if claimed.startswith(_TEMPLATE_START) or not claimed else claimed
    )


def _rows_without_guid(file: SqliteFile, tables: Mapping[str, str], guids: list[str]) -> dict[str, int]:
    listed = ", ".join("?" for _ in guids)
    counts = {
        base: file.count(table, f"WHERE {GUID} NOT IN ({listed})", guids)
        for base, table in tables.items()
        if "guid" in file.columns(table)
    }
    return {base: count for base, count in counts.items() if count}
