"""The rules for phases and components in a warehouse: adding, removing, and answers kept to spare time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import duckdb

from tracewh.ingest.errors import WarehouseError
from tracewh.ingest.run_rules import Rule
from tracewh.sql.kept_metrics import mark_metrics_outdated
from tracewh.sql.kept_views import keep_rows_of_op_names
from tracewh.sql.pattern_answers import remember_matches
from tracewh.sql.rows import first_row, next_own_id
from tracewh.sql.step_choices import run_id_of
from tracewh.sql.user_files import is_gone
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
    file: Path | None


@dataclass(frozen=True)
class AddedRule:
    """What became of a rule that was added.

    `op_names` are those that have a segment or scope which it matches. `asked_before` is a rule of the same
    pattern from a file of the run, which is asked first. `known_phases` is empty unless the rule makes a new
    one.
    """

    rule_id: int
    op_names: int
    asked_before: StoredRule | None
    known_phases: tuple[str, ...]


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


def add_rule(warehouse: Warehouse, rule: Rule, run: str | None) -> AddedRule:
    """Add a rule of a user, for one run or for every run.

    Raises WarehouseError where there is no such run, or the same rule is there already, and from no file.
    """
    connection = warehouse.connection
    run_id = None if run is None else run_id_of(warehouse, run)
    known = [
        found for rule_id in _same_rules(connection, rule, run_id) if (found := find_rule(warehouse, rule_id))
    ]
    for other in known:
        if other.file is None:
            raise WarehouseError(
                f"{warehouse.path}: rule {other.rule_id} has the pattern {rule.pattern} already. "
                f"Remove it first with `tracewh rules rm {other.rule_id}`."
            )
    phases = _phases(connection)
    with transaction(connection):
        (rule_id,) = insert_rules(connection, [rule], run_id, None)
        _apply_rules(connection, run_id)
    return AddedRule(
        rule_id,
        _matched_op_names(connection, rule, run_id),
        known[0] if known else None,
        () if rule.phase is None or rule.phase in phases else phases,
    )


def _same_rules(connection: duckdb.DuckDBPyConnection, rule: Rule, run_id: int | None) -> list[int]:
    """The users' rules of a kind that say something of the same texts and are not asked after the `rule`."""
    own, values = "", []
    if rule.kind == "component":
        own = "AND r.inside_pattern IS NOT DISTINCT FROM ? AND r.is_direct = ?"
        values = [rule.inside, rule.is_direct]
    rows = connection.execute(
        f"SELECT rule_id FROM main.{RULE_TABLES[rule.kind]} AS r WHERE r.pattern = ? "
        "AND r.run_id IS NOT DISTINCT FROM ? AND r.vocabulary = 'user' "
        f"AND (r.artifact_id IS NULL OR r.priority <= ?) {own} ORDER BY r.priority, r.rule_id",
        [rule.pattern, run_id, rule.priority, *values],
    ).fetchall()
    return [int(rule_id) for (rule_id,) in rows]


def _phases(connection: duckdb.DuckDBPyConnection) -> tuple[str, ...]:
    rows = connection.execute(
        "SELECT phase FROM main.phase_rules UNION "
        "SELECT phase FROM main.component_rules WHERE phase IS NOT NULL ORDER BY 1"
    ).fetchall()
    return tuple(phase for (phase,) in rows)


def _matched_op_names(connection: duckdb.DuckDBPyConnection, rule: Rule, run_id: int | None) -> int:
    """How many op_names that the rule is asked for have a text which its pattern matches."""
    text = "scope" if rule.kind == "component" else "segment"
    row = first_row(
        connection,
        f"SELECT COUNT(DISTINCT op_name_id) FROM v1._op_name_paths WHERE rule_scope = ? AND {text} IN "
        "(SELECT text FROM main.pattern_matches WHERE pattern = ? AND is_match)",
        [run_id or 0, rule.pattern],
    )
    return 0 if row is None else int(row[0])


def remove_rule(warehouse: Warehouse, rule_id: int) -> None:
    """Remove a user's rule.

    Raises WarehouseError where there is none of that id, or it is a shipped one or from a run's file that is
    still there.
    """
    rule = find_rule(warehouse, rule_id)
    if rule is None:
        raise WarehouseError(f"{warehouse.path}: no rule {rule_id}. `tracewh rules` lists them.")
    if rule.vocabulary != _USER:
        raise WarehouseError(
            f"{warehouse.path}: rule {rule_id} is shipped with tracewh. "
            "Add one of your own, which is asked first."
        )
    if rule.file is not None and not is_gone(rule.file):
        raise WarehouseError(
            f"{warehouse.path}: rule {rule_id} is from {rule.file} of run {rule.run_name}. "
            "Change that file and ingest the run again."
        )
    connection = warehouse.connection
    with transaction(connection):
        # The file, if it comes back, is to be read as one that is not known.
        connection.execute(
            "UPDATE main.artifacts SET sha256 = '' WHERE artifact_id = "
            f"(SELECT artifact_id FROM main.{RULE_TABLES[rule.kind]} WHERE rule_id = ?)",
            [rule_id],
        )
        connection.execute(f"DELETE FROM main.{RULE_TABLES[rule.kind]} WHERE rule_id = ?", [rule_id])
        _apply_rules(connection, None)


def _apply_rules(connection: duckdb.DuckDBPyConnection, run_id: int | None) -> None:
    """Bring up to date what is kept of the op_names of a run, or of every run."""
    remember_matches(connection)
    keep_rows_of_op_names(connection)
    mark_metrics_outdated(connection, run_id)


def find_rule(warehouse: Warehouse, rule_id: int) -> StoredRule | None:
    """The rule of that id; None where there is none."""
    for kind, table in RULE_TABLES.items():
        row = first_row(
            warehouse.connection,
            f"SELECT t.vocabulary, r.run_name, r.path, a.path FROM main.{table} AS t "
            "LEFT JOIN main.runs AS r USING (run_id) "
            "LEFT JOIN main.artifacts AS a ON a.artifact_id = t.artifact_id WHERE t.rule_id = ?",
            [rule_id],
        )
        if row is not None:
            vocabulary, run_name, run_path, file = row
            place = None if file is None else _folder(Path(run_path)) / file
            return StoredRule(rule_id, kind, vocabulary, run_name, place)
    return None


def _folder(run_path: Path) -> Path:
    """What the paths of a run's files are relative to."""
    return run_path.parent if run_path.is_file() else run_path
