"""The formats of `tracewh sql`, read back by other programs and compared with what DuckDB holds."""

import csv
import io
import json
from decimal import Decimal
from pathlib import Path

import duckdb
import pyarrow.parquet
import pytest
from click.testing import CliRunner, Result

from tracewh.cli import main
from tracewh.cli.json_text import json_text

from .small_warehouse import make_small_warehouse

HOSTILE_TEXT = """
    SELECT * FROM (VALUES
        (1, 'plain'), (2, 'comma, "quote"'), (3, E'line\\nbreak'), (4, E'carriage\\rreturn'), (5, ' edge '),
        (6, ''), (7, NULL), (8, 'a|b <c> `d` *e* __f__'), (9, 'größer 日本'), (10, E'\\x1b[31m')
    ) AS t(number, text) ORDER BY number
"""
NUMBERS = """
    SELECT 9223372036854775807 AS int64, -9223372036854775808 AS least,
           170141183460469231731687303715884105727::HUGEINT AS int128, 1234567.10::DECIMAL(12, 2) AS decimals,
           0.1 + 0.2::DOUBLE AS fraction, 1e300::DOUBLE AS large, 5e-324::DOUBLE AS tiny, true AS truth,
           NULL::BIGINT AS nothing
"""


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_small_warehouse(tmp_path_factory.mktemp("warehouse") / "small.duckdb")


def invoke(warehouse: Path, query: str, *options: str) -> Result:
    return CliRunner().invoke(main, ["sql", "-w", str(warehouse), query, *options])


def output(warehouse: Path, query: str, format_name: str) -> str:
    result = invoke(warehouse, query, "--format", format_name)
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    return result.stdout


def rows_of(query: str) -> list[tuple[object, ...]]:
    with duckdb.connect() as connection:
        return connection.execute(query).fetchall()


def test_csv_survives_hostile_text(warehouse: Path) -> None:
    text = output(warehouse, HOSTILE_TEXT, "csv")
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    assert header == ["number", "text"]
    assert rows == [[str(number), text or ""] for number, text in rows_of(HOSTILE_TEXT)]
    # The csv module reads NULL and the empty string alike; the file does not write them alike.
    assert '\n6,""\n7,\n' in text


def test_csv_read_by_duckdb_is_the_same_table(warehouse: Path, tmp_path: Path) -> None:
    target = tmp_path / "hostile.csv"
    assert invoke(warehouse, HOSTILE_TEXT, "-o", str(target)).exit_code == 0
    read = rows_of(
        f"SELECT * FROM read_csv('{target}', header = true, quote = '\"', escape = '\"', "
        "new_line = '\\n', allow_quoted_nulls = false) ORDER BY number"
    )
    assert read == rows_of(HOSTILE_TEXT)


def test_csv_header_is_quoted_and_there_without_rows(warehouse: Path) -> None:
    assert (
        output(warehouse, 'SELECT 1 AS "a,b", 2 AS "say ""x""" WHERE false', "csv") == '"a,b","say ""x"""\n'
    )


def test_json_keeps_every_digit(warehouse: Path) -> None:
    (record,) = json.loads(output(warehouse, NUMBERS, "json"), parse_float=Decimal)
    assert record["int64"] == 2**63 - 1
    assert record["least"] == -(2**63)
    assert record["int128"] == 2**127 - 1
    assert record["decimals"] == Decimal("1234567.10")
    assert float(record["fraction"]) == 0.1 + 0.2
    assert float(record["large"]) == 1e300
    assert float(record["tiny"]) == 5e-324
    assert record["truth"] is True
    assert record["nothing"] is None


def test_json_has_a_form_for_every_type(warehouse: Path) -> None:
    query = """
        SELECT 'nan'::DOUBLE AS nan, '-inf'::DOUBLE AS inf, '\\xAA\\x00'::BLOB AS bytes, [1, NULL, 3] AS list,
               {'a': 1, 'b': {'c': 'x'}} AS nested, MAP {'k': 1.50::DECIMAL(4, 2)} AS map,
               MAP {7: 'x'} AS by_int,
               DATE '2025-11-30' AS day, TIMESTAMP_NS '2025-11-30 01:02:03.123456789' AS nanos,
               [DATE '2025-11-30'] AS days, 'b'::ENUM('a', 'b') AS choice,
               '00000000-0000-0000-0000-00000000002a'::UUID AS uuid, [1, 2]::INTEGER[2] AS pair
    """
    (record,) = json.loads(output(warehouse, query, "json"))
    assert record == {
        "nan": None,
        "inf": None,
        "bytes": "aa00",
        "list": [1, None, 3],
        "nested": {"a": 1, "b": {"c": "x"}},
        "map": {"k": 1.5},
        "by_int": {"7": "x"},
        "day": "2025-11-30",
        "nanos": "2025-11-30 01:02:03.123456789",
        "days": ["2025-11-30"],
        "choice": "b",
        "uuid": "00000000-0000-0000-0000-00000000002a",
        "pair": [1, 2],
    }


def test_json_text_is_unchanged(warehouse: Path) -> None:
    records = json.loads(output(warehouse, HOSTILE_TEXT, "json"))
    assert [(record["number"], record["text"]) for record in records] == rows_of(HOSTILE_TEXT)


def test_ndjson_is_one_object_per_line(warehouse: Path) -> None:
    lines = output(warehouse, HOSTILE_TEXT, "ndjson").splitlines()
    assert [(record["number"], record["text"]) for record in map(json.loads, lines)] == rows_of(HOSTILE_TEXT)


def test_json_without_rows(warehouse: Path) -> None:
    assert json.loads(output(warehouse, "SELECT 1 AS a WHERE false", "json")) == []
    assert output(warehouse, "SELECT 1 AS a WHERE false", "ndjson") == ""


def test_repeated_column_names_stay_apart(warehouse: Path, tmp_path: Path) -> None:
    query = "SELECT 1 AS a, 2 AS a, 3 AS a_1"
    assert json.loads(output(warehouse, query, "json")) == [{"a": 1, "a_1": 2, "a_1_1": 3}]
    target = tmp_path / "repeated.parquet"
    assert invoke(warehouse, query, "-o", str(target)).exit_code == 0
    assert pyarrow.parquet.read_table(target).to_pylist() == [{"a": 1, "a_1": 2, "a_1_1": 3}]


@pytest.mark.parametrize("format_name", ["json", "ndjson", "parquet"])
def test_a_type_without_a_form_is_refused_with_a_way_out(warehouse: Path, format_name: str) -> None:
    result = invoke(warehouse, "SELECT 1 AS a, INTERVAL 1 MONTH AS gap", "--format", format_name)
    assert result.exit_code == 1
    assert "Column gap has type INTERVAL" in result.stderr
    assert "cast it to VARCHAR" in result.stderr
    assert result.stdout == ""


def test_parquet_file_and_pipe_hold_the_table(warehouse: Path, tmp_path: Path) -> None:
    query = "SELECT i, i / 3 AS third, 'n' || i AS name FROM range(300000) AS t(i) ORDER BY i"
    target = tmp_path / "out.parquet"
    result = invoke(warehouse, query, "-o", str(target))
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == f"Wrote 300,000 rows to {target}.\n"
    table = pyarrow.parquet.read_table(target)
    assert list(zip(*(column.to_pylist() for column in table.columns), strict=True)) == rows_of(query)
    piped = invoke(warehouse, query, "--format", "parquet").stdout_bytes
    assert pyarrow.parquet.read_table(io.BytesIO(piped)).equals(table)


def test_parquet_without_rows_has_its_columns(warehouse: Path, tmp_path: Path) -> None:
    target = tmp_path / "empty.parquet"
    assert invoke(warehouse, "SELECT 1::BIGINT AS a, 'x' AS b WHERE false", "-o", str(target)).exit_code == 0
    table = pyarrow.parquet.read_table(target)
    assert (table.column_names, table.num_rows) == (["a", "b"], 0)


def test_markdown_is_a_table_whatever_the_text(warehouse: Path) -> None:
    lines = output(warehouse, HOSTILE_TEXT, "markdown").splitlines()
    assert lines[:3] == ["| number | text |", "| ---: | --- |", "| 1 | plain |"]
    assert lines[4] == "| 3 | line<br>break |"
    assert lines[8] == "| 7 | NULL |"
    assert lines[9] == r"| 8 | a\|b \<c\> \`d\` \*e\* \_\_f\_\_ |"
    assert lines[11] == r"| 10 | \\x1b\[31m |"
    assert len(lines) == 12


def test_markdown_leaves_names_readable(warehouse: Path) -> None:
    assert (
        output(warehouse, "SELECT 'all_reduce_1' AS op_name", "markdown").splitlines()[2]
        == "| all_reduce_1 |"
    )


def test_table_shows_values_as_duckdb_does(warehouse: Path) -> None:
    query = (
        "SELECT INTERVAL 1 MONTH AS gap, 'infinity'::DATE AS day, 0.1::FLOAT AS f, [1, NULL] AS l, NULL AS n"
    )
    assert output(warehouse, query, "table").splitlines()[2].split("  ") == [
        "1 month",
        "infinity",
        "0.1",
        "[1, NULL]",
        "NULL",
    ]


def test_table_is_whole_in_a_pipe_and_in_order(warehouse: Path) -> None:
    query = "SELECT i AS n, repeat('x', 300) AS long FROM range(12000) AS t(i) ORDER BY i DESC"
    lines = output(warehouse, query, "table").splitlines()
    assert len(lines) == 12002
    assert lines[2] == "11999  " + "x" * 300
    assert lines[-1] == "    0  " + "x" * 300


@pytest.mark.parametrize("format_name", ["table", "csv", "json", "ndjson", "markdown", "parquet"])
def test_a_query_that_fails_writes_nothing(warehouse: Path, tmp_path: Path, format_name: str) -> None:
    target = tmp_path / "out"
    target.write_text("kept")
    late = (
        "SELECT CAST(CASE WHEN i = 250000 THEN 'z' ELSE '1' END AS INTEGER) AS n FROM range(300000) AS t(i)"
    )
    result = invoke(warehouse, late, "-o", str(target), "--format", format_name)
    assert result.exit_code == 1
    assert result.stderr.startswith("Error: Conversion Error: Could not convert string 'z'")
    assert result.stderr.count("\n") == 1
    assert target.read_text() == "kept"
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    at_once = invoke(warehouse, "SELECT CAST('z' AS INTEGER)", "--format", format_name)
    assert (at_once.exit_code, at_once.stdout) == (1, "")


def test_output_follows_a_link_and_writes_into_a_device(warehouse: Path, tmp_path: Path) -> None:
    target, link = tmp_path / "target.csv", tmp_path / "link.csv"
    link.symlink_to(target)
    assert invoke(warehouse, "SELECT 1 AS a", "-o", str(link)).exit_code == 0
    assert link.is_symlink()
    assert target.read_text() == "a\n1\n"
    assert invoke(warehouse, "SELECT 1 AS a", "-o", "/dev/null").exit_code == 0
    assert Path("/dev/null").is_char_device()


@pytest.mark.parametrize(
    ("suffix", "start"),
    [(".csv", "a\n"), (".json", "[\n"), (".jsonl", '{"a"'), (".md", "| a |"), (".txt", "a\n-")],
)
def test_the_suffix_chooses_the_format(warehouse: Path, tmp_path: Path, suffix: str, start: str) -> None:
    target = tmp_path / f"out{suffix}"
    assert invoke(warehouse, "SELECT 1 AS a", "-o", str(target)).exit_code == 0
    assert target.read_text().startswith(start)


def test_json_text_of_values_json_lacks() -> None:
    assert json_text(float("nan")) == "null"
    assert json_text(Decimal("1E+2")) == "100"
    assert json_text({1.5: b"\x00"}) == '{"1.5": "00"}'
    assert json.loads(json_text('"\x00\u2028')) == '"\x00\u2028'
