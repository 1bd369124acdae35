"""Step times of any source, and what v1.throughput makes of them."""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest

import tracewh
from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.step_time_table import is_table, read_table
from tracewh.ingest.timing import TimingSample, metric_of
from tracewh.ingest.training_log import read_log

from .ingest_runs import FIXTURES, query, statuses, write_run
from .shared_runs import ingested

# --- readers ------------------------------------------------------------------------------------------------

S, MS = 1.0, 1e-3


@pytest.mark.parametrize(
    ("name", "beside_step", "expected"),
    [
        ("step_time_s", False, ("step_time_s", S)),
        ("step_time_ms", False, ("step_time_s", MS)),
        ("step_time", False, ("step_time_s", S)),
        ("perf/step_time_seconds", False, ("step_time_s", S)),
        ("train_step_time", False, ("step_time_s", S)),
        ("seconds_per_step", False, ("step_time_s", S)),
        ("seconds", True, ("step_time_s", S)),
        ("time", True, ("step_time_s", S)),
        ("time_ms", True, ("step_time_s", MS)),
        ("seconds", False, None),
        ("time", False, None),
        ("step", True, None),
        ("Wall time", True, None),
        ("compile_s", False, ("compile_time_s", S)),
        ("lower_s", False, ("lower_time_s", S)),
        ("checkpoint_save_ms", False, ("checkpoint_time_s", MS)),
        ("eval_time", False, ("evaluation_time_s", S)),
        ("data_wait_s", False, ("input_stall_s", S)),
        ("eval", True, None),
        ("eval_interval", False, None),
        ("TFLOP/s/device", False, ("tflops_per_device", 1.0)),
        ("perf/per_device_tokens_per_sec", False, ("tokens_per_s_per_device", 1.0)),
        ("learning/loss", False, None),
        ("", True, None),
    ],
)
def test_names_of_metrics(name: str, beside_step: bool, expected: tuple[str, float] | None) -> None:
    assert metric_of(name, beside_step) == expected


def test_log_lines_with_time_stamps_and_colors() -> None:
    log = (
        "\x1b[32mI1130 23:05:19.123456 140 metric_logger.py:196]\x1b[0m completed step: 10, seconds: 1.234, "
        "TFLOP/s/device: 100.1, Tokens/s/device: 1000.1, total_weights: 65536, loss: 5.1\x1b[0m\r\n"
        "2026-11-30 23:05:20 completed step: 11, seconds: 1.5, perplexity: 20.5, moe_lb_loss: 0.01, "
        "data_wait_s: 0.25\n"
        "completed step: 12, seconds: -1, TFLOP/s/device: inf, note: fast, loss: nan\n"
    )
    problems = ProblemCounter()
    samples = read_log(log.encode(), "train.log", problems)
    assert samples[:9] == [
        TimingSample(10, "step_time_s", 1.234),
        TimingSample(10, "tflops_per_device", 100.1),
        TimingSample(10, "tokens_per_s_per_device", 1000.1),
        TimingSample(10, "total_weights", 65536.0),
        TimingSample(10, "loss", 5.1),
        TimingSample(11, "step_time_s", 1.5),
        TimingSample(11, "perplexity", 20.5),
        TimingSample(11, "moe_lb_loss", 0.01),
        TimingSample(11, "input_stall_s", 0.25),
    ]
    # A loss may well be no number; a time may not.
    assert [(sample.metric, str(sample.value)) for sample in samples[9:]] == [
        ("tflops_per_device", "inf"),
        ("loss", "nan"),
    ]
    assert [problem.problem for problem in problems.problems()] == ["not_a_time", "unread_log_value"]


TABLES: dict[str, tuple[str, list[TimingSample]]] = {
    "steps.csv": (
        "step,step_time_ms,warmup\n0,5000,true\n1,250,false\n",
        [TimingSample(0, "step_time_s", 5.0, None, True), TimingSample(1, "step_time_s", 0.25, None, False)],
    ),
    "semicolons.csv": (
        "global_step;seconds;profiled;loss\n3;0.5;1;7\n4;;0;\n5;0.75;0;6.5\n",
        [
            TimingSample(3, "step_time_s", 0.5, True),
            TimingSample(3, "loss", 7.0, True),
            TimingSample(5, "step_time_s", 0.75, False),
            TimingSample(5, "loss", 6.5, False),
        ],
    ),
    # MaxText's metrics_file.
    "metrics.jsonl": (
        '{"learning/loss": 5.5, "perf/step_time_seconds": 1.5, "perf/per_device_tflops": 9, '
        '"perf/per_device_tflops_per_sec": 6.0, "learning/total_weights": 64, "step": 2.0, "run_name": "a"}\n'
        "\n"
        '{"perf/step_time_seconds": 1.25, "step": 3.0}\n',
        [
            TimingSample(2, "loss", 5.5),
            TimingSample(2, "step_time_s", 1.5),
            TimingSample(2, "tflops_per_device", 6.0),
            TimingSample(2, "total_weights", 64.0),
            TimingSample(3, "step_time_s", 1.25),
        ],
    ),
    # As Weights & Biases exports a chart.
    "wandb_export.csv": (
        '"Step","base-run - perf/step_time_seconds","base-run - perf/step_time_seconds__MIN",'
        '"base-run - perf/step_time_seconds__MAX"\n"7","1.5","1.5","1.5"\n',
        [TimingSample(7, "step_time_s", 1.5)],
    ),
    # As TensorBoard exports a tag.
    "run-train-tag-perf_step_time_seconds.csv": (
        "Wall time,Step,Value\n1700000000.5,7,1.5\n",
        [TimingSample(7, "step_time_s", 1.5)],
    ),
    "no_step.csv": ("step_time_s\n2\n3\n", [TimingSample(None, "step_time_s", v) for v in (2.0, 3.0)]),
}


@pytest.mark.parametrize("name", TABLES)
def test_tables(name: str) -> None:
    text, expected = TABLES[name]
    problems = ProblemCounter()
    assert is_table(name, text.encode())
    assert read_table(text.encode(), f"run/{name}", problems) == expected
    assert problems.problems() == []


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", ""),
        ("a.csv", "time,value\n1,2\n"),
        ("a.csv", "step,loss\n1,2\n"),
        ("run-tag-loss.csv", "Wall time,Step,Value\n1,2,3\n"),
        ("a.jsonl", "not json\n"),
        ("a.jsonl", "[1, 2]\n"),
        ("a.jsonl", '{"step": 1, "loss": 2}\n'),
    ],
)
def test_other_tables_are_left_alone(name: str, text: str) -> None:
    assert not is_table(name, text.encode())


def test_cells_that_are_no_times_are_counted() -> None:
    problems = ProblemCounter()
    text = "step,step_time_s\n1,fast\n2,0\n3,inf\n4,0.5\n"
    assert read_table(text.encode(), "a.csv", problems) == [TimingSample(4, "step_time_s", 0.5)]
    assert {problem.problem: problem.occurrences for problem in problems.problems()} == {
        "not_a_number": 1,
        "not_a_time": 2,
    }
    problems = ProblemCounter()
    lines = '{"step": 1, "step_time_s": 2}\n{"step": 2, "step_\n'
    assert read_table(lines.encode(), "a.jsonl", problems) == [TimingSample(1, "step_time_s", 2.0)]
    assert [problem.problem for problem in problems.problems()] == ["unread_line"]


def test_a_table_without_a_time_is_refused() -> None:
    with pytest.raises(UnreadableFile, match=r"^a.csv: no step time in it"):
        read_table(b"step,step_time_s\n1,\n", "a.csv", ProblemCounter())


# --- from files to rates ------------------------------------------------------------------------------------


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "warehouse.duckdb"


def load(tmp_path: Path, warehouse: Path, files: dict[str, Any]) -> dict[str, str]:
    folder = tmp_path / "run"
    folder.mkdir()
    return statuses(tracewh.ingest_run(write_run(folder, {}, files), warehouse=warehouse))


def values(warehouse: Path) -> dict[tuple[str, str], float]:
    """Value by metric and statistic; of several peaks, that of the specification."""
    rows = query(
        warehouse,
        "SELECT metric, statistic, value FROM v1.throughput WHERE COALESCE(peak_kind, 'spec') = 'spec'",
    )
    found = {(metric, statistic): value for metric, statistic, value in rows}
    assert len(found) == len(rows)
    return found


@pytest.mark.parametrize("name", ["steps.csv", "metrics.jsonl", "train.log"])
def test_each_kind_of_file_makes_a_run_of_its_own(tmp_path: Path, warehouse: Path, name: str) -> None:
    text = {
        "steps.csv": "step,step_time_s\n0,30\n1,2\n2,4\n",
        "metrics.jsonl": "".join(
            json.dumps({"step": step, "step_time_s": time}) + "\n" for step, time in enumerate((30, 2, 4))
        ),
        "train.log": "".join(
            f"completed step: {step}, seconds: {time}, loss: 1\n" for step, time in enumerate((30, 2, 4))
        ),
    }[name]
    config = {"global_batch": 3, "seq": 100, "devices": 2}
    assert load(tmp_path, warehouse, {name: text, "config.json": config})[name] == "loaded"
    found = values(warehouse)
    # The first step compiles: the later half is 2 and 4, with the median 3, and 2 is stable.
    assert found["step_time", "median"] == 3
    assert found["tokens_per_s", "median"] == 100
    assert found["tokens_per_s_per_device", "median"] == 50
    rows = query(warehouse, "SELECT DISTINCT samples, warmup_excluded, timing FROM v1.throughput")
    assert rows == [(2, 1, "unknown")]


def test_what_is_apart_from_the_step_is_no_step_time(tmp_path: Path, warehouse: Path) -> None:
    timing = {
        "unprofiled_step_s": [1.0, 1.0, 1.0],
        "warmup_step_s": [9.0],
        "eval_s": [40, 60],
        "compile_s": 100,
    }
    load(tmp_path, warehouse, {"timing.json": timing, "config.json": {"lower_s": 7, "checkpoint_period": 5}})
    assert values(warehouse) == {
        ("step_time", "median"): 1,
        ("step_time", "mean"): 1,
        ("step_time", "min"): 1,
        ("step_time", "max"): 1,
        ("step_time", "p10"): 1,
        ("step_time", "p90"): 1,
        ("evaluation_time", "mean"): 50,
        ("evaluation_time", "total"): 100,
        ("compile_time", "one sample"): 100,
        ("lower_time", "one sample"): 7,
    }
    rows = query(
        warehouse, "SELECT DISTINCT samples, warmup_excluded FROM v1.throughput WHERE timing IS NOT NULL"
    )
    assert rows == [(3, 1)]


def test_one_sample_is_no_median(tmp_path: Path, warehouse: Path) -> None:
    load(tmp_path, warehouse, {"timing.json": {"unprofiled_step_s": [20.599]}})
    rows = query(warehouse, "SELECT metric, statistic, samples, spread FROM v1.throughput")
    assert rows == [("step_time", "one sample", 1, None)]


def test_the_published_row(tmp_path: Path, warehouse: Path) -> None:
    """With the printed step time; the published 1,590.7 tokens/s need 20.5991 or more."""
    config = {
        **dict(zip(("d_model", "ff", "layers", "heads", "kv_heads"), (6144, 16384, 56, 48, 8), strict=True)),
        **dict(zip(("head_dim", "experts", "topk", "vocab"), (128, 8, 2, 32768), strict=True)),
        **dict(zip(("seq", "global_batch", "devices"), (4096, 64, 8), strict=True)),
    }
    load(tmp_path, warehouse, {"timing.json": {"unprofiled_step_s": [20.599]}, "config.json": config})
    found = values(warehouse)
    assert f"{found['step_time', 'one sample']:.3f}" == "20.599"
    assert f"{found['tokens_per_s_per_device', 'one sample']:,.1f}" == "1,590.8"
    assert f"{found['useful_flop_rate', 'one sample']:.1f}" == "385.3"
    # No capture, and with that no device and no peak.
    assert ("mfu", "one sample") not in found


@pytest.mark.parametrize("name", ["h200_moe", "h200_moe_direct"])
def test_bundled_runs(warehouse: Path, name: str) -> None:
    tracewh.ingest_run(FIXTURES / name, warehouse=warehouse)
    timing = json.loads((FIXTURES / name / "timing.json").read_text())
    config = json.loads((FIXTURES / name / "config.json").read_text())
    found = values(warehouse)
    times = timing["unprofiled_step_s"]
    assert found["step_time", "median"] == statistics.median(times) == timing["median_s"]
    assert found["step_time", "mean"] == pytest.approx(statistics.mean(times), rel=1e-12)
    tenths = statistics.quantiles(times, n=10, method="inclusive")
    assert found["step_time", "p10"] == pytest.approx(tenths[0], rel=1e-12)
    assert found["step_time", "p90"] == pytest.approx(tenths[-1], rel=1e-12)
    assert found["profiled_step_time", "median"] == statistics.median(timing["profiled_step_s"])
    assert found["tokens_per_s", "median"] == pytest.approx(timing["tokens_per_s"], rel=1e-12)
    assert found["useful_flop_rate", "median"] == pytest.approx(timing["useful_tflops_per_device"], rel=1e-12)
    assert found["compile_time", "one sample"] == config["compile_s"]
    (spread,) = query(warehouse, "SELECT spread FROM v1.throughput WHERE metric = 'step_time' AND line = 1")[
        0
    ]
    middle = statistics.median(times)
    assert spread == pytest.approx(statistics.median(abs(time - middle) for time in times), rel=1e-12)


@pytest.mark.parametrize("name", ["h200x2_medium_fsdp2", "h200x2_medium_fsdp2_opt"])
def test_runs_on_two_gpus(tmp_path: Path, name: str) -> None:
    """MFU uses the dense bf16 peak of H200, 989.4 TFLOP/s; what ran is more than what was useful."""
    with ingested(name, tmp_path) as run:
        timing = json.loads((run.path / "timing.json").read_text())
        warehouse = tmp_path / "w.duckdb"
        found = values(warehouse)
        useful, step = timing["useful_tflops_per_device"], timing["median_s"]
        assert f"{found['useful_flop_rate', 'median']:.4g}" == f"{useful:.4g}"
        assert found["mfu", "median"] == pytest.approx(useful / 989.4, rel=1e-9)
        assert found["tokens_per_s_per_device", "median"] == pytest.approx(
            timing["tokens_per_s_per_device"], rel=1e-12
        )
        # One run of the program makes an update; entries without kernels are a few operations of the host.
        (flops,) = run.rows("SELECT MAX(flops) FROM v1.program_costs WHERE module_name = 'jit_train_step'")[0]
        executed = found["executed_flop_rate", "median"]
        assert executed == pytest.approx(flops / step / 1e12, rel=1e-9)
        assert found["hfu", "median"] == pytest.approx(executed / 989.4, rel=1e-9)
        assert found["executed_over_useful", "median"] == pytest.approx(executed / useful, rel=1e-9)
        assert 1.4 < found["executed_over_useful", "median"] < 1.8


def test_two_processes_are_one_job(tmp_path: Path) -> None:
    """An update takes as long as its slowest process, and no process adds devices, tokens or samples."""
    with ingested("h200_2proc", tmp_path) as run:
        times = [
            json.loads(path.read_text())["unprofiled_step_s"]
            for path in sorted(run.path.rglob("timing.json"))
        ]
        step = statistics.median(map(max, *times))
        found = values(tmp_path / "w.duckdb")
        assert found["step_time", "median"] == step
        assert found["tokens_per_s", "median"] == pytest.approx(1024 / step, rel=1e-12)
        assert found["tokens_per_s_per_device", "median"] == pytest.approx(512 / step, rel=1e-12)
        assert run.rows("SELECT MAX(samples) FROM v1.throughput WHERE metric = 'tokens_per_s'") == [(6,)]
