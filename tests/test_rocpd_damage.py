"""The ways in which the generator spoils synthetic rocpd databases, and what each leaves in the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from .generated_rocpd import ask, damage, write_file


def spoiled(directory: Path, name: str) -> Path:
    return write_file(directory / "results.db", damage.DAMAGE[name], enforce=False, steps=1)


#: What each way of spoiling leaves in the file.
SPOILED = [
    (
        "null_columns",
        "SELECT count(*) FROM rocpd_kernel_dispatch WHERE tid IS NULL OR event_id IS NULL "
        "OR region_name_id IS NULL OR private_segment_size IS NULL OR group_segment_size IS NULL",
        5,
    ),
    (
        "dangling_ids",
        "SELECT count(*) FROM rocpd_kernel_dispatch WHERE 987654 IN (tid, agent_id, kernel_id, queue_id, "
        "stream_id, region_name_id, event_id)",
        7,
    ),
    ("dangling_ids", "SELECT count(*) FROM pragma_foreign_key_check", 27),
    (
        "text_in_numbers",
        "SELECT count(*) FROM rocpd_kernel_dispatch WHERE 'text' IN (typeof(start), typeof(end), "
        "typeof(grid_size_x), typeof(workgroup_size_y), typeof(private_segment_size), typeof(queue_id))",
        6,
    ),
    ("text_in_numbers", "SELECT count(*) FROM rocpd_pmc_event WHERE value IN ('many', 'nan')", 2),
    ("reversed_times", "SELECT count(*) FROM rocpd_kernel_dispatch WHERE end < start", 1),
    ("reversed_times", "SELECT count(*) FROM rocpd_memory_allocate WHERE end < start", 1),
    ("zero_times", "SELECT count(*) FROM rocpd_region WHERE start = 0 AND end = 0", 1),
    (
        "unsigned_values",
        "SELECT count(*) FROM rocpd_memory_copy WHERE typeof(dst_address) = 'real' AND dst_address > 1e18",
        1,
    ),
    ("unsigned_values", "SELECT count(*) FROM rocpd_memory_copy WHERE dst_address < 0", 1),
    (
        "unsorted_times",
        "SELECT count(*) FROM (SELECT start < lag(start) OVER (ORDER BY id) AS earlier "
        "FROM rocpd_kernel_dispatch WHERE queue_id = 1) WHERE earlier",
        # Twelve kernels of the queue: two per layer forward, one backward, three of the graph.
        11,
    ),
    ("missing_calls", "SELECT count(*) FROM rocpd_region", 0),
    ("empty_facts", "SELECT count(*) FROM rocpd_kernel_dispatch", 0),
    ("broken_json", "SELECT count(*) FROM rocpd_event WHERE NOT json_valid(extdata)", 2),
    ("viewer_tables", "SELECT count(*) FROM sqlite_master WHERE name GLOB 'roc_optiq_*'", 3),
    ("hostile_views", "SELECT count(*) FROM sqlite_master WHERE sql LIKE '%load_extension%'", 1),
    ("hostile_views", "SELECT count(*) FROM sqlite_master WHERE sql LIKE '%RECURSIVE%'", 3),
    ("hostile_views", "SELECT count(*) FROM sqlite_master WHERE type = 'trigger'", 1),
    ("hostile_column", "SELECT count(*) FROM pragma_table_xinfo('rocpd_event') WHERE name = 'trap'", 1),
]


@pytest.mark.parametrize(("name", "sql", "count"), SPOILED)
def test_damage(tmp_path: Path, name: str, sql: str, count: int) -> None:
    assert ask(spoiled(tmp_path, name), sql) == [(count,)]


def test_damage_is_all_covered() -> None:
    assert {name for name, _, _ in SPOILED} | {"many_tables"} == damage.DAMAGE.keys()


def test_ten_thousand_tables(tmp_path: Path) -> None:
    sql = "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name GLOB 'other_*'"
    assert ask(spoiled(tmp_path, "many_tables"), sql) == [(10_000,)]
