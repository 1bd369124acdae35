"""Installing views: only what changed, in order, with a record of what the warehouse holds."""

from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tracewh.ingest.errors import WarehouseError
from tracewh.sql.schema_files import create_schema
from tracewh.sql.view_install import install_views, outdated_views
from tracewh.views.catalog import load_views, views_from_files
from tracewh.views.macro_catalog import Macro, load_macros, macros_from_files

from .view_text import macro_text, view_text, views_of

QUERIES = {
    "v1.b": "SELECT a.a AS a FROM v1._a AS a",
    "v1._a": "SELECT CAST(1 AS BIGINT) AS a",
    "v1.c": "SELECT CAST(7 AS BIGINT) AS a",
}


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        create_schema(connection)
        yield connection


def install(connection: duckdb.DuckDBPyConnection, queries: dict[str, str]) -> list[str]:
    return install_views(connection, list(views_of(queries).values()), [])


def recorded(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, int, str]]:
    return connection.execute(
        "SELECT view_name, version, fingerprint FROM main.view_versions ORDER BY view_name"
    ).fetchall()


def test_first_installation(connection: duckdb.DuckDBPyConnection) -> None:
    views = views_of(QUERIES)
    assert outdated_views(connection, list(views.values()), []) == list(views)
    assert install(connection, QUERIES) == list(views)
    assert connection.execute("SELECT a FROM v1.b").fetchall() == [(1,)]
    assert recorded(connection) == [(name, 1, views[name].fingerprint) for name in sorted(views)]


def test_nothing_to_do_the_second_time(connection: duckdb.DuckDBPyConnection) -> None:
    install(connection, QUERIES)
    assert outdated_views(connection, list(views_of(QUERIES).values()), []) == []
    assert install(connection, QUERIES) == []


def test_a_change_recreates_the_view_and_its_children_only(connection: duckdb.DuckDBPyConnection) -> None:
    install(connection, QUERIES)
    # Another type: DuckDB refuses a child that was bound to the old columns.
    changed = {**QUERIES, "v1._a": "SELECT 'x' AS a, 2 AS more"}
    assert install(connection, changed) == ["v1._a", "v1.b"]
    assert connection.execute("SELECT a FROM v1.b").fetchall() == [("x",)]
    assert recorded(connection) == [
        (name, 1, view.fingerprint) for name, view in sorted(views_of(changed).items())
    ]


def test_views_that_this_version_does_not_ship_stay(connection: duckdb.DuckDBPyConnection) -> None:
    # A version that knows more, or knew more, has written the file before.
    install(connection, QUERIES)
    shipped = {"v1.c": QUERIES["v1.c"]}
    assert outdated_views(connection, list(views_of(shipped).values()), []) == []
    assert install(connection, shipped) == []
    assert connection.execute("SELECT COUNT(*) FROM v1.b").fetchall() == [(1,)]
    assert [name for name, _, _ in recorded(connection)] == sorted(QUERIES)


def test_a_view_of_the_user_stays(connection: duckdb.DuckDBPyConnection) -> None:
    install(connection, QUERIES)
    connection.execute("CREATE VIEW v1.mine AS SELECT 42 AS a")
    assert install(connection, QUERIES) == []
    assert connection.execute("SELECT a FROM v1.mine").fetchall() == [(42,)]


def test_a_view_that_somebody_dropped_comes_back(connection: duckdb.DuckDBPyConnection) -> None:
    install(connection, QUERIES)
    connection.execute("DROP VIEW v1.c")
    assert install(connection, QUERIES) == ["v1.c"]
    assert connection.execute("SELECT a FROM v1.c").fetchall() == [(7,)]


def test_change_back_and_forth_in_one_transaction(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("BEGIN")
    install(connection, QUERIES)
    install(connection, {})
    install(connection, {**QUERIES, "v1.c": "SELECT CAST(8 AS BIGINT) AS a"})
    connection.execute("COMMIT")
    assert connection.execute("SELECT a FROM v1.c").fetchall() == [(8,)]


def test_a_rollback_undoes_everything(connection: duckdb.DuckDBPyConnection) -> None:
    install(connection, QUERIES)
    before = recorded(connection)
    connection.execute("BEGIN")
    install(connection, {"v1.c": "SELECT CAST(9 AS BIGINT) AS a"})
    connection.execute("ROLLBACK")
    assert recorded(connection) == before
    assert connection.execute("SELECT b.a, c.a FROM v1.b AS b, v1.c AS c").fetchall() == [(1, 7)]


TIMES_TWO = "SELECT p_value * 2 AS a FROM query_table(p_rows) AS r"
CALL = "WITH _r AS (SELECT CAST(21 AS BIGINT) AS b) SELECT f.a AS a FROM v1.f('_r', b) AS f"


def macros_of(body: str = TIMES_TWO, name: str = "v1.f") -> list[Macro]:
    return macros_from_files({"f.sql": macro_text(name, body)})


def install_with(connection: duckdb.DuckDBPyConnection, macros: list[Macro]) -> list[str]:
    texts = {"calls.sql": view_text("v1.calls", CALL), "other.sql": view_text("v1.other", "SELECT 1 AS a")}
    return install_views(connection, views_from_files(texts, macros), macros)


def test_macros_come_before_the_views_that_call_them(connection: duckdb.DuckDBPyConnection) -> None:
    (macro,) = macros_of()
    assert install_with(connection, [macro]) == ["v1.f", "v1.calls", "v1.other"]
    assert connection.execute("SELECT a FROM v1.calls").fetchall() == [(42,)]
    assert ("v1.f", 1, macro.fingerprint) in recorded(connection)
    assert install_with(connection, [macro]) == []


def test_a_changed_macro_brings_the_views_that_call_it(connection: duckdb.DuckDBPyConnection) -> None:
    install_with(connection, macros_of())
    # Another type: DuckDB refuses a view that was bound to the old columns.
    changed = macros_of("SELECT 'x' || CAST(p_value AS VARCHAR) AS a FROM query_table(p_rows) AS r")
    assert install_with(connection, changed) == ["v1.f", "v1.calls"]
    assert connection.execute("SELECT a FROM v1.calls").fetchall() == [("x21",)]


def test_a_macro_that_somebody_dropped_comes_back(connection: duckdb.DuckDBPyConnection) -> None:
    install_with(connection, macros_of())
    connection.execute("DROP MACRO TABLE v1.f")
    assert install_with(connection, macros_of()) == ["v1.f"]
    assert connection.execute("SELECT a FROM v1.calls").fetchall() == [(42,)]


def test_a_macro_that_this_version_does_not_ship_stays(connection: duckdb.DuckDBPyConnection) -> None:
    install_with(connection, macros_of())
    assert install_views(connection, [], macros_of(name="v1.g")) == ["v1.g"]
    assert connection.execute("SELECT a FROM v1.calls").fetchall() == [(42,)]


def test_the_packaged_macros_are_installed_unless_others_are_given(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    names = [macro.name for macro in load_macros()]
    assert install_views(connection, load_views())[: len(names)] == names
    assert outdated_views(connection, load_views()) == []


def test_a_macro_that_duckdb_refuses_is_named(connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(WarehouseError, match=r"v1\.f \(sql/macros/f\.sql\) cannot be created: .*WHERE"):
        install_views(connection, [], macros_of("SELECT FROM WHERE p_value p_rows"))


def test_an_attached_warehouse_has_its_macros(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "w.duckdb") as warehouse:
        create_schema(warehouse)
        install_with(warehouse, macros_of())
    with duckdb.connect() as client:
        client.execute(f"ATTACH '{tmp_path / 'w.duckdb'}' AS w (READ_ONLY)")
        client.execute("CREATE TABLE mine AS SELECT 4 AS b")
        assert client.execute("SELECT a FROM w.v1.calls").fetchall() == [(42,)]
        assert client.execute("SELECT a FROM w.v1.f('mine', b)").fetchall() == [(8,)]


def test_a_view_that_duckdb_refuses_is_named(connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(
        WarehouseError, match=r"v1\.bad \(views/topic/bad\.sql\) cannot be created: .*nowhere"
    ):
        install(connection, {"v1.bad": "SELECT n.a AS a FROM main.nowhere AS n"})
