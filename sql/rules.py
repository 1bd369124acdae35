"""The rules for phases and components in a warehouse: adding, removing, and answers kept to spare time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import duckdb

from tracewh.ingest.errors import WarehouseError
from tracewh.ingest.run_rules import Rule
from tracewh.sql.kept_views import keep_rows_of_op_names
from tracewh.sql.rows import first_row, next_own_id
from tracewh.sql.step_choices import run_id_of
from tracewh.sql.warehouse import Warehouse, transaction

RULE_TABLES = {"phase": "phase_rules", "structure": "scope_rules", "component": "component_rules"}
_USER = "user"


@dataclass(frozen=True)
class StoredRule:
    """A rule as a warehouse has it; `run_name` and `file` are None for a rule of every run, or of no file."""

    rule_id: int
    kind: str
    vocabulary: str
    run_name: str | None
    file: str | None


def insert_rules(
    connection: duckdb.DuckDBPyConnection, rules: Iterable[Rule], run_id: int | None, artifact_id: int | None
) -> list[int]:
    """Insert a user's rules, in the caller's transaction; return their ids, in the same order."""
    rule_ids = []
    for rule in rules:
        rule_id = next_own_id(connection, "rule_id", RULE_TABLES.values())
        owner = {
            "rule_id": rule_id,
            "run_id": run_id,
            "artifact_id": artifact_id,
            "vocabulary": _USER,
            "priority": rule.priority,
            "pattern": rule.pattern,
            "reason": rule.reason,
        }
        own: dict[str, object] = {"phase": rule.phase}
        if rule.kind == "structure":
            own = {"is_structural": rule.is_structural}
        elif rule.kind == "component":
            own |= {
                "component_group": rule.group,
                "inside_pattern": rule.inside,
                "is_direct": rule.is_direct,
            }
        values = owner | own
        connection.execute(
            f"INSERT INTO main.{RULE_TABLES[rule.kind]} ({', '.join(values)}) "
            f"VALUES ({', '.join('?' for _ in values)})",
            list(values.values()),
        )
        rule_ids.append(rule_id)
    return rule_ids


def add_rule(warehouse: Warehouse, rule: Rule, run: str | None) -> int:
    """Add a rule of a user, for one run or for every run; return its id.

    Raises WarehouseError where there is no such run, or the same rule is there already.
    """
    connection = warehouse.connection
    run_id = None if run is None else run_id_of(warehouse, run)
    known = first_row(
        connection,
        f"SELECT rule_id FROM main.{RULE_TABLES[rule.kind]} AS r WHERE r.pattern = ? "
        "AND r.run_id IS NOT DISTINCT FROM ? AND r.vocabulary = 'user' "
        + (
            ""
            if rule.kind != "component"
            else "AND r.inside_pattern IS NOT DISTINCT FROM ? AND r.is_direct = ?"
        ),
        [rule.pattern, run_id, *([rule.inside, rule.is_direct] if rule.kind == "component" else [])],
    )
    if known is not None:
        raise WarehouseError(
            f"{warehouse.path}: rule {known[0]} has the pattern {rule.pattern} already. "
            f"Remove it first with `tracewh rules rm {known[0]}`."
        )
    with transaction(connection):
        (rule_id,) = insert_rules(connection, [rule], run_id, None)
        remember_matches(connection)
        keep_rows_of_op_names(connection)
    return rule_id


def remove_rule(warehouse: Warehouse, rule_id: int) -> None:
    """Remove a user's rule.

    Raises WarehouseError where there is none of that id, or it is a shipped one or from a run's file.
    """
    rule = find_rule(warehouse, rule_id)
    if rule is None:
        raise WarehouseError(f"{warehouse.path}: no rule {rule_id}. `tracewh rules` lists them.")
    if rule.vocabulary != _USER:
        raise WarehouseError(
            f"{warehouse.path}: rule {rule_id} is shipped with tracewh. "
            "Add one of your own, which is asked first."
        )
    if rule.file is not None:
        raise WarehouseError(
            f"{warehouse.path}: rule {rule_id} is from {rule.file} of run {rule.run_name}. "
            "Change that file and ingest the run again."
        )
    with transaction(warehouse.connection):
        warehouse.connection.execute(
            f"DELETE FROM main.{RULE_TABLES[rule.kind]} WHERE rule_id = ?", [rule_id]
        )
        keep_rows_of_op_names(warehouse.connection)


def find_rule(warehouse: Warehouse, rule_id: int) -> StoredRule | None:
    """The rule of that id; None where there is none."""
    for kind, table in RULE_TABLES.items():
        row = first_row(
            warehouse.connection,
            f"SELECT t.vocabulary, r.run_name, a.path FROM main.{table} AS t "
            "LEFT JOIN main.runs AS r USING (run_id) "
            "LEFT JOIN main.artifacts AS a ON a.artifact_id = t.artifact_id WHERE t.rule_id = ?",
            [rule_id],
        )
        if row is not None:
            return StoredRule(rule_id, kind, *row)
    return None


def remember_matches(connection: duckdb.DuckDBPyConnection) -> None:
    """Keep what patterns match of the op_names for which it is not known yet, in the caller's transaction.

    Views find it out themselves otherwise, each time anew. A pattern that is written out is compiled once.
    """
    missing = connection.execute(
        "WITH texts AS (SELECT segment AS text FROM main.op_name_scopes UNION "
        "SELECT scope FROM main.op_name_scopes), "
        "patterns AS (SELECT pattern FROM main.phase_rules UNION SELECT pattern FROM main.scope_rules "
        "UNION SELECT pattern FROM main.component_rules "
        "UNION SELECT inside_pattern FROM main.component_rules WHERE inside_pattern IS NOT NULL) "
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
