"""The texts of host events that a run's step marker matches, with the number that each states."""

from __future__ import annotations

import re

import duckdb

from tracewh.sql.rows import first_row

_TEXTS = """
    WITH texts AS (
        SELECT h.name_id FROM main.host_events AS h JOIN main.captures AS c USING (capture_id)
        WHERE c.run_id = $1
        UNION
        SELECT d.message_name_id FROM main.call_details AS d JOIN main.captures AS c USING (capture_id)
        WHERE c.run_id = $1 AND d.message_name_id IS NOT NULL
    )
"""
_INTEGER = "'^[+-]?[0-9]{1,18}$'"


def mark_texts(connection: duckdb.DuckDBPyConnection, run_id: int) -> int | None:
    """Find the texts of a run that its marker matches anew, in the caller's transaction; return how many.

    None where the run has no marker.
    """
    connection.execute("DELETE FROM main.step_marker_texts WHERE run_id = ?", [run_id])
    choice = first_row(connection, "SELECT marker_pattern FROM main.step_choices WHERE run_id = ?", [run_id])
    if choice is None or choice[0] is None:
        return None
    # A group of an alternative that did not match is empty, and one around the whole pattern, which anchoring
    # may add, has the number only where that is all of the text.
    groups = [f"g{number}" for number in range(1, re.compile(choice[0]).groups + 1)]
    stated = "NULL"
    if groups:
        numbers = ", ".join(
            f"CASE WHEN regexp_matches(m.{group}, {_INTEGER}) THEN CAST(m.{group} AS BIGINT) END"
            for group in groups
        )
        stated = f"COALESCE({numbers}, NULL)"
    found = f"regexp_extract(n.name, $2, {groups})" if groups else "NULL"
    row = first_row(
        connection,
        f"INSERT INTO main.step_marker_texts (run_id, name_id, stated_num) {_TEXTS}, matching AS ("
        f"SELECT n.name_id, {found} AS m FROM texts JOIN main.names AS n USING (name_id) "
        f"WHERE regexp_matches(n.name, $2)) SELECT $1, name_id, {stated} FROM matching",
        [run_id, choice[0]],
    )
    return 0 if row is None else int(row[0])


def texts_with_part(
    connection: duckdb.DuckDBPyConnection, run_id: int, pattern: str, limit: int
) -> list[str]:
    """The shortest texts of a run that a pattern matches a part of, at most `limit`."""
    rows = connection.execute(
        f"{_TEXTS} SELECT n.name FROM texts JOIN main.names AS n USING (name_id) "
        f"WHERE regexp_matches(n.name, $2) ORDER BY length(n.name), n.name LIMIT {limit}",
        [run_id, pattern],
    ).fetchall()
    return [str(name) for (name,) in rows]
