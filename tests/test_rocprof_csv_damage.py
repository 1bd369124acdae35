"""CSVs that are damaged, loosely quoted or from another tool: what is read of them, and what is counted."""

from __future__ import annotations

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.rocm_rows import INTEGER, REAL, TEXT
from tracewh.ingest.rocprof_csv_tables import CsvTable, read_csv
from tracewh.ingest.rocprof_csv_values import bits_of, integer_of, nanoseconds_of

from .rocprof_csv_files import API_HEADER, KERNEL_HEADER, kernel, problems, read_one, rows, text_of

TYPES = {"name": TEXT, "count": INTEGER, "value": REAL, "textsize": INTEGER}
HEADER = b"Name,Count,Value\n"


def table_of(content: bytes, free_text: str | None = "name") -> tuple[CsvTable, dict[str, str]]:
    """The table, and by problem and place what was counted how often."""
    counter = ProblemCounter()
    table = read_csv("run/x.csv", content, TYPES.get, counter, free_text)
    found = {f"{p.problem} {p.place}": f"{p.occurrences}: {p.detail}" for p in counter.problems()}
    return table, found


def cells(table: CsvTable) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in table.table.to_pylist()]


GOOD = [("a", 1, 0.5), ("b", 2, 1.5)]


@pytest.mark.parametrize(
    "content",
    [
        b"Name,Count,Value\na,1,0.5\nb,2,1.5\n",
        b"Name,Count,Value\na,1,0.5\nb,2,1.5",
        b"Name,Count,Value\r\na,1,0.5\r\nb,2,1.5\r\n",
        b"\xef\xbb\xbfName,Count,Value\na,1,0.5\nb,2,1.5\n",
        b"\n\n name , COUNT, _Value_\n\na,1,0.5\n\n\nb,2,1.5\n\n",
        b'"Name","Count","Value"\n"a","1","0.5"\n"b",2,1.5\n',
        b"Name;Count;Value\na;1;0.5\nb;2;1.5\n",
        b"Name\tCount\tValue\na\t1\t0.5\nb\t2\t1.5\n",
        # What pandas makes of integers in a column that has gaps.
        b"Name,Count,Value\na,1.0,0.5\nb,2.0,1.5\n",
        b"Name,Count,Value\na, 1 ,5e-1\nb,2,1.50\n",
    ],
)
def test_ways_to_write_one_table(content: bytes) -> None:
    table, found = table_of(content)
    assert (cells(table), found) == (GOOD, {})


@pytest.mark.parametrize(
    ("body", "expected", "counted"),
    [
        (b"", [], {}),
        (b"\n\n", [], {}),
        (
            b'a,1,0.5\n"b",2',
            [("a", 1, 0.5)],
            {"invalid_csv_row x.csv": "1: line 3: row rejected: not 3 cells"},
        ),
        (b'a,1,0.5\n"b', [("a", 1, 0.5)], {"invalid_csv_row x.csv": "1: line 3: row rejected: not 3 cells"}),
        (
            b"a,1\na,1,0.5\na,1,2,3\nb,2,1.5\n",
            GOOD,
            {"invalid_csv_row x.csv": "2: line 2: row rejected: not 3 cells"},
        ),
        # A quote that is never closed costs its own line only.
        (
            b'a,1,0.5\n"lost,5,5\nb,2,1.5\n',
            GOOD,
            {"invalid_csv_row x.csv": "1: line 3: row rejected: not 3 cells"},
        ),
        (b",,\n", [(None, None, None)], {}),
        (
            b"a,many,0.5\nb,2,1.5\n",
            [("a", None, 0.5), GOOD[1]],
            {"not_an_integer x.csv: Count": "1: stored as null: 'many'"},
        ),
        (
            b"a,1,0.5\nb,9223372036854775808,nan\nb,-9223372036854775808,inf\nb,1.5,x\n",
            [GOOD[0], ("b", None, None), ("b", -(2**63), None), ("b", None, None)],
            {
                "not_an_integer x.csv: Count": "2: stored as null: '9223372036854775808'",
                "not_a_number x.csv: Value": "3: stored as null: 'nan'",
            },
        ),
        (
            b"a,1,\na,1,nan\nb,2,1.5\n",
            [("a", 1, None), ("a", 1, None), GOOD[1]],
            {"not_a_number x.csv: Value": "1: stored as null: 'nan'"},
        ),
        (
            b"caf\xe9,1,0.5\ncaf\xe9,1,0.5\n",
            [("caf\\xe9", 1, 0.5)] * 2,
            {"invalid_utf8 x.csv: Name": "1: bytes kept as escapes: 'caf\\\\xe9'"},
        ),
        (b"a\x00b,1,0.5\n", [("a\x00b", 1, 0.5)], {}),
        (
            b"a,1,0.5\n\x00\x00\x00\x00\x00",
            [("a", 1, 0.5)],
            {"invalid_csv_row x.csv": "1: line 3: row rejected: not 3 cells"},
        ),
        (b'"two\nlines, and ""quotes""",1,0.5\n', [('two\nlines, and "quotes"', 1, 0.5)], {}),
        # As rocprofv3 writes texts.
        (
            b'"say "hi", you",1,0.5\nb,2,1.5\n"{"a": [1]}",3,0\n',
            [('say "hi", you', 1, 0.5), GOOD[1], ('{"a": [1]}', 3, 0.0)],
            {"repaired_csv_row x.csv": "2: line 2: quotes inside a text are not doubled"},
        ),
        (
            b'"two\n"lines"",1,0.5\n',
            [('two\n"lines"', 1, 0.5)],
            {"repaired_csv_row x.csv": "1: line 2: quotes inside a text are not doubled"},
        ),
    ],
)
def test_damaged_rows(body: bytes, expected: list[tuple[object, ...]], counted: dict[str, str]) -> None:
    table, found = table_of(HEADER + body)
    assert (cells(table), found) == (expected, counted)


def test_no_text_is_mended_where_none_is_free() -> None:
    table, found = table_of(HEADER + b'"say "hi", you",1,0.5\nb,2,1.5\n', free_text=None)
    assert cells(table) == GOOD[1:]
    assert found == {"invalid_csv_row x.csv": "1: line 2: row rejected: not 3 cells"}


def test_columns_that_come_again_or_are_unknown() -> None:
    table, found = table_of(b"Name,Count,Name,Other\na,1,b,c\n")
    assert cells(table) == [("a", 1)]
    assert table.names == {"name": "Name", "count": "Count"}
    assert list(found) == ["duplicate_column x.csv", "unknown_column x.csv"]
    # A column that the file lacks is null in every row.
    assert table.numbers("value").to_pylist() == [None]
    assert table.texts("other").to_pylist() == [None]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", r"run/x.csv: line 1: the file is empty\. Copy it again, or profile again\."),
        (b"\n \n\n", r"run/x.csv: line 1: the file is empty\. "),
        ("Name\n".encode("utf-16"), r"run/x.csv: line 1: UTF-16 text\. Save the file as UTF-8"),
    ],
)
def test_what_is_no_table_is_refused(content: bytes, message: str) -> None:
    with pytest.raises(UnreadableFile, match=message):
        table_of(content)


def test_a_cell_of_ten_megabytes() -> None:
    long = "x" * 10_000_000
    table, found = table_of(HEADER + f"{long},1,0.5\nb,2,1.5\n".encode())
    assert (cells(table), found) == ([(long, 1, 0.5), GOOD[1]], {})
    table, found = table_of(HEADER + f'"{long}"y",1,0.5\nb,2,1.5\nb\n'.encode())
    assert cells(table) == [(f'{long}"y', 1, 0.5), GOOD[1]]
    assert [key.split()[0] for key in found] == ["invalid_csv_row", "repaired_csv_row"]


def test_texts_of_several_lines_are_whole_wherever_they_lie() -> None:
    names = [f"line {number}\n{'-' * 90}\nend" for number in range(50_000)]
    content = io.StringIO(newline="")
    csv.writer(content).writerows([["Name", "Count", "Value"], *([name, 1, 0.5] for name in names)])
    table, found = table_of(content.getvalue().encode())
    assert table.texts("name").to_pylist() == names
    assert found == {}


def test_a_quote_that_is_never_closed_costs_no_other_line() -> None:
    body = b"".join(b'"name %d",%d,0.5\n' % (number, number) for number in range(100_000))
    table, found = table_of(HEADER + b'"lost,1,2\n' + body + b'"lost,1,2\n')
    assert table.integers("count").to_pylist() == list(range(100_000))
    assert found == {"invalid_csv_row x.csv": "2: line 2: row rejected: not 3 cells"}


# Doubled quotes mean one quote to every reader of CSV.
_TEXTS = st.text(st.sampled_from("a \",;'x1{}"), max_size=12).filter(lambda text: '""' not in text)


@given(st.lists(_TEXTS, max_size=6))
def test_texts_in_the_profilers_own_way(texts: list[str]) -> None:
    lines = [f'"{text}",{number},0.5\n' for number, text in enumerate(texts)]
    table, _ = table_of(HEADER + "".join(lines).encode())
    expected = [(text or None, number, 0.5) for number, text in enumerate(texts)]
    assert cells(table) == expected


@given(st.lists(st.tuples(st.text(max_size=8), st.integers(-(2**63), 2**63 - 1)), max_size=6))
def test_texts_in_the_way_of_csv(wanted: list[tuple[str, int]]) -> None:
    content = io.StringIO(newline="")
    writer = csv.writer(content, lineterminator="\n")
    writer.writerow(["Name", "Count", "Value"])
    writer.writerows([text.replace("\r", ""), number, 1.5] for text, number in wanted)
    table, found = table_of(content.getvalue().encode("utf-8", "surrogatepass"))
    assert cells(table) == [(text.replace("\r", "") or None, number, 1.5) for text, number in wanted]
    assert found == {}


@given(st.binary(max_size=200))
def test_any_bytes_are_rows_or_counted(body: bytes) -> None:
    table, found = table_of(HEADER + body)
    rejected = sum(
        int(text.split(":")[0]) for key, text in found.items() if key.startswith("invalid_csv_row")
    )
    lines = [line for line in body.split(b"\n") if line.removesuffix(b"\r")]
    assert len(table) + rejected <= len(lines)
    if b'"' not in body and b"\r" not in body:
        assert len(table) + rejected == len(lines)


def test_problems_name_the_file_and_the_column() -> None:
    trace = text_of(KERNEL_HEADER, kernel(), kernel(dispatch=2), kernel(dispatch=3))
    content = trace.replace(b",2,10,", b",two,10,", 1) + b'"KERNEL_DISPATCH","Agent 4",1,2'
    process = read_one(_7_kernel_trace=content)
    assert [row["dispatch_id"] for row in rows(process, "kernel_dispatch")] == [1, None, 3]
    found = [(problem.problem, problem.place) for problem in process.problems.problems()]
    assert found == [
        ("invalid_csv_row", "7_kernel_trace.csv"),
        ("not_an_integer", "7_kernel_trace.csv: Dispatch_Id"),
    ]
    assert process.problems.problems()[0].detail.startswith("line 5:")


def test_values_of_another_type_are_null_and_counted() -> None:
    call = ["HIP_RUNTIME_API_EXT", "hipMalloc", 55, "main", 1, "early", 2**64]
    process = read_one(_hip_api_trace=text_of(API_HEADER, call))
    [found] = rows(process, "region")
    assert (found.get("tid"), found.get("start"), found.get("end")) == (None, None, None)
    assert problems(process) == {"not_an_integer": 3}


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("0", 0),
        ("65535", 65_535),
        ("18446744073709551615", -1),
        ("0xffffffffffffffff", -1),
        ("0x00007ffb26354000", 0x7FFB26354000),
        ("9223372036854775808", -(2**63)),
        ("18446744073709551616", None),
        ("99999999999999999999", None),
        ("-1", None),
        ("0x", None),
        ("ten", None),
    ],
)
def test_bits(text: str, bits: int | None) -> None:
    assert bits_of(text) == bits


@pytest.mark.parametrize(
    ("text", "integer", "nanoseconds"),
    [
        ("12", 12, 12),
        (" +12.000 ", 12, 12),
        ("1.5501518530296e+15", 1_550_151_853_029_600, 1_550_151_853_029_600),
        ("13386742234691895.5", None, 13_386_742_234_691_896),
        ("9223372036854775807", 2**63 - 1, None),
        ("9223372036854775808", None, None),
        ("-9223372036854775808", -(2**63), None),
        ("1e99", None, None),
        ("1e999999999", None, None),
        ("1e-3", None, None),
        ("0x10", None, None),
        ("nan", None, None),
        ("1_000", None, None),
        ("", None, None),
    ],
)
def test_numbers(text: str, integer: int | None, nanoseconds: int | None) -> None:
    assert (integer_of(text), nanoseconds_of(text)) == (integer, nanoseconds)


def test_a_carriage_return_parts_no_cell() -> None:
    table, found = table_of(HEADER + b'a,1\r,0.5\n"b\r","c"\r,1\n"c\rd",2,1.5\n')
    assert cells(table) == [("c\rd", 2, 1.5)]
    assert found == {"invalid_csv_row x.csv": "2: line 2: row rejected: not 3 cells"}
