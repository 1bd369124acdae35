"""What is said where a run is not there."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracewh.ingest.errors import WarehouseError
from tracewh.sql.listing import check_run, missing_run
from tracewh.sql.warehouse import Warehouse

NINE = [f"run-{letter}" for letter in "abcdefghi"]


@pytest.mark.parametrize(
    ("name", "known", "told"),
    [
        ("x", [], "There is no run x; its runs: none."),
        ("run-z", NINE[:8], f"There is no run run-z; its runs: {', '.join(NINE[:8])}."),
        ("quite another", NINE, "There is no run quite another; `tracewh ls` lists the runs."),
        (
            "run-aa",
            [*(f"{number}" for number in range(8)), "run-a"],
            "There is no run run-aa; did you mean run-a? `tracewh ls` lists the runs.",
        ),
    ],
)
def test_of_many_runs_those_with_names_like_it_are_told(name: str, known: list[str], told: str) -> None:
    assert missing_run(name, known) == told


def test_a_warehouse_says_the_same(tmp_path: Path) -> None:
    with Warehouse.open(tmp_path / "w.duckdb", read_only=False) as opened:
        for number, name in enumerate(NINE):
            opened.connection.execute(
                "INSERT INTO runs (run_id, run_name, path) VALUES (?, ?, '')", [number, name]
            )
        assert check_run(opened, "run-c") == 2
        with pytest.raises(WarehouseError, match=r"has no run other; `tracewh ls` lists the runs\.$"):
            check_run(opened, "other")
