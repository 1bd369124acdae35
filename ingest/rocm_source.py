"""What every mapping of a ROCm process shares: names, problems, stats and joins by id."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from functools import cache
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import Interner
from tracewh.ingest.event_stats import StatsCollector, intern
from tracewh.ingest.rocm_process import RocmProcess
from tracewh.ingest.rocm_rows import Rows

NULL = pa.scalar(None, pa.int64())
#: Columns of a fact that say where and when, or that only join it to its event.
PLACE_COLUMNS = ("id", "nid", "pid", "tid", "start", "end", "event_id")
_USED_EVENT_COLUMNS = ("event.category_id", "event.stack_id", "event.parent_stack_id", "event.correlation_id")


class Source:
    """A process on its way into the warehouse.

    Joins are by id within the process and keep the left row: a reference that leads nowhere is counted as
    `dangling_reference` at `table.column` and reads as null.
    """

    def __init__(self, process: RocmProcess) -> None:
        self.process, self.problems = process, process.problems
        self.names = Interner()
        self.stats = StatsCollector(self.names)
        self._parsed = cache(_parse_json)
        self._tells: dict[str, bool] = {}

    def reference(self, base: str) -> Rows:
        """Return a table that others refer to."""
        return self.process.reference(base)

    def facts(self, base: str) -> Iterator[Rows]:
        """Return the rows of a fact table, some at a time."""
        return self.process.facts(base)

    def mapped(self, columns: tuple[str, ...]) -> tuple[str, ...]:
        """Return `columns` without pid and nid where they tell rows apart: with several of them."""
        return tuple(column for column in columns if not self._tells_rows_apart(column))

    def positions(self, base: str, ids: pa.Array, place: str) -> pa.Array:
        """Return the position in `reference(base)` of each id; null for null and for a dangling id."""
        found = pc.index_in(ids, value_set=self.reference(base).integers("id"))
        # A null id must not match a row whose own id was rejected.
        found = pc.if_else(ids.is_valid(), found, pa.scalar(None, found.type))
        dangling = found.null_count - ids.null_count
        if dangling:
            example = ids.filter(pc.and_(ids.is_valid(), found.is_null()))[0]
            label = self.reference(base).place
            self.problems.add("dangling_reference", place, f"no {label} row has id {example}", dangling)
        return found

    def texts(self, ids: pa.Array, place: str) -> pa.Array:
        """Return the text of each id of the strings."""
        return self.reference("string").texts("string").take(self.positions("string", ids, place))

    def name_ids(self, base: str, texts: pa.Array, ids: pa.Array, place: str, fallback: str) -> pa.Array:
        """Return the name id of each id's text, where `texts` are those of `reference(base)`.

        A name is needed, so a missing text becomes `fallback` with the id.
        """
        positions = self.positions(base, ids, place).dictionary_encode()
        found = intern(self.names, texts.take(positions.dictionary)).take(positions.indices)
        if not found.null_count:
            return found
        labels = [
            f"{fallback} {missing}" if missing is not None else fallback
            for missing in ids.filter(found.is_null()).to_pylist()
        ]
        return pc.replace_with_mask(found, found.is_null(), intern(self.names, pa.array(labels, pa.string())))

    def parse(self, text: str, place: str | None = None) -> Any:
        """Return the JSON value of a text, or the text itself where it is none, counted at `place`."""
        value, error = self._parsed(text)
        if error and place is not None:
            self.problems.add("invalid_json", place, f"kept as text: {error}")
        return value

    def add_json(
        self,
        owner: str,
        owner_ids: pa.Array,
        texts: pa.Array,
        place: str,
        prefix: str = "",
        skip: Collection[str] = (),
    ) -> None:
        """Add the fields of JSON objects as stats; any other text becomes one stat, by its column."""
        kept = texts.is_valid()
        for owner_id, text in zip(
            owner_ids.filter(kept).to_pylist(), texts.filter(kept).to_pylist(), strict=True
        ):
            value = self.parse(text, place)
            fields = value if isinstance(value, dict) else {place.rpartition(".")[2]: value}
            for name, field in fields.items():
                if name not in skip and field not in ("", {}):
                    self.stats.add_value(owner, owner_id, f"{prefix}{name}", field)

    def add_remaining(
        self,
        owner: str,
        owner_ids: pa.Array,
        rows: Rows,
        mapped: Collection[str],
        prefix: str = "",
        skip: Collection[str] = (),
    ) -> None:
        """Add every column that is not in `mapped` as stats: what newer writers add is kept as it came.

        `skip` are fields of extdata that have a place elsewhere.
        """
        for column in rows.table.column_names:
            if column in mapped or column in _USED_EVENT_COLUMNS:
                continue
            name = f"{prefix}{column.removeprefix('event.')}"
            if column.rpartition(".")[2] == "extdata":
                place = f"{rows.place}.{column}"
                self.add_json(owner, owner_ids, rows.texts(column), place, prefix, skip)
                continue
            values = rows.table.column(column).combine_chunks()
            if pa.types.is_large_string(values.type):
                values = empty_as_null(values)
            self.stats.add_column(owner, owner_ids, name, values)

    def add_fact_stats(
        self,
        owner: str,
        owner_ids: pa.Array,
        rows: Rows,
        mapped: tuple[str, ...],
        skip: Collection[str] = (),
    ) -> None:
        """Add what a fact and its event say beyond `mapped` and the columns of time and place."""
        external = zero_as_null(rows.integers("event.correlation_id"))
        self.stats.add_column(owner, owner_ids, "external_correlation_id", external)
        self.add_remaining(owner, owner_ids, rows, self.mapped((*PLACE_COLUMNS, *mapped)), skip=skip)

    def _tells_rows_apart(self, column: str) -> bool:
        base = {"pid": "info_process", "nid": "info_node"}.get(column)
        if base is None:
            return False
        if base not in self._tells:
            self._tells[base] = len(self.reference(base)) > 1
        return self._tells[base]


def empty_as_null(texts: pa.Array) -> pa.Array:
    """Return the texts with '' as null: the writers' way to say nothing."""
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, texts.type), texts)


def zero_as_null(values: pa.Array) -> pa.Array:
    """Return the integers with 0 as null: the writers' way to say that there is no such id."""
    return pc.if_else(pc.equal(values, 0), pa.scalar(None, values.type), values)


def _parse_json(text: str) -> tuple[Any, str]:
    try:
        value = json.loads(text)
        if "\\u" in text:
            # An escape can spell half of a surrogate pair, which is no text that can be stored.
            json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError) as error:
        return text, str(error)
    return value, ""
