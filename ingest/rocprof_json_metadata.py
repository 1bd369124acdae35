"""What a JSON file of rocprofv3 says of a process as a whole: node, command, options of the profiler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tracewh.ingest.rocm_rows import INTEGER, TEXT
from tracewh.ingest.rocprof_json_columns import as_text
from tracewh.ingest.rocprof_json_objects import Object, handle_of, integer_column, objects, text_column
from tracewh.ingest.rocprof_json_sections import UNSUPPORTED, Sections
from tracewh.ingest.storable_text import storable

_NODE_TEXTS = ("machine_id", "system_name", "hostname", "release", "version", "hardware_name", "domain_name")
_NODE_COLUMNS = ("id", "hash", *_NODE_TEXTS)
_PROCESS_FIELDS = ("pid", "command", "init_time", "fini_time")
# Variables of the environment may hold secrets.
_SECRET = ("env", "environ", "environment")
# Of `strings`, these say what records mean, and are read with them.
_MEANINGS = (
    "buffer_records",
    "callback_records",
    "correlation_id",
    "pc_sample_instructions",
    "pc_sample_comments",
    "code_object_snapshot_filenames",
)
_MAX_DEPTH = 8


def attributes(sections: Sections) -> dict[str, str | None]:
    """Return metadata that has no place in a table, sums of the summary, and strings that nothing refers to.

    Names are dotted; environment variables are left out. The summary's rows per operation are counted as
    `unsupported_section`: they are sums over records.
    """
    metadata = dict(_metadata(sections))
    if isinstance(node := metadata.get("node"), dict):
        metadata["node"] = {name: value for name, value in node.items() if name not in _NODE_COLUMNS}
    found = dict(
        _flat("", {name: value for name, value in metadata.items() if name not in _PROCESS_FIELDS}, 0)
    )
    found |= _flat("", sections.scalars, 0)
    for entry in objects(sections.values.get("summary"), "summary", sections.problems):
        stats = entry.get("stats")
        sums = dict(stats) if isinstance(stats, dict) else {}
        operations = sums.pop("operations", None)
        if operations and isinstance(operations, list):
            sections.problems.add(UNSUPPORTED, "summary", "sums over records not loaded", len(operations))
        found |= _flat(f"summary.{storable(as_text(entry.get('domain')))}.", sums, 0)
    unread = {name: value for name, value in sections.strings.items() if name not in _MEANINGS}
    return found | dict(_flat("strings.", unread, 0))


def node_and_process(sections: Sections) -> dict[str, pa.Table]:
    """Return info_node and info_process, as far as the metadata tells of them."""
    metadata = _metadata(sections)
    tables = {}
    if isinstance(node := metadata.get("node"), dict):
        ids = {name: pa.array([handle_of(node.get(name))], INTEGER) for name in ("id", "hash")}
        tables["info_node"] = pa.table({**ids, **{name: text_column([node], name) for name in _NODE_TEXTS}})
    if metadata:
        numbers = {
            column: integer_column([metadata], field, "metadata", sections.problems)
            for column, field in (("pid", "pid"), ("init", "init_time"), ("fini", "fini_time"))
        }
        command = pa.array([_command_text(metadata.get("command"))], TEXT)
        tables["info_process"] = pa.table({"id": numbers["pid"], **numbers, "command": command})
    return tables


def _command_text(command: Any) -> str | None:
    """Return a command line as the profiler writes it elsewhere: words with spaces between."""
    words = command if isinstance(command, list) else [command]
    return " ".join(storable(as_text(word)) for word in words if word is not None) or None


def _metadata(sections: Sections) -> Object:
    value = sections.values.get("metadata")
    return value if isinstance(value, dict) else {}


def _flat(prefix: str, value: Object, depth: int) -> Iterator[tuple[str, str | None]]:
    for key, field in value.items():
        name = f"{prefix}{storable(key)}"
        if key.lower() in _SECRET:
            continue
        if isinstance(field, dict) and depth < _MAX_DEPTH:
            yield from _flat(f"{name}.", field, depth + 1)
        elif field not in (None, "", [], {}):
            yield name, storable(as_text(field))
