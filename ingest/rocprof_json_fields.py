"""Fields of records under plain names: what is wrapped around them in JSON is taken off, ids are 64 bits."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, TypeGuard

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocm_rows import INTEGER, TEXT, Rows
from tracewh.ingest.rocprof_json_columns import UNSIGNED, joined

Columns = dict[str, pa.Array]

# What records have around the fields of interest, and identifiers and addresses around their number.
_WRAPPERS = ("record.data.", "record.", "dispatch_data.", "dispatch_info.")
_HOLDERS = (".handle", ".value")
_DIMENSION = re.compile(r"(workgroup_size|grid_size)\.([xyz])")
# Position of a record's type among those that a record of its section can have; the kind tells it, too.
_TYPE_INDEX = "record.index"
# Size of the profiler's own struct.
_STRUCT_SIZE = "size"
# Past 63 bits these are wrong. All other numbers are ids, addresses and masks: of those the bits count.
_QUANTITY = re.compile(r"start|end|timestamp|(.*_)?(size|count)(_[xyz])?")


def plain_columns(records: pa.Table, renamed: Mapping[str, str], own: Collection[str] = ()) -> Columns:
    """Return the fields of records by plain names, or by what those are `renamed` to.

    Fields that get the same name complete each other. A field of a name in `own` is kept as `record.name`.
    Unsigned numbers past 63 bits become the signed ones of the same bits, addresses in text become numbers.
    """
    columns: Columns = {}
    for field in records.column_names:
        plain = _plain_name(field)
        if field.startswith(".") or field == _TYPE_INDEX or plain == _STRUCT_SIZE:
            continue
        name = renamed.get(plain, plain)
        name = f"record.{name}" if name in own else name
        values = _as_bits(name, records.column(field).combine_chunks())
        columns[name] = either(columns[name], values) if name in columns else values
    return columns


def either(first: pa.Array, second: pa.Array) -> pa.Array:
    """Return the values of `first`, or those of `second` where they are null."""
    both = joined([first, second])
    return pc.coalesce(both[: len(first)], both[len(first) :])


def integers(columns: Columns, name: str, rows: int) -> pa.Array:
    """Return a column as int64; what is no integer is null, and counted by whoever reads it as a fact."""
    return counted_integers(columns, name, rows, "", ProblemCounter())


def table_integers(table: pa.Table, name: str) -> pa.Array:
    """Return a column of a table as `integers` does."""
    columns = {name: table.column(name).combine_chunks()} if name in table.column_names else {}
    return integers(columns, name, len(table))


def counted_integers(
    columns: Columns, name: str, rows: int, place: str, problems: ProblemCounter
) -> pa.Array:
    """Return a column as int64; what is no integer is null, and counted at `place`."""
    values = columns.get(name, pa.nulls(rows))
    return Rows(place, pa.table({name: values}), problems).integers(name)


def signed(value: int) -> int:
    """Return the signed 64-bit integer of the bits of an unsigned one."""
    return value - 2**64 if value >= 2**63 else value


def is_handle(value: Any) -> TypeGuard[int]:
    """Tell whether a value is an integer of 64 bits, signed or not. JSON's true is none."""
    return type(value) is int and -(2**63) <= value < 2**64


def _plain_name(field: str) -> str:
    for wrapper in _WRAPPERS:
        field = field.removeprefix(wrapper)
    for holder in _HOLDERS:
        field = field.removesuffix(holder)
    return _DIMENSION.sub(r"\1_\2", field.strip())


def _as_bits(name: str, values: pa.Array) -> pa.Array:
    if values.type == UNSIGNED:
        return values.cast(TEXT) if _QUANTITY.fullmatch(name) else values.view(INTEGER)
    if values.type == TEXT and name.endswith("address"):
        return _addresses(values)
    return values


def _addresses(texts: pa.Array) -> pa.Array:
    """Return addresses written in hexadecimal as numbers; where some are no addresses, as text in decimal."""
    numbers = [_address(text) for text in texts.to_pylist()]
    if all(number is None or isinstance(number, int) for number in numbers):
        return pa.array(numbers, INTEGER)
    return pa.array([None if number is None else str(number) for number in numbers], TEXT)


def _address(text: str | None) -> int | str | None:
    try:
        number = None if text is None else int(text, 0)
    except ValueError:
        return text
    return signed(number) if is_handle(number) else text
