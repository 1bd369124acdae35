"""The packaged views: portable, documented as they are, tested, and with the columns that others rely on."""

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tracewh.sql.lint import lint_header, lint_view
from tracewh.sql.schema_files import create_schema
from tracewh.sql.view_install import install_views, outdated_views
from tracewh.views.catalog import View, load_views
from tracewh.views.macro_catalog import load_macros

VIEWS = load_views()
# A released view is never taken away.
RELEASED = (
    "attribution", "captures", "clock_alignment", "collective_agreement", "collective_executions",
    "comparability", "hlo_changes", "kernel_changes", "metric_changes", "metric_history", "metrics",
    "run_groups", "setting_changes", "step_change_levels", "step_changes",
    "collective_skew", "component_time", "counters", "device_time", "graph_launches", "idle_gaps",
    "joined_kernels", "kernel_counters", "kernel_matches", "kernel_stats", "launches", "phase_time",
    "rccl_calls", "reconciliation", "run_components", "run_phases", "run_time", "scope_ranges",
    "step_classes", "step_payloads", "step_spread", "steps", "unmatched_calls",
)  # fmt: skip
SQL_TESTS = Path(__file__).parent / "sql"

# Names that scripts outside this repository rely on. A view may have more columns, never fewer.
CONTRACT = {
    "captures": """capture_id run_id run_name process_index source_kind platform device_kind device_count
        commit_sha step_count device_event_count span_ps problem_count""",
    "steps": "capture_id device_id device_ordinal step_num start_ps end_ps duration_ps is_complete found_by",
    "launches": """capture_id device_event_id host_event_id api_name thread_name launch_latency_ps
        queue_delay_ps link_status""",
    "attribution": """capture_id device_event_id device_id device_ordinal step_num kernel_name event_class
        program_id hlo_op op_name opcode phase launch_phase component attribution_source start_ps end_ps""",
    "kernel_stats": """capture_id kernel_name op_name occurrences total_ps avg_ps min_ps max_ps median_ps
        registers_per_thread shared_memory_bytes grid block occupancy_ratio""",
    "op_stats": """capture_id device_id device_ordinal program_id hlo_op opcode op_name executions
        kernel_count sum_ps union_ps flops bytes_accessed flops_per_s bytes_per_s""",
    "device_time": """capture_id device_id device_ordinal step_num window_ps busy_ps idle_ps compute_ps
        communication_ps copy_ps overlap_ps exposed_communication_ps exposed_copy_ps""",
    "phase_time": "capture_id device_id device_ordinal step_num phase sum_ps union_ps share_ratio",
    "component_time": """capture_id device_id device_ordinal step_num phase component sum_ps union_ps
        share_ratio""",
    "collectives": """capture_id device_id program_id hlo_op kind group_size payload_bytes executions
        union_ps algorithm_bytes_per_s bus_bytes_per_s exposed_ps""",
    "idle_gaps": "capture_id device_id step_num start_ps duration_ps previous_kernel next_kernel cause",
    "memory": "run_id device_id kind bytes evidence is_worst_device",
    "model_flops": "run_id component useful_flops share_ratio formula",
    "throughput": "run_id metric value unit samples statistic spread warmup_excluded denominator evidence",
    "roofline": """capture_id device_id scope scope_name evidence memory_level dtype flops bytes union_ps
        intensity_flops_per_byte ridge_flops_per_byte peak_flops_per_s peak_bytes_per_s roof_flops_per_s
        achieved_flops_per_s efficiency_ratio bound_by""",
    "counters": "capture_id kernel_name occurrence counter_name value formula_id",
    "occurrences": "capture_id program_id hlo_op component expected actual status",
    "reconciliation": "capture_id device_id step_num ledger expected_ps actual_ps difference_ps",
    "metrics": "capture_id run_id metric scope value unit polarity evidence view_version",
}

each_view = pytest.mark.parametrize("view", VIEWS, ids=lambda view: view.name)


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        create_schema(connection)
        install_views(connection, VIEWS)
        yield connection


@each_view
def test_query_is_portable(view: View) -> None:
    assert "\n".join(map(str, lint_view(view))) == ""


@each_view
def test_header_is_complete(view: View) -> None:
    assert "\n".join(map(str, lint_header(view))) == ""


@each_view
def test_header_columns_are_those_of_the_view(view: View, connection: duckdb.DuckDBPyConnection) -> None:
    described = connection.execute(f"DESCRIBE {view.name}").fetchall()
    assert [(column.name, column.type) for column in view.columns] == [row[:2] for row in described]


@each_view
def test_an_empty_warehouse_answers(view: View, connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute(f"SELECT * FROM {view.name}").fetchall()


@each_view
def test_view_has_a_test_of_its_own(view: View) -> None:
    mention = re.compile(rf"\b{re.escape(view.name)}\b")
    assert any(mention.search(path.read_text(encoding="utf-8")) for path in SQL_TESTS.rglob("*.test"))


def test_released_views_are_there() -> None:
    assert {view.name for view in VIEWS} >= {f"v1.{name}" for name in RELEASED}


@pytest.mark.parametrize(
    "view",
    [view for view in VIEWS if view.name.removeprefix("v1.") in CONTRACT],
    ids=lambda view: view.name,
)
def test_contract_columns(view: View) -> None:
    promised = CONTRACT[view.name.removeprefix("v1.")].split()
    assert [name for name in promised if name not in {column.name for column in view.columns}] == []


def test_warehouse_records_what_it_holds(connection: duckdb.DuckDBPyConnection) -> None:
    recorded = connection.execute("SELECT view_name, version, fingerprint FROM main.view_versions").fetchall()
    shipped = (*load_macros(), *VIEWS)
    assert sorted(recorded) == sorted((item.name, item.version, item.fingerprint) for item in shipped)
    assert outdated_views(connection, VIEWS) == []
