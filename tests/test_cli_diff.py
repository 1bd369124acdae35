"""`tracewh diff`: what it shows of two sides, as text, Markdown and JSON."""

from __future__ import annotations

import json
import re
from itertools import takewhile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tracewh.cli import main
from tracewh.cli.metric_values import change_text, interval_text, metric_text, time_text
from tracewh.sql.warehouse import Warehouse

from .metric_rows import add_metric, add_run
from .small_warehouse import EVIL_NAME

BASE = [100.0, 100.4, 99.7, 100.1, 99.9, 100.3]
_CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f\u202e]")


@pytest.fixture
def warehouse(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """a1 .. a6 and b1 .. b6: steps of 100 and 105 ms, of which forward has 60 and 66 and idle 40 and 39."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    path = tmp_path / "w.duckdb"
    with Warehouse.open(path, read_only=False) as opened:
        connection = opened.connection
        for run_id in range(1, 13):
            name = f"{'a' if run_id <= 6 else 'b'}{(run_id - 1) % 6 + 1}"
            add_run(connection, run_id, name, tokens=512)
            connection.execute(
                "INSERT INTO run_params VALUES ($1, $1, 'remat', $2)",
                [run_id, "full" if run_id <= 6 else "none"],
            )
            parts = (
                [(60, "gemm_a", "k"), (40, "", "")] if run_id <= 6 else [(66, "gemm_b", "k"), (39, "", "")]
            )
            connection.executemany(
                "INSERT INTO step_parts VALUES "
                "($1, $2, 'MLP', $3, 'dot', 'custom-call', $3, $4, $5, $5, 1, 1)",
                [
                    [run_id, "forward" if op else "idle", op, kernel, size * 10**9]
                    for size, kernel, op in parts
                ],
            )
        add_metric(connection, "step_time", [*BASE, *(value + 5 for value in BASE)])
        add_metric(connection, "busy", 6 * [60.0] + 6 * [66.0], timing="profiled")
        add_metric(connection, "device_step_time", 6 * [100.0] + 6 * [105.0], timing="profiled")
        add_metric(connection, "kernel_time", 6 * [60.0], scope="gemm_a", timing="profiled")
        add_metric(connection, "kernel_time", 6 * [66.0], scope="gemm_b", first_run=7, timing="profiled")
    return path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["diff", "-w", "w.duckdb", *arguments])


def lines_of(result: Result, title: str) -> list[list[str]]:
    """The cells of the rows of a table."""
    assert result.exit_code == 0, result.output
    lines = iter(result.output.split(f"\n{title}\n")[1].splitlines())
    next(line for line in lines if line.startswith("---"))
    return [re.split(r" {2,}", line.strip()) for line in takewhile(bool, lines)]


def test_the_verdict_comes_first(warehouse: Path) -> None:
    result = run("a*", "b*")
    assert result.exit_code == 0, result.output
    told = " ".join(result.output.split("\n\n")[0].split())
    # Medians of six: just below 100.05 and 105.05.
    assert "Regressed: step_time (unprofiled) 100.0 ms to 105.0 ms (+5.00%" in told
    assert "6 runs against 6" in told


def test_parts_add_up(warehouse: Path) -> None:
    rows = lines_of(run("a*", "b*"), "Where the device step changed")
    assert [row[:4] for row in rows] == [
        ["forward", "60.00 ms", "66.00 ms", "+6.000 ms"],
        ["k", "60.00 ms", "66.00 ms", "+6.000 ms"],
        ["k", "60.00 ms", "66.00 ms", "+6.000 ms"],
        ["gemm_b", "0 ms", "66.00 ms", "+66.00 ms"],
        ["gemm_a", "60.00 ms", "0 ms", "-60.00 ms"],
        ["idle", "40.00 ms", "39.00 ms", "-1.000 ms"],
        ["device step", "100.0 ms", "105.0 ms", "+5.000 ms"],
    ]
    assert [row[4] for row in rows] == [
        "120.0%",
        "120.0%",
        "120.0%",
        "1,320.0%",
        "-1,200.0%",
        "-20.0%",
        "100.0%",
    ]


def test_kernels_and_settings_are_told(warehouse: Path) -> None:
    result = run("a*", "b*")
    assert lines_of(result, "What the runs were made with") == [["candidate cause", "remat", "full", "none"]]
    assert lines_of(result, "Kernels that only one side runs") == [
        ["retuned", "forward / k", "k", "gemm_a", "gemm_b", "60.00 ms", "66.00 ms"]
    ]


def test_what_is_cut_is_counted(warehouse: Path) -> None:
    with Warehouse.open(warehouse, read_only=False) as opened:
        for name, base, head in (("mesh.fsdp", "1", "2"), ("policy", None, "x"), ("zeta", "", "y")):
            for run_id in range(1, 13):
                value = base if run_id <= 6 else head
                if value is not None:
                    opened.connection.execute(
                        "INSERT INTO run_params VALUES ($1, $1, $2, $3)", [run_id, name, value]
                    )
        # One run of the base had it otherwise.
        opened.connection.execute("UPDATE run_params SET value = 'none' WHERE run_id = 1 AND param = 'remat'")
    rows = lines_of(run("a*", "b*", "--rows", "0"), "What the runs were made with")
    assert ["candidate cause", "policy", "(not set)", "x"] in rows
    assert ["candidate cause", "zeta", "(empty)", "y"] in rows
    assert ["candidate cause", "remat", "full (5 of 6 runs)", "(not set)"] in rows or any(
        row[1] == "remat" and "(5 of 6 runs)" in row[2] for row in rows
    )
    assert lines_of(run("a*", "b*", "--rows", "1"), "What the runs were made with")[1][0].endswith("more")


def test_markdown_has_the_same_tables(warehouse: Path) -> None:
    result = run("a*", "b*", "--format", "markdown")
    assert result.exit_code == 0
    assert result.output.startswith("# 6 runs a\\* against 6 runs b\\*\n")
    assert result.output.count("<details>") == result.output.count("</details>") == 5
    assert "| device step | 100.0 ms | 105.0 ms | +5.000 ms | 100.0% |" in result.output
    # Wide blanks, since Markdown drops others.
    assert "\n| \u2003k | 60.00 ms" in result.output
    for line in result.output.splitlines():
        if line.startswith("|"):
            assert line.endswith(" |") or set(line) <= set("|-:")


def test_json_has_all(warehouse: Path, tmp_path: Path) -> None:
    assert run("a*", "b*", "--format", "json", "-o", "out.json", "--rows", "1").exit_code == 0
    record = json.loads((tmp_path / "out.json").read_text())
    assert record["verdict"] == "regressed"
    assert record["base"]["run_names"] == ["a1", "a2", "a3", "a4", "a5", "a6"]
    assert record["headline"]["judgement"]["p"] == pytest.approx(2 / 924)
    phases = {part["phase"]: part["change_ps"] for part in record["parts"] if part["level"] == 1}
    assert phases == {"forward": 6e9, "idle": -1e9}
    assert [row["setting"] for row in record["settings"]] == ["remat"]
    assert {metric["scope"] for metric in record["metrics"]} == {"", "gemm_a", "gemm_b"}


def test_sides_that_are_not_comparable_are_refused(warehouse: Path) -> None:
    with Warehouse.open(warehouse, read_only=False) as opened:
        opened.connection.execute("UPDATE run_params SET value = '1024' WHERE run_id > 6 AND value = '512'")
    result = run("a*", "b*")
    assert result.exit_code == 0
    assert "Not comparable: tokens_per_update is 512 against 1024" in result.output
    assert "Regressed: step_time" not in result.output
    assert "Where the device step changed" not in result.output
    record = json.loads(run("a*", "b*", "--format", "json").output)
    assert record["verdict"] == "not_comparable"
    assert "metrics" not in record
    forced = run("a*", "b*", "--force")
    assert "Not comparable: tokens_per_update is 512 against 1024" in forced.output
    assert "Regressed: step_time" in forced.output


def test_parts_of_steps_need_steps_on_both_sides(warehouse: Path) -> None:
    with Warehouse.open(warehouse, read_only=False) as opened:
        opened.connection.execute("DELETE FROM step_parts WHERE run_id > 6")
        opened.connection.execute("DELETE FROM run_metrics WHERE run_id > 6 AND timing = 'profiled'")
    result = run("a*", "b*")
    assert "Regressed: step_time" in result.output
    for title in ("Where the device step changed", "Durations that changed most", "Kernels that only"):
        assert title not in result.output


def test_planned_memory_is_told_by_kind(warehouse: Path) -> None:
    with Warehouse.open(warehouse, read_only=False) as opened:
        for scope, head in (("temporary", 2.0**31), ("argument", 2.0**30)):
            add_metric(
                opened.connection, "planned_memory", [*(6 * [2.0**30]), *(6 * [head])], scope=scope,
                unit="bytes", timing=None, evidence="compiler",
            )  # fmt: skip
    assert lines_of(run("a*", "b*"), "Planned memory of the step program") == [
        ["temporary", "1.000 GiB", "2.000 GiB", "+100%"]
    ]


def test_instructions_that_differ_are_told(warehouse: Path) -> None:
    """Module 2 has another dot in place of that of module 1; what is equal in both is not told."""
    with Warehouse.open(warehouse, read_only=False) as opened:
        connection = opened.connection
        connection.execute(
            "INSERT INTO names (name_id, name) VALUES (1, 'dot.1'), (2, 'add.1'), "
            "(3, 'jit(f)/mlp/dot_general')"
        )
        for module, shape in ((1, "bf16[8,128]{1,0}"), (2, "bf16[8,256]{1,0}")):
            connection.execute(
                "INSERT INTO hlo_modules (module_id, module_name, sha256, proto_bytes, has_schedule, "
                "has_buffer_assignment) VALUES ($1, 'jit_f', $1, 1, TRUE, FALSE)",
                [module],
            )
            connection.execute(
                "INSERT INTO hlo_computations (module_id, computation_id, computation_name, "
                "computation_role, executions, loop_depth) VALUES ($1, 1, 'main', 'entry', 1, 0)",
                [module],
            )
            connection.execute(
                "INSERT INTO hlo_instructions (module_id, instruction_id, computation_id, position, name_id, "
                "opcode, op_name_id, op_name_source, shape, element_type, is_root, operand_count) VALUES "
                "($1, 1, 1, 1, 1, 'dot', 3, 'own', $2, 'bf16', FALSE, 0), "
                "($1, 2, 1, 2, 2, 'add', NULL, NULL, 'f32[]', 'f32', TRUE, 0)",
                [module, shape],
            )
        for run_id in range(1, 13):
            module = 1 if run_id <= 6 else 2
            connection.execute("INSERT INTO run_modules VALUES ($1, 'jit_f', $2, $1, 1)", [run_id, module])
    result = run("a*", "b*")
    assert lines_of(result, "Optimized HLO") == [
        ["shape changed", "dot", "…/mlp/dot_general", "bf16[8,128]", "bf16[8,256]", "1"]
    ]
    assert "1 shape changed" in " ".join(result.output.split())


def test_few_runs_have_a_direction_and_no_verdict(warehouse: Path) -> None:
    result = run("a1", "b1")
    assert "Too few runs: step_time (unprofiled) 100.0 ms to 105.0 ms (+5.00%)" in " ".join(
        result.output.split()
    )
    assert "it takes 4 on both sides, or 39 against 1." in " ".join(result.output.split())


def test_names_from_outside_cannot_drive_a_terminal(warehouse: Path) -> None:
    with Warehouse.open(warehouse, read_only=False) as opened:
        connection = opened.connection
        connection.execute("UPDATE step_parts SET op = $1, kernel = $1 WHERE phase <> 'idle'", [EVIL_NAME])
        connection.execute("UPDATE runs SET run_name = $1 WHERE run_id = 1", [EVIL_NAME])
        connection.execute(
            "UPDATE run_params SET value = $1 WHERE run_id > 6 AND param = 'remat'", [EVIL_NAME]
        )
        connection.execute("UPDATE run_metrics SET scope = $1 WHERE scope = 'gemm_b'", [EVIL_NAME])
    for format_name in ("text", "markdown"):
        result = run("a*", "b*", "--format", format_name, "--force")
        assert result.exit_code == 0, result.output
        assert _CONTROL.search(result.output) is None


def test_verdicts_are_kept_under_a_name(warehouse: Path) -> None:
    for _ in range(2):  # the second takes the place of the first
        assert run("a*", "b*", "--save", "weekly").exit_code == 0
    assert run("a1", "b1", "--save", "two").exit_code == 0
    with Warehouse.open(warehouse) as opened:
        found = opened.connection.execute(
            "SELECT comparison, metric, base_runs, round(change_ratio, 4), p, verdict, is_headline, "
            "is_comparable FROM v1.verdicts WHERE scope = '' ORDER BY ALL"
        ).fetchall()
        kept = opened.connection.execute(
            "SELECT verdict, base_runs, level, min_effect FROM comparisons WHERE comparison = 'weekly'"
        ).fetchall()
    p = pytest.approx(2 / 924)
    assert found == [
        ("two", "busy", 1, 0.1, 1.0, "too_few_runs", False, True),
        ("two", "device_step_time", 1, 0.05, 1.0, "too_few_runs", False, True),
        ("two", "step_time", 1, 0.05, 1.0, "too_few_runs", True, True),
        ("weekly", "busy", 6, 0.1, p, "regressed", False, True),
        ("weekly", "device_step_time", 6, 0.05, p, "regressed", False, True),
        ("weekly", "step_time", 6, 0.05, p, "regressed", True, True),
    ]
    assert kept == [("regressed", '["a1", "a2", "a3", "a4", "a5", "a6"]', 0.05, 0.02)]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a*", "nothing"), "nothing"),
        (("a*", "a1"), "a1 is on both sides"),
        (("a*", "b*", "--level", "0"), "--level"),
        (("a*",), "HEAD"),
    ],
)
def test_what_is_wrong_is_said(warehouse: Path, arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code != 0
    assert message in result.output


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (375.834, "ms", "375.8 ms"),
        (1234.5, "ms", "1.234 s"),
        (0.01234, "ms", "12.34 µs"),
        (0.0, "ms", "0 ms"),
        (-1.5, "ms", "-1.500 ms"),
        (0.1952, "ratio", "19.52%"),
        (34135252480, "bytes", "31.79 GiB"),
        (512, "bytes", "512.0 B"),
        (903, "count", "903"),
        (130030411212640, "count", "130.0 T"),
        (3462.5, "count", "3.462 k"),
        (87199.17, "tokens/s", "87,199 tokens/s"),
        (None, "ms", ""),
    ],
)
def test_values_have_four_digits(value: float | None, unit: str, text: str) -> None:
    assert metric_text(value, unit) == text


def test_changes() -> None:
    assert [change_text(ratio) for ratio in (1.0484, 0.9969, 1.0, 1.000001, 2.5, 12.3, 0.5, None)] == [
        *("+4.84%", "-0.31%", "0%", "0%", "+150%", "x12.30", "-50.0%", "")
    ]
    assert interval_text(0.99, 1.02) == "-1.00..+2.00%"
    assert interval_text(None, None) == ""
    assert time_text(2, is_signed=True) == "+2.000 ms"
