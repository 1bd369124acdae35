"""Small lists of JSON objects as columns: each value is asked for by name and type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocm_rows import INTEGER, TEXT, typed
from tracewh.ingest.rocprof_json_columns import as_text
from tracewh.ingest.rocprof_json_fields import is_handle, signed
from tracewh.ingest.storable_text import storable

Object = dict[str, Any]


def objects(value: Any, place: str, problems: ProblemCounter) -> list[Object]:
    """Return the objects of a list; what is no list, or no object in it, is counted at `place`."""
    if value is None:
        return []
    if not isinstance(value, list):
        problems.add("not_a_list", place, f"value rejected: {type(value).__name__}")
        return []
    found = [entry for entry in value if isinstance(entry, dict)]
    if len(found) < len(value):
        problems.add("not_an_object", place, "row rejected", len(value) - len(found))
    return found


def handle_of(value: Any) -> int | None:
    """Return the 64 bits of an identifier, which may be wrapped in an object."""
    handle = value.get("handle") if isinstance(value, dict) else value
    return signed(handle) if is_handle(handle) else None


def text_column(entries: Sequence[Object], name: str) -> pa.Array:
    """Return a field of each object as text; what is none as JSON."""
    values = [entry.get(name) for entry in entries]
    return pa.array([None if value is None else storable(as_text(value)) for value in values], TEXT)


def integer_column(entries: Sequence[Object], name: str, place: str, problems: ProblemCounter) -> pa.Array:
    """Return a field of each object as int64; null, counted at `place.name`, for what is no integer."""
    return typed([entry.get(name) for entry in entries], INTEGER, f"{place}.{name}", problems)
