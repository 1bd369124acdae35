"""What runs were made with: which differences are named, and which keep runs from being compared."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import tracewh
from tracewh.sql.schema_files import create_schema
from tracewh.sql.view_install import install_views
from tracewh.views.catalog import load_views

from .ingest_runs import query, small_capture, write_run
from .shared_runs import find_run

RUNS = (
    *("hist_01", "hist_02", "hist_06", "hist_07", "h200x1_small"),
    *("h200x2_medium_fsdp2", "h200x2_medium_fsdp2_opt", "h200x2_medium_fsdp2_nocb"),
)

Change = tuple[str, str, str | None, str | None]


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    path = folder / "w.duckdb"
    for name in RUNS:
        assert tracewh.ingest_run(find_run(name, folder), warehouse=path).status == "loaded"
    return path


def changes(warehouse: Path, base: str, head: str, effect: str) -> list[Change]:
    """Kind, setting and values of what differs between two runs with that effect."""
    return query(
        warehouse,
        "SELECT setting_kind, setting, base_value, head_value FROM v1.setting_changes "
        f"WHERE base_group = 'run:{base}' AND head_group = 'run:{head}' AND effect = '{effect}' ORDER BY ALL",
    )


def reasons(warehouse: Path, base: str, head: str) -> set[str]:
    """Settings that keep two runs from being compared; not the state of their metrics."""
    rows = query(
        warehouse,
        "SELECT setting FROM v1.comparability_reasons WHERE reason_kind <> 'metrics' "
        f"AND base_group = 'run:{base}' AND head_group = 'run:{head}'",
    )
    return {setting for (setting,) in rows}


CAUSES: dict[tuple[str, str], list[Change]] = {
    ("hist_01", "hist_02"): [],
    ("h200x1_small", "hist_01"): [],
    ("hist_06", "hist_07"): [
        ("config", "capacity", "40", "64"),
        ("config", "capacity_factor", "1.25", "2.0"),
    ],
    ("h200x2_medium_fsdp2", "h200x2_medium_fsdp2_opt"): [
        ("config", "remat_saved_names", None, "dispatched"),
        ("config", "remat_saved_names", None, "mlp_wi_0"),
        ("config", "remat_saved_names", None, "mlp_wi_1"),
        ("config", "remat_saved_names", None, "mlp_wo"),
        ("config", "variant", "baseline", "opt"),
    ],
    ("h200x2_medium_fsdp2", "h200x2_medium_fsdp2_nocb"): [
        ("environment", "--xla_gpu_enable_command_buffer", None, "")
    ],
}


@pytest.mark.parametrize("pair", CAUSES, ids="-".join)
def test_candidate_causes(warehouse: Path, pair: tuple[str, str]) -> None:
    assert changes(warehouse, *pair, "candidate_cause") == sorted(CAUSES[pair], key=str)
    assert changes(warehouse, *pair, "not_comparable") == []
    assert changes(warehouse, *pair, "information") == []
    assert reasons(warehouse, *pair) == set()


def test_another_model(warehouse: Path) -> None:
    # Of the two configurations: sizes, batch and useful FLOPs differ, experts, top-k and type are the same.
    expected = {
        *("width", "layers", "heads", "kv_heads", "head_dim", "mlp_width", "expert_width", "moe_layers"),
        *("vocabulary", "sequence", "global_batch", "tokens_per_update", "parameters"),
        "useful_flops_per_update",
    }
    pair = ("h200x1_small", "h200x2_medium_fsdp2")
    assert reasons(warehouse, *pair) == expected
    causes = changes(warehouse, *pair, "candidate_cause")
    assert ("config", "mesh.fsdp", "1", "2") in causes
    assert ("device", "device_count", "1", "2") in causes


def test_values_are_those_of_the_files(warehouse: Path, tmp_path: Path) -> None:
    config = json.loads((find_run("hist_07", tmp_path) / "config.json").read_text())
    found = dict(
        query(
            warehouse,
            "SELECT s.setting, s.value FROM v1._run_settings AS s JOIN runs AS r USING (run_id) "
            "WHERE r.run_name = 'hist_07' AND s.list_setting IS NULL",
        )
    )
    renamed = {"width": "d_model", "vocabulary": "vocab", "sequence": "seq", "top_k": "topk"}
    for setting in ("layers", "heads", "kv_heads", "capacity", "attn", "optimizer", "jax", *renamed):
        assert found[setting] == str(config[renamed.get(setting, setting)])
    assert found["device_count"] == str(config["devices"])
    told = " ".join(found.values())
    assert config["hlo_module"] in told
    for left_out in (config["commit"], str(config["compile_s"]), "/tmp/"):
        assert left_out not in told


# --- what tracewh.record notes ------------------------------------------------------------------------------

_ENVIRONMENT = (
    "import json; from tracewh.record_environment import environment; print(json.dumps(environment()))"
)


def noted_environment(xla_flags: str | None, *arguments: str) -> dict[str, Any]:
    """The environment of a process with these flags and arguments, as it notes it itself."""
    kept = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    flags = {} if xla_flags is None else {"XLA_FLAGS": xla_flags}
    command = [sys.executable, "-c", _ENVIRONMENT, *arguments]
    done = subprocess.run(
        command, env=kept | {"JAX_PLATFORMS": "cpu"} | flags, check=True, capture_output=True, text=True
    )
    noted: dict[str, Any] = json.loads(done.stdout)
    return noted


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("recorded")
    environments = {
        "plain": noted_environment(None, "--out", "/tmp/a"),
        "flagged": noted_environment(
            "--xla_dump_to=/tmp/d --xla_force_host_platform_device_count=2", "--out", "/tmp/b"
        ),
    }
    packages = environments["plain"]["packages"] | {"jax": "0.0.1"}
    newer = {"hostname": "other", "jax": "0.0.1", "packages": packages}
    environments["elsewhere"] = environments["plain"] | newer
    path = folder / "w.duckdb"
    for index, (name, noted) in enumerate(environments.items()):
        record = {"environment": noted, "started_at": f"2026-01-0{index + 1}", "step_count": index}
        run = write_run(folder / name, {"a.xplane.pb": small_capture(name)}, {"tracewh_record.json": record})
        assert tracewh.ingest_run(run, warehouse=path).status == "loaded"
    return path


def test_flags_of_recorded_runs(recorded: Path) -> None:
    # The devices are those of the captures, one each.
    assert changes(recorded, "plain", "flagged", "candidate_cause") == [
        ("environment", "--xla_force_host_platform_device_count", None, "2")
    ]
    assert changes(recorded, "plain", "flagged", "information") == []


def test_versions_of_recorded_runs(recorded: Path) -> None:
    (jax,) = query(recorded, "SELECT value FROM run_params WHERE param = 'record.environment.jax' LIMIT 1")
    assert changes(recorded, "plain", "elsewhere", "candidate_cause") == [
        ("versions", "jax", jax[0], "0.0.1")
    ]
    assert reasons(recorded, "plain", "elsewhere") == set()


# --- many runs ----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def many() -> Iterator[duckdb.DuckDBPyConnection]:
    """300 runs of 50 parameters, with a label on half of them."""
    with duckdb.connect() as connection:
        create_schema(connection)
        install_views(connection, load_views())
        connection.execute("""
            INSERT INTO main.runs (run_id, run_name, path) SELECT i, 'run_' || i, '' FROM range(300) AS t (i);
            INSERT INTO main.run_params (run_id, artifact_id, param, value)
            SELECT i, i, 'option_' || j, CASE WHEN j = 3 THEN i ELSE j END
            FROM range(300) AS t (i), range(50) AS u (j);
        """)
        yield connection


def _operators(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield node
    # Up to DuckDB 1.x all operators are children; since 2.0 the first is in a list of its own.
    for child in (*node.get("operator", []), *node.get("children", [])):
        yield from _operators(child)


def _row_count(node: dict[str, Any]) -> int:
    return int(node.get("intermediate_rows", node.get("operator_cardinality", 0)))


@pytest.mark.parametrize("view", ["setting_changes", "comparability_reasons", "comparability"])
def test_a_pair_of_groups_is_all_that_is_joined(many: duckdb.DuckDBPyConnection, view: str) -> None:
    rows = many.execute(
        f"EXPLAIN (ANALYZE, FORMAT JSON) SELECT * FROM v1.{view} "
        "WHERE base_group = 'run:run_7' AND head_group = 'run:run_8'"
    ).fetchall()
    sizes = [_row_count(node) for node in _operators(json.loads(rows[0][1]))]
    # All parameters are scanned, and only those of two runs are joined with pairs.
    assert 300 * 50 <= max(sizes) < 1.5 * 300 * 50


def test_changes_among_many_runs(many: duckdb.DuckDBPyConnection) -> None:
    found = many.execute(
        "SELECT setting, base_value, head_value FROM v1.setting_changes "
        "WHERE base_group = 'run:run_7' AND head_group = 'run:run_8'"
    ).fetchall()
    assert found == [("option_3", "7", "8")]
