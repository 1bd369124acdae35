"""The costs in HLO modules that no compiler writes: damaged, endless, and far too large."""

from __future__ import annotations

from typing import Any

import pytest

from tracewh.ingest.hlo_cost import ModuleCosts
from tracewh.ingest.hlo_cost_opcodes import RULE_BY_OPCODE
from tracewh.ingest.hlo_cost_value import Cost
from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_proto import HloModuleProto, ShapeProto

F32, TUPLE, OPAQUE = 11, 13, 14


def array(*dimensions: int, element_type: int = F32) -> bytes:
    layout = {"minor_to_major": list(reversed(range(len(dimensions))))}
    shape = ShapeProto(element_type=element_type, dimensions=dimensions, layout=layout)
    return bytes(shape.SerializeToString())


def tiled(order: list[int], tile: list[int]) -> bytes:
    layout = {"minor_to_major": order, "tiles": [{"dimensions": tile}]}
    return bytes(ShapeProto(element_type=F32, dimensions=[4, 4], layout=layout).SerializeToString())


class Module:
    """Makes a module instruction by instruction."""

    def __init__(self) -> None:
        self.proto = HloModuleProto()
        self.library_calls = 0

    def computation(self, computation_id: int) -> Any:
        return self.proto.computations.add(id=computation_id, name=b"c%d" % computation_id)

    def add(self, computation: Any, opcode: str, shape: bytes, *operands: Any, **fields: Any) -> Any:
        """Add an instruction, which is the root until another one comes."""
        number = len(computation.instructions)
        instruction = computation.instructions.add(
            name=f"{opcode}.{number}".encode(),
            opcode=opcode.encode(),
            shape=shape,
            id=computation.id << 32 | number,
            operand_ids=[getattr(operand, "id", operand) for operand in operands],
            **fields,
        )
        computation.root_id = instruction.id
        return instruction

    def parameter(self, computation: Any, shape: bytes, number: int = 0) -> Any:
        return self.add(computation, "parameter", shape, parameter_number=number)

    def costs(self) -> ModuleCosts:
        def library_call(graph: ModuleGraph, instruction: Any) -> Cost:
            self.library_calls += 1
            return Cost(3, 2, 1, "library")

        return ModuleCosts(ModuleGraph(self.proto), library_call)


def cost_of(opcode: str, shape: bytes, *operands: bytes, **fields: Any) -> Cost:
    """The cost of an instruction whose operands are parameters."""
    module = Module()
    entry = module.computation(1)
    parameters = [module.parameter(entry, operand, index) for index, operand in enumerate(operands)]
    return module.costs().cost(module.add(entry, opcode, shape, *parameters, **fields))


def assert_unknown(cost: Cost, reason: str) -> None:
    assert (cost.flops, cost.transcendentals, cost.bytes_accessed) == (None, None, None)
    assert cost.reason is not None
    assert reason in cost.reason


def test_an_opcode_of_the_future() -> None:
    assert_unknown(cost_of("teleport", array(4)), "there is no rule for the opcode teleport")


def test_an_opcode_that_is_not_text() -> None:
    module = Module()
    entry = module.computation(1)
    instruction = entry.instructions.add(id=1, opcode=b"\xff" * 1000, shape=array(4))
    cost = module.costs().cost(instruction)
    assert_unknown(cost, "there is no rule for the opcode \N{REPLACEMENT CHARACTER}")
    assert len(cost.reason or "") < 200


def test_an_opcode_of_the_future_in_a_fusion() -> None:
    module = Module()
    fused, entry = module.computation(2), module.computation(1)
    module.add(fused, "teleport", array(4), module.parameter(fused, array(4)))
    call = module.add(
        entry, "fusion", array(4), module.parameter(entry, array(4)), called_computation_ids=[2]
    )
    reason = "teleport.1 in it: there is no rule for the opcode teleport"
    assert module.costs().cost(call) == Cost(None, None, 32, "fusion", reason)


@pytest.mark.parametrize("opcode", sorted(opcode.decode() for opcode in RULE_BY_OPCODE))
def test_an_instruction_with_nothing_to_it(opcode: str) -> None:
    module = Module()
    entry = module.computation(1)
    bare = entry.instructions.add(opcode=opcode.encode(), id=1)
    dangling = entry.instructions.add(
        opcode=opcode.encode(), id=2, operand_ids=[98, 99], called_computation_ids=[98, 99], shape=array(4)
    )
    costs = module.costs()
    for cost in (costs.cost(bare), costs.cost(dangling)):
        known = [cost.flops, cost.transcendentals, cost.bytes_accessed]
        assert all(type(number) is int and number >= 0 for number in known) or cost.reason, cost


def test_operands_that_are_not_there() -> None:
    module = Module()
    entry = module.computation(1)
    add = module.add(entry, "add", array(4), 77, 78)
    dot = module.add(entry, "dot", array(4), 77, 78, dot_dimension_numbers={})
    costs = module.costs()
    assert costs.cost(add) == Cost(4, 0, None, "elementwise", "its operand 0 is not in the module")
    assert_unknown(costs.cost(dot), "its operand 0 is not in the module")


@pytest.mark.parametrize("opcode", ["fusion", "reduce", "map", "scatter", "reduce-window"])
def test_computations_that_are_not_there(opcode: str) -> None:
    cost = cost_of(opcode, array(4), array(4), array(4), array(4), called_computation_ids=[77])
    assert cost.flops is None
    assert "the computation 77 is not in the module" in (cost.reason or "")


def test_a_root_that_is_not_there() -> None:
    module = Module()
    fused, entry = module.computation(2), module.computation(1)
    module.parameter(fused, array(4))
    fused.root_id = 77
    call = module.add(
        entry, "fusion", array(4), module.parameter(entry, array(4)), called_computation_ids=[2]
    )
    cost = module.costs().cost(call)
    assert cost == Cost(0, 0, None, "fusion", "the root of its computation is not in the module")


UNSIZED = {
    "damaged": b"\xff",
    "unknown type": array(4, element_type=99),
    "opaque": array(4, element_type=OPAQUE),
    "unbounded": array(-(2**63)),
    "too large": array(2**40, 2**40),
    "tile without a size": tiled([1, 0], [8, -(2**63)]),
    "order that leaves a dimension out": tiled([1, 1], [8, 128]),
    "opaque in a tuple": bytes(
        ShapeProto(element_type=TUPLE, tuple_shapes=[{"element_type": OPAQUE}]).SerializeToString()
    ),
}


@pytest.mark.parametrize("opcode", ["copy", "slice", "transpose", "all-reduce", "iota"])
@pytest.mark.parametrize("shape", UNSIZED.values(), ids=UNSIZED.keys())
def test_results_without_a_size(opcode: str, shape: bytes) -> None:
    # A tuple that is passed on has the size of its table, whatever is in it.
    if opcode == "slice" and shape == UNSIZED["opaque in a tuple"]:
        assert cost_of(opcode, shape, array(4)).bytes_accessed == 2 * 4
        return
    cost = cost_of(opcode, shape, array(4))
    assert cost.bytes_accessed is None
    assert "has no fixed size" in (cost.reason or "")


@pytest.mark.parametrize("opcode", ["copy", "transpose", "gather", "reduce-scatter"])
@pytest.mark.parametrize("shape", list(UNSIZED.values())[:-1], ids=list(UNSIZED)[:-1])
def test_operands_without_a_size(opcode: str, shape: bytes) -> None:
    cost = cost_of(opcode, array(4), shape, shape)
    assert cost.bytes_accessed is None
    assert "has no fixed size" in (cost.reason or "")


def test_numbers_beyond_64_bits() -> None:
    large = array(2**60, element_type=2)
    contracted = {"lhs_contracting_dimensions": [0]}
    cost = cost_of("dot", large, large, large, dot_dimension_numbers=contracted)
    reason = "its numbers do not fit into 64 bits"
    assert cost == Cost(None, None, 3 * 2**60, "dot", reason)
    assert cost_of("sort", large, large) == Cost(None, None, 2**61, "sort", reason)
    cost = cost_of("concatenate", large, *[large] * 9)
    assert cost == Cost(0, 0, None, "data_movement", "its bytes do not fit into 64 bits")


@pytest.mark.parametrize(
    ("opcode", "fields", "reason"),
    [
        ("dot", {"dot_dimension_numbers": {"lhs_contracting_dimensions": [2]}}, "has no dimension 2"),
        ("dot", {"dot_dimension_numbers": {"lhs_contracting_dimensions": [-1]}}, "has no dimension -1"),
        ("fft", {"fft_length": [0]}, "FFT length below 1"),
        ("convolution", {"window": {"dimensions": [{"size": 3}]}}, "do not fit together"),
        ("convolution", {"convolution_dimension_numbers": {"input_batch_dimension": 5}}, "no dimension 5"),
        (
            "ragged-dot",
            {"ragged_dot_dimension_numbers": {"dot_dimension_numbers": {"lhs_contracting_dimensions": [3]}}},
            "no dimension 3",
        ),
    ],
)
def test_attributes_that_make_no_sense(opcode: str, fields: dict[str, Any], reason: str) -> None:
    cost = cost_of(opcode, array(4, 4), array(4, 4), array(4, 4), **fields)
    assert (cost.flops, cost.transcendentals) == (None, None)
    assert cost.bytes_accessed == 3 * 64
    assert reason in (cost.reason or "")


@pytest.mark.parametrize(
    ("window", "reason"),
    [
        (
            {"size": 3, "stride": 0, "window_dilation": 1, "base_dilation": 1},
            "a stride or a dilation below 1",
        ),
        ({"size": 3, "stride": 1, "window_dilation": 1}, "a stride or a dilation below 1"),
        (
            {"size": 3, "stride": -1, "window_dilation": 1, "base_dilation": 1},
            "a stride or a dilation below 1",
        ),
        ({"size": 3, "stride": 1, "window_dilation": 1, "base_dilation": 1}, "do not fit into 64 bits"),
        ({"size": 3, "stride": 1, "window_dilation": 1, "base_dilation": 997}, "more than 256 forms"),
    ],
)
def test_windows_that_make_no_sense(window: dict[str, int], reason: str) -> None:
    large = array(2**40, 1, 1)
    numbers = {
        "input_batch_dimension": 1,
        "input_feature_dimension": 2,
        "output_feature_dimension": 2,
        **{name: [0] for name in _SPATIAL},
    }
    cost = cost_of(
        "convolution",
        large,
        large,
        large,
        window={"dimensions": [window]},
        convolution_dimension_numbers=numbers,
    )
    assert cost.flops is None
    assert reason in (cost.reason or "")


def test_window_of_a_negative_size_over_nothing() -> None:
    """It has the form of one that spans its whole dimension, which is empty."""
    module = Module()
    reducer, entry = module.computation(2), module.computation(1)
    module.add(
        reducer, "add", array(), module.parameter(reducer, array()), module.parameter(reducer, array())
    )
    empty = module.parameter(entry, array(0))
    window = {"dimensions": [{"size": -1, "stride": 1, "padding_low": -1, "padding_high": -1}]}
    cost = module.costs().cost(
        module.add(entry, "reduce-window", array(0), empty, empty, called_computation_ids=[2], window=window)
    )
    assert cost == Cost(None, None, 0, "reduce_window", "its numbers do not fit into 64 bits")


_SPATIAL = ("input_spatial_dimensions", "kernel_spatial_dimensions", "output_spatial_dimensions")


@pytest.mark.parametrize("length", [1, 2, 3])
@pytest.mark.parametrize("opcode", ["fusion", "call", "map"])
def test_computations_that_call_each_other_in_a_circle(opcode: str, length: int) -> None:
    module = Module()
    calls = []
    for number in range(length):
        computation = module.computation(number)
        parameter = module.parameter(computation, array(4))
        following = (number + 1) % length
        calls.append(module.add(computation, opcode, array(4), parameter, called_computation_ids=[following]))
    entry = module.computation(99)
    fusion = module.add(
        entry, "fusion", array(4), module.parameter(entry, array(4)), called_computation_ids=[0]
    )
    costs = module.costs()
    cost = costs.cost(fusion)
    assert (cost.flops, cost.transcendentals) == (None, None)
    assert cost.reason == "the computation that it runs calls itself"
    for call in calls if opcode == "fusion" else []:
        assert_unknown(costs.cost(call), "calls itself")


def nested(opcode: str, depth: int, width: int) -> tuple[Module, Any]:
    """Fusions in each other, `depth` of them, each of which runs the next one `width` times."""
    module = Module()
    innermost = module.computation(0)
    module.add(innermost, "negate", array(4), module.parameter(innermost, array(4)))
    for number in range(1, depth):
        computation = module.computation(number)
        value = module.parameter(computation, array(4))
        for _ in range(width):
            value = module.add(computation, opcode, array(4), value, called_computation_ids=[number - 1])
    entry = module.computation(depth)
    parameter = module.parameter(entry, array(4))
    return module, module.add(entry, "fusion", array(4), parameter, called_computation_ids=[depth - 1])


@pytest.mark.parametrize("opcode", ["fusion", "call"])
def test_depth_does_not_matter(opcode: str) -> None:
    module, outermost = nested(opcode, depth=20_000, width=1)
    cost = module.costs().cost(outermost)
    assert (cost.flops, cost.transcendentals) == (4, 0)
    # XLA takes a nested fusion at the root as one that nobody uses.
    assert cost.bytes_accessed == (16 if opcode == "fusion" else 32)


def test_each_computation_is_looked_at_once() -> None:
    module, outermost = nested("fusion", depth=61, width=2)
    assert module.costs().cost(outermost).flops == 4 * 2**60
    module, outermost = nested("fusion", depth=62, width=2)
    cost = module.costs().cost(outermost)
    assert cost.flops is None
    assert cost.reason == "its numbers do not fit into 64 bits"


def test_a_shape_is_read_once() -> None:
    """That of a tuple of thousands is long, and every instruction that uses it asks for it."""

    class Instruction:
        id = 1
        reads = 0

        @property
        def shape(self) -> bytes:
            self.reads += 1
            return array(4)

    graph, instruction = ModuleGraph(HloModuleProto()), Instruction()
    assert [graph.shape(instruction).dimensions for _ in range(3)] == [(4,)] * 3
    assert instruction.reads == 1


def test_fusions_share_what_is_known_of_their_computation() -> None:
    module = Module()
    fused, entry = module.computation(2), module.computation(1)
    module.add(fused, "custom-call", array(4), module.parameter(fused, array(4)))
    parameter = module.parameter(entry, array(4))
    fusions = [
        module.add(entry, "fusion", array(4), parameter, called_computation_ids=[2]) for _ in range(50)
    ]
    costs = module.costs()
    assert {costs.cost(fusion) for fusion in fusions} == {Cost(3, 2, 32, "fusion")}
    assert module.library_calls == 1


def test_long_reasons_are_cut() -> None:
    module = Module()
    fused, entry = module.computation(2), module.computation(1)
    module.add(fused, "teleport", array(4)).name = b"n" * 10_000
    call = module.add(entry, "fusion", array(4), called_computation_ids=[2])
    assert len(module.costs().cost(call).reason or "") < 200
