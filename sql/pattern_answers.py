"""What the patterns of the rules match of the op_names, kept to spare time."""

from __future__ import annotations

import duckdb

_PATTERNS = (
    "SELECT pattern FROM main.phase_rules UNION SELECT pattern FROM main.scope_rules "
    "UNION SELECT pattern FROM main.component_rules "
    "UNION SELECT inside_pattern FROM main.component_rules WHERE inside_pattern IS NOT NULL"
)


def remember_matches(connection: duckdb.DuckDBPyConnection) -> None:
    """Keep what the patterns match of the op_names, and forget those of rules that are gone.

    Runs in the caller's transaction. Views find missing answers out themselves, each time anew. A pattern
    that is written out is compiled once.
    """
    connection.execute(f"DELETE FROM main.pattern_matches WHERE pattern NOT IN ({_PATTERNS})")
    missing = connection.execute(
        "WITH texts AS (SELECT segment AS text FROM main.op_name_scopes UNION "
        f"SELECT scope FROM main.op_name_scopes), patterns AS ({_PATTERNS}) "
        "SELECT p.pattern, list(t.text) FROM patterns AS p CROSS JOIN texts AS t "
        "ANTI JOIN main.pattern_matches AS m ON m.text = t.text AND m.pattern = p.pattern GROUP BY 1"
    ).fetchall()
    for pattern, texts in missing:
        literal = "'" + pattern.replace("'", "''") + "'"
        connection.execute(
            f"INSERT INTO main.pattern_matches SELECT t.text, {literal}, REGEXP_MATCHES(t.text, {literal}) "
            "FROM (SELECT unnest(?) AS text) AS t",
            [texts],
        )
