"""A run's files beside its captures, and HLO without any capture."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import tracewh

from .ingest_runs import (
    CAPTURES,
    FIXTURES,
    commits,
    content,
    query,
    small_capture,
    statuses,
    write_run,
)
from .xspace_oracle import SpaceBuilder, read_space


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "warehouse.duckdb"


# --- files beside the captures ------------------------------------------------------------------------------


def params(warehouse: Path) -> dict[str, str | None]:
    rows = query(warehouse, "SELECT param, value FROM run_params")
    assert len(rows) == len(dict(rows))
    return dict(rows)


def test_config_is_flattened(tmp_path: Path, warehouse: Path) -> None:
    config = {
        "model": {"layers": 56, "name": "8x22b", "rope": {"theta": 1e6}},
        "mesh": [["fsdp", 2], ["ep", 4]],
        "remat": None,
        "scan": True,
        "lr": 3e-4,
        "empty": {},
        "big": 2**70,
    }
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()}, {"config.json": config})
    tracewh.ingest_run(run, warehouse=warehouse)
    assert params(warehouse) == {
        "model.layers": "56",
        "model.name": "8x22b",
        "model.rope.theta": "1000000.0",
        "mesh[0][0]": "fsdp",
        "mesh[0][1]": "2",
        "mesh[1][0]": "ep",
        "mesh[1][1]": "4",
        "remat": None,
        "scan": "true",
        "lr": "0.0003",
        "big": str(2**70),
    }


def test_config_in_yaml(tmp_path: Path, warehouse: Path) -> None:
    text = "model:\n  layers: 56\nhf_token: s3cret\ncommit: c0ffee\nday: 2026-11-30\n"
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()}, {"config.yml": text})
    tracewh.ingest_run(run, warehouse=warehouse)
    found = params(warehouse)
    assert found["model.layers"] == "56"
    assert found["hf_token"] is None
    assert commits(warehouse) == [("c0ffee", "config")]


def test_yaml_that_would_run_code_is_refused(tmp_path: Path, warehouse: Path) -> None:
    text = f"a: !!python/object/apply:os.mkdir ['{tmp_path / 'made'}']\n"
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()}, {"config.yaml": text})
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert statuses(report)["config.yaml"] == "rejected"
    assert not (tmp_path / "made").exists()


SECRETS: dict[str, Any] = {
    "hf_token": "s3cret",
    "HF_TOKEN": "s3cret",
    "env": {"WANDB_API_KEY": "s3cret", "AWS_SECRET_ACCESS_KEY": "s3cret", "GITHUB_TOKEN": "s3cret"},
    "token": "s3cret",
    "password": "s3cret",
    "db": {"passwd": "s3cret", "credentials": {"user": "s3cret", "key": "s3cret"}},
    "secrets": ["s3cret"],
    "tokens_of_services": {"access_token": "s3cret", "token": {"value": "s3cret"}},
    "auth_token": ["s3cret"],
    "private_key": "s3cret",
    "argv": ["train.py", "--hf_token=s3cret", "--api_key", "s3cret"],
}
HARMLESS: dict[str, Any] = {
    "tokens_per_update": 65536,
    "tokenizer_path": "assets/tokenizer.model",
    "tokens_per_s": 1.5,
    "max_tokens": 8,
    "token_count": 9,
    "key_heads": 4,
    "eos_token": "</s>",
}


@pytest.mark.parametrize("name", SECRETS)
def test_secrets_are_dropped(tmp_path: Path, warehouse: Path, name: str) -> None:
    config = {name: SECRETS[name]} | HARMLESS
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()}, {"config.json": config})
    tracewh.ingest_run(run, warehouse=warehouse)
    assert "s3cret" not in json.dumps(params(warehouse))
    assert b"s3cret" not in warehouse.read_bytes()
    assert ("secret_dropped",) in query(warehouse, "SELECT problem FROM ingest_problems")
    assert {param: params(warehouse)[param] for param in HARMLESS} == {
        param: value if isinstance(value, str) else json.dumps(value) for param, value in HARMLESS.items()
    }


def test_step_times(tmp_path: Path, warehouse: Path) -> None:
    timing = {"unprofiled_step_s": [0.5, 0.25], "profiled_step_s": [0.75], "median_s": 0.375, "warmup": 2}
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()}, {"timing.json": timing})
    tracewh.ingest_run(run, warehouse=warehouse)
    found = query(warehouse, "SELECT metric, value, is_profiled FROM timing_samples ORDER BY sample_index")
    assert found == [
        ("step_time_s", 0.5, False),
        ("step_time_s", 0.25, False),
        ("step_time_s", 0.75, True),
    ]


def test_step_times_that_are_no_numbers_are_counted(tmp_path: Path, warehouse: Path) -> None:
    timing = {"unprofiled_step_s": [0.5, "fast", None, True, {"s": 1}], "profiled_step_s": "slow"}
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()}, {"timing.json": timing})
    tracewh.ingest_run(run, warehouse=warehouse)
    assert query(warehouse, "SELECT value FROM timing_samples") == [(0.5,)]
    found = query(warehouse, "SELECT SUM(occurrences) FROM ingest_problems WHERE problem = 'not_a_number'")
    assert found == [(5,)]


def test_bundled_step_times(warehouse: Path) -> None:
    tracewh.ingest_run(FIXTURES / "h200_moe", warehouse=warehouse)
    timing = json.loads((FIXTURES / "h200_moe" / "timing.json").read_text())
    found = query(
        warehouse,
        "SELECT value, is_profiled FROM timing_samples WHERE metric = 'step_time_s' ORDER BY sample_index",
    )
    expected = [(value, False) for value in timing["unprofiled_step_s"]]
    assert found == expected + [(value, True) for value in timing["profiled_step_s"]]


def test_memory_figures_with_their_devices(tmp_path: Path, warehouse: Path) -> None:
    space = SpaceBuilder()
    for ordinal in (0, 1):
        space.gpu(ordinal).line("Stream #1").event("k", 0, 1)
    stats = {"end": {f"cuda:{ordinal}": {"peak_bytes_in_use": 100 + ordinal} for ordinal in (0, 1, 9)}}
    analysis = {"temp_size_in_bytes": 7, "argument_size_in_bytes": 8, "peak_memory_in_bytes": 15}
    run = write_run(
        tmp_path / "run",
        {"a.xplane.pb": space.serialize()},
        {"memory_stats.json": stats, "memory_analysis.json": analysis},
    )
    tracewh.ingest_run(run, warehouse=warehouse)
    found = query(
        warehouse,
        """SELECT d.device_ordinal, m.sample_label, m.kind, m.bytes, m.evidence
        FROM memory_samples AS m LEFT JOIN devices AS d USING (device_id) ORDER BY m.evidence, m.bytes""",
    )
    assert [row for row in found if row[4] == "measured"] == [
        (0, "end", "peak_bytes_in_use", 100, "measured"),
        (1, "end", "peak_bytes_in_use", 101, "measured"),
        (None, "end", "peak_bytes_in_use", 109, "measured"),
    ]
    compiler = [(row[0], row[2], row[3]) for row in found if row[4] == "compiler"]
    assert compiler == [(None, "temporary", 7), (None, "argument", 8), (None, "peak_memory", 15)]
    # A device that no capture has is no device of the run.
    assert query(warehouse, "SELECT problem FROM ingest_problems") == [("unknown_device",)]


def test_bundled_memory_figures(warehouse: Path) -> None:
    tracewh.ingest_run(FIXTURES / "h200_moe", warehouse=warehouse)
    stats = json.loads((FIXTURES / "h200_moe" / "memory_stats.json").read_text())
    found = query(
        warehouse,
        """SELECT m.sample_label, m.kind, m.bytes, d.device_ordinal, d.device_type
        FROM memory_samples AS m JOIN devices AS d USING (device_id) ORDER BY ALL""",
    )
    assert found == sorted(
        (label, kind, value, 0, "GPU")
        for label, devices in stats.items()
        for kind, value in devices["cuda:0"].items()
    )


def test_training_log(tmp_path: Path, warehouse: Path) -> None:
    log = (
        "INFO: start\n"
        "completed step: 0, seconds: 20.635, TFLOP/s/device: 385.3, Tokens/s/device: 794.0, "
        "total_weights: 65536, loss: 10.87\n"
        "completed step: 1, seconds: 2.5, TFLOP/s/device: nan, Tokens/s/device: 6553.6, loss: 9.5\n"
    )
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()}, {"train.log": log})
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert statuses(report)["train.log"] == "loaded"
    found = query(
        warehouse, "SELECT step_num, metric, value FROM timing_samples WHERE NOT isnan(value) ORDER BY ALL"
    )
    assert found == [
        (0, "loss", 10.87),
        (0, "step_time_s", 20.635),
        (0, "tflops_per_device", 385.3),
        (0, "tokens_per_s_per_device", 794.0),
        (0, "total_weights", 65536.0),
        (1, "loss", 9.5),
        (1, "step_time_s", 2.5),
        (1, "tokens_per_s_per_device", 6553.6),
    ]
    assert query(warehouse, "SELECT DISTINCT is_profiled FROM timing_samples") == [(None,)]


def test_changed_metadata_replaces_what_it_said(tmp_path: Path, warehouse: Path) -> None:
    files: dict[str, Any] = {
        "config.json": {"layers": 2, "old": 1},
        "timing.json": {"unprofiled_step_s": [1.0, 2.0]},
    }
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()}, files)
    tracewh.ingest_run(run, warehouse=warehouse)
    write_run(run, {}, {"config.json": {"layers": 3}, "timing.json": {"unprofiled_step_s": [3.0]}})
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert statuses(report) == {
        "profile/a.xplane.pb": "already there",
        "config.json": "loaded",
        "timing.json": "loaded",
    }
    assert params(warehouse) == {"layers": "3"}
    assert query(warehouse, "SELECT value FROM timing_samples") == [(3.0,)]
    assert query(warehouse, "SELECT COUNT(*) FROM artifacts") == [(3,)]


# --- HLO alone ----------------------------------------------------------------------------------------------


def hlo_protos() -> dict[str, bytes]:
    """HloProto of each program of the CPU fixture, by `name(program id)`."""
    space = read_space(gzip.decompress(CAPTURES["cpu_train"].read_bytes()))
    return {
        metadata.name: stat.value
        for metadata in space.plane("/host:metadata").event_metadata.values()
        for stat in metadata.stats
        if isinstance(stat.value, bytes)
    }


def test_hlo_alone_is_a_capture(tmp_path: Path, warehouse: Path) -> None:
    name, proto = max(hlo_protos().items(), key=lambda item: len(item[1]))
    dump = tmp_path / "dump"
    dump.mkdir()
    module = name.partition("(")[0]
    (dump / f"module_0042.{module}.cpu_after_optimizations.hlo.pb").write_bytes(proto)
    (dump / f"module_0042.{module}.before_optimizations.hlo.pb").write_bytes(proto)
    report = tracewh.ingest_run(dump, warehouse=warehouse)
    assert (report.status, report.captures, report.modules, report.events) == ("loaded", 1, 1, 0)
    captures = query(
        warehouse,
        """SELECT run_name, source_kind, module_count, device_event_count, step_count
        FROM v1.captures""",
    )
    assert captures == [("dump", "hlo", 1, 0, 0)]
    assert query(warehouse, "SELECT module_name FROM hlo_modules") == [(module,)]
    before = content(warehouse)
    assert tracewh.ingest_run(dump, warehouse=warehouse).status == "already there"
    assert content(warehouse) == before


def test_hlo_beside_a_capture_that_has_it_is_merged(tmp_path: Path, warehouse: Path) -> None:
    run = write_run(tmp_path / "run", {"cpu.xplane.pb.gz": CAPTURES["cpu_train"].read_bytes()})
    alone = tmp_path / "alone.duckdb"
    tracewh.ingest_run(run, warehouse=alone)
    name, proto = max(hlo_protos().items(), key=lambda item: len(item[1]))
    module, _, program_id = name.removesuffix(")").partition("(")
    dump = run / f"module_{int(program_id):04}.{module}.cpu_after_optimizations.hlo.pb"
    dump.write_bytes(proto)
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert statuses(report)[dump.name] == "merged"
    assert content(warehouse)["hlo_instructions"] == content(alone)["hlo_instructions"]
    assert report.captures == 1
