"""Plans of the views over calls, RCCL and pairs of captures: one capture is read, no join is pairwise."""

from __future__ import annotations

import json
from collections.abc import Iterator

import duckdb
import pytest

from tracewh.sql.schema_files import create_schema
from tracewh.sql.view_install import install_views
from tracewh.views.catalog import load_views

from . import test_view_plans as plans
from .live_views import keep_rows

EVENT_TABLES = (*plans.EVENT_TABLES, "call_parents", "event_stats", "graph_launches", "launch_details")

# Every other capture is of a ROCm profiler: calls in calls, groups of RCCL, kernels with and without ids.
ROWS = f"""
    {plans.ROWS}
    INSERT INTO main.names (name_id, name)
    VALUES (11, 'ncclAllReduce'), (12, 'ncclGroupStart'), (13, 'ncclGroupEnd'), (14, 'hipLaunchKernel'),
        (15, 'ncclDevKernel_Generic_1'), (16, 'count'), (17, 'hipGraphLaunch'), (18, 'ncclCommInitRank');
    UPDATE main.captures SET source_kind = 'rocpd' WHERE capture_id % 2 = 1;
    UPDATE main.host_events SET name_id = 11 + host_event_id % 8 WHERE capture_id % 2 = 1;
    UPDATE main.device_events SET name_id = 15 WHERE device_event_id % 3 = 0;
    UPDATE main.device_events SET kind = 'group', role = 'enclosing' WHERE device_event_id % 50 = 1;
    UPDATE main.call_details
    SET category = CASE WHEN call_details_id % 2 = 0 THEN 'HIP_RUNTIME_API_EXT' ELSE 'HSA_CORE_API' END;
    INSERT INTO main.call_parents (capture_id, correlation_id, parent_correlation_id)
    SELECT capture_id, n, n - 1 FROM ids, numbers WHERE n % 4 > 0;
    INSERT INTO main.graph_launches (capture_id, device_event_id, kernel_dispatch_count)
    SELECT capture_id, n, 3 FROM ids, numbers WHERE n % 50 = 1;
    INSERT INTO main.event_stats (capture_id, owner, owner_id, stat_name_id, value_type, int_value)
    SELECT capture_id, 'host_event', n, 16, 'int64', n FROM ids, numbers;
"""


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        create_schema(connection)
        connection.execute(ROWS)
        install_views(connection, load_views())
        keep_rows(connection)
        yield connection


@pytest.mark.parametrize(
    "view",
    [
        "v1._hip_callers",
        "v1.launches",
        "v1.unmatched_calls",
        "v1.graph_launches",
        "v1._rccl_host_calls",
        "v1._rccl_arguments",
        "v1._rccl_communicators",
        "v1._rccl_kernels",
        "v1._rccl_nth_kernels",
        "v1.rccl_calls",
        "v1._kernels_seen",
    ],
)
def test_events_of_other_captures_are_not_read(
    connection: duckdb.DuckDBPyConnection, view: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plans, "EVENT_TABLES", EVENT_TABLES)
    operators = plans.plan(connection, view)
    read = {plans.scanned_table(operator) for operator in plans.operators_below(operators)}
    assert read & set(EVENT_TABLES)
    assert list(plans.unfiltered_scans(operators)) == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM v1.launches WHERE capture_id = 7",
        "SELECT * FROM v1.unmatched_calls WHERE capture_id = 7",
        "SELECT * FROM v1.graph_launches WHERE capture_id = 7",
        "SELECT * FROM v1.rccl_calls WHERE capture_id = 7",
        "SELECT * FROM v1.kernel_matches WHERE run_id = 1",
        "SELECT * FROM v1.kernel_matches WHERE xspace_capture_id = 8",
        "SELECT * FROM v1.collective_agreement WHERE run_id = 1",
        "SELECT * FROM v1.step_payloads WHERE run_id = 1",
    ],
)
def test_events_are_not_compared_with_each_other(connection: duckdb.DuckDBPyConnection, query: str) -> None:
    rows = connection.execute(f"EXPLAIN (FORMAT JSON) {query}").fetchall()
    for operator in plans.operators_below(json.loads(rows[0][1])):
        if operator["name"] in plans.PAIRWISE_JOINS:
            inputs = [plans.scanned_table(child) for child in plans.operators_below(operator["children"])]
            assert not any(table in EVENT_TABLES for table in inputs)
