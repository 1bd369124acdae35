"""Tables of SQLite files, read by SQLite and by the compiled loops: types, problems, ids, what is unusual."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tracewh.ingest import sqlite_file, sqlite_pages
from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.rocm_rows import Rows
from tracewh.ingest.sqlite_file import SqliteFile

from .sqlite_databases import Layout, create, exact, sqlite_rows, value

USUAL = Layout()
COLUMNS = {
    "id": "INTEGER PRIMARY KEY",
    "number": "INTEGER",
    "big": "BIGINT",
    "real": "REAL",
    "text": "TEXT",
    "blob": "BLOB",
    "json": "JSONB",
    "any": "",
}
TYPES = {
    "id": pa.int64(),
    "number": pa.int64(),
    "big": pa.int64(),
    "real": pa.float64(),
    "text": pa.large_string(),
    "blob": pa.large_binary(),
    "json": pa.large_string(),
    "any": pa.large_string(),
}
TABLE = ", ".join(f'"{name}" {declared}' for name, declared in COLUMNS.items())


@pytest.fixture(params=[False, True], ids=["sqlite", "loops"])
def compiled(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def database(path: Path, *statements: str, layout: Layout = USUAL) -> Path:
    connection = create(path, layout)
    for statement in statements:
        connection.execute(statement)
    connection.close()
    return path


def read(path: Path, compiled: bool, table: str = "t", skip: tuple[str, ...] = ()) -> tuple[Any, ...]:
    """A table with its problems."""
    counter = ProblemCounter()
    with SqliteFile(path, compiled) as file:
        found = file.read(table, "place", counter, skip).table
        assert file.count(table) == found.num_rows
    return found, {(item.problem, item.place): (item.detail, item.occurrences) for item in counter.problems()}


def found_rows(path: Path, compiled: bool, table: str = "t") -> list[tuple[Any, ...]]:
    rows = read(path, compiled, table)[0]
    return list(zip(*(column.to_pylist() for column in rows.columns), strict=True))


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What SQLite is asked."""
    asked: list[str] = []
    connect = sqlite3.connect

    def traced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_trace_callback(asked.append)
        return connection

    monkeypatch.setattr(sqlite_file.sqlite3, "connect", traced)
    return asked


def asked_for_rows(statements: list[str]) -> bool:
    return any("FROM" in statement and "sqlite_master" not in statement for statement in statements)


# --- types --------------------------------------------------------------------------------------------------


@dataclass
class Expected:
    """Values of a column as the rules of the reader have them, and how many it rejects."""

    values: list[Any]
    rejected: int


def expected_column(kind: pa.DataType, is_json: bool, stored: list[Any]) -> Expected:
    values: list[Any] = []
    rejected = 0
    for one in stored:
        kept: Any = None
        if one is None or (is_json and one == "{}"):
            values.append(None)
            continue
        if kind == pa.int64():
            is_whole = isinstance(one, float) and one == one // 1 and abs(one) < 2**63
            is_spelled = (
                isinstance(one, str) and one.removeprefix("-").isascii() and one.removeprefix("-").isdigit()
            )
            if isinstance(one, int) or is_whole or (is_spelled and abs(int(one)) < 2**63):
                kept = int(one)
        elif kind == pa.float64():
            if isinstance(one, int | float) and abs(one) < float("inf"):
                kept = float(one)
        elif kind == pa.large_string():
            kept = one.decode("utf-8", "backslashreplace") if isinstance(one, bytes) else str(one)
        else:
            kept = one if isinstance(one, bytes) else str(one).encode()
        rejected += kept is None
        values.append(kept)
    return Expected(values, rejected)


@pytest.mark.parametrize("seed", range(6))
def test_values_of_every_kind_in_columns_of_every_type(tmp_path: Path, compiled: bool, seed: int) -> None:
    random = Random(seed)
    layout = Layout(random.choice((512, 4096)), random.choice((0, 16)))
    connection = create(tmp_path / "t.db", layout)
    connection.execute(f"CREATE TABLE t ({TABLE})")
    connection.execute("BEGIN")
    for number in range(200):
        # Text that looks like a number becomes one in a column of numbers, and there are few other texts.
        others = [value(random, layout.page_bytes) for _ in range(len(COLUMNS) - 1)]
        connection.execute(f"INSERT INTO t VALUES (?{', ?' * len(others)})", (3 * number - 50, *others))
    connection.execute("COMMIT")
    connection.close()
    found, problems = read(tmp_path / "t.db", compiled)
    assert dict(zip(found.column_names, found.schema.types, strict=True)) == TYPES
    stored = sqlite_rows(tmp_path / "t.db", "SELECT * FROM t")
    for position, (name, kind) in enumerate(TYPES.items()):
        expected = expected_column(kind, name == "json", [row[position] for row in stored])
        assert list(map(repr, found[name].to_pylist())) == list(map(repr, expected.values)), name
        problem = {pa.int64(): "not_an_integer", pa.float64(): "not_a_number"}.get(kind, "")
        _, occurrences = problems.pop((problem, f"place.{name}"), ("", 0))
        assert occurrences == expected.rejected, name
    assert problems == {}


def test_details_of_problems_are_the_same(tmp_path: Path) -> None:
    path = database(
        tmp_path / "t.db",
        "CREATE TABLE t (a INTEGER, b REAL)",
        "INSERT INTO t VALUES (1, 1.5), (1.5, 'x'), (9e18, 9e999), (1e19, 2), ('soon', X'00'), "
        "(NULL, -9e999)",
    )
    assert (
        read(path, False)[1]
        == read(path, True)[1]
        == {
            ("not_an_integer", "place.a"): ("stored as null: '1.5' is no 64-bit integer", 3),
            ("not_a_number", "place.b"): ("stored as null: 'x' is no finite number", 4),
        }
    )
    assert read(path, True)[0]["a"].to_pylist() == [1, None, 9 * 10**18, None, None, None]


def test_only_some_columns(tmp_path: Path, compiled: bool) -> None:
    path = database(
        tmp_path / "t.db", f"CREATE TABLE t ({TABLE})", "INSERT INTO t (id, real) VALUES (5, 1.5)"
    )
    found, _ = read(path, compiled, skip=("id", "text", "json", "any", "blob"))
    assert found.to_pydict() == {"number": [None], "big": [None], "real": [1.5]}
    assert read(path, compiled, skip=tuple(COLUMNS)[1:])[0].to_pydict() == {"id": [5]}
    with SqliteFile(path, compiled) as file:
        assert list(file.chunks("t", "place", ProblemCounter(), skip=tuple(COLUMNS))) == []


def test_no_rows_have_types_all_the_same(tmp_path: Path, compiled: bool) -> None:
    found, _ = read(database(tmp_path / "t.db", f"CREATE TABLE t ({TABLE})"), compiled)
    assert (found.num_rows, dict(zip(found.column_names, found.schema.types, strict=True))) == (0, TYPES)


# --- tables that are not of the usual kind ------------------------------------------------------------------


def test_columns_added_later(tmp_path: Path, compiled: bool) -> None:
    path = database(
        tmp_path / "t.db",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)",
        "INSERT INTO t VALUES (1, 'x'), (2, 'y')",
        "ALTER TABLE t ADD COLUMN b INTEGER NOT NULL DEFAULT 7",
        "ALTER TABLE t ADD COLUMN c TEXT",
        "ALTER TABLE t ADD COLUMN d JSONB DEFAULT '{}'",
        "INSERT INTO t VALUES (3, 'z', 8, 'c', '[1]')",
    )
    assert found_rows(path, compiled) == [
        (1, "x", 7, None, None),
        (2, "y", 7, None, None),
        (3, "z", 8, "c", "[1]"),
    ]
    with SqliteFile(path, compiled) as file:
        rows, is_found = file.at("t", pa.array([3, 1, 9]), "place", ProblemCounter())
    assert is_found.to_pylist() == [True, True, False]
    assert rows.table["b"].to_pylist()[:2] == [8, 7]


def test_generated_columns_are_left_out(tmp_path: Path, compiled: bool) -> None:
    path = database(
        tmp_path / "t.db",
        "CREATE TABLE t (a INTEGER, b INTEGER AS (a * 2) STORED, c INTEGER AS (a + 1) VIRTUAL, d TEXT)",
        "INSERT INTO t (a, d) VALUES (1, 'x'), (2, 'y')",
    )
    with SqliteFile(path, compiled) as file:
        assert list(file.columns("t")) == ["a", "d"]
    assert found_rows(path, compiled) == [(1, "x"), (2, "y")]


def test_table_without_row_ids(tmp_path: Path, compiled: bool) -> None:
    path = database(
        tmp_path / "t.db",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT) WITHOUT ROWID",
        "INSERT INTO t VALUES (7, 'x'), (-3, 'y')",
    )
    assert found_rows(path, compiled) == [(-3, "y"), (7, "x")]
    with SqliteFile(path, compiled) as file:
        rows, is_found = file.at("t", pa.array([7, 0]), "place", ProblemCounter())
    assert (rows.table["a"].to_pylist(), is_found.to_pylist()) == (["x", None], [True, False])


@pytest.mark.parametrize(
    "declared", ["INT PRIMARY KEY", "INTEGER PRIMARY KEY DESC", "INTEGER", "TEXT PRIMARY KEY"]
)
def test_ids_that_are_no_row_ids(tmp_path: Path, compiled: bool, declared: str) -> None:
    path = database(
        tmp_path / "t.db",
        f"CREATE TABLE t (id {declared}, a TEXT)",
        "INSERT INTO t VALUES (70, 'x'), (-5, 'y'), (NULL, 'z')",
    )
    ids = [70, -5, None] if "TEXT" not in declared else ["70", "-5", None]
    assert found_rows(path, compiled) == list(zip(ids, "xyz", strict=True))
    with SqliteFile(path, compiled) as file:
        rows, is_found = file.at("t", pa.array([-5, 1, 70, None]), "place", ProblemCounter())
    assert is_found.to_pylist() == [True, False, True, False]
    assert rows.table["a"].to_pylist() == ["y", None, "x", None]


@pytest.mark.parametrize(
    "declared", ["integer primary key", "INTEGER PRIMARY KEY ASC", "INTEGER PRIMARY KEY AUTOINCREMENT"]
)
def test_ids_that_are_row_ids(tmp_path: Path, compiled: bool, declared: str) -> None:
    path = database(
        tmp_path / "t.db", f"CREATE TABLE t (a, id {declared})", "INSERT INTO t VALUES ('x', 70), ('y', -5)"
    )
    assert found_rows(path, compiled) == [("y", -5), ("x", 70)]


def test_key_of_a_table_constraint_is_the_row_id(tmp_path: Path, compiled: bool) -> None:
    path = database(
        tmp_path / "t.db",
        "CREATE TABLE t (id INTEGER, a, PRIMARY KEY (id DESC))",
        "INSERT INTO t VALUES (70, 'x'), (-5, 'y')",
        "CREATE TABLE pair (id INTEGER, a INTEGER, PRIMARY KEY (id, a))",
        "INSERT INTO pair VALUES (70, 1), (-5, 2)",
    )
    assert found_rows(path, compiled) == [(-5, "y"), (70, "x")]
    assert found_rows(path, compiled, "pair") == [(70, 1), (-5, 2)]


@pytest.mark.parametrize("encoding", ["UTF-16le", "UTF-16be"])
def test_texts_in_utf_16(tmp_path: Path, compiled: bool, encoding: str) -> None:
    path = database(
        tmp_path / "t.db",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)",
        "INSERT INTO t VALUES (1, 'é日本語')",
        layout=Layout(encoding=encoding),
    )
    assert found_rows(path, compiled) == [(1, "é日本語")]


def test_texts_that_are_no_utf_8(tmp_path: Path, compiled: bool) -> None:
    path = database(
        tmp_path / "t.db",
        "CREATE TABLE t (a TEXT)",
        "INSERT INTO t VALUES ('é'), (CAST(X'68ff' AS TEXT)), (CAST(X'eda080' AS TEXT)), (X'c3')",
    )
    assert found_rows(path, compiled) == [("é",), ("h\\xff",), ("\\xed\\xa0\\x80",), ("\\xc3",)]


def test_texts_longer_than_the_loops_take(tmp_path: Path, compiled: bool) -> None:
    path = tmp_path / "t.db"
    connection = create(path)
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)")
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(1, "x"), (2, "é" * (8 << 20)), (3, "z")])
    connection.close()
    assert [(rowid, len(text), text[-1]) for rowid, text in found_rows(path, compiled)] == [
        (1, 1, "x"),
        (2, 8 << 20, "é"),
        (3, 1, "z"),
    ]


def test_names_that_need_quotes(tmp_path: Path, compiled: bool) -> None:
    path = database(
        tmp_path / "t.db",
        'CREATE TABLE "a ""table\'; --" ("from" INTEGER, "x""y" TEXT, "rowid" TEXT, "stored" TEXT)',
        "INSERT INTO \"a \"\"table'; --\" VALUES (1, 'a', 'b', 'c'), (2, 'd', 'e', 'f')",
    )
    assert found_rows(path, compiled, "a \"table'; --") == [(1, "a", "b", "c"), (2, "d", "e", "f")]


def test_a_column_whose_name_is_no_text_is_damage(tmp_path: Path, compiled: bool) -> None:
    """SQLite takes a name in quotes that it does not know for a text: its rows would be that name."""
    path = database(tmp_path / "t.db", "CREATE TABLE t (ab INTEGER)", "INSERT INTO t VALUES (1)")
    content = path.read_bytes()
    assert content.count(b"(ab INTEGER)") == 1
    path.write_bytes(content.replace(b"(ab INTEGER)", b"(a\xff INTEGER)"))
    with pytest.raises(UnreadableFile, match="columns of table t"):
        read(path, compiled)


def test_rows_come_in_the_order_in_which_they_are_stored(tmp_path: Path, compiled: bool) -> None:
    """An index that has all of the columns that are read has them in another order."""
    path = database(
        tmp_path / "t.db",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT UNIQUE, b TEXT)",
        "INSERT INTO t (a) VALUES ('z'), ('y'), ('x')",
        "CREATE INDEX i ON t (b, a)",
    )
    assert read(path, compiled, skip=("b",))[0].to_pydict() == {"id": [1, 2, 3], "a": ["z", "y", "x"]}
    assert read(path, compiled, skip=("a", "b"))[0].to_pydict() == {"id": [1, 2, 3]}
    assert read(path, compiled)[0]["a"].to_pylist() == ["z", "y", "x"]


# --- rows by their ids --------------------------------------------------------------------------------------


@pytest.mark.parametrize("page_bytes", [512, 4096])
def test_rows_by_their_ids(tmp_path: Path, compiled: bool, page_bytes: int) -> None:
    """In any order, absent, null, and several times."""
    random = Random(page_bytes)
    connection = create(tmp_path / "t.db", Layout(page_bytes))
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER, b TEXT, c JSONB)")
    stored: dict[int, tuple[Any, ...]] = {-(2**63): (1, "lowest", None), 2**63 - 1: (2, "highest", "[]")}
    for rowid in random.sample(range(-300, 900), 800):
        stored[rowid] = (
            random.choice((None, rowid)),
            "x" * random.randrange(300),
            random.choice((None, "[1]")),
        )
    connection.executemany(
        "INSERT INTO t VALUES (?, ?, ?, ?)", [(rowid, *row) for rowid, row in stored.items()]
    )
    connection.close()
    everything = list(range(-310, 910))
    for wanted in (
        everything,
        random.choices([*everything, None, -(2**63), 2**63 - 1], k=2500),
        [None] * 5,
        [],
    ):
        with SqliteFile(tmp_path / "t.db", compiled) as file:
            rows, is_found = file.at(
                "t", pa.array(wanted, pa.int64()), "place", ProblemCounter(), skip=("a",)
            )
        assert is_found.to_pylist() == [rowid in stored for rowid in wanted]
        assert rows.table.column_names == ["id", "b", "c"]
        for position, rowid in enumerate(wanted):
            if rowid in stored:
                row = {name: rows.table[name][position].as_py() for name in rows.table.column_names}
                assert row == {"id": rowid, "b": stored[rowid][1], "c": stored[rowid][2]}


def test_a_value_rejected_in_a_row_that_is_asked_for_often_counts_once(
    tmp_path: Path, compiled: bool
) -> None:
    path = database(
        tmp_path / "t.db",
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a INTEGER)",
        "INSERT INTO t VALUES (1, 'soon'), (2, 2), (3, 'late')",
    )
    counter = ProblemCounter()
    with SqliteFile(path, compiled) as file:
        for wanted in ([2, 2], [1, 1, 3, 3, 1], [3, 1]):
            rows, _ = file.at("t", pa.array(wanted), "place", counter)
            assert rows.table["a"].to_pylist() == [2 if rowid == 2 else None for rowid in wanted]
    (problem,) = counter.problems()
    assert (problem.problem, problem.place, problem.occurrences) == ("not_an_integer", "place.a", 2)


@pytest.mark.parametrize("repeated", [False, True])
def test_damaged_ids_are_found_where_they_are(tmp_path: Path, compiled: bool, repeated: bool) -> None:
    """Row ids that do not ascend, or come twice: the first row with an id has it."""
    path = database(tmp_path / "t.db", "CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)")
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executemany(
        "INSERT INTO t VALUES (?, ?)", [(number, f"row{number}.") for number in range(20, 60)]
    )
    connection.close()
    content = bytearray(path.read_bytes())
    # Before its text a record has the length of its types, and two of those; before it, the id.
    places = {number: content.index(f"row{number}.".encode()) - 4 for number in (30, 50)}
    assert [content[place] for place in places.values()] == [30, 50]
    content[places[30]] = 50
    if not repeated:
        content[places[50]] = 30
    path.write_bytes(content)
    with SqliteFile(path, compiled) as file:
        rows, is_found = file.at("t", pa.array([30, 50, 29, 51]), "place", ProblemCounter())
    texts = ["row50.", "row30.", "row29.", "row51."]
    if repeated:
        texts[0] = None
    assert rows.table["a"].to_pylist() == texts
    assert is_found.to_pylist() == [text is not None for text in texts]


# --- which way is taken -------------------------------------------------------------------------------------


def test_the_loops_need_no_sqlite(tmp_path: Path, statements: list[str], compiled: bool) -> None:
    path = database(tmp_path / "t.db", f"CREATE TABLE t ({TABLE})", "INSERT INTO t (id) VALUES (1), (2)")
    with SqliteFile(path, compiled) as file:
        file.read("t", "place", ProblemCounter())
        file.count("t")
        file.at("t", pa.array([1]), "place", ProblemCounter())
        file.distinct("t", "text")
    assert asked_for_rows(statements) != compiled


def test_large_files_are_read_by_the_loops(
    tmp_path: Path, statements: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = database(tmp_path / "t.db", "CREATE TABLE t (a)", "INSERT INTO t VALUES (zeroblob(100000))")
    for limit, is_large in ((path.stat().st_size, True), (path.stat().st_size + 1, False)):
        statements.clear()
        monkeypatch.setattr(sqlite_file, "_COMPILED_FROM_BYTES", limit)
        with SqliteFile(path) as file:
            file.count("t")
        assert asked_for_rows(statements) != is_large


@pytest.mark.parametrize("batch_rows", [25, 60])
def test_where_the_loops_end_sqlite_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, statements: list[str], batch_rows: int
) -> None:
    """The rows before a column was added have it not: those are read by SQLite, and no row twice."""
    path = tmp_path / "t.db"
    connection = create(path, Layout(512))
    connection.execute('CREATE TABLE t (id INTEGER PRIMARY KEY, "rowid" TEXT)')
    connection.executemany("INSERT INTO t VALUES (?, ?)", [(rowid, "x" * 40) for rowid in range(1000, 1500)])
    connection.execute("ALTER TABLE t ADD COLUMN c INTEGER DEFAULT 5")
    connection.executemany(
        "INSERT INTO t VALUES (?, ?, ?)", [(rowid, "y", rowid) for rowid in range(-400, 400)]
    )
    connection.close()
    monkeypatch.setattr(sqlite_pages, "BATCH_ROWS", batch_rows)
    expected = sqlite_rows(path, 'SELECT id, t."rowid", c FROM t ORDER BY id')
    assert found_rows(path, True) == expected
    assert any("OFFSET" in statement for statement in statements)


def test_pending_log_is_read_by_sqlite(tmp_path: Path, compiled: bool) -> None:
    path = tmp_path / "t.db"
    connection = create(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, a TEXT)")
    connection.execute("INSERT INTO t VALUES (1, 'in the file')")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert found_rows(path, compiled) == [(1, "in the file")]
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("INSERT INTO t VALUES (2, 'in the log')")
    connection.execute("UPDATE t SET a = 'changed' WHERE id = 1")
    assert found_rows(path, compiled) == [(1, "changed"), (2, "in the log")]
    with SqliteFile(path, compiled) as file:
        rows, _ = file.at("t", pa.array([2]), "place", ProblemCounter())
    assert rows.table["a"].to_pylist() == ["in the log"]
    connection.close()


def test_what_was_not_committed_is_not_read(tmp_path: Path, compiled: bool) -> None:
    """A journal beside the file has what was there before: SQLite would put it back, which it may not."""
    path = tmp_path / "t.db"
    connection = create(path)
    connection.execute("PRAGMA cache_size = 1")
    connection.execute("CREATE TABLE t (a TEXT)")
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO t VALUES (?)", [("x" * 500,)] * 400)
    copy = tmp_path / "copied" / "t.db"
    copy.parent.mkdir()
    for suffix in ("", "-journal"):
        copy.with_name(f"t.db{suffix}").write_bytes(path.with_name(f"t.db{suffix}").read_bytes())
    connection.execute("ROLLBACK")
    connection.close()
    assert copy.with_name("t.db-journal").stat().st_size > 0
    with pytest.raises(UnreadableFile, match=r"t\.db"):
        read(copy, compiled)


# --- names and numbers of the file --------------------------------------------------------------------------


def test_distinct_texts(tmp_path: Path, compiled: bool) -> None:
    path = database(
        tmp_path / "t.db",
        "CREATE TABLE t (a TEXT, b INTEGER, c TEXT)",
        "INSERT INTO t VALUES ('same', 1, ''), ('same', 2, ''), ('same', 1, '')",
        "CREATE TABLE u (a TEXT)",
        "INSERT INTO u VALUES ('bb'), (NULL), ('aa'), ('bb'), ('c'), ('')",
        "CREATE TABLE empty (a TEXT)",
    )
    with SqliteFile(path, compiled) as file:
        assert file.distinct("t", "a") == ["same"]
        assert file.distinct("t", "b") == ["1", "2"]
        assert file.distinct("t", "c") == [""]
        assert file.distinct("u", "a") == ["", "aa", "bb", "c"]
        assert file.distinct("empty", "a") == []


def test_views_virtual_tables_and_tables_of_sqlite_are_none(tmp_path: Path, compiled: bool) -> None:
    statements = (
        "CREATE TABLE t (id INTEGER PRIMARY KEY AUTOINCREMENT, a TEXT)",
        "CREATE VIEW v AS SELECT * FROM t",
        "CREATE INDEX i ON t (a)",
        "ANALYZE",
        "CREATE VIRTUAL TABLE f USING fts5(a)",
    )
    try:
        path = database(tmp_path / "t.db", *statements)
    except sqlite3.OperationalError:
        pytest.skip("this SQLite has no module for virtual tables")
    with SqliteFile(path, compiled) as file:
        # The tables that hold what the virtual one gives are real.
        assert {name for name in file.tables if not name.startswith("f_")} == {"t"}


@pytest.mark.parametrize("seed", range(3))
def test_random_damage_is_refused_or_read_alike(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    connection = create(tmp_path / "t.db", Layout(512))
    connection.execute(f"CREATE TABLE t ({TABLE})")
    for number in range(40):
        others = [value(random, 300) for _ in range(len(COLUMNS) - 1)]
        connection.execute(f"INSERT INTO t VALUES (?{', ?' * len(others)})", (number, *others))
    connection.close()
    content = (tmp_path / "t.db").read_bytes()
    damaged = tmp_path / "damaged.db"
    outcomes = []
    for _ in range(150):
        changed = bytearray(content)
        for _ in range(random.choice((1, 2, 8))):
            at = random.choice((random.randrange(512), random.randrange(len(content))))
            changed[at] = random.choice((0, 0x80, 0xFF, random.randrange(256)))
        damaged.write_bytes(changed)
        by_sqlite, by_loops = (outcome(damaged, compiled) for compiled in (False, True))
        assert by_loops == by_sqlite
        outcomes.append(isinstance(by_sqlite, str))
    assert 0 < sum(outcomes) < len(outcomes)


def outcome(path: Path, compiled: bool) -> object:
    """What is read of a file as one value to compare: its tables, or why it is refused."""
    try:
        with SqliteFile(path, compiled) as file:
            return [_content(file.read(table, table, counter), counter) for table, counter in _tables(file)]
    except UnreadableFile as error:
        return str(error)


def _tables(file: SqliteFile) -> Iterator[tuple[str, ProblemCounter]]:
    return ((table, ProblemCounter()) for table in sorted(file.tables))


def _content(rows: Rows, counter: ProblemCounter) -> object:
    values = [column.to_pylist() for column in rows.table.columns]
    return rows.table.schema, exact(map(tuple, values)), counter.problems()
