"""The runner of the .test files itself: it must fail wherever a record and the database disagree."""

from pathlib import Path

import duckdb
import pytest

from .sqllogic import SqlLogicFailure, run_file

HEADER = "# name: x.test\n# description: x\n# group: [x]\n\n"


def run(folder: Path, records: str) -> None:
    path = folder / "x.test"
    path.write_text(HEADER + records, encoding="utf-8")
    with duckdb.connect() as connection:
        run_file(path, connection)


PASSING = {
    "every type": "query IRTB\nSELECT 1, 0.5e0, 'x', TRUE\n----\n1 0.5 x true\n",
    "null and empty string": "query TTB\nSELECT '', NULL, NULL\n----\n(empty) NULL NULL\n",
    "blanks within tab-separated values": "query TI\nSELECT 'a b', 1\n----\na b\t1\n",
    "blanks in a single column": "query T\nSELECT 'a b c'\n----\na b c\n",
    "no rows": "query I\nSELECT 1 WHERE FALSE\n----\n",
    "double within tolerance": "query R\nSELECT 1e0 / 3e0\n----\n0.33333333330\n",
    "large integer is exact": "query I\nSELECT 9007199254740993\n----\n9007199254740993\n",
    "rowsort": "query I rowsort\nSELECT * FROM (VALUES (2), (NULL), (1)) t\n----\nNULL\n1\n2\n",
    "statements build on each other": (
        "statement ok\nCREATE TABLE t (a BIGINT)\n\nstatement ok\nINSERT INTO t\nVALUES (7)\n\n"
        "# a comment\nquery I nosort\nSELECT a FROM t\n----\n7\n"
    ),
    "error": "statement error\nSELECT b FROM nowhere\n",
    "error with its message": "statement error\nSELECT b FROM nowhere\n----\nnowhere does not [a-z]+\n",
    "error while rows are fetched": "statement error\nSELECT error('late') FROM range(10)\n----\nlate\n",
}

FAILING = {
    "wrong value": ("query I\nSELECT 1\n----\n2\n", r"x\.test:5: wrong rows"),
    "both rows are shown": (
        "query IT\nSELECT 1, 'a'\n----\n1 b\n",
        r"expected:\n\(1, 'b'\)\ngot:\n\(1, 'a'\)",
    ),
    "missing row": ("query I\nSELECT 1\n----\n1\n1\n", "wrong rows"),
    "extra row": ("query I\nSELECT * FROM (VALUES (1), (1)) t\n----\n1\n", "wrong rows"),
    "rows where none are expected": ("query I\nSELECT 1\n----\n", "wrong rows"),
    "wrong order": ("query I\nSELECT * FROM (VALUES (2), (1)) t\n----\n1\n2\n", "wrong rows"),
    "double outside tolerance": ("query R\nSELECT 1e0\n----\n1.00000001\n", "wrong rows"),
    "value for null": ("query I\nSELECT 0\n----\nNULL\n", "wrong rows"),
    "null for empty string": ("query T\nSELECT NULL::VARCHAR\n----\n(empty)\n", "wrong rows"),
    "text for integer": ("query I\nSELECT '1'\n----\n1\n", "wrong rows"),
    "integer for double": ("query R\nSELECT 1\n----\n1\n", "wrong rows"),
    "decimal for double": ("query R\nSELECT 0.5\n----\n0.5\n", "wrong rows"),
    "integer for boolean": ("query B\nSELECT 1\n----\ntrue\n", "wrong rows"),
    "column count": ("query II\nSELECT 1\n----\n1 1\n", r"1 columns, but 'II' says 2"),
    "expected row too short": ("query II\nSELECT 1, 2\n----\n1\n", "expected row has 1 values"),
    "expected value of another type": ("query I\nSELECT 1\n----\nx\n", "a value that is not of 'I'"),
    "query fails": ("query I\nSELECT b FROM nowhere\n----\n1\n", "unexpected error"),
    "statement fails": ("statement ok\nSELECT b FROM nowhere\n", "unexpected error"),
    "statement fails late": ("statement ok\nSELECT error('late') FROM range(10)\n", "unexpected error"),
    "unexpected success": ("statement error\nSELECT 1\n", "succeeded, but must fail"),
    "other message": (
        "statement error\nSELECT b FROM nowhere\n----\nsomewhere\n",
        "does not match 'somewhere'",
    ),
    "unknown directive": ("require parquet\n\nquery I\nSELECT 1\n----\n1\n", r"x\.test:5: malformed record"),
    "unknown type": ("query X\nSELECT 1\n----\n1\n", "malformed record"),
    "unknown sort mode": ("query I valuesort\nSELECT 1\n----\n1\n", "malformed record"),
    "query without rows": ("query I\nSELECT 1\n", "malformed record"),
    "no records": ("# nothing\n", "and then records"),
    "later record": ("statement ok\nSELECT 1\n\nquery I\nSELECT 1\n----\n2\n", r"x\.test:8: wrong rows"),
}


@pytest.mark.parametrize("records", PASSING.values(), ids=PASSING.keys())
def test_passes(tmp_path: Path, records: str) -> None:
    run(tmp_path, records)


@pytest.mark.parametrize(("records", "message"), FAILING.values(), ids=FAILING.keys())
def test_fails(tmp_path: Path, records: str, message: str) -> None:
    with pytest.raises(SqlLogicFailure, match=message):
        run(tmp_path, records)


def test_header_is_required(tmp_path: Path) -> None:
    path = tmp_path / "x.test"
    path.write_text("# name: x\n\nstatement ok\nSELECT 1\n", encoding="utf-8")
    with duckdb.connect() as connection, pytest.raises(SqlLogicFailure, match="# description:"):
        run_file(path, connection)
