"""Arguments of calls: numbers as numbers, in a way that gives their text back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tracewh.ingest import rocm_arguments
from tracewh.ingest.rocm_arguments import number_in
from tracewh.ingest.sqlite_records import HEXADECIMAL, INTEGER, OTHER_TEXT

from .rocpd_files import read_one, rows, stats, write

VALUES = [
    *("0", "1", "-1", "123456789012345678", "-999999999999999999"),
    *("0x0", "0x7f0000000000", "0xffffffffffffffff", "0x8000000000000000"),
    *(
        "",
        "-0",
        "007",
        "+5",
        "1.5",
        "1234567890123456789",
        "0x00",
        "0xFF",
        "0x10000000000000000",
        "nullptr",
        "é",
    ),
]


@pytest.mark.parametrize("text", VALUES)
def test_a_number_gives_its_text_back(text: str) -> None:
    number, kind = number_in(text)
    assert 0 <= number < 2**64
    signed = number - 2**64 if number >= 2**63 else number
    spelled = {INTEGER: str(signed), HEXADECIMAL: hex(number), OTHER_TEXT: text}
    assert spelled[kind] == text
    is_number = text in VALUES[:9]
    assert (kind != OTHER_TEXT) == is_number


@pytest.mark.parametrize("from_rows", [1, 10**9])
def test_arguments_of_every_form(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, from_rows: int) -> None:
    """The same by the compiled loop and by Python."""

    def change(writer: Any) -> None:
        writer.connection.execute(f'DELETE FROM "{writer.run.table("arg")}"')
        event = writer.event("HIP_RUNTIME_API_EXT", 900)
        place = {"start": writer.run.clock_start_ns, "end": writer.run.clock_start_ns + 5}
        writer.insert("region", **writer.place(), **place, name_id=writer.string("hipTest"), event_id=event)
        for position, text in enumerate(VALUES):
            writer.insert(
                "arg", event_id=event, position=position, type=f"T{position}", name=f"a{position}", value=text
            )
        writer.insert("arg", event_id=event, position=99, type="void*", name="", value=None)

    monkeypatch.setattr(rocm_arguments, "_COMPILED_FROM_ROWS", from_rows)
    capture = read_one(write(tmp_path / "t.db", change, enforce=True, steps=1))
    (call,) = [row for row in rows(capture, "host_events") if row["name"] == "hipTest"]
    found = {
        row["stat_name"]: (row["value_type"], row["int_value"], row["value_name"])
        for row in rows(capture, "event_stats")
        if (row["owner"], row["owner_id"]) == ("host_event", call["host_event_id"])
    }
    assert found == {
        "a0": ("int64", 0, None),
        "a1": ("int64", 1, None),
        "a2": ("int64", -1, None),
        "a3": ("int64", 123456789012345678, None),
        "a4": ("int64", -999999999999999999, None),
        "a5": ("hex", 0, None),
        "a6": ("hex", 0x7F00_0000_0000, None),
        "a7": ("hex", -1, None),
        "a8": ("hex", -(2**63), None),
        **{f"a{position}": ("string", None, VALUES[position]) for position in range(9, len(VALUES))},
        "": ("string", None, ""),
    }
    # The C type of each argument of each function, at its position.
    for position in range(len(VALUES)):
        assert stats(capture, "capture", position)[f"hipTest(a{position})"] == f"T{position}"
    assert stats(capture, "capture", 99)["hipTest()"] == "void*"
    assert capture.problems == []


def test_arguments_of_other_rows_than_calls(tmp_path: Path) -> None:
    """Of a dispatch, of an allocation, and of nothing that was loaded."""

    def change(writer: Any) -> None:
        execute = writer.connection.execute
        execute(f'DELETE FROM "{writer.run.table("arg")}"')
        for number, base in enumerate(("kernel_dispatch", "memory_allocate", "memory_copy")):
            table = writer.run.table(base)
            event = execute(f'SELECT event_id FROM "{table}" ORDER BY id LIMIT 1').fetchone()[0]
            for repeat in range(2):
                row = {
                    "position": repeat,
                    "type": "int",
                    "name": f"n{repeat}",
                    "value": str(10 * number + repeat),
                }
                writer.insert("arg", event_id=event, **row, extdata='{"unit": "us"}')
        execute(f'UPDATE "{writer.run.table("memory_copy")}" SET start = 0 WHERE id = 1')

    capture = read_one(write(tmp_path / "t.db", change, enforce=True, steps=1))
    own = {
        name: stats(capture, *owner)
        for name, owner in {"dispatch": ("device_event", 0), "allocation": ("memory_allocation", 0)}.items()
    }
    assert {name: own["dispatch"][name] for name in ("n0", "n1", "unit")} == {"n0": 0, "n1": 1, "unit": "us"}
    assert own["allocation"] == {"n0": 10, "n1": 11, "unit": "us"}
    found = {(item.problem, item.place): item.occurrences for item in capture.problems}
    assert found[("orphan_argument", "rocpd_arg")] == 2
