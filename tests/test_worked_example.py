"""The published numbers of the worked example, from the generated capture and from the views over it.

Every expected number is a literal of the publication, compared digit for digit. The capture itself is checked
for what a real one has: launches, a program that XLA reads, collectives that end together.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections import defaultdict
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

import tracewh
from tracewh.cli import main

from . import hlo_oracle
from .worked_ledger import Ledger, is_collective, kernels_of, ledger_of_space, ledger_of_views
from .xspace_oracle import Event, Space, merged, read_space

GPUS = 8
STEP = 10
PS_PER_MS = 10**9
STRAGGLER = 6

# Rows of the maps, by scope. All of a phase are listed: other scopes would be missed by the sums.
FORWARD = {
    "embedding": ("embedding",),
    "attention": ("query", "key", "value", "out", "rope", "core_attention"),
    "router": ("router_gate", "router_topk", "router_weights", "router_masks"),
    "dispatch": ("dispatch",),
    "expert_mlp": ("wi_0", "wi_1", "ffn_act", "wo"),
    "combine": ("combine", "weight_sum"),
    "layers": ("layers",),
    "final_norm": ("final_norm",),
    "lm_head": ("lm_head",),
}
MOE = (*FORWARD["router"], *FORWARD["dispatch"], *FORWARD["expert_mlp"], *FORWARD["combine"])
NORMS = ("pre_attention_norm", "post_attention_norm")
BACKWARD = {
    "lm_head": ("lm_head",),
    "final_norm": ("final_norm",),
    "moe": MOE,
    "norms": NORMS,
    "attention": FORWARD["attention"],
    "embedding": ("embedding",),
    "layers": ("layers",),
}
REMAT = {"moe": MOE, "attention": FORWARD["attention"], "norms": NORMS}
UPDATE = {"loss": ("loss",), "optimizer": ("gradient_accumulation", "gradient_clipping", "adamw")}
ROWS = {"forward": FORWARD, "backward": BACKWARD, "remat": REMAT, "update": UPDATE}


def _generator() -> ModuleType:
    path = Path(__file__).parents[1] / "fixtures" / "make_mixtral.py"
    spec = importlib.util.spec_from_file_location("make_mixtral", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@dataclass(frozen=True)
class Run:
    """The generated run."""

    folder: Path
    warehouse: Path

    @cached_property
    def space(self) -> Space:
        return read_space(self.capture.read_bytes())

    @property
    def capture(self) -> Path:
        return self.folder / "node0.xplane.pb"

    @cached_property
    def own_ledger(self) -> Ledger:
        return ledger_of_space(self.space)

    @cached_property
    def view_ledger(self) -> Ledger:
        return ledger_of_views(self.warehouse, STEP)

    @cached_property
    def kernels(self) -> dict[int, list[Event]]:
        return kernels_of(self.space)

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        with duckdb.connect(str(self.warehouse), read_only=True) as connection:
            return connection.execute(query).fetchall()


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("worked_example")
    _generator().write_run(folder / "run")
    report = tracewh.ingest_run(folder / "run", warehouse=folder / "w.duckdb")
    assert {artifact.status for artifact in report.artifacts} == {"loaded"}
    return Run(folder / "run", folder / "w.duckdb")


@pytest.fixture(scope="module", params=["protobuf", "views"])
def ledger(request: pytest.FixtureRequest, run: Run) -> Ledger:
    return run.own_ledger if request.param == "protobuf" else run.view_ledger


def printed(value: Fraction | int, digits: int) -> str:
    """The value as it is printed with so many digits; a tie would not tell what was meant."""
    scaled = Fraction(value) * 10**digits
    assert scaled.denominator != 2
    return f"{round(scaled) / 10**digits:,.{digits}f}"


def ms(total_ps: int) -> str:
    """The mean over the GPUs."""
    return printed(Fraction(total_ps, GPUS * PS_PER_MS), 1)


def seconds(total_ps: int) -> str:
    return printed(Fraction(total_ps, GPUS * PS_PER_MS * 1000), 3)


def percent(part: int, whole: int) -> str:
    share = Fraction(part, whole) * 100
    return "<0.1%" if share < Fraction(5, 100) else f"{printed(share, 1)}%"


def phase(ledger: Ledger, name: str) -> int:
    return sum(time for (of, _), time in ledger.components.items() if of == name)


def row(ledger: Ledger, name: str, of_row: str) -> int:
    return sum(ledger.components[name, scope] for scope in ROWS[name][of_row])


def communication(ledger: Ledger) -> int:
    return sum(ledger.collectives.values())


def everything(ledger: Ledger) -> int:
    return sum(ledger.components.values()) + communication(ledger)


def forward_moe(ledger: Ledger) -> int:
    return sum(row(ledger, "forward", name) for name in ("router", "dispatch", "expert_mlp", "combine"))


def model_time(ledger: Ledger) -> int:
    return sum(phase(ledger, name) for name in ("forward", "backward", "remat"))


@pytest.mark.parametrize(
    ("name", "time", "share"),
    [
        ("forward", "2,322.8", "8.7%"),
        ("backward", "7,287.9", "27.3%"),
        ("remat", "2,210.5", "8.3%"),
        ("update", "9.5", "<0.1%"),
        ("unattributed", "297.5", "1.1%"),
    ],
)
def test_phases(ledger: Ledger, name: str, time: str, share: str) -> None:
    assert (ms(phase(ledger, name)), percent(phase(ledger, name), everything(ledger))) == (time, share)


def test_communication_and_the_total(ledger: Ledger) -> None:
    assert ms(communication(ledger)) == "14,560.8"
    assert percent(communication(ledger), everything(ledger)) == "54.6%"
    assert ms(everything(ledger)) == "26,689.0"


@pytest.mark.parametrize(
    ("name", "of_row", "time", "share"),
    [
        ("forward", "embedding", "9.2", "0.4%"),
        ("forward", "attention", "311.4", "13.4%"),
        ("forward", "router", "38.0", "1.6%"),
        ("forward", "dispatch", "157.3", "6.8%"),
        ("forward", "expert_mlp", "1,541.8", "66.4%"),
        ("forward", "combine", "120.3", "5.2%"),
        ("forward", "layers", "135.4", "5.8%"),
        ("forward", "final_norm", "0.1", "<0.1%"),
        ("forward", "lm_head", "9.4", "0.4%"),
        ("backward", "lm_head", "17.9", "0.2%"),
        ("backward", "final_norm", "0.4", "<0.1%"),
        ("backward", "moe", "6,065.2", "83.2%"),
        ("backward", "norms", "88.2", "1.2%"),
        ("backward", "attention", "958.2", "13.1%"),
        ("backward", "embedding", "7.1", "0.1%"),
        ("backward", "layers", "150.8", "2.1%"),
        ("remat", "moe", "2,197.2", "99.4%"),
        ("remat", "attention", "1.5", "0.1%"),
        ("remat", "norms", "11.8", "0.5%"),
    ],
)
def test_maps(ledger: Ledger, name: str, of_row: str, time: str, share: str) -> None:
    found = row(ledger, name, of_row)
    assert (ms(found), percent(found, phase(ledger, name))) == (time, share)


@pytest.mark.parametrize(("of_row", "time"), [("loss", "1.0"), ("optimizer", "8.6")])
def test_update(ledger: Ledger, of_row: str, time: str) -> None:
    assert ms(row(ledger, "update", of_row)) == time


@pytest.mark.parametrize("name", ROWS)
def test_rows_hold_all_of_their_phase(ledger: Ledger, name: str) -> None:
    assert sum(row(ledger, name, of_row) for of_row in ROWS[name]) == phase(ledger, name)


def test_norms_of_the_forward_pass_have_no_operation(ledger: Ledger) -> None:
    assert not any(ledger.components["forward", scope] for scope in (*NORMS, "attention_residual"))


@pytest.mark.parametrize(
    ("phases", "time"),
    [
        (("forward",), "4,298.8"),
        (("backward",), "3,360.3"),
        (("remat",), "5,608.8"),
        (("update", "unattributed"), "1,292.9"),
    ],
)
def test_collectives_by_what_launched_them(ledger: Ledger, phases: tuple[str, ...], time: str) -> None:
    assert ms(sum(ledger.collectives[name] for name in phases)) == time


def test_unions_and_overlap(ledger: Ledger) -> None:
    times = ledger.devices.values()
    assert len(times) == GPUS
    compute, communicating = (
        sum(getattr(time, name) for time in times) for name in ("compute", "communication")
    )
    overlap = sum(time.overlap for time in times)
    assert seconds(compute) == "12.128"
    assert seconds(communicating) == "14.561"
    assert seconds(overlap) == "5.966"
    assert seconds(sum(time.exposed for time in times)) == "8.594"
    assert seconds(sum(time.busy for time in times)) == "20.723"
    assert seconds(sum(time.window for time in times)) == "20.759"
    assert printed(Fraction(sum(time.window - time.busy for time in times), GPUS * PS_PER_MS), 0) == "36"
    assert percent(overlap, communicating) == "41.0%"


def test_conclusions(ledger: Ledger) -> None:
    forward, backward, remat = (phase(ledger, name) for name in ("forward", "backward", "remat"))
    moe = forward_moe(ledger) + row(ledger, "backward", "moe") + row(ledger, "remat", "moe")
    assert ms(forward_moe(ledger)) == "1,857.4"
    assert ms(moe) == "10,119.8"
    assert ms(model_time(ledger)) == "11,821.2"
    assert percent(moe, model_time(ledger)) == "85.6%"
    assert percent(row(ledger, "forward", "expert_mlp"), forward_moe(ledger)) == "83.0%"
    assert printed(Fraction(backward + remat, forward), 2) == "4.09"
    assert printed(Fraction(backward, forward), 2) == "3.14"


@pytest.mark.parametrize("scope", ["wi_0", "wi_1", "core_attention"])
def test_each_forward_kernel_appears_for_each_layer_and_microstep(ledger: Ledger, scope: str) -> None:
    assert ledger.forward_kernels[scope] == [112] * GPUS


def test_gpus_differ_and_the_straggler_waits_least(ledger: Ledger) -> None:
    times = ledger.devices
    assert len(set(times.values())) == GPUS
    compute = [times[gpu].compute for gpu in range(GPUS)]
    assert 0.008 < (max(compute) - min(compute)) * GPUS / sum(compute) < 0.015
    assert max(times, key=lambda gpu: times[gpu].compute) == STRAGGLER
    assert max(times, key=lambda gpu: times[gpu].window) == STRAGGLER
    assert min(times, key=lambda gpu: times[gpu].exposed) == STRAGGLER


def test_both_ledgers_are_equal(run: Run) -> None:
    assert run.view_ledger.devices == run.own_ledger.devices


# --- the report ---------------------------------------------------------------------------------------------

REPORT_ROWS = [
    ("Phases of the step", "Forward model compute", ["2,322.8 ms", "8.7%"]),
    ("Phases of the step", "Backward gradient compute", ["7,287.9 ms", "27.3%"]),
    ("Phases of the step", "Rematerialized forward replay", ["2,210.5 ms", "8.3%"]),
    ("Phases of the step", "Loss, gradient accumulation and optimizer", ["9.5 ms", "<0.1%"]),
    ("Phases of the step", "Communication", ["14,560.8 ms", "54.6%"]),
    ("Phases of the step", "Unattributed work", ["297.5 ms", "1.1%"]),
    ("Phases of the step", "Total summed device time", ["26,689.0 ms", "100.0%"]),
    ("Forward map", "Embedding", ["9.2 ms", "0.4%"]),
    ("Forward map", "Attention", ["311.4 ms", "13.4%"]),
    ("Forward map", "Router", ["38.0 ms", "1.6%"]),
    ("Forward map", "Dispatch", ["157.3 ms", "6.8%"]),
    ("Forward map", "Expert MLP", ["1,541.8 ms", "66.4%"]),
    ("Forward map", "Combine", ["120.3 ms", "5.2%"]),
    ("Forward map", "Scanned loop", ["135.4 ms", "5.8%"]),
    ("Forward map", "Final norm", ["0.1 ms", "<0.1%"]),
    ("Forward map", "LM head", ["9.4 ms", "0.4%"]),
    ("Forward map", "Total", ["2,322.8 ms", "100.0%"]),
    ("Backward map", "LM head", ["17.9 ms", "0.2%"]),
    ("Backward map", "Final norm", ["0.4 ms", "<0.1%"]),
    ("Backward map", "MoE", ["6,065.2 ms", "83.2%"]),
    ("Backward map", "Layer norms", ["88.2 ms", "1.2%"]),
    ("Backward map", "Attention", ["958.2 ms", "13.1%"]),
    ("Backward map", "Embedding", ["7.1 ms", "0.1%"]),
    ("Backward map", "Scanned loop", ["150.8 ms", "2.1%"]),
    ("Backward map", "Total", ["7,287.9 ms", "100.0%"]),
    ("Replayed components", "MoE", ["2,197.2 ms", "99.4%"]),
    ("Replayed components", "Attention", ["1.5 ms", "0.1%"]),
    ("Replayed components", "Layer norms", ["11.8 ms", "0.5%"]),
    ("Replayed components", "Total", ["2,210.5 ms", "100.0%"]),
    ("Cross-cutting and unresolved buckets", "Forward collectives", ["4,298.8 ms"]),
    ("Cross-cutting and unresolved buckets", "Backward collectives", ["3,360.3 ms"]),
    ("Cross-cutting and unresolved buckets", "Rematerialized collectives", ["5,608.8 ms"]),
    ("Cross-cutting and unresolved buckets", "Optimizer or unscoped collectives", ["1,292.9 ms"]),
    ("Cross-cutting and unresolved buckets", "Gradient accumulation, clipping and optimizer", ["8.6 ms"]),
    ("Cross-cutting and unresolved buckets", "Loss and metrics", ["1.0 ms"]),
    ("Cross-cutting and unresolved buckets", "Other unattributed work", ["297.5 ms"]),
    ("Ratios to compare with other runs and models", "Communication", ["54.6%", ""]),
    ("Ratios to compare with other runs and models", "Communication hidden by compute", ["41.0%", ""]),
    ("Ratios to compare with other runs and models", "Backward over forward", ["", "3.14"]),
    ("Ratios to compare with other runs and models", "Backward and replay over forward", ["", "4.09"]),
    ("Ratios to compare with other runs and models", "MoE share of the model", ["85.6%", ""]),
    ("Ratios to compare with other runs and models", "Expert MLP share of forward MoE", ["83.0%", ""]),
]
REPORT_SECONDS = [
    ("Compute", "12.128"),
    ("Communication", "14.561"),
    ("Communication hidden by compute", "5.966"),
    ("Exposed communication", "8.594"),
    ("Busy (any work)", "20.723"),
    ("Window", "20.759"),
]


@pytest.fixture(scope="module")
def report(run: Run) -> dict[str, dict[str, list[str]]]:
    """The tables of the report by their titles: cells of each row by its first."""
    arguments = ["report", "run", "-w", str(run.warehouse), "--format", "markdown"]
    result = CliRunner().invoke(main, arguments)
    assert (result.exit_code, result.stderr) == (0, "")
    tables: dict[str, dict[str, list[str]]] = {}
    for part in re.split(r"^## ", result.stdout, flags=re.MULTILINE)[1:]:
        title, *lines = part.splitlines()
        # Without the heading and the line below it.
        rows = [line.removeprefix("| ").removesuffix(" |") for line in lines if line.startswith("|")][2:]
        cells = [re.sub(r"\\([<>])", r"\1", row).split(" | ") for row in rows]
        tables[title] = {name: [cell.strip() for cell in rest] for name, *rest in cells}
    return tables


@pytest.mark.parametrize(("title", "name", "cells"), REPORT_ROWS)
def test_rows_of_the_report(
    report: dict[str, dict[str, list[str]]], title: str, name: str, cells: list[str]
) -> None:
    assert report[title][name][: len(cells)] == cells


def test_the_report_has_no_other_rows(report: dict[str, dict[str, list[str]]]) -> None:
    titles = {title for title, _, _ in REPORT_ROWS}
    found = {(title, name) for title in titles for name in report[title]}
    assert found == {(title, name) for title, name, _ in REPORT_ROWS}


@pytest.mark.parametrize(("part", "time"), REPORT_SECONDS)
def test_timeline_of_the_report(report: dict[str, dict[str, list[str]]], part: str, time: str) -> None:
    shown = report["The timeline of the step"][part][0]
    assert printed(Fraction(shown.removesuffix(" ms").replace(",", "")) / 1000, 3) == time


def test_idle_time_of_the_report(report: dict[str, dict[str, list[str]]]) -> None:
    assert report["The timeline of the step"]["Idle"][0] == "36.0 ms"


@pytest.mark.parametrize("name", ["wi_0", "wi_1", "core_attention"])
def test_occurrences_of_the_report(report: dict[str, dict[str, list[str]]], name: str) -> None:
    assert report["Occurrences"][name][1:] == ["112", "112", "complete"]


# --- the capture --------------------------------------------------------------------------------------------


def test_the_step_is_complete_and_found(run: Run) -> None:
    found = run.rows(
        "SELECT device_ordinal, step_num, is_complete, (host_end_ps - host_start_ps) / 1e12 "
        "FROM v1.steps ORDER BY 1"
    )
    assert found == [(gpu, STEP, True, 20.605) for gpu in range(GPUS)]


def test_kernels_of_a_kind_do_not_overlap(run: Run) -> None:
    for kernels in run.kernels.values():
        for of_kind in (True, False):
            spans = [
                (kernel.start_ps, kernel.end_ps) for kernel in kernels if is_collective(kernel) == of_kind
            ]
            assert sum(end - start for start, end in merged(spans)) == sum(
                end - start for start, end in spans
            )


def test_each_kernel_has_a_launch_before_it_in_the_step(run: Run) -> None:
    host = run.space.plane("/host:CPU")
    calls: dict[int, list[Event]] = defaultdict(list)
    (step,) = [event for line in host.lines for event in line.events if event.stat("step_num") is not None]
    for line in host.lines:
        for event in line.events:
            if event.stat("correlation_id") is not None:
                calls[event.stat("correlation_id")].append(event)
    kernels = [kernel for of_gpu in run.kernels.values() for kernel in of_gpu]
    assert len(kernels) == len(calls)
    for kernel in kernels:
        (call,) = calls[kernel.stat("correlation_id")]
        assert step.start_ps <= call.start_ps
        assert call.end_ps <= min(kernel.start_ps, step.end_ps)
        assert call.stat("hlo_op") == kernel.stat("hlo_op")


def test_collectives_end_together_in_a_group(run: Run) -> None:
    ends: dict[tuple[str, int], list[int]] = defaultdict(list)
    for _, kernels in sorted(run.kernels.items()):
        seen: dict[str, int] = defaultdict(int)
        for kernel in sorted(filter(is_collective, kernels), key=lambda kernel: kernel.start_ps):
            op = kernel.stat("hlo_op")
            ends[op, seen[op]].append(kernel.end_ps)
            seen[op] += 1
    groups = {
        "all-gather": ((0, 2, 4, 6), (1, 3, 5, 7)),
        "reduce-scatter": ((0, 2, 4, 6), (1, 3, 5, 7)),
        "all-to-all": ((0, 1), (2, 3), (4, 5), (6, 7)),
        "all-reduce": (tuple(range(GPUS)),),
    }
    assert len(ends) > 1000
    for (op, _), of_gpus in ends.items():
        for group in groups[op.partition("-start")[0]]:
            members = [of_gpus[gpu] for gpu in group]
            assert max(members) - min(members) <= 1000


def test_collectives_have_the_groups_of_the_mesh(run: Run) -> None:
    found = run.rows(
        "SELECT DISTINCT collective_kind, group_size FROM main.hlo_collectives "
        "WHERE unknown_reason IS NULL ORDER BY 1"
    )
    assert found == [("all-gather", 4), ("all-reduce", 8), ("all-to-all", 2), ("reduce-scatter", 4)]


def test_idle_gaps_lie_before_loops_and_the_optimizer(run: Run) -> None:
    for kernels in run.kernels.values():
        spans = merged((kernel.start_ps, kernel.end_ps) for kernel in kernels)
        gaps = [after[0] - before[1] for before, after in pairwise(spans)]
        long = [gap for gap in gaps if gap > PS_PER_MS]
        # Two loops in each of two microsteps, one before the second, one before the optimizer.
        assert len(long) == 6
        assert sum(long) > 0.8 * sum(gaps)


def test_xla_reads_the_program(run: Run) -> None:
    pytest.importorskip("jax")
    from jaxlib import _jax

    try:
        from jaxlib import _hlo as hlo
    except ImportError:
        hlo = _jax
    (module,) = hlo_oracle.modules_of_xspace(run.capture.read_bytes())
    text = hlo.HloModule.from_serialized_hlo_module_proto(module).to_string()
    # Reading the text again infers each shape anew.
    assert hlo.hlo_module_from_text(text).name == "jit_train_step"
    assert sorted(re.findall(r'"known_trip_count":{"n":"(\d+)"', text)) == ["2", "56", "56"]


def test_every_op_runs_as_often_as_its_loops_say(run: Run) -> None:
    assert run.rows("SELECT DISTINCT status, program_runs FROM v1.occurrences") == [("complete", GPUS)]


def test_nothing_is_lost_on_the_way(run: Run) -> None:
    assert run.rows("SELECT * FROM main.ingest_problems") == []


def test_the_same_call_writes_the_same_bytes(run: Run, tmp_path: Path) -> None:
    _generator().write_run(tmp_path)
    for path in run.folder.iterdir():
        assert (tmp_path / path.name).read_bytes() == path.read_bytes()
    assert run.capture.stat().st_size < 8_000_000


# --- model and step times -----------------------------------------------------------------------------------


USEFUL_FLOPS = [
    ("attention_projections", "7.758", "12.22"),
    ("attention_core", "2.217", "3.49"),
    ("router", "0.004", "0.007"),
    ("experts_selected", "53.199", "83.78"),
    ("lm_head", "0.317", "0.50"),
    ("total", "63.495", "100"),
]


@pytest.mark.parametrize(("component", "petaflops", "share"), USEFUL_FLOPS)
def test_useful_flops(run: Run, component: str, petaflops: str, share: str) -> None:
    ledger = json.loads((run.folder / "config.json").read_text())["useful_flops_per_update"]
    ledger["attention_core"] = ledger.pop("attention_core_causal")
    ((flops, share_ratio, stated),) = run.rows(
        "SELECT useful_flops, share_ratio, stated_flops FROM v1.model_flops "
        f"WHERE component = '{component}' AND source = 'config'"
    )
    assert int(flops) == ledger[component] == int(stated)
    assert printed(Fraction(int(flops), 10**15), 3) == petaflops
    digits = len(share.partition(".")[2])
    assert printed(100 * Fraction(share_ratio), digits) == share


def test_useful_flops_of_a_token(run: Run) -> None:
    ((components, of_token),) = run.rows(
        "SELECT COUNT(*), MAX(flops_per_token) FILTER (WHERE component = 'total') FROM v1.model_flops"
    )
    assert components == len(USEFUL_FLOPS)
    assert printed(Fraction(of_token) / 10**9, 3) == "242.212"


def test_useful_flops_of_experts_are_those_of_the_program(run: Run) -> None:
    ledger = json.loads((run.folder / "config.json").read_text())["useful_flops_per_update"]
    # Each place of an expert is filled, so the forward products compute no padding.
    (executed,) = run.rows(
        "SELECT SUM(c.flops * p.executions)::BIGINT FROM main.hlo_costs AS c "
        "JOIN main.hlo_instructions AS i USING (module_id, instruction_id) "
        "JOIN main.hlo_computations AS p USING (module_id, computation_id) "
        "JOIN main.names AS n ON n.name_id = i.op_name_id "
        "WHERE i.opcode = 'custom-call' AND regexp_matches(n.name, '/jvp[(]layers[)].*/(wi_0|wi_1|wo)/')"
    )[0]
    assert 3 * executed * GPUS == ledger["experts_selected"]


def test_step_times(run: Run) -> None:
    config = json.loads((run.folder / "config.json").read_text())
    samples = run.rows(
        "SELECT value, is_profiled FROM main.timing_samples WHERE metric = 'step_time_s' ORDER BY 1"
    )
    found = [(printed(Fraction(str(value)), 3), is_profiled) for value, is_profiled in samples]
    assert found == [("20.599", False), ("20.605", True), ("20.811", None), ("20.824", None)]
    step, tokens = Fraction(str(samples[0][0])), config["tokens_per_update"]
    assert tokens == 262_144
    assert printed(Fraction(tokens, GPUS) / step, 1) == "1,590.7"
    rate = Fraction(config["useful_flops_per_update"]["total"], GPUS) / step
    assert printed(rate / 10**12, 1) == "385.3"
    assert printed(100 * rate / Fraction("2516.6e12"), 2) == "15.31"
    assert printed(100 * (Fraction(str(samples[1][0])) / step - 1), 2) == "0.03"


@pytest.mark.parametrize(
    ("metric", "value", "unit", "evidence"),
    [
        ("step_time", "20.599", "s", "measured"),
        ("profiled_step_time", "20.605", "s", "measured"),
        ("tokens_per_s_per_device", "1,590.7", "tokens/s/device", "derived"),
        ("useful_flop_rate", "385.3", "TFLOP/s/device", "analytical"),
        ("mfu", "0.1531", "ratio", "analytical"),
    ],
)
def test_throughput(run: Run, metric: str, value: str, unit: str, evidence: str) -> None:
    rows = run.rows(
        "SELECT value, unit, samples, statistic, spread, evidence, COALESCE(dtype, 'bf16') "
        "FROM v1.throughput "
        f"WHERE metric = '{metric}' AND COALESCE(peak_kind, 'spec') = 'spec'"
    )
    ((found, *others),) = rows
    assert printed(Fraction(found), len(value.partition(".")[2])) == value
    assert others == [unit, 1, "one sample", None, evidence, "bf16"]


def test_denominator_of_mfu(run: Run) -> None:
    ((denominator,),) = run.rows(
        "SELECT denominator FROM v1.throughput WHERE metric = 'mfu' AND peak_kind = 'spec'"
    )
    assert denominator == (
        "useful FLOPs of an update (config) / 8 devices (config) / 20.5993 s / "
        "2516.6 TFLOP/s, the dense bf16 peak (spec)"
    )


def test_throughput_of_the_report(report: dict[str, dict[str, list[str]]]) -> None:
    rows = report["Throughput"]
    assert "20,599.3 ms" in rows["Step time (one sample)"]
    assert "1,590.7" in rows["Tokens of a device"]
    assert "385.3" in rows["Useful FLOPs"]
    assert "15.3%" in rows["MFU, bf16 spec"]
    assert report["Useful FLOPs of an update"]["total"][1:3] == ["63,494.5", "TFLOP"]
