"""JSON files of rocprofv3 that are damaged, hostile or odd: one clear error, or counted problems."""

from __future__ import annotations

import contextlib
import json
import re
from copy import deepcopy
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.rocprof_json import read_processes
from tracewh.ingest.rocprof_json_columns import RecordColumns, concatenated
from tracewh.ingest.rocprof_json_text import JsonCursor

from .rocprof_json_files import (
    GPU,
    HIP,
    KINDS,
    call,
    dispatch,
    document,
    everything,
    problems,
    process,
    read,
    rows,
)

WHOLE = document(process(buffers={"kernel_dispatch": [dispatch(1, 10, 20)]}))
KEY = b'{"rocprofiler-sdk-tool": '


@pytest.mark.parametrize(
    ("text", "byte", "reason"),
    [
        (b"", 0, "it does not begin with an object"),
        (b" \n", 2, "it does not begin with an object"),
        (b"PK\x03\x04", 0, "it does not begin with an object"),
        (b"\xff\xfe{\x00", 0, "it does not begin with an object"),
        (b"[]", 0, "it does not begin with an object"),
        (b"{}", 2, "it has no key 'rocprofiler-sdk-tool'"),
        (b'{"traceEvents": [1, 2]}', 23, "it has no key 'rocprofiler-sdk-tool'"),
        (WHOLE[:-1], len(WHOLE) - 1, "the text ends too early"),
        (KEY + b"[", len(KEY) + 1, "the text ends too early"),
        (KEY + b'[{"agents": [{}', len(KEY) + 15, "the text ends too early"),
        (KEY + b"[{} {}]}", len(KEY) + 4, "',' or ']' is missing"),
        (KEY + b"[{}]} x", len(KEY) + 6, "more text after the end of the document"),
        (KEY + b"[{metadata: 1}]}", len(KEY) + 2, "a key in double quotes is missing"),
        (KEY + b'[{"metadata" 1}]}', len(KEY) + 13, "':' is missing"),
        # The offset is in bytes: the letter before it has two.
        (KEY + '[{"metadata": {"node": "é" 1}}]}'.encode(), len(KEY) + 28, "delimiter"),
        (KEY + b'[{"pid": ' + b"9" * 5000 + b"}]}", len(KEY) + 9, "an integer has thousands of digits"),
        (KEY + b"[" * 200_000, None, "nested too deeply"),
        (KEY + b'[{"metadata": ' + b'{"a":' * 200_000, None, "nested too deeply"),
    ],
)
def test_text_that_is_no_document(text: bytes, byte: int | None, reason: str) -> None:
    with pytest.raises(UnreadableFile) as caught:
        read_processes(memoryview(text), "run/x_results.json")
    message = str(caught.value)
    found = re.fullmatch(
        r"run/x_results\.json: no JSON output of rocprofv3, at byte ([0-9]+): (.*)\. Copy the file again, "
        r"or profile again and let the profiler finish\.",
        message,
    )
    assert found is not None, message
    assert reason in found[2]
    if byte is not None:
        assert int(found[1]) == byte


@pytest.mark.parametrize("cut", range(len(KEY) + 1, len(WHOLE), 97))
def test_a_document_that_is_cut_anywhere_is_refused(cut: int) -> None:
    with pytest.raises(UnreadableFile):
        read_processes(WHOLE[:cut], "x")


@pytest.mark.parametrize("text", [KEY + b"[]}", KEY + b"[\n]\n}\n"])
def test_no_process(text: bytes) -> None:
    assert read_processes(text, "x") == []


@pytest.mark.parametrize("text", [KEY + b"[{}]}", KEY + b"{}}", b"\xef\xbb\xbf" + KEY + b"[{}]}"])
def test_a_process_without_sections(text: bytes) -> None:
    (found,) = read_processes(text, "x")
    assert len(found.reference("kernel_dispatch")) == len(found.reference("info_agent")) == 0
    assert (dict(found.attributes), problems(found)) == ({}, [])


def test_a_byte_order_mark_is_no_text() -> None:
    (found,) = read_processes(b"\xef\xbb\xbf" + WHOLE, "x")
    assert rows(found, "kernel_dispatch", "start") == [(10,)]


@pytest.mark.parametrize(
    ("sections", "counted"),
    [
        ({"agents": {"id": 1}}, [("not_a_list", "agents", 1)]),
        ({"agents": [None, 5, {"id": {"handle": 1}}]}, [("not_an_object", "agents", 2)]),
        ({"agents": [{"id": {"handle": 1}, "node_id": "x"}]}, [("not_an_integer", "agents.node_id", 1)]),
        ({"agents": [{"id": {"handle": 1}, "node_id": 2**70}]}, [("not_an_integer", "agents.node_id", 1)]),
        ({"metadata": [1]}, [("not_an_object", "metadata", 1)]),
        ({"metadata": {"pid": "x"}}, [("not_an_integer", "metadata.pid", 1)]),
        ({"strings": 7}, [("not_an_object", "strings", 1)]),
        ({"kernel_symbols": "none"}, [("not_a_list", "kernel_symbols", 1)]),
        ({"kernel_symbols": [1, "x", None]}, [("not_an_object", "kernel_symbols", 3)]),
        ({"buffers": [1]}, [("not_an_object", "buffer_records", 1)]),
        ({"buffers": {"hip_api": {"a": 1}}}, [("not_a_list", "buffer_records.hip_api", 1)]),
        ({"buffers": {"hip_api": None}}, []),
        ({"buffers": {"kernel_dispatch": [[], 1]}}, [("not_an_object", "buffer_records.kernel_dispatch", 2)]),
        ({"counters": [{"instances": 5}]}, [("not_a_list", "counters.instances", 1)]),
    ],
)
def test_values_of_the_wrong_type(sections: dict[str, Any], counted: list[tuple[str, str, int]]) -> None:
    assert problems(read(**sections)) == counted


def test_process_that_is_no_object() -> None:
    first, second = read_processes(document(None, 5), "x")
    assert (problems(first), problems(second)) == ([], [("not_an_object", "process", 1)])


def test_fields_of_the_wrong_type_are_counted_when_they_are_read() -> None:
    wrong: list[Any] = [
        "20",
        "soon",
        20.5,
        2**64 + 1,
        -(2**63) - 1,
        [1],
        {"handle": "x"},
        True,
        1e300,
        float("nan"),
    ]
    records = [dispatch(number, 10, 20) | {"end_timestamp": value} for number, value in enumerate(wrong)]
    found = read(buffers={"kernel_dispatch": [*records, dispatch(99, 10, 2**63)]})
    ends = found.reference("kernel_dispatch").integers("end").to_pylist()
    # The text is a number; the others are none that fits.
    assert ends == [20, *[None] * 10]
    assert problems(found) == [("not_an_integer", "buffer_records.kernel_dispatch.end", 10)]
    assert len(found.reference("kernel_dispatch")) == 11


def test_wrong_kinds_and_arguments() -> None:
    records = [
        call(HIP, 0, 1, 1, 2) | {"kind": "HIP"},
        call(HIP, 0, 2, 1, 2, args=7),
        call(HIP, 0, 3, 1, 2, args=[None, {"name": "a", "value": 1.5}, {"name": None, "value": None}]),
        call(HIP, 0, 4, 1, 2, args=None),
    ]
    found = read(buffers={"hip_api": records})
    assert rows(found, "region", "name_id") == [("hip_api operation 0",), *[("hipMalloc",)] * 3]
    third = rows(found, "region", "event_id")[2][0]
    assert rows(found, "arg", "event_id", "position", "name", "value") == [(third, 1, "a", 1.5)]
    assert problems(found) == [
        ("not_a_list", "buffer_records.hip_api.args", 1),
        ("not_an_object", "buffer_records.hip_api.args", 1),
        ("not_an_integer", "buffer_records.hip_api.kind", 1),
        ("unknown_operation", "buffer_records.hip_api", 1),
    ]


def test_numbers_past_63_bits() -> None:
    info = dispatch(1, 10, 20)["dispatch_info"]
    changed = info | {
        "queue_id": {"handle": 2**64 - 1},
        "agent_id": {"handle": 2**63},
        "dispatch_id": 2**63 + 7,
        "private_segment_size": 2**63,
    }
    found = read(
        buffers={"kernel_dispatch": [dispatch(1, 10, 20) | {"dispatch_info": changed}, dispatch(2, 30, 40)]}
    )
    columns = ("queue_id", "agent_id", "dispatch_id")
    assert rows(found, "kernel_dispatch", *columns) == [(-1, -(2**63), 7 - 2**63), (9, GPU, 2)]
    # A size is no set of bits.
    sizes = found.reference("kernel_dispatch").integers("private_segment_size")
    assert sizes.to_pylist() == [None, 16]
    assert problems(found) == [("not_an_integer", "buffer_records.kernel_dispatch.private_segment_size", 1)]


def test_addresses_that_are_none() -> None:
    texts = ["0x10", "32", "nowhere", "0x1" + "0" * 16, None]
    records = [call(6, 1, n, 1, 2, address=text) for n, text in enumerate(texts, 1)]
    found = read(buffers={"memory_allocation": records})
    assert found.reference("memory_allocate").integers("address").to_pylist() == [16, 32, None, None, None]
    assert problems(found) == [("not_an_integer", "buffer_records.memory_allocation.address", 2)]


def test_counter_values_that_are_no_numbers() -> None:
    values = [1, 2.5, float("nan"), float("inf"), "7", None, "many"]
    elements = [{"counter_id": {"handle": 501}, "value": value} for value in values]
    record = {
        "dispatch_data": {"start_timestamp": 5, "end_timestamp": 6, "dispatch_info": {"dispatch_id": 1}}
    }
    found = read(callbacks={"counter_collection": [record | {"records": elements}]})
    assert found.reference("pmc_event").numbers("value").to_pylist() == [
        1.0,
        2.5,
        None,
        None,
        7.0,
        None,
        None,
    ]
    assert problems(found) == [("not_a_number", "callback_records.counter_collection.records.value", 3)]


def test_counters_without_a_dispatch() -> None:
    elements = {"records": [{"counter_id": {"handle": 501}, "value": 1}]}
    found = read(callbacks={"counter_collection": [elements, {"records": None}, {"thread_id": 3}]})
    # Nothing says when it was, which is counted where the rows are loaded.
    assert rows(found, "kernel_dispatch", "dispatch_id", "start") == [(None, None)]
    assert rows(found, "pmc_event", "event_id", "value") == [
        (rows(found, "kernel_dispatch", "event_id")[0][0], 1)
    ]


def test_text_that_is_not_utf8() -> None:
    symbol = b'{"kernel_id": 5, "code_object_id": 1, "formatted_kernel_name": "a\xff\xe9b"}'
    second = b'{"kernel_id": 6, "code_object_id": 1, "formatted_kernel_name": "\\ud800x"}'
    third = '{"kernel_id": 7, "code_object_id": 1, "formatted_kernel_name": "é\\ud83d\\ude00"}'.encode()
    agent = b'[{"id": {"handle": 1}, "name": "gf\xffx"}]'
    text = (
        KEY
        + b'[{"kernel_symbols": ['
        + b",".join([symbol, second, third])
        + b'], "agents": '
        + agent
        + b"}]}"
    )
    found = read(text=text)
    assert rows(found, "info_kernel_symbol", "display_name") == [("a\\xff\\xe9b",), ("\\ud800x",), ("é😀",)]
    assert rows(found, "info_agent", "name") == [("gf\\xffx",)]
    json.loads(rows(found, "info_agent", "extdata")[0][0].encode())
    assert problems(found) == [("text_not_utf8", "kernel_symbols", 2)]


def test_deep_values_become_text() -> None:
    deep: Any = 1
    for _ in range(400):
        deep = {"a": deep}
    found = read(buffers={"kernel_dispatch": [dispatch(1, 10, 20, deep=deep)]})
    (name,) = (
        name for name in found.reference("kernel_dispatch").table.column_names if name.startswith("deep")
    )
    ((text,),) = rows(found, "kernel_dispatch", name)
    value = json.loads(text)
    for key in reversed(name.split(".")[1:]):
        value = {key: value}
    assert value == deep


def test_fields_of_every_record_are_bounded() -> None:
    records = [{f"field{number}": number} for number in range(5000)]
    found = read(buffers={"kernel_dispatch": records})
    table = found.reference("kernel_dispatch").table
    assert table.num_rows == 5000
    assert table.num_columns < 250
    kept = sum(
        len(column.drop_null())
        for name, column in zip(table.column_names, table.columns, strict=True)
        if name.startswith("field")
    )
    assert problems(found) == [("too_many_fields", "buffer_records.kernel_dispatch", 5000 - kept)]


SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=12)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
)


@example(value=0.0, window=1, ascii_only=True, indent=None)
@example(value=1e20, window=1, ascii_only=True, indent=None)
@given(value=VALUES, window=st.integers(1, 40), ascii_only=st.booleans(), indent=st.sampled_from([None, 1]))
def test_windows_do_not_matter(value: Any, window: int, ascii_only: bool, indent: int | None) -> None:
    text = json.dumps({"rows": [value, value], "last": value}, ensure_ascii=ascii_only, indent=indent)
    cursor = JsonCursor(text.encode("utf-8", "surrogatepass"), "x", window)
    found: dict[str, Any] = {}
    for key in cursor.members():
        found[key] = [cursor.value() for _ in cursor.elements()] if key == "rows" else cursor.value()
    cursor.finish()
    again = json.loads(text.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape"))
    assert found == again
    assert cursor.characters_read == len(
        text.encode("utf-8", "surrogatepass").decode("utf-8", "surrogateescape")
    )


def fields(record: Any, prefix: str = "") -> dict[str, Any]:
    """The fields of a record by dotted names, as far as they are not null."""
    found: dict[str, Any] = {}
    for key, value in record.items():
        if isinstance(value, dict):
            found |= fields(value, f"{prefix}{key}.")
        elif value is not None:
            found[f"{prefix}{key}"] = value
    return found


RECORDS = st.lists(
    st.dictionaries(
        st.sampled_from("abc"),
        st.none()
        | st.integers(-(2**66), 2**66)
        | st.floats(allow_nan=False)
        | st.sampled_from(["x", "7"])
        | st.dictionaries(st.sampled_from("de"), st.integers(-3, 3), max_size=2),
        max_size=3,
    ),
    max_size=6,
)


@given(chunks=st.lists(RECORDS, max_size=4))
def test_no_value_is_lost_in_columns(chunks: list[list[Any]]) -> None:
    counter = ProblemCounter()
    whole = RecordColumns("x", counter)
    parts = []
    for chunk in chunks:
        whole.add(chunk)
        part = RecordColumns("x", counter)
        part.add(chunk)
        parts.append(part.table())
    records = [record for chunk in chunks for record in chunk]
    for table in (whole.table(), concatenated(parts)):
        assert table.num_rows == len(records)
        for row, record in zip(table.to_pylist(), records, strict=True):
            # Where the types of a column differ, its values are the same as text.
            texts = {name: value for name, value in row.items() if value is not None}
            assert texts.keys() == fields(record).keys()
            for name, value in fields(record).items():
                assert texts[name] == value or float(texts[name]) == float(value), (name, value)


def paths(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, part in parts for found in paths(part, (*path, key)))]


PATHS = [path for path in paths(everything()) if path]
ODD = [
    *(None, True, 0, -1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63), -(2**70), 0.5, 1e300, float("nan")),
    *("", "x", "0x10", "12", "é", "\ud800", [], {}, [1], [[]], [{}], {"handle": 5}, {"handle": None}),
    *({"value": "x"}, {"a": {"b": {"c": 1}}}, {"": 1}, {".owner": 3}, {"\udcff": 2}),
]
INTEGERS = (
    *("id", "tid", "event_id", "agent_id", "queue_id", "stream_id", "kernel_id", "start", "end", "timestamp"),
    *("size", "address", "event.stack_id", "event.parent_stack_id", "event.correlation_id", "name_id"),
    *("dispatch_id", "exec", "pmc_id", "instance", "code_object_id", "position", "sample_id", "type_index"),
)


@settings(max_examples=100)
@given(changes=st.lists(st.tuples(st.sampled_from(PATHS), st.sampled_from(ODD)), min_size=1, max_size=3))
def test_any_value_anywhere_is_read_or_counted(changes: list[tuple[tuple[Any, ...], Any]]) -> None:
    # Of its own, so that a change neither reaches another document nor puts a value into itself.
    whole = deepcopy(everything())
    for path, value in changes:
        at: Any = whole
        with contextlib.suppress(KeyError, IndexError, TypeError):
            for key in path[:-1]:
                at = at[key]
            at[path[-1]] = deepcopy(value)
    found = read(text=document(whole))
    for base in found._rows:
        for column in INTEGERS:
            found.reference(base).integers(column)
        found.reference(base).numbers("value" if base == "pmc_event" else "no value")
        # Texts are UTF-8, or this raises.
        found.reference(base).table.to_pylist()
    said = [f"{each.place} {each.detail}" for each in found.problems.problems()]
    "".join([*said, *(f"{name} {value}" for name, value in found.attributes.items())]).encode()


def test_types_of_columns() -> None:
    def column(*values: Any) -> tuple[pa.DataType, list[Any]]:
        columns = RecordColumns("x", ProblemCounter())
        for value in values:
            columns.add([{"a": value}])
        found = columns.table().column("a")
        return found.type, found.to_pylist()

    assert column(1, None, True) == (pa.int64(), [1, None, 1])
    assert column(2**64 - 1, 1) == (pa.uint64(), [2**64 - 1, 1])
    assert column(2**64 - 1, -1) == (pa.large_string(), [str(2**64 - 1), "-1"])
    assert column(1, 0.5) == (pa.float64(), [1.0, 0.5])
    # Past 53 bits a double would round.
    assert column(2**53 + 1, 0.5) == (pa.large_string(), [str(2**53 + 1), "0.5"])
    assert column("x", 1) == (pa.large_string(), ["x", "1"])
    assert column([1], {"b": 1}) == (pa.large_string(), ["[1]", None])


def test_problems_of_other_keys_are_with_the_first_process() -> None:
    text = b'{"other": [1, 2], "rocprofiler-sdk-tool": [{}, {}], "version": 3}'
    first, second = read_processes(text, "x")
    assert problems(first) == [("unsupported_section", "other", 2), ("unsupported_section", "version", 1)]
    assert problems(second) == []


def test_messages_that_are_no_texts() -> None:
    strings = {"buffer_records": KINDS, "marker_api": [{"key": 1, "value": 5}, {"key": "x"}, 7, {"key": 2}]}
    found = read(strings=strings, buffers={"marker_api": [call(2, 1, 1, 1, 2), call(2, 1, 2, 1, 2)]})
    assert rows(found, "region", "event.extdata") == [('{"message": "5"}',), (None,)]
    assert problems(found) == [
        ("not_an_object", "strings.marker_api", 1),
        ("not_an_integer", "strings.marker_api.key", 1),
        ("unused_message", "strings.marker_api", 1),
    ]
