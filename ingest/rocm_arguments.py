"""Arguments of the calls of a ROCm process, as stats of the rows that have their events."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.event_stats import EVENT_STATS_TYPES, intern
from tracewh.ingest.rocm_host_events import HostEvents
from tracewh.ingest.rocm_owners import Owners
from tracewh.ingest.rocm_rows import Rows
from tracewh.ingest.rocm_source import Source
from tracewh.ingest.shared_rows import Column, distinct_rows
from tracewh.ingest.sqlite_records import HEXADECIMAL, INTEGER, OTHER_TEXT

# Below this number Python is done before the compiled loop is loaded.
_COMPILED_FROM_ROWS = 20_000
_DECIMAL = re.compile("0|-?[1-9][0-9]{0,17}")
_HEXADECIMAL = re.compile("0x(0|[1-9a-f][0-9a-f]{0,15})")
_VALUE_TYPES = {OTHER_TEXT: "string", INTEGER: "int64", HEXADECIMAL: "hex"}


@dataclass
class Arguments:
    """Makes the stats of arguments, named for the argument, and once per API those of their C types.

    The stat `<api>(<argument>)` of the capture, with the argument's position as owner_id, holds the type.
    """

    source: Source
    owners: Mapping[str, Owners]
    calls: HostEvents

    def rows(self) -> Iterator[tuple[str, pa.Table]]:
        """Return the rows by table, some at a time."""
        signatures: dict[tuple[object, ...], None] = {}
        api_of_call = self.calls.name_ids
        for rows in self.source.facts("arg"):
            events = rows.integers("event_id")
            found = {owner: owners.rows(events) for owner, owners in self.owners.items()}
            is_free = pa.array(np.ones(len(rows), bool))
            names = pc.fill_null(rows.texts("name"), "argument")
            values = pc.fill_null(rows.texts("value"), "")
            for owner, ids in found.items():
                chosen = pc.and_(is_free, ids.is_valid())
                is_free = pc.and_(is_free, ids.is_null())
                if pc.any(chosen).as_py():
                    ids = ids.filter(chosen)
                    yield "event_stats", self._stats(owner, ids, names.filter(chosen), values.filter(chosen))
                    extdata = rows.texts("extdata").filter(chosen)
                    self.source.add_json(owner, ids, extdata, f"{rows.place}.extdata")
            orphans = pc.sum(is_free).as_py()
            if orphans:
                detail = "row rejected: no loaded row has its event"
                self.source.problems.add("orphan_argument", rows.place, detail, orphans)
            if len(api_of_call):
                signatures |= dict.fromkeys(_signatures(rows, names, api_of_call.take(found["host_event"])))
        for api, position, name, type_name in signatures:
            label = f"{self.source.names.strings[int(str(api))]}({name})"
            self.source.stats.add_value("capture", int(str(position or 0)), label, type_name)
        yield "event_stats", self.source.stats.take()

    def _stats(self, owner: str, ids: pa.Array, names: pa.Array, values: pa.Array) -> pa.Table:
        """Return rows of event_stats: numbers as such, other texts interned."""
        numbers, kinds = _numbers(values)
        count = len(ids)
        is_text = kinds == OTHER_TEXT
        texts = pc.if_else(pa.array(is_text), values, pa.scalar(None, values.type))
        value_types = pa.DictionaryArray.from_arrays(pa.array(kinds), [*_VALUE_TYPES.values()])
        columns = {
            "owner": pa.repeat(owner, count),
            "owner_id": ids,
            "stat_name_id": intern(self.source.names, names),
            "value_type": value_types.cast(pa.string()),
            "int_value": pa.array(numbers, mask=is_text),
            "value_name_id": intern(self.source.names, texts),
        }
        return pa.table({name: columns[name] for name in EVENT_STATS_TYPES if name in columns})


def _numbers(texts: pa.Array) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int8]]:
    if len(texts) >= _COMPILED_FROM_ROWS:
        # Imported here, as it takes time that a few texts do not need.
        from tracewh.ingest.sqlite_pages import numbers_in

        return numbers_in(texts)
    found = [number_in(text) for text in texts.to_pylist()]
    return (
        np.array([number for number, _ in found], np.uint64).view(np.int64),
        np.array([kind for _, kind in found], np.int8),
    )


def number_in(text: str) -> tuple[int, int]:
    """Return the bits of the number that a text is, and INTEGER or HEXADECIMAL; else OTHER_TEXT.

    A number that is written in an unusual way, as with zeros in front, counts as a text: it would be lost.
    """
    if _DECIMAL.fullmatch(text):
        return int(text) % 2**64, INTEGER
    if _HEXADECIMAL.fullmatch(text):
        return int(text, 16), HEXADECIMAL
    return 0, OTHER_TEXT


def _signatures(rows: Rows, names: pa.Array, apis: pa.Array) -> list[tuple[object, ...]]:
    """Return the distinct API, position, name and type of the arguments of calls."""
    texts = {"name": names.dictionary_encode(), "type": rows.texts("type").dictionary_encode()}
    positions = rows.integers("position")
    columns = [apis, positions, *(encoded.indices for encoded in texts.values())]
    _, first = distinct_rows([Column.of(column) for column in columns])
    found = []
    for row in first.tolist():
        api = apis[row].as_py()
        if api is not None:
            named = (encoded[row].as_py() for encoded in texts.values())
            found.append((api, positions[row].as_py(), *named))
    return found
