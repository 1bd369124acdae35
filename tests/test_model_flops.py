"""Useful FLOPs of a declared model, from a run's directory to v1.model_flops, and ledgers of users."""

from __future__ import annotations

import json
import shutil
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import tracewh
from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.flop_ledger import LedgerRow, read_ledger
from tracewh.views.audit_catalog import load_audits

from .ingest_runs import FIXTURES, query, statuses, write_run
from .shared_runs import ingested

# What MaxText resolves for the published Mixtral 8x22B run: 4 sequences of each of 8 devices, twice.
MAXTEXT: dict[str, Any] = {
    "base_emb_dim": 6144,
    "emb_dim": 6144,
    "base_num_decoder_layers": 56,
    "num_decoder_layers": 56,
    "num_query_heads": 48,
    "num_kv_heads": 8,
    "head_dim": 128,
    "mlp_dim": 16384,
    "base_moe_mlp_dim": 7168,
    "mlp_activations": ["silu", "linear"],
    "decoder_block": "mixtral",
    "attention_type": "global",
    "sliding_window_size": 0,
    "first_num_dense_layers": 0,
    "shared_experts": 0,
    "num_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 32768,
    "max_target_length": 4096,
    "per_device_batch_size": 4.0,
    "gradient_accumulation_steps": 2,
    "global_batch_size_to_train_on": 64,
    "global_parameter_scale": 1,
    "dtype": "bfloat16",
}
HUGGING_FACE: dict[str, Any] = {
    "model": {
        "model_type": "mixtral",
        "hidden_size": 6144,
        "num_hidden_layers": 56,
        "num_attention_heads": 48,
        "num_key_value_heads": 8,
        "intermediate_size": 16384,
        "hidden_act": "silu",
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "vocab_size": 32768,
        "max_position_embeddings": 65536,
        "sliding_window": None,
        "torch_dtype": "bfloat16",
    },
    "data": {"seq_length": 4096},
    "train": {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2},
    "world_size": 8,
}
TIMING = {"unprofiled_step_s": [20.599]}
# The published table: PFLOP of an update, share in percent.
PUBLISHED = {
    "attention_projections": ("7.758", "12.22"),
    "attention_core": ("2.217", "3.49"),
    "router": ("0.004", "0.007"),
    "experts_selected": ("53.199", "83.78"),
    "lm_head": ("0.317", "0.50"),
    "total": ("63.495", "100"),
}


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "warehouse.duckdb"


def load(tmp_path: Path, warehouse: Path, files: dict[str, Any]) -> dict[str, str]:
    """Ingest a run of these files alone; what became of each."""
    folder = tmp_path / "run"
    folder.mkdir()
    return statuses(tracewh.ingest_run(write_run(folder, {}, files), warehouse=warehouse))


def audit(warehouse: Path, name: str) -> list[tuple[Any, ...]]:
    (found,) = [audit for audit in load_audits() if audit.name == name]
    return query(warehouse, found.sql)


def rounded(value: float, digits: int) -> str:
    return f"{float(round(Fraction(value), digits)):.{digits}f}"


@pytest.mark.parametrize("config", [MAXTEXT, HUGGING_FACE], ids=["maxtext", "hugging_face"])
def test_published_table(tmp_path: Path, warehouse: Path, config: dict[str, Any]) -> None:
    load(tmp_path, warehouse, {"config.json": config, "timing.json": TIMING})
    rows = query(
        warehouse,
        "SELECT component, useful_flops, share_ratio, flops_per_token, source FROM v1.model_flops "
        "ORDER BY line",
    )
    assert [row[0] for row in rows] == list(PUBLISHED)
    for component, flops, share, _, source in rows:
        petaflops, percent = PUBLISHED[component]
        assert rounded(flops / 1e15, 3) == petaflops
        assert rounded(100 * share, len(percent.partition(".")[2])) == percent
        assert source == "config"
    assert rounded(rows[-1][3] / 1e9, 3) == "242.212"
    assert query(warehouse, "SELECT tokens_per_update FROM v1.model_dimensions") == [(262_144,)]


def test_half_of_the_sequence_is_the_published_convention() -> None:
    """Only S / 2 keys give the published FLOPs of a token; (S + 1) / 2, which the mask has, does not."""
    others = 56 * 2 * 6144 * (128 * (2 * 48 + 2 * 8) + 8 + 2 * 3 * 16384) + 2 * 6144 * 32768
    found = {
        keys: rounded(3 * float(others + 56 * 4 * 48 * 128 * keys) / 1e9, 3)
        for keys in (Fraction(4096, 2), Fraction(4097, 2))
    }
    assert found == {Fraction(4096, 2): "242.212", Fraction(4097, 2): "242.214"}


def test_what_is_missing_is_named(tmp_path: Path, warehouse: Path) -> None:
    config = {
        name: value for name, value in MAXTEXT.items() if name not in ("vocab_size", "max_target_length")
    }
    load(tmp_path, warehouse, {"config.json": config, "timing.json": TIMING})
    assert query(warehouse, "SELECT * FROM v1.model_flops") == []
    assert audit(warehouse, "model_unknown") == [("run", None, "vocab, seq")]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("flops.json", '{"attention": 3e15, "mlp": 1000000000000000}'),
        ("flops.json", '{"useful_flops_per_update": {"attention": 3e15, "mlp": 1e15, "total": 4e15}}'),
        (
            "flop_ledger.json",
            '[{"component": "attention", "useful_flops": 3e15}, {"component": "mlp", "flops": 1e15}]',
        ),
        ("flop_ledger.json", '{"components": {"attention": {"useful_flops": 3e15}, "mlp": "1e15"}}'),
        ("flop_ledger.csv", "component,useful_flops\nattention,3e15\nmlp,1000000000000000\n"),
        ("flops.csv", "Component,Formula,Useful FLOPs per update\nattention,,3e15\nmlp,,1e15\n"),
    ],
)
def test_a_ledger_counts_instead_of_the_sizes(tmp_path: Path, warehouse: Path, name: str, text: str) -> None:
    files = {"config.json": MAXTEXT, "timing.json": TIMING, name: text}
    assert load(tmp_path, warehouse, files)[name] == "loaded"
    assert query(
        warehouse, "SELECT component, useful_flops, share_ratio, source FROM v1.model_flops ORDER BY line"
    ) == [("attention", 3e15, 0.75, name), ("mlp", 1e15, 0.25, name), ("total", 4e15, 1.0, name)]
    assert query(warehouse, "SELECT problem FROM ingest_problems") == []
    ((run, capture, component, source, useful, other, flops, ratio),) = audit(
        warehouse, "flop_ledger_mismatch"
    )
    assert (run, capture, component, source, useful, other) == ("run", None, "total", name, 4e15, "config")
    assert rounded(flops / 1e15, 3) == "63.495"
    assert ratio == flops / 4e15


def test_formulas_of_a_ledger_are_kept() -> None:
    text = (
        '[{"component": " a ", "useful_flops": 1, "formula": "3 x 2"}, {"component": "b", "useful_flops": 0}]'
    )
    assert read_ledger(text.encode(), "flops.json", ProblemCounter()) == [
        LedgerRow("a", 1.0, "3 x 2"),
        LedgerRow("b", 0.0),
    ]


def test_a_total_that_is_not_the_sum_is_a_problem() -> None:
    problems = ProblemCounter()
    rows = read_ledger(b'{"a": 1e15, "b": 2e15, "Total": 4e15}', "flops.json", problems)
    assert [row.component for row in rows] == ["a", "b"]
    assert [problem.problem for problem in problems.problems()] == ["ledger_total"]
    assert read_ledger(b'{"Total": 4e15}', "flops.json", problems) == [LedgerRow("total", 4e15)]


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("flops.json", b"{", "flops.json: not valid JSON"),
        ("flops.json", b"3", "flops.json: a ledger is an object of components"),
        ("flops.json", b"[1]", "flops.json: a ledger is an object of components"),
        ("flops.json", b"{}", "flops.json: no component in it"),
        ("flops.json", b'{"a": -1}', "flops.json: useful FLOPs of a are '-1'"),
        ("flops.json", b'{"a": NaN}', "flops.json: useful FLOPs of a are 'nan'"),
        ("flops.json", b'{"a": true}', "flops.json: useful FLOPs of a are 'True'"),
        ("flops.json", b'[{"useful_flops": 1}]', "flops.json: useful FLOPs of 1 have no component"),
        ("flops.json", b'[{"component": "a"}]', "flops.json: useful FLOPs of a are 'None'"),
        (
            "flops.json",
            b'[{"component": "a", "flops": 1}, {"component": "a", "flops": 1}]',
            "flops.json: a comes twice",
        ),
        ("flops.csv", b"", "flops.csv: a ledger has the columns component and useful_flops"),
        (
            "flops.csv",
            b"component,gflops\na,1\n",
            "flops.csv: a ledger has the columns component and useful_flops",
        ),
        ("flops.csv", b"component,useful_flops\na\n", "flops.csv: useful FLOPs of a are 'None'"),
        ("flops.csv", b"component,useful_flops\na,many\n", "flops.csv: useful FLOPs of a are 'many'"),
    ],
)
def test_a_bad_ledger_is_refused(name: str, data: bytes, message: str) -> None:
    with pytest.raises(UnreadableFile) as caught:
        read_ledger(data, name, ProblemCounter())
    assert str(caught.value).startswith(message)


def test_a_bad_ledger_is_rejected_and_the_rest_loads(tmp_path: Path, warehouse: Path) -> None:
    found = load(
        tmp_path, warehouse, {"config.json": MAXTEXT, "timing.json": TIMING, "flops.json": '{"a": -1}'}
    )
    assert found == {"config.json": "loaded", "timing.json": "loaded", "flops.json": "rejected"}
    assert query(warehouse, "SELECT DISTINCT source FROM v1.model_flops") == [("config",)]


@pytest.mark.parametrize("name", ["h200_moe", "rocpd_train"])
def test_bundled_runs_agree_with_the_ledger_in_their_config(warehouse: Path, name: str) -> None:
    tracewh.ingest_run(FIXTURES / name, warehouse=warehouse)
    stated = json.loads((FIXTURES / name / "config.json").read_text())["useful_flops_per_update"]
    stated["attention_core"] = stated.pop("attention_core_causal")
    found = query(warehouse, "SELECT component, useful_flops, stated_flops FROM v1.model_flops")
    assert {component: flops for component, flops, _ in found} == stated
    assert all(flops == other for _, flops, other in found)
    assert audit(warehouse, "flop_ledger_mismatch") == []


@pytest.mark.parametrize("name", ["h200x2_medium_fsdp2", "h200_2proc"])
def test_runs_on_gpus_agree_with_the_ledger_in_their_config(tmp_path: Path, name: str) -> None:
    with ingested(name, tmp_path) as run:
        found = run.rows("SELECT component, useful_flops, stated_flops FROM v1.model_flops")
        assert {component for component, *_ in found} == set(PUBLISHED)
        assert all(flops == stated for _, flops, stated in found)


def test_a_ledger_follows_its_file(tmp_path: Path) -> None:
    run, warehouse = tmp_path / "run", tmp_path / "w.duckdb"
    shutil.copytree(FIXTURES / "cpu_train", run)
    ledger = run / "flops.json"
    ledger.write_text('{"mlp": 5e12}')
    assert tracewh.ingest_run(run, warehouse=warehouse).warnings == []
    stated = "SELECT component, useful_flops FROM v1.model_flops WHERE source = 'flops.json'"
    held = [("mlp", 5e12), ("total", 5e12)]
    assert sorted(query(warehouse, stated)) == held
    ledger.write_text('{"mlp": -1}')
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert report.warnings == ["the FLOPs that flops.json had before stay, since it is rejected"]
    assert sorted(query(warehouse, stated)) == held
    ledger.unlink()
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert report.warnings == ["the FLOPs of flops.json, which is gone, are dropped"]
    assert query(warehouse, stated) == []
