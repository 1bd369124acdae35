"""Calls and markers of an RPD trace with their arguments and call stacks."""

from __future__ import annotations

import json
import re
from itertools import groupby

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.rocm_rows import INTEGER, TEXT, Rows
from tracewh.ingest.rpd_copies import TRUE_NAMES
from tracewh.ingest.rpd_file import Positions, RpdFile, without_nothing
from tracewh.ingest.rpd_links import Details

_MARKER = "UserMarker"
# What the tracer does itself, which it records among the calls.
_OWN_CALL = re.compile(
    r"(?:\w+(?:Table|DataSource)::\w+|h(?:cc|ip)_activity_callback|rpdflush|BLOCKING|overhead \(\w+\))$"
)
# The names that rocprofv3 has for what a call belongs to, by how its name starts.
_CATEGORIES = (
    (re.compile(f"{_MARKER}$"), "MARKER_CORE_RANGE_API"),
    (_OWN_CALL, "RPD_TRACER"),
    (re.compile("(?:__)?hip[A-Z]"), "HIP_RUNTIME_API_EXT"),
    (re.compile("hsa_"), "HSA_CORE_API"),
    (re.compile("nccl[A-Z]"), "RCCL_API"),
    (re.compile("cu(?:da)?[A-Z]"), "CUDA_API"),
)
_USED = {"id", "pid", "tid", "start", "end", "apiName_id", "args_id", "domain_id", "category_id"}
_PAIR = re.compile(r"\s*(\w+)\s*=\s*(.*?)\s*", re.DOTALL)


def region_table(file: RpdFile, calls: Rows, arguments: pa.Array) -> pa.Table:
    """Return the calls as regions; the event of a call is its position.

    `arguments` are the texts of their arguments. Those of a marker are its message.
    """
    names = file.name_positions(calls, "apiName_id")
    domains, categories = (
        file.name_positions(calls, column)
        if column in calls.table.column_names
        else pa.nulls(len(calls), INTEGER)
        for column in ("domain_id", "category_id")
    )
    columns = {
        "id": calls.integers("id"),
        "tid": calls.integers("tid"),
        "start": calls.integers("start"),
        "end": calls.integers("end"),
        "name_id": names,
        "event_id": pa.array(np.arange(len(calls))),
        "event.category_id": _categories(file, names, domains),
        "event.stack_id": calls.integers("id"),
        "event.extdata": _messages(file, names, arguments),
        "event.call_stack": _call_stacks(file, calls),
        "domain": without_nothing(file.texts.at(domains)),
        "category": without_nothing(file.texts.at(categories)),
    }
    for name in calls.table.column_names:
        if name not in _USED:
            columns[name] = without_nothing(calls.table.column(name).combine_chunks())
    return pa.table(columns)


def call_arguments(file: RpdFile, calls: Rows) -> pa.Array:
    """Return the text of each call's arguments; null for none."""
    # Since schema 3 texts that hardly recur, such as arguments, are in a table of their own.
    among = file.read("rocpd_ustring") if file.has("rocpd_ustring") else file.texts.rows
    found = file.find(calls.integers("args_id"), among, "id", f"{calls.place}.args_id")
    return without_nothing(among.texts("string").take(found))


def argument_table(
    file: RpdFile, calls: Rows, arguments: pa.Array, unclaimed: tuple[Details, ...]
) -> pa.Table:
    """Return the table `arg`: what calls were given, and details of calls that no operation has."""
    names = file.texts.positions_of(calls.integers("apiName_id"))
    is_marker = file.texts.test(names, lambda name: name == _MARKER)
    arguments = pc.if_else(pa.array(is_marker), pa.scalar(None, TEXT), arguments)
    table = _parsed_arguments(arguments)
    for details in unclaimed:
        table = pa.concat_tables([table, _detail_arguments(file, details, _counts(table, len(calls)))])
    return table


def _counts(table: pa.Table, calls: int) -> Positions:
    return np.bincount(np.asarray(table.column("event_id")), minlength=calls)


def _parsed_arguments(arguments: pa.Array) -> pa.Table:
    encoded = arguments.dictionary_encode()
    parsed = [_arguments(text) for text in encoded.dictionary.to_pylist()]
    flat = [pair for pairs in parsed for pair in pairs]
    counts_of_text = np.array([len(pairs) for pairs in parsed], np.int64)
    firsts_of_text = np.cumsum(counts_of_text) - counts_of_text
    calls = np.flatnonzero(np.asarray(arguments.is_valid()))
    texts = np.asarray(encoded.indices.drop_null().cast(INTEGER))
    counts = counts_of_text[texts]
    position = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    chosen = pa.array(np.repeat(firsts_of_text[texts], counts) + position)
    return pa.table(
        {
            "event_id": pa.array(np.repeat(calls, counts)),
            "position": pa.array(position),
            "type": pa.repeat(pa.scalar("", TEXT), len(position)),
            "name": pa.array([name for name, _ in flat], TEXT).take(chosen),
            "value": pa.array([value for _, value in flat], TEXT).take(chosen),
        }
    )


def _arguments(text: str) -> list[tuple[str, str]]:
    """Arguments by name: of a JSON object, or of `a=1 | b = 2`; any other text is one argument."""
    if text.startswith("{"):
        try:
            content = json.loads(text)
        except (ValueError, RecursionError):
            content = None
        if isinstance(content, dict):
            pairs = [
                (name, value if isinstance(value, str) else json.dumps(value))
                for name, value in content.items()
            ]
            # An escape can spell half of a surrogate pair, which is no text that can be stored.
            return (
                [(_encodable(name), _encodable(value)) for name, value in pairs] if "\\u" in text else pairs
            )
    parts = [_PAIR.fullmatch(part) for part in text.split("|")]
    found = [(part[1], part[2]) for part in parts if part is not None]
    return found if len(found) == len(parts) else [("args", text)]


def _encodable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _detail_arguments(file: RpdFile, details: Details, counts: Positions) -> pa.Table:
    """The details that are of no operation, as arguments of their calls, after those that they have."""
    where = details.of_no_op
    rows = Rows(details.rows.place, details.rows.table.take(pa.array(where)), details.rows.problems)
    calls = details.call_of_row[where]
    parts = [_parsed_arguments(pa.array([], TEXT))]
    for column in rows.table.column_names:
        if column == "api_ptr_id":
            continue
        if column == "kernelName_id":
            values = file.texts.at(file.texts.positions_of(rows.integers(column)))
        else:
            values = rows.texts(column)
        is_told = pc.fill_null(pc.not_equal(values, ""), False)
        told = calls[np.asarray(is_told)]
        columns = {
            "event_id": pa.array(told),
            "position": pa.array(counts[told]),
            "type": pa.repeat(pa.scalar("", TEXT), len(told)),
            "name": pa.repeat(pa.scalar(TRUE_NAMES.get(column, column), TEXT), len(told)),
            "value": values.filter(is_told),
        }
        counts = counts + np.bincount(told, minlength=len(counts))
        parts.append(pa.table(columns))
    return pa.concat_tables(parts)


def _categories(file: RpdFile, names: pa.Array, domains: pa.Array) -> pa.Array:
    encoded = names.dictionary_encode()
    found = [
        next((category for pattern, category in _CATEGORIES if pattern.match(name or "")), None)
        for name in file.texts.at(encoded.dictionary).to_pylist()
    ]
    known = pa.array([category and file.texts.position(category) for category in found], INTEGER)
    return pc.coalesce(known.take(encoded.indices), file.texts.named(domains))


def _messages(file: RpdFile, names: pa.Array, arguments: pa.Array) -> pa.Array:
    is_marker = file.texts.test(names, lambda name: name == _MARKER)
    encoded = pc.if_else(pa.array(is_marker), arguments, pa.scalar(None, TEXT)).dictionary_encode()
    texts = [json.dumps({"message": text}) for text in encoded.dictionary.to_pylist()]
    return pa.array(texts, TEXT).take(encoded.indices)


def _call_stacks(file: RpdFile, calls: Rows) -> pa.Array:
    """The frames of each call as a JSON list, the innermost first; null for none."""
    rows = file.read("rocpd_stackframe")
    if not len(rows):
        return pa.nulls(len(calls), TEXT)
    owners = file.find(rows.integers("api_ptr_id"), calls, "id", rows.place)
    frames = file.texts.at(file.name_positions(rows, "name_id"))
    table = pa.table({"call": owners, "depth": rows.integers("depth"), "frame": frames})
    table = table.filter(owners.is_valid()).sort_by([("call", "ascending"), ("depth", "ascending")])
    stacks: list[str | None] = [None] * len(calls)
    pairs = zip(table.column("call").to_pylist(), table.column("frame").to_pylist(), strict=True)
    for call, group in groupby(pairs, key=lambda pair: pair[0]):
        stacks[call] = json.dumps([frame for _, frame in group])
    return pa.array(stacks, TEXT)
