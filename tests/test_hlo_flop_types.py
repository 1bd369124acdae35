"""Which units compute an instruction's FLOPs, and in which type."""

from __future__ import annotations

from collections import defaultdict

import pytest

from tracewh.ingest.hlo_cost import ModuleCosts
from tracewh.ingest.hlo_flop_types import FlopKind, FlopTypes
from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_library_calls import library_call_cost
from tracewh.ingest.hlo_proto import HloModuleProto

from . import hlo_oracle
from .test_hlo_cost import CASES

# A fused product of bf16 with an epilogue in f32: 2 * 4 * 8 * 16 FLOPs, 4 * 8 conversions, 4 * 8 additions.
FUSED = """
HloModule m
fused {
  a = bf16[4,16] parameter(0)
  b = bf16[16,8] parameter(1)
  d = bf16[4,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  c = f32[4,8] convert(d)
  ROOT s = f32[4,8] add(c, c)
}
ENTRY main {
  a = bf16[4,16] parameter(0)
  b = bf16[16,8] parameter(1)
  ROOT f = f32[4,8] fusion(a, b), kind=kOutput, calls=fused
}
"""
PRODUCT = """
HloModule m
ENTRY main {{
  a = {lhs}[4,16] parameter(0)
  b = {rhs}[16,8] parameter(1)
  ROOT d = f32[4,8] dot(a, b), lhs_contracting_dims={{1}}, rhs_contracting_dims={{0}}{attributes}
}}
"""
CALL = """
HloModule m
ENTRY main {{
  a = {lhs}[4,16] parameter(0)
  b = {lhs}[16,8] parameter(1)
  ROOT d = (f32[4,8], s8[1024]) custom-call(a, b), custom_call_target="__cublas$lt$matmul",
    backend_config={{"gemm_backend_config":{{"dot_dimension_numbers":{{"lhs_contracting_dimensions":["1"],
    "rhs_contracting_dimensions":["0"],"lhs_batch_dimensions":[],"rhs_batch_dimensions":[]}},
    "precision_config":{{"operand_precision":[{precision}],"algorithm":"{algorithm}"}}}}}}
}}
"""


def kinds_of(data: bytes) -> dict[str, dict[FlopKind, int]]:
    graph = ModuleGraph(HloModuleProto.FromString(data))
    costs = ModuleCosts(graph, library_call_cost)
    types = FlopTypes(graph, {key: costs.cost(value) for key, value in graph.instructions.items()})
    return {value.name.decode(): types.of(value) for value in graph.instructions.values()}


@pytest.mark.parametrize("text", CASES.values(), ids=CASES.keys())
def test_kinds_add_up_to_the_cost(text: str) -> None:
    data = hlo_oracle.module_of_text(text)
    graph = ModuleGraph(HloModuleProto.FromString(data))
    costs = ModuleCosts(graph, library_call_cost)
    found = kinds_of(data)
    for instruction in graph.instructions.values():
        flops = costs.cost(instruction).flops or 0
        assert sum(found[instruction.name.decode()].values()) == flops


def test_a_fusion_has_the_kinds_of_what_it_fuses() -> None:
    found: dict[FlopKind, int] = defaultdict(int, kinds_of(hlo_oracle.module_of_text(FUSED))["f"])
    assert found[FlopKind("matrix", "bf16", "default")] == 1024
    # The conversion reads bf16, the addition f32.
    assert {kind: flops for kind, flops in found.items() if kind.unit == "vector"} == {
        FlopKind("vector", "bf16", None): 32,
        FlopKind("vector", "f32", None): 32,
    }


@pytest.mark.parametrize(
    ("lhs", "rhs", "attributes", "kind"),
    [
        ("bf16", "bf16", "", ("bf16", "default")),
        ("bf16", "f32", "", ("f32", "default")),
        ("f8e4m3fn", "f8e5m2", "", ("f8e4m3fn", "default")),
        ("s8", "s8", "", ("s8", "default")),
        ("f32", "f32", ", operand_precision={highest,highest}", ("f32", "highest")),
        ("f32", "f32", ", operand_precision={default,high}", ("f32", "high")),
        ("f32", "f32", ", algorithm=dot_tf32_tf32_f32", ("tf32", "algorithm")),
        ("f32", "f32", ", algorithm=dot_bf16_bf16_f32_x3", ("bf16", "algorithm")),
        ("f32", "f32", ", algorithm=dot_f32_f32_f32", ("f32", "algorithm")),
        ("f16", "f16", ", algorithm=dot_f16_f16_f32", ("f16", "algorithm")),
        ("f64", "f64", ", algorithm=dot_f64_f64_f64", ("f64", "algorithm")),
        ("bf16", "bf16", ", algorithm=dot_any_f8_any_f8_f32", ("f8", "algorithm")),
    ],
)
def test_products_are_of_the_type_that_multiplies(
    lhs: str, rhs: str, attributes: str, kind: tuple[str, str]
) -> None:
    text = PRODUCT.format(lhs=lhs, rhs=rhs, attributes=attributes)
    assert kinds_of(hlo_oracle.module_of_text(text))["d"] == {FlopKind("matrix", *kind): 1024}


@pytest.mark.parametrize(
    ("lhs", "precision", "algorithm", "kind"),
    [
        ("bf16", '"DEFAULT","DEFAULT"', "ALG_UNSET", ("bf16", "default")),
        ("f32", '"DEFAULT","HIGHEST"', "ALG_UNSET", ("f32", "highest")),
        ("f32", "", "ALG_DOT_TF32_TF32_F32", ("tf32", "algorithm")),
        ("f32", "", "ALG_DOT_BF16_BF16_F32_X6", ("bf16", "algorithm")),
        ("f32", '"ODD"', "ALG_ODD", ("f32", "default")),
    ],
)
def test_library_calls_are_of_the_type_that_their_configuration_asks_for(
    lhs: str, precision: str, algorithm: str, kind: tuple[str, str]
) -> None:
    text = CALL.format(lhs=lhs, precision=precision, algorithm=algorithm)
    assert kinds_of(hlo_oracle.module_of_text(text))["d"] == {FlopKind("matrix", *kind): 1024}
