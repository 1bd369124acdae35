"""The sections of one process in a JSON file of rocprofv3, in any order, as records in columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocprof_json_columns import RecordColumns
from tracewh.ingest.rocprof_json_text import JsonCursor
from tracewh.ingest.storable_text import storable

# Base table of the records of each section of buffer_records but those of calls.
_BUFFER_TABLES = {
    "kernel_dispatch": "kernel_dispatch",
    "memory_copy": "memory_copy",
    "memory_allocation": "memory_allocate",
    "scratch_memory": "memory_allocate",
    "hip_graph": "graph_launch",
    "graph_launch": "graph_launch",
    "hip_event": "hip_event",
    "pc_sample_host_trap": "gpu_pc_sample",
    "pc_sample_stochastic": "gpu_pc_sample",
}
#: The problem of a section, or of rows in it, that have no place in the tables.
UNSUPPORTED = "unsupported_section"
#: Records of a key, the correlation id of a marker, and a value, its text.
MESSAGES = "strings.marker_api"
_OTHER_REGIONS = ("ompt", "page_migration", "runtime_initialization")
#: Counters per dispatch, and of streaming monitors.
COUNTER_SECTIONS = ("callback_records.counter_collection", "callback_records.spm_counter_collection")
_MAX_VALUES = 100_000
_RECORD_SECTIONS = ("code_objects", "kernel_symbols")
_VALUE_SECTIONS = ("metadata", "agents", "counters", "summary")
# Decoded records take many times the memory of their text, and of the processor's caches.
_CHUNK_CHARACTERS = 1 << 18


@dataclass
class Sections:
    """What a process has: small sections as decoded, all others in columns.

    `records` are by their place in the process: `kernel_symbols`, `buffer_records.hip_api`. `strings` has all
    that is there but marker_api, which is long.
    """

    problems: ProblemCounter
    values: dict[str, Any] = field(default_factory=dict)
    scalars: dict[str, Any] = field(default_factory=dict)
    strings: dict[str, Any] = field(default_factory=dict)
    records: dict[str, RecordColumns] = field(default_factory=dict)


def base_table(place: str) -> str | None:
    """Return the table that records of a place belong to; None outside of the known buffer_records."""
    parent, _, section = place.partition(".")
    if parent != "buffer_records":
        return None
    is_region = section.endswith("_api") or section.startswith("kfd") or section in _OTHER_REGIONS
    return _BUFFER_TABLES.get(section, "region" if is_region else None)


def count_unsupported(cursor: JsonCursor, place: str, problems: ProblemCounter) -> None:
    """Skip a section that has no place in the tables, and count its rows at `place`."""
    rows = 0
    if cursor.peek() == "[":
        for _ in cursor.elements():
            value = cursor.value()
            # host_functions begins with a placeholder.
            rows += not (isinstance(value, dict) and value.get("host_function_id") == 0)
    else:
        rows = int(bool(cursor.value()))
    if rows:
        problems.add(UNSUPPORTED, place, "section not loaded", rows)


def read_sections(cursor: JsonCursor, problems: ProblemCounter) -> Sections:
    """Read the process at the cursor.

    Sections that are not known are counted as `unsupported_section` with their number of rows.
    """
    sections = Sections(problems)
    for name in _members(cursor, "process", problems):
        if name in _VALUE_SECTIONS:
            sections.values[name] = value = _small_value(cursor, name, problems)
            if name == "metadata" and not isinstance(value, dict):
                problems.add("not_an_object", name, f"section rejected: {type(value).__name__}")
        elif name == "strings":
            _read_strings(cursor, sections)
        elif name in _RECORD_SECTIONS:
            _read_records(cursor, sections, name)
        elif name in ("buffer_records", "callback_records"):
            for kind in _members(cursor, name, problems):
                place = f"{name}.{kind}"
                if place in COUNTER_SECTIONS or base_table(place) is not None:
                    _read_records(cursor, sections, place)
                else:
                    count_unsupported(cursor, place, problems)
        elif cursor.peek() in ("[", "{"):
            count_unsupported(cursor, name, problems)
        else:
            sections.scalars[name] = cursor.value()
    return sections


def _small_value(cursor: JsonCursor, name: str, problems: ProblemCounter) -> Any:
    """A section that is held as it is decoded; of a list at most so much that memory stays bounded."""
    if cursor.peek() != "[":
        return cursor.value()
    kept: list[Any] = []
    beyond = 0
    for _ in cursor.elements():
        value = cursor.value()
        if len(kept) < _MAX_VALUES:
            kept.append(value)
        else:
            beyond += 1
    if beyond:
        detail = f"row rejected: the section has more than {_MAX_VALUES:,} rows"
        problems.add("too_many_rows", name, detail, beyond)
    return kept


def _read_strings(cursor: JsonCursor, sections: Sections) -> None:
    for name in _members(cursor, "strings", sections.problems):
        if name == "marker_api":
            _read_records(cursor, sections, MESSAGES)
        else:
            sections.strings[name] = cursor.value()


def _read_records(cursor: JsonCursor, sections: Sections, place: str) -> None:
    if cursor.peek() != "[":
        value = cursor.value()
        if value:
            sections.problems.add("not_a_list", place, f"section rejected: {type(value).__name__}")
        return
    if place not in sections.records:
        lists = ["records" if place in COUNTER_SECTIONS else "args"]
        sections.records[place] = RecordColumns(place, sections.problems, lists)
    columns = sections.records[place]
    chunk: list[Any] = []
    start = cursor.characters_read
    for _ in cursor.elements():
        chunk.append(cursor.value())
        if cursor.characters_read - start > _CHUNK_CHARACTERS:
            columns.add(chunk)
            chunk, start = [], cursor.characters_read
    columns.add(chunk)


def _members(cursor: JsonCursor, place: str, problems: ProblemCounter) -> Iterator[str]:
    if cursor.peek() == "{":
        yield from map(storable, cursor.members())
    elif (value := cursor.value()) is not None:
        problems.add("not_an_object", place, f"section rejected: {type(value).__name__}")
