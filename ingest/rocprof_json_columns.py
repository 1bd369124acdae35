"""JSON records as Arrow columns, made some records at a time: nested fields get dotted names."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocm_rows import INTEGER, REAL, TEXT
from tracewh.ingest.storable_text import storable

#: Columns that are no fields, all named with a dot in front. Every table has ROWS, so that it keeps rows that
#: have no fields; list elements have their record, counted from 0, and their place in its list.
ROWS, OWNER, POSITION = ".rows", ".owner", ".position"
UNSIGNED = pa.uint64()

_MAX_DEPTH = 8
# The profiler's records have some sixty fields. Each costs memory for all records, so that a file in which
# every record has fields of its own must not get a column for each.
_MAX_NAMES = 200
# Integers up to here are exact as a double.
_EXACT = 2**53


class RecordColumns:
    """The fields of records of one kind as columns: int64, uint64, float64, large_string or null.

    A field whose values are of several types becomes text, as does a list, in JSON. Fields named in `lists`
    (dotted) are lists of records: `lists[name]` has their elements. With `encode_text`, texts are
    dictionaries, for columns that repeat few of them.

    Counted at `place`: `not_an_object`, `not_a_list`, `too_many_fields`, `text_not_utf8`.
    """

    def __init__(
        self, place: str, problems: ProblemCounter, lists: Collection[str] = (), encode_text: bool = False
    ) -> None:
        self.place = place
        self.lists = {
            name: RecordColumns(f"{place}.{name}", problems, encode_text=True) for name in sorted(lists)
        }
        self._problems, self._encode_text = problems, encode_text
        self._arrays: dict[str, list[pa.Array]] = {}
        self._names: set[str] = set()
        self._rows = 0

    def __len__(self) -> int:
        return self._rows

    def add(self, records: Sequence[Any]) -> None:
        """Add records; those that are no objects are counted and left out."""
        if not set(map(type, records)) <= {dict}:
            is_object = [type(record) is dict for record in records]
            self._count("not_an_object", "row rejected", records, is_object)
            records = [record for record, kept in zip(records, is_object, strict=True) if kept]
        self._append(records, {})

    def table(self) -> pa.Table:
        """Return all records, with the column ROWS before their fields, and let go of them."""
        columns = {ROWS: pa.nulls(self._rows)}
        for name in list(self._arrays):
            columns[name] = joined(self._arrays.pop(name))
        return pa.table(columns)

    def _add_lists(self, lists: Sequence[Any], first_owner: int) -> None:
        """Add the elements of the lists of consecutive records; an object is the list of its fields."""
        owners: list[int] = []
        positions: list[int] = []
        found: list[Any] = []
        for owner, value in enumerate(lists, first_owner):
            if isinstance(value, dict):
                value = [{"name": name, "value": field} for name, field in value.items()]
            if isinstance(value, list):
                found += value
                owners += [owner] * len(value)
                positions += range(len(value))
            elif value is not None:
                self._count("not_a_list", "value rejected", [value], [False])
        is_object = [type(record) is dict for record in found]
        self._count("not_an_object", "row rejected", found, is_object)
        kept, selected = [record for record in found if type(record) is dict], pa.array(is_object, pa.bool_())
        where = {OWNER: pa.array(owners, INTEGER), POSITION: pa.array(positions, INTEGER)}
        self._append(kept, {name: array.filter(selected) for name, array in where.items()})

    def _append(self, records: Sequence[dict[str, Any]], where: dict[str, pa.Array]) -> None:
        if not records:
            return
        columns: dict[str, Sequence[Any]] = {}
        self._flatten(records, "", 0, columns)
        arrays = where | {name: self._array(name, values) for name, values in columns.items()}
        for name, array in arrays.items():
            if name not in self._arrays:
                self._arrays[name] = [pa.nulls(self._rows)] if self._rows else []
            self._arrays[name].append(array)
        for name in self._arrays.keys() - arrays.keys():
            self._arrays[name].append(pa.nulls(len(records)))
        self._rows += len(records)

    def _flatten(
        self, records: Sequence[dict[str, Any]], prefix: str, depth: int, columns: dict[str, Sequence[Any]]
    ) -> None:
        for name, values in self._fields(records, prefix):
            if name in self.lists:
                self.lists[name]._add_lists(values, self._rows)
                continue
            kinds = set(map(type, values))
            if dict in kinds and depth < _MAX_DEPTH:
                nested = [value if type(value) is dict else {} for value in values]
                self._flatten(nested, f"{name}.", depth + 1, columns)
                if kinds <= {dict, type(None)}:
                    continue
                values = [None if type(value) is dict else value for value in values]
            before = columns.get(name, ())
            # A dotted key may have the name of a nested one: they complete each other.
            columns[name] = (
                [a if b is None else b for a, b in zip(values, before, strict=True)] if before else values
            )

    def _fields(self, records: Sequence[dict[str, Any]], prefix: str) -> Iterator[tuple[str, Sequence[Any]]]:
        first = records[0].keys()
        is_uniform = all(map(first.__eq__, map(dict.keys, records)))
        keys = first if is_uniform else dict.fromkeys(key for record in records for key in record)
        rejected = set()
        for key in keys:
            name = f"{prefix}{storable(key)}"
            name = f"field{name}" if name.startswith(".") else name
            if name not in self._names and len(self._names) >= _MAX_NAMES:
                rejected.add(key)
                continue
            self._names.add(name)
            yield name, [record[key] if is_uniform else record.get(key) for record in records]
        if rejected:
            found = [key for record in records for key in record if key in rejected]
            self._count("too_many_fields", "value rejected", found, [False] * len(found))

    def _array(self, name: str, values: Sequence[Any]) -> pa.Array:
        kinds = set(map(type, values)) - {type(None)}
        if kinds <= {int, float, bool}:
            return numbers(values, kinds)
        texts = values if kinds == {str} else _texts(values)
        try:
            array = pa.array(texts, TEXT)
        except UnicodeEncodeError:
            clean = [None if text is None else storable(text) for text in texts]
            is_clean = [before == after for before, after in zip(texts, clean, strict=True)]
            self._count("text_not_utf8", f"wrong bytes kept as \\x.. in {name[:80]}", texts, is_clean)
            array = pa.array(clean, TEXT)
        return array.dictionary_encode() if self._encode_text else array

    def _count(self, problem: str, detail: str, values: Sequence[Any], is_right: Sequence[bool]) -> None:
        wrong = [value for value, right in zip(values, is_right, strict=True) if not right]
        if wrong:
            example = storable(as_text(wrong[0]))[:80]
            self._problems.add(problem, self.place, f"{detail}: {example}", len(wrong))


def concatenated(tables: Iterable[pa.Table]) -> pa.Table:
    """Return the rows of all tables; a column that some lack is null there, and text where types differ."""
    tables = [table for table in tables if table.num_rows]
    if len(tables) == 1:
        return tables[0]
    names = dict.fromkeys(name for table in tables for name in table.column_names)
    return pa.table({name: joined([_column(table, name) for table in tables]) for name in names})


def joined(arrays: Sequence[pa.Array]) -> pa.Array:
    """Return arrays one after the other, in the type that holds all of them without loss; else as text."""
    if not arrays:
        return pa.nulls(0)
    kinds = {array.type for array in arrays} - {pa.null()}
    wanted = kinds.pop() if len(kinds) == 1 else _common_type(arrays, kinds) if kinds else pa.null()
    arrays = [
        pa.nulls(len(array), wanted)
        if array.type == pa.null()
        else array
        if array.type == wanted
        else array.cast(wanted)
        for array in arrays
    ]
    # Arrow copies even a single array.
    return arrays[0] if len(arrays) == 1 else pa.chunked_array(arrays).unify_dictionaries().combine_chunks()


def numbers(values: Sequence[Any], kinds: set[type]) -> pa.Array:
    """Return numbers and nulls as int64, uint64 or float64, whichever holds them exactly; else as text.

    `kinds` are the types of the values: some of int, bool and float.
    """
    if float in kinds:
        if kinds == {float} or all(type(value) is float or abs(value or 0) <= _EXACT for value in values):
            return pa.array([value if value is None else float(value) for value in values], REAL)
        return pa.array(_texts(values), TEXT)
    if bool in kinds:
        values = [value if value is None else int(value) for value in values]
    for kind in (INTEGER, UNSIGNED):
        try:
            return pa.array(values, kind)
        except OverflowError:
            continue
    return pa.array(_texts(values), TEXT)


def as_text(value: Any) -> str:
    """Return what JSON decoded as text: strings as they are, everything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def _texts(values: Sequence[Any]) -> list[str | None]:
    return [None if value is None else as_text(value) for value in values]


def _column(table: pa.Table, name: str) -> pa.Array:
    if name not in table.column_names:
        return pa.nulls(table.num_rows)
    return table.column(name).combine_chunks()


def _common_type(arrays: Sequence[pa.Array], kinds: set[pa.DataType]) -> pa.DataType:
    bounds = [pc.min_max(array).as_py() for array in arrays if array.type == INTEGER]
    integers = [bound for pair in bounds for bound in pair.values() if bound is not None]
    if kinds == {INTEGER, UNSIGNED} and min(integers, default=0) >= 0:
        return UNSIGNED
    if kinds == {INTEGER, REAL} and max(map(abs, integers), default=0) <= _EXACT:
        return REAL
    return TEXT
