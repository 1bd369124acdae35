"""Query the views that compare groups of runs for two groups that are no group of the warehouse.

What such a view reads of v1.run_groups is replaced by the runs that were chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb

from tracewh.sql.run_scope import REFERENCE
from tracewh.views.catalog import load_views

_GROUPS = "v1.run_groups"


class GroupScope:
    """The views of comparisons over groups of its own."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, groups: Mapping[str, Sequence[int]]) -> None:
        self._connection = connection
        self._views = {view.name: view for view in load_views()}
        self._table = "temp.scope_of_groups"
        self._made: dict[str, str] = {_GROUPS: self._table}
        connection.execute(
            f"CREATE TEMP TABLE {self._table} (group_name VARCHAR, group_kind VARCHAR, run_id BIGINT)"
        )
        for name, run_ids in groups.items():
            connection.execute(
                f"INSERT INTO {self._table} SELECT $1, 'group', unnest($2)", [name, list(run_ids)]
            )

    def rows(self, query: str, *parameters: object) -> list[dict[str, Any]]:
        """The rows of `query` as records, with $1, $2 ...; it refers to relations as views do."""
        found = self._connection.execute(REFERENCE.sub(self._replaced, query), list(parameters))
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def close(self) -> None:
        """Drop what was made."""
        for name in reversed(list(self._made.values())[1:]):
            self._connection.execute(f"DROP VIEW {name}")
        self._connection.execute(f"DROP TABLE {self._table}")

    def _replaced(self, found: Any) -> str:
        return f"{found[1]} {self._relation(found[2])} AS"

    def _relation(self, name: str) -> str:
        if name in self._made:
            return self._made[name]
        if name not in self._views or not self._reads_groups(name):
            return name
        text = REFERENCE.sub(self._replaced, self._views[name].sql)
        made = f"temp.scope_of_{name.partition('.')[2]}"
        self._connection.execute(f"CREATE TEMP VIEW {made} AS {text}")
        self._made[name] = made
        return made

    def _reads_groups(self, name: str) -> bool:
        references = [found[2] for found in REFERENCE.finditer(self._views[name].sql)]
        return any(
            reference == _GROUPS or (reference in self._views and self._reads_groups(reference))
            for reference in references
        )


@contextmanager
def group_scope(
    connection: duckdb.DuckDBPyConnection, groups: Mapping[str, Sequence[int]]
) -> Iterator[GroupScope]:
    """The views of comparisons over these groups of runs, for as long as the context lasts."""
    scope = GroupScope(connection, groups)
    try:
        yield scope
    finally:
        scope.close()
