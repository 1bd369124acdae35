"""What the rules of a warehouse are, and what they say of one op_name."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa

from tracewh.ingest.errors import QueryError
from tracewh.ingest.op_names import split_op_name
from tracewh.ingest.storable_text import storable
from tracewh.sql.listing import Record, check_run, records
from tracewh.sql.rows import first_row
from tracewh.sql.rules import RULE_TABLES
from tracewh.sql.schema_files import create_schema
from tracewh.sql.view_install import install_views
from tracewh.sql.warehouse import Warehouse
from tracewh.views.catalog import load_views

_RULES = """
    WITH decided AS (
        SELECT m.rule_scope, m.phase_rule_id AS rule_id, m.op_name_id FROM v1._op_name_members AS m
        UNION SELECT m.rule_scope, m.component_rule_id, m.op_name_id FROM v1._op_name_members AS m
        UNION SELECT p.rule_scope, r.rule_id, p.op_name_id
        FROM v1._op_name_paths AS p
        JOIN v1._segment_rules AS s ON s.rule_scope = p.rule_scope AND s.segment = p.segment
        JOIN v1._rules AS r ON r.rule_scope = p.rule_scope AND r.rule_kind = 'structure'
            AND r.place = s.structure_place
    ),
    counts AS (SELECT rule_scope, rule_id, COUNT(*) AS op_names FROM decided GROUP BY ALL)
    SELECT r.rule_id AS id, r.rule_kind AS kind, r.vocabulary, n.run_name AS run, r.priority, r.pattern,
           r.inside_pattern AS inside, r.is_direct AS direct, r.is_structural AS structural, r.phase,
           r.component_group AS "group", COALESCE(c.op_names, 0) AS op_names, r.reason, a.path AS file
    FROM v1._rules AS r
    LEFT JOIN counts AS c ON c.rule_scope = r.rule_scope AND c.rule_id = r.rule_id
    LEFT JOIN main.runs AS n ON n.run_id = r.run_id
    LEFT JOIN (SELECT rule_id, artifact_id FROM main.phase_rules
               UNION ALL SELECT rule_id, artifact_id FROM main.scope_rules
               UNION ALL SELECT rule_id, artifact_id FROM main.component_rules) AS f ON f.rule_id = r.rule_id
    LEFT JOIN main.artifacts AS a ON a.artifact_id = f.artifact_id
    WHERE CASE WHEN $1 IS NULL THEN r.rule_scope = COALESCE(r.run_id, 0) ELSE r.rule_scope = $1 END
    ORDER BY CASE r.rule_kind WHEN 'structure' THEN 1 WHEN 'phase' THEN 2 ELSE 3 END,
             n.run_name NULLS LAST, r.place
"""
_SEGMENTS = """
    SELECT p.member, p.position, p.segment, p.scope, p.is_last AS primitive,
           COALESCE(s.is_structural, FALSE) AS structural, structure.rule_id AS structure_rule,
           phase.rule_id AS phase_rule, phase.phase
    FROM v1._op_name_paths AS p
    LEFT JOIN v1._segment_rules AS s ON s.rule_scope = p.rule_scope AND s.segment = p.segment
    LEFT JOIN v1._rules AS structure ON structure.rule_scope = p.rule_scope
        AND structure.rule_kind = 'structure' AND structure.place = s.structure_place
    LEFT JOIN v1._rules AS phase ON phase.rule_scope = p.rule_scope
        AND phase.rule_kind = 'phase' AND phase.place = s.phase_place
    WHERE p.rule_scope = $1 AND p.member > 0
    ORDER BY p.member, p.position
"""
_OPERATIONS = """
    SELECT member, phase, component, component_group AS "group", is_loop_scope AS loop_scope,
           phase_rule_id AS phase_rule, component_rule_id AS component_rule
    FROM v1._op_name_members WHERE rule_scope = $1 AND member > 0 ORDER BY member
"""
_WHOLE = """
    SELECT COALESCE(phase, 'unattributed') AS phase, COALESCE(component, 'unattributed') AS component,
           COALESCE(component_group, 'unattributed') AS "group", is_mixed AS mixed
    FROM v1._op_name_classes WHERE rule_scope = $1
"""


def rules(warehouse: Warehouse, run: str | None) -> list[Record]:
    """The rules in the order in which they are asked, with the number of op_names that each decides.

    Without a run those of every run, and before them those of each run alone; else those that hold for it.
    Raises WarehouseError where there is no such run.
    """
    return records(warehouse, _RULES, None if run is None else _rule_scope(warehouse, run))


def explain(warehouse: Warehouse, op_name: str, run: str | None) -> Record:
    """What the rules, of every run or those that hold for one, say of any op_name, and which of them decided.

    Raises WarehouseError where there is no such run, QueryError where no warehouse can hold the op_name.
    """
    if storable(op_name) != op_name:
        raise QueryError("the op_name is no UTF-8 text. Copy it from `tracewh sql`, or write it in UTF-8.")
    rule_scope = 0 if run is None else _rule_scope(warehouse, run)
    with duckdb.connect() as connection:
        create_schema(connection)
        install_views(connection, load_views())
        for table in RULE_TABLES.values():
            query = f"SELECT * FROM main.{table} WHERE run_id IS NULL OR run_id = {rule_scope}"
            tracewh_rules = warehouse.connection.sql(query).to_arrow_table()  # noqa: F841
            connection.execute(f"DELETE FROM main.{table}")
            connection.execute(f"INSERT INTO main.{table} BY NAME SELECT * FROM tracewh_rules")
        _store_op_name(connection, op_name, rule_scope)
        found = _records(connection, _WHOLE, rule_scope)
        unknown = {"phase": "unattributed", "component": "unattributed", "group": "unattributed"}
        return {
            "op_name": op_name,
            **(found[0] if found else unknown | {"mixed": False}),
            "operations": _records(connection, _OPERATIONS, rule_scope),
            "segments": _records(connection, _SEGMENTS, rule_scope),
        }


def _store_op_name(connection: duckdb.DuckDBPyConnection, op_name: str, rule_scope: int) -> None:
    """Let one capture of the run have one event of that op_name."""
    connection.execute("INSERT INTO main.names VALUES (1, ?)", [op_name])
    connection.execute(
        "INSERT INTO main.captures (capture_id, run_id, artifact_id, source_kind) VALUES (1, ?, 1, 'xspace')",
        [rule_scope],
    )
    connection.execute("INSERT INTO main.ops (capture_id, op_id, op_name_id) VALUES (1, 0, 1)")
    segments = [
        {
            "name_id": 1,
            "member": segment.member,
            "position": segment.position,
            "segment": segment.segment,
            "scope": segment.scope,
            "transforms": segment.transforms,
            "is_last": segment.is_last,
        }
        for segment in split_op_name(op_name)
    ]
    if segments:
        tracewh_segments = pa.Table.from_pylist(segments)  # noqa: F841
        connection.execute("INSERT INTO main.op_name_scopes BY NAME SELECT * FROM tracewh_segments")


def _rule_scope(warehouse: Warehouse, run: str) -> int:
    check_run(warehouse, run)
    row = first_row(
        warehouse.connection,
        "SELECT COALESCE(s.rule_scope, 0) FROM main.runs AS r "
        "LEFT JOIN v1._rule_scopes AS s ON s.rule_scope = r.run_id WHERE r.run_name = ?",
        [run],
    )
    assert row is not None
    return int(row[0])


def _records(connection: duckdb.DuckDBPyConnection, query: str, *parameters: Any) -> list[Record]:
    cursor = connection.execute(query, list(parameters))
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
