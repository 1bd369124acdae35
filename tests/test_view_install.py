"""Installing views: only what changed, in order, with a record of what the warehouse holds."""

from collections.abc import Iterator

import duckdb
import pytest

from tracewh.ingest.errors import WarehouseError
from tracewh.sql.schema_files import create_schema
from tracewh.sql.view_install import install_views, outdated_views

from .view_text import views_of

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
    return install_views(connection, list(views_of(queries).values()))


def recorded(connection: duckdb.DuckDBPyConnection) -> list[tuple[str, int, str]]:
    return connection.execute(
        "SELECT view_name, version, fingerprint FROM main.view_versions ORDER BY view_name"
    ).fetchall()


def test_first_installation(connection: duckdb.DuckDBPyConnection) -> None:
    views = views_of(QUERIES)
    assert outdated_views(connection, list(views.values())) == list(views)
    assert install(connection, QUERIES) == list(views)
    assert connection.execute("SELECT a FROM v1.b").fetchall() == [(1,)]
    assert recorded(connection) == [(name, 1, views[name].fingerprint) for name in sorted(views)]


def test_nothing_to_do_the_second_time(connection: duckdb.DuckDBPyConnection) -> None:
    install(connection, QUERIES)
    assert outdated_views(connection, list(views_of(QUERIES).values())) == []
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
    assert outdated_views(connection, list(views_of(shipped).values())) == []
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


def test_a_view_that_duckdb_refuses_is_named(connection: duckdb.DuckDBPyConnection) -> None:
    with pytest.raises(
        WarehouseError, match=r"v1\.bad \(views/topic/bad\.sql\) cannot be created: .*nowhere"
    ):
        install(connection, {"v1.bad": "SELECT n.a AS a FROM main.nowhere AS n"})
