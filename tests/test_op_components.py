"""v1.op_stats and v1.attribution say the same of an op's component."""

from __future__ import annotations

from pathlib import Path

import pytest

import tracewh

FIXTURES = Path(__file__).parents[1] / "fixtures"
_OF_EVENTS = """
    SELECT DISTINCT capture_id, device_id, program_id, hlo_op, component, component_group, launch_phase
    FROM v1.attribution
    WHERE hlo_op IS NOT NULL AND program_id IS NOT NULL
"""
_OF_OPS = """
    SELECT capture_id, device_id, program_id, hlo_op, component, component_group, launch_phase
    FROM v1.op_stats
"""


@pytest.mark.parametrize("run", ["h200_graphs", "h200_moe_direct", "cpu_train"])
def test_ops_have_the_components_of_their_events(run: str, tmp_path: Path) -> None:
    warehouse = tmp_path / "w.duckdb"
    tracewh.ingest_run(FIXTURES / run, warehouse=warehouse)
    with tracewh.open(warehouse) as opened:
        events = opened.connection.execute(_OF_EVENTS).fetchall()
        ops = opened.connection.execute(_OF_OPS).fetchall()
    assert len(ops) > 20
    assert sorted(map(repr, ops)) == sorted(map(repr, events))
