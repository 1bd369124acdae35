"""How DuckDB answers a query for one capture of many: the others stay unread, and no join is pairwise."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, cast

import duckdb
import pytest

from tracewh.sql.run_report import SECTIONS
from tracewh.sql.run_scope import run_scope
from tracewh.sql.schema_files import create_schema
from tracewh.sql.view_install import install_views
from tracewh.views.catalog import load_views

from .live_views import keep_rows

CAPTURES = 50
EVENTS_PER_CAPTURE = 200
# Joins that compare each row of one side with each of the other.
PAIRWISE_JOINS = ("NESTED_LOOP_JOIN", "BLOCKWISE_NL_JOIN", "CROSS_PRODUCT", "POSITIONAL_JOIN")
RULE_TABLES = ("phase_rules", "scope_rules", "component_rules")
EVENT_TABLES = (
    *("device_events", "host_events", "host_flows", "flow_chains", "event_links", "hlo_programs"),
    *("ops", "launch_details", "call_details"),
)

# Every kind of link occurs, so that the optimizer finds no branch of a view empty: launches of the annotating
# thread and of a thread that takes over, ops on a host thread, events without a launch, and instructions.
ROWS = f"""
    INSERT INTO main.names (name_id, name)
    VALUES (1, 'gemm'), (2, 'train'), (3, 'launch'), (4, 'fusion.1'), (5, 'jit(f)/jvp(mlp)/dot');
    INSERT INTO main.op_name_scopes (name_id, position, segment, scope, transforms, is_last)
    VALUES (5, 1, 'jit(f)', 'f', 'jit', FALSE), (5, 2, 'jvp(mlp)', 'mlp', 'jvp', FALSE),
        (5, 3, 'dot', 'dot', '', TRUE);
    INSERT INTO main.runs (run_id, run_name, path) VALUES (1, 'run', '/run'), (2, 'seventh', '/seventh');
    CREATE TEMP TABLE ids AS SELECT range AS capture_id FROM range({CAPTURES});
    CREATE TEMP TABLE numbers AS SELECT range AS n FROM range({EVENTS_PER_CAPTURE});
    INSERT INTO main.captures (capture_id, run_id, artifact_id, source_kind, origin_unix_ns)
    SELECT capture_id, CASE WHEN capture_id = 7 THEN 2 ELSE 1 END, capture_id, 'xspace', 0 FROM ids;
    INSERT INTO main.devices (device_id, run_id, hostname, device_type, device_ordinal)
    VALUES (1, 1, '', 'GPU', 0), (2, 1, '', 'CPU', 0);
    INSERT INTO main.tracks (capture_id, track_id, track_kind, track_name)
    SELECT capture_id, track_id, track_kind, ''
    FROM ids, (VALUES (0, 'thread'), (1, 'thread'), (2, 'stream')) AS t (track_id, track_kind);
    INSERT INTO main.steps (capture_id, step_id, step_num, name_id, track_id, start_ps, end_ps, source)
    SELECT capture_id, n, n, 2, 0, 100 * n, 100 * n + 90, 'test' FROM ids, numbers WHERE n < 10;
    INSERT INTO main.hlo_programs (capture_id, program_id, module_id, artifact_id)
    SELECT capture_id, 1, 1, 1 FROM ids;
    INSERT INTO main.hlo_instructions (module_id, instruction_id, computation_id, position, name_id, opcode,
        op_name_id, shape, is_root, operand_count)
    VALUES (1, 1, 1, 1, 4, 'fusion', 5, 'f32[]', TRUE, 0);
    INSERT INTO main.host_events (capture_id, host_event_id, track_id, name_id, start_ps, end_ps,
        correlation_id, scope_range_id, call_details_id)
    SELECT capture_id, n, n % 2, 3, 5 * n, 5 * n + 1, CASE WHEN n % 7 > 0 THEN n END, n, n % 20
    FROM ids, numbers;
    INSERT INTO main.host_flows (capture_id, host_event_id, producer_type, producer_id, consumer_type,
        consumer_id)
    SELECT capture_id, n, CASE WHEN n % 2 = 0 THEN 1 END, CASE WHEN n % 2 = 0 THEN n END,
        CASE WHEN n % 2 = 1 THEN 1 END, CASE WHEN n % 2 = 1 THEN n - 1 END
    FROM ids, numbers;
    INSERT INTO main.flow_chains (capture_id, host_event_id, track_id, start_ps, end_ps, handed_ps, hop,
        from_track_id, from_ps)
    SELECT capture_id, n, n % 2, 5 * n, 5 * n + 1, 5 * n - 5, 1, 1 - n % 2, 5 * n - 5
    FROM ids, numbers WHERE n % 2 = 1;
    INSERT INTO main.numbered_marks (capture_id, host_event_id, track_id, name_id, step_num, start_ps, end_ps,
        mark_source)
    SELECT capture_id, 0, 0, 2, 99, 2000, 2010, 'marker' FROM ids;
    INSERT INTO main.launch_details (capture_id, launch_details_id, registers_per_thread, grid_x, grid_y,
        grid_z)
    SELECT capture_id, n, n, n, 1, 1 FROM ids, numbers WHERE n < 20;
    INSERT INTO main.ops (capture_id, op_id, program_id, hlo_op_name_id, unique_hlo_op_id)
    SELECT capture_id, n, 1, 4, n FROM ids, numbers WHERE n < 20;
    INSERT INTO main.call_details (capture_id, call_details_id, context_id)
    SELECT capture_id, n, n FROM ids, numbers WHERE n < 20;
    INSERT INTO main.device_events (capture_id, device_event_id, device_id, track_id, name_id, start_ps,
        end_ps, kind, role, correlation_id, op_id, launch_details_id, scope_range_id)
    SELECT capture_id, n, CASE WHEN n % 11 = 0 THEN 2 ELSE 1 END, CASE WHEN n % 11 = 0 THEN 0 ELSE 2 END, 1,
        5 * n + 2, 5 * n + 6, 'kernel', 'work', CASE WHEN n % 5 > 0 THEN n END, n % 20,
        CASE WHEN n % 3 > 0 THEN n % 20 END, n
    FROM ids, numbers;
    INSERT INTO main.scope_ranges (capture_id, scope_range_id, parent_scope_range_id)
    SELECT capture_id, n, n - 1 FROM ids, numbers WHERE n % 4 > 0;
"""


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        create_schema(connection)
        connection.execute(ROWS)
        install_views(connection, load_views())
        keep_rows(connection)
        yield connection


def plan(connection: duckdb.DuckDBPyConnection, view: str) -> list[dict[str, Any]]:
    """The top operators of the plan of a query for one capture."""
    return explained(connection, f"SELECT * FROM {view} WHERE capture_id = 7", [])


def explained(
    connection: duckdb.DuckDBPyConnection, query: str, parameters: list[Any]
) -> list[dict[str, Any]]:
    """The top operators of the plan of a query."""
    rows = connection.execute(f"EXPLAIN (FORMAT JSON) {query}", parameters).fetchall()
    operators: list[dict[str, Any]] = json.loads(rows[0][1])
    return operators


def operators_below(operators: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for operator in operators:
        yield operator
        yield from operators_below(operator["children"])


def unfiltered_scans(operators: list[dict[str, Any]], is_filtered: bool = False) -> Iterator[str]:
    """Event tables of which rows of other captures go beyond the scan, or a filter right above it."""
    for operator in operators:
        info = operator["extra_info"]
        is_kept = is_filtered and operator["name"] in ("PROJECTION", "UNION", "FILTER")
        filters = str(info.get("Filters", "")) + str(info.get("Expression", ""))
        is_filtered_here = is_kept or re.search(r"\bcapture_id ?(=|>=|BETWEEN) ?7\b", filters) is not None
        table = scanned_table(operator)
        if table in EVENT_TABLES and not (is_filtered or is_filtered_here):
            yield str(table)
        yield from unfiltered_scans(operator["children"], is_filtered_here)


def scanned_table(operator: dict[str, Any]) -> str | None:
    """Bare name of the table that a scan reads; None for other operators."""
    info = operator["extra_info"]
    return str(info["Table"]).rsplit(".", 1)[-1].strip('"') if "Table" in info else None


@pytest.mark.parametrize(
    "view",
    [
        "v1.attribution",
        "v1.device_time",
        "v1.phase_time",
        "v1.component_time",
        "v1.steps",
        "v1.step_classes",
        "v1.launches",
        "v1.clock_alignment",
        "v1.scope_ranges",
        "v1.idle_gaps",
        "v1.collective_executions",
        "v1.collective_skew",
        "v1.occurrences",
    ],
)
def test_only_rules_are_compared_with_each_row(connection: duckdb.DuckDBPyConnection, view: str) -> None:
    operators = list(operators_below(plan(connection, view)))
    assert any(scanned_table(operator) in ("device_events", "event_links") for operator in operators)
    for operator in operators:
        if operator["name"] in PAIRWISE_JOINS:
            inputs = {scanned_table(child) for child in operators_below(operator["children"])}
            # What is compared is few: rules, the distinct texts that they match, and sets of rules.
            assert inputs - {None} <= {*RULE_TABLES, "op_name_scopes", "captures"}


@pytest.mark.parametrize(
    "view",
    [
        "v1._event_ops",
        "v1.kernel_stats",
        "v1.launches",
        "v1.captures",
        "v1.attribution",
        "v1.device_time",
        "v1.phase_time",
        "v1.component_time",
        "v1.steps",
        "v1.step_classes",
        "v1._collective_ends",
        "v1.scope_ranges",
        "v1.idle_gaps",
        "v1.collective_executions",
        "v1.collective_skew",
        "v1.occurrences",
        "v1.reconciliation",
    ],
)
def test_events_of_other_captures_are_not_read(connection: duckdb.DuckDBPyConnection, view: str) -> None:
    operators = plan(connection, view)
    read = {scanned_table(operator) for operator in operators_below(operators)}
    assert read & {"device_events", "event_links"}
    assert list(unfiltered_scans(operators)) == []


class RecordedConnection:
    """A connection that notes the plan of each query."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self.plans: list[list[dict[str, Any]]] = []

    def execute(self, query: str, parameters: list[Any] | None = None) -> duckdb.DuckDBPyConnection:
        """As of a connection."""
        if " v1." in query:
            self.plans.append(explained(self._connection, query, parameters or []))
        return self._connection.execute(query, parameters or [])


@pytest.mark.parametrize("view", [*SECTIONS, "v1.run_time", "v1.run_phases", "v1.run_components"])
def test_events_of_other_runs_are_not_read(connection: duckdb.DuckDBPyConnection, view: str) -> None:
    views = {view.name: view for view in load_views()}
    recorded = RecordedConnection(connection)
    with run_scope(cast(duckdb.DuckDBPyConnection, recorded), [2]) as scope:
        scope.rows(views[view], "s.run_id")
    read = [operator for plan in recorded.plans for operator in operators_below(plan)]
    assert any(scanned_table(operator) in ("device_events", "event_links") for operator in read)
    assert [table for plan in recorded.plans for table in unfiltered_scans(plan)] == []
