"""What a training step executes, from the model's useful FLOPs to the compiler's account.

The config.json of the runs has the useful FLOPs of an update: three times those of the forward products,
attention by the causal half of its pairs, experts by the tokens that choose them. What runs is more, and each
of the reasons is worked out here, so that nothing remains.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import pytest

from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_proto import HloModuleProto

from . import hlo_oracle
from .hlo_text_walk import Instruction, Product, Program
from .moe_model import Model
from .shared_runs import SharedRun, ingested

RUNS = ["h200x2_medium_fsdp2_nocb", "h200x2_medium_fsdp2_opt", "h200x1_small_nocb"]
COMPONENTS = {
    **dict.fromkeys(("query", "key", "value", "out"), "projections"),
    "core_attention": "core",
    "router_gate": "router",
    "router_masks": "masks",
    "dispatch": "dispatch",
    **dict.fromkeys(("wi_0", "wi_1", "wo"), "experts"),
    "combine": "combine",
    "lm_head": "lm_head",
}
_COMPONENT = re.compile(rf"[/(]({'|'.join(COMPONENTS)})(?=[/)])")

# FLOPs of one update on one device.
LEDGERS = {
    "h200x2_medium_fsdp2_nocb": {
        "useful": 72_580_652_335_104,
        "causal_half": 3_298_534_883_328,
        "capacity_padding": 13_606_456_393_728,
        "routing": 13_751_948_410_880,
        "replay": 26_535_381_696_512,
        "executed": 129_772_973_719_552,
    },
    "h200x2_medium_fsdp2_opt": {
        "useful": 72_580_652_335_104,
        "causal_half": 3_298_534_883_328,
        "capacity_padding": 13_606_456_393_728,
        "routing": 13_751_948_410_880,
        "replay": 1_109_175_304_192,
        "executed": 104_346_767_327_232,
    },
    "h200x1_small_nocb": {
        "useful": 13_715_374_080,
        "causal_half": 402_653_184,
        "capacity_padding": 2_415_919_104,
        "routing": 1_685_585_920,
        "replay": 4_509_925_376,
        "executed": 22_729_457_664,
    },
}


@dataclass
class Step:
    """The program of a run's training step, and the run in a warehouse."""

    run: SharedRun

    @cached_property
    def program(self) -> Program:
        return Program((self.run.path / "optimized_hlo.txt").read_text())

    @cached_property
    def products(self) -> list[Product]:
        return list(self.program.products())

    @property
    def loops(self) -> list[Instruction]:
        return [instruction for instruction in self.program.instructions if instruction.opcode == "while"]

    def executed(self) -> int:
        """FLOPs of the matrix products."""
        return sum(product.flops for product in self.products)

    def dots(self) -> int:
        """Those of them that are in kernels of the compiler."""
        return sum(product.flops for product in self.products if not product.is_library_call)

    def costs(self) -> tuple[int, int, int]:
        """FLOPs, those of library calls, and transcendentals, by v1.program_costs."""
        rows = self.run.rows(
            """SELECT flops, library_flops, transcendentals, unknown_flops_count, unknown_loop_count
            FROM v1.program_costs WHERE module_name = 'jit_train_step'"""
        )
        ((flops, library_flops, transcendentals, *unknown),) = rows
        assert unknown == [0, 0]
        return int(flops), int(library_flops), int(transcendentals)

    def xla(self) -> tuple[bytes, hlo_oracle.Isolator, dict[str, int]]:
        """The module, what cuts single instructions out of it, and their ids by name."""
        (path,) = self.run.path.glob("xla_dump/*.hlo.pb")
        (module,) = hlo_oracle.modules_of_hlo_proto(path.read_bytes())
        instructions = ModuleGraph(HloModuleProto.FromString(module)).instructions.values()
        return module, hlo_oracle.Isolator(module), {item.name.decode(): item.id for item in instructions}


@pytest.fixture(scope="module", params=RUNS)
def step(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Step]:
    with ingested(request.param, tmp_path_factory.mktemp("run")) as run:
        yield Step(run)


def pass_and_component(op_name: str) -> tuple[str, str]:
    component = COMPONENTS[_COMPONENT.findall(op_name)[-1]]
    if "/rematted_computation/" in op_name:
        return "replay", component
    if "transpose(jvp(" in op_name:
        return "backward", component
    assert "jvp(" in op_name, op_name
    return "forward", component


def test_products_of_the_program_are_those_of_the_model(step: Step) -> None:
    # XLA joins products with one factor in common, and cuts others along what they sum: the sums stay.
    found: Counter[tuple[str, str]] = Counter()
    for product in step.products:
        found[pass_and_component(product.instruction.op_name)] += product.flops
    assert dict(found) == Model(step.run.config).step()


def test_useful_flops_and_the_rest_are_what_is_executed(step: Step) -> None:
    model, devices = Model(step.run.config), step.run.config["devices"]
    useful = {name: flops // devices for name, flops in step.run.config["useful_flops_per_update"].items()}
    ledger = {
        "useful": useful["total"],
        # All pairs of query and key are computed, and half of them masked.
        "causal_half": useful["attention_core_causal"],
        # Each expert has room for more tokens than choose it.
        "capacity_padding": useful["experts_selected"] * (model.slots - model.choices) // model.choices,
        # Tokens go to their experts and back by products with masks. Forward: two masks, two products;
        # backward: the gradient of one mask, one product for the dispatch and two for the combine.
        "routing": model.turns * (3 * model.mask + 5 * model.moved),
        "replay": model.turns * sum(model.replay().values()),
    }
    assert ledger | {"executed": step.executed()} == LEDGERS[step.run.name]
    assert sum(ledger.values()) == step.executed()


def test_library_calls_are_the_products_that_cublas_does(step: Step) -> None:
    _, library_flops, _ = step.costs()
    assert library_flops == step.executed() - step.dots() > 0


def test_everything_is_what_xla_counts_with_its_loops_unrolled(step: Step) -> None:
    # XLA's analysis takes each loop once, and each library call for -1 FLOPs.
    module, isolator, ids = step.xla()
    once = hlo_oracle.xla_cost(module)
    reported = json.loads((step.run.path / "cost_analysis.json").read_text())
    assert math.isclose(once.flops, reported["flops"], rel_tol=1e-6)
    assert math.isclose(once.transcendentals, reported["transcendentals"], rel_tol=1e-6)
    flops, transcendentals = once.flops, once.transcendentals
    executions = step.program.executions
    for loop in step.loops:
        turn = hlo_oracle.xla_cost(isolator.module(ids[loop.name]))
        # With the turns of the loops around it, the body counts as often as the loop is entered.
        entered = executions[loop.computation]
        further = executions[loop.attribute(r"body=%([\w.\-]+)")] - entered
        flops += further * turn.flops
        transcendentals += further * turn.transcendentals
        # The condition, one comparison, is asked once more than the body runs.
        flops += entered
    calls = [item for item in step.program.instructions if item.opcode == "custom-call"]
    flops += sum(executions[call.computation] for call in calls)
    found_flops, library_flops, found_transcendentals = step.costs()
    assert math.isclose(found_transcendentals, transcendentals, rel_tol=1e-6)
    assert math.isclose(found_flops, flops + library_flops, rel_tol=1e-6)
    # The same without the products, which are nearly all of it; XLA adds up in float32.
    assert math.isclose(found_flops - step.executed(), flops - step.dots(), rel_tol=1e-5)


def test_everything_is_what_xla_counts_for_each_instruction(step: Step) -> None:
    # Closer than the whole: float32 holds the numbers of single instructions nearly or wholly.
    program = Program(step.run.dumped_text)
    fused = {item.attribute(r"calls=%([\w.\-]+)") for item in program.instructions if item.opcode == "fusion"}
    _, isolator, ids = step.xla()
    flops = 0.0
    for item in program.instructions:
        times = program.executions[item.computation]
        is_control = item.opcode in ("while", "async-start", "async-done", "parameter")
        if times and item.computation not in fused and not is_control and item.opcode != "custom-call":
            flops += times * hlo_oracle.xla_cost(isolator.module(ids[item.name])).flops
    found_flops, library_flops, _ = step.costs()
    assert math.isclose(found_flops - step.executed(), flops - step.dots(), rel_tol=1e-8)
    assert math.isclose(found_flops, flops + library_flops, rel_tol=1e-11)


def test_kernels_show_every_flop_of_the_program(step: Step) -> None:
    """Each step on each device, but for the conditions of loops, which known trip counts save."""
    if "--xla_gpu_enable_command_buffer=" not in step.run.config["xla_flags"]:
        pytest.skip("the kernels of command buffers do not say what they run")
    found = step.run.rows(
        """SELECT s.device_id, SUM(s.flops) FROM v1.op_stats AS s
        JOIN v1.program_costs AS p USING (capture_id, program_id)
        WHERE p.module_name = 'jit_train_step' GROUP BY 1"""
    )
    assert len(found) == step.run.config["devices"]
    conditions = [loop.attribute(r"condition=%([\w.\-]+)") for loop in step.loops]
    asked = sum(step.program.executions[condition] for condition in conditions)
    flops, _, _ = step.costs()
    assert {row[1] for row in found} == {step.run.profiled_steps * (flops - asked)}
