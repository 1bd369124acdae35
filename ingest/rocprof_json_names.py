"""What the records of a JSON file call by number: kinds and operations, marker messages, renamed kernels."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.rocm_rows import INTEGER, TEXT, Rows
from tracewh.ingest.rocprof_json_columns import as_text
from tracewh.ingest.rocprof_json_fields import is_handle, plain_columns, signed
from tracewh.ingest.rocprof_json_sections import MESSAGES, Sections
from tracewh.ingest.storable_text import storable


class RecordNames:
    """Names by the numbers that records carry.

    Counted: `unknown_operation` and `unknown_instruction` for a record whose number has no name, and
    `unused_message` for a marker's text without the marker.
    """

    def __init__(self, sections: Sections) -> None:
        self._problems, self._strings = sections.problems, sections.strings
        self._kinds = [_kind(entry) for entry in _entries(self._strings.get("buffer_records"))]
        renamed = self._strings.get("correlation_id")
        external = renamed.get("external") if isinstance(renamed, dict) else None
        names = {
            signed(key): storable(name)
            for entry in _entries(external)
            if is_handle(key := entry.get("key")) and isinstance(name := entry.get("value"), str)
        }
        self._renamed_keys, self._renamed = pa.array(names.keys(), INTEGER), pa.array(names.values(), TEXT)
        messages = sections.records.get(MESSAGES)
        columns = plain_columns(messages.table(), {}) if messages else {}
        rows = Rows(MESSAGES, pa.table(columns), sections.problems)
        self._message_keys = rows.integers("key")
        self._messages = rows.texts("value")
        self._is_used = pa.repeat(False, len(rows))

    def of_kinds(self, place: str, kinds: pa.Array) -> pa.Array:
        """Return the name of each kind of the records at a place, which is their name otherwise."""
        section = place.rpartition(".")[2].upper()
        return looked_up([kinds], lambda kind: self._kind(kind)[0] or section, TEXT)

    def of_operations(self, place: str, kinds: pa.Array, operations: pa.Array) -> pa.Array:
        """Return the name of each operation: hipLaunchKernel; null where the strings have none."""
        names = looked_up([kinds, operations], self._operation, TEXT)
        if names.null_count:
            example = operations.filter(names.is_null())[0]
            detail = f"strings.buffer_records has no operation {example}"
            self._problems.add("unknown_operation", place, detail, names.null_count)
        return names

    def of_messages(self, stack_ids: pa.Array) -> pa.Array:
        """Return the message of the marker with each correlation id as extdata; null for none."""
        found = positions(stack_ids, self._message_keys)
        used = pc.is_in(self._message_keys, value_set=stack_ids.drop_null())
        self._is_used = pc.or_(self._is_used, used)
        encoded = self._messages.take(found).dictionary_encode()
        texts = [json.dumps({"message": text}) for text in encoded.dictionary.to_pylist()]
        return pa.array(texts, TEXT).take(encoded.indices)

    def of_renamed(self, external_ids: pa.Array) -> pa.Array:
        """Return the name that the program gave to the work with each external correlation id."""
        return self._renamed.take(positions(external_ids, self._renamed_keys))

    def of_instructions(self, place: str, indices: pa.Array) -> tuple[pa.Array, pa.Array]:
        """Return the instruction and its comment by the index that a sample carries; -1 stands for none."""
        instructions = self._strings.get("pc_sample_instructions")
        count = len(instructions) if isinstance(instructions, list) else 0
        unknown = pc.sum(pc.greater_equal(indices, count)).as_py()
        if unknown:
            detail = "inst_index past strings.pc_sample_instructions"
            self._problems.add("unknown_instruction", place, detail, unknown)
        return text_at(instructions, indices), text_at(self._strings.get("pc_sample_comments"), indices)

    def count_unused_messages(self) -> None:
        """Count the messages that no marker was given for."""
        unused = len(self._is_used) - (pc.sum(self._is_used).as_py() or 0)
        if unused:
            self._problems.add("unused_message", MESSAGES, "no record has its correlation id", unused)

    def _kind(self, kind: int | None) -> tuple[str | None, list[str]]:
        return self._kinds[kind] if kind is not None and 0 <= kind < len(self._kinds) else (None, [])

    def _operation(self, kind: int | None, operation: int | None) -> str | None:
        operations = self._kind(kind)[1]
        return operations[operation] if operation is not None and 0 <= operation < len(operations) else None


def looked_up(keys: list[pa.Array], value_of: Callable[..., Any], kind: pa.DataType) -> pa.Array:
    """Return `value_of` the values of each row of `keys`, asked once for equal rows."""
    codes = pa.repeat(pa.scalar(0, INTEGER), len(keys[0]))
    encoded = [key.dictionary_encode(null_encoding="encode") for key in keys]
    for key in encoded:
        codes = pc.add(pc.multiply(codes, len(key.dictionary)), key.indices.cast(INTEGER))
    rows = codes.dictionary_encode()
    values = []
    for code in rows.dictionary.to_pylist():
        arguments = []
        for key in reversed(encoded):
            code, index = divmod(code, len(key.dictionary))
            arguments.append(key.dictionary[index].as_py())
        values.append(value_of(*reversed(arguments)))
    return pa.array(values, kind).take(rows.indices)


def positions(ids: pa.Array, value_set: pa.Array) -> pa.Array:
    """Return the first position of each id in `value_set`; null for null and for what is not in it."""
    found = pc.index_in(ids, value_set=value_set)
    return pc.if_else(ids.is_valid(), found, pa.scalar(None, found.type))


def _entries(value: Any) -> list[dict[str, Any]]:
    """Return the objects of a list; what is none becomes an empty one, as its place counts."""
    entries = value if isinstance(value, list) else []
    return [entry if isinstance(entry, dict) else {} for entry in entries]


def _kind(entry: dict[str, Any]) -> tuple[str | None, list[str]]:
    operations = entry.get("operations")
    names = [storable(as_text(name)) for name in operations] if isinstance(operations, list) else []
    return (storable(as_text(entry["kind"])) if entry.get("kind") else None), names


def text_at(texts: Any, indices: pa.Array) -> pa.Array:
    """Return the text of a JSON list at each index; null outside of it, and for '', which says nothing."""
    listed = texts if isinstance(texts, list) else []
    found = pa.array([None if text in (None, "") else storable(as_text(text)) for text in listed], TEXT)
    is_known = pc.and_(pc.greater_equal(indices, 0), pc.less(indices, len(found)))
    return found.take(pc.if_else(is_known, indices, pa.scalar(None, indices.type)))
