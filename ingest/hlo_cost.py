"""The cost of every HLO instruction, by the rules of XLA's own cost analysis.

The numbers equal those of HloCostAnalysis in jaxlib 0.12 for the instruction alone, with two differences:
control flow costs nothing itself, since the instructions that it runs are counted in their own computations,
and a custom call costs what its library is known to do. What cannot be told is None, with a reason.
"""

from __future__ import annotations

from typing import Any

from tracewh.ingest.hlo_cost_bytes import instruction_bytes
from tracewh.ingest.hlo_cost_fusion import FusionTraffic
from tracewh.ingest.hlo_cost_opcodes import RULE_BY_OPCODE
from tracewh.ingest.hlo_cost_shapes import LARGEST, Values
from tracewh.ingest.hlo_cost_value import Cost, UnknownCost
from tracewh.ingest.hlo_cost_work import LibraryCall, WorkCounter
from tracewh.ingest.hlo_graph import ModuleGraph

_CONTROL_FLOW = Cost(0, 0, 0, "control_flow")
_NO_WORK = Cost(0, 0, 0, "no_work")


class ModuleCosts:
    """The costs of one module's instructions."""

    def __init__(self, graph: ModuleGraph, library_call: LibraryCall) -> None:
        """`library_call` gives the cost of a custom call."""
        self._graph, self._library_call = graph, library_call
        self._values = Values(graph)
        self._traffic = FusionTraffic(self._values)
        self._work = WorkCounter(self._values, library_call, self._traffic.indexed)

    def cost(self, instruction: Any) -> Cost:
        """What one execution of the instruction costs: flops, transcendentals, bytes."""
        opcode = instruction.opcode
        rule = RULE_BY_OPCODE.get(opcode)
        if rule is None:
            text = opcode.decode(errors="replace")[:80]
            return Cost(None, None, None, "unknown", f"there is no rule for the opcode {text}")
        if rule == "no_work":
            return _NO_WORK
        if rule == "control_flow":
            return _CONTROL_FLOW
        if rule == "custom_call":
            return self._library_call(self._graph, instruction)
        flops = transcendentals = bytes_accessed = None
        reasons = []
        try:
            flops, transcendentals = self._work.of(instruction)
        except UnknownCost as error:
            reasons.append(str(error))
        try:
            bytes_accessed = self._bytes_accessed(instruction, opcode)
        except UnknownCost as error:
            if str(error) not in reasons:
                reasons.append(str(error))
        return Cost(flops, transcendentals, bytes_accessed, rule, "; ".join(reasons) or None)

    def _bytes_accessed(self, instruction: Any, opcode: bytes) -> int:
        if opcode == b"fusion":
            size = self._traffic.bytes_accessed(instruction)
        else:
            size = instruction_bytes(self._values, instruction)
        if size > LARGEST:
            raise UnknownCost("its bytes do not fit into 64 bits")
        return size
