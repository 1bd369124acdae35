"""HLO modules as the tests of loops look at them."""

from __future__ import annotations

import json
from collections import Counter

from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_loops import ComputationRuns, Runs, trip_count
from tracewh.ingest.hlo_proto import HloModuleProto


class Module:
    """A module as a test looks at it."""

    def __init__(self, data: bytes) -> None:
        self.proto = HloModuleProto.FromString(data)
        self.graph = ModuleGraph(self.proto)
        self.names = {part.id: part.name.decode() for part in self.proto.computations}
        self.loops = [
            item for part in self.proto.computations for item in part.instructions if item.opcode == b"while"
        ]

    def trip_counts(self) -> list[int | None]:
        return [trip_count(self.graph, loop) for loop in self.loops]

    def runs(self) -> dict[str, Runs]:
        runs = ComputationRuns(self.graph, self.proto)
        return {part.name.decode(): runs.of(part) for part in self.proto.computations}

    def with_stated(self, backend_config: bytes) -> list[int | None]:
        for loop in self.loops:
            loop.backend_config = backend_config
        return self.trip_counts()

    def counted(self) -> Counter[str]:
        """How often each computation runs when the program is walked through, turn by turn.

        Only for modules that state the trip counts of all loops, with conditionals of one branch.
        """
        counts: Counter[str] = Counter()

        def run(computation_id: int) -> None:
            part = self.graph.computations[computation_id]
            counts[self.names[computation_id]] += 1
            for item in part.instructions:
                called = list(item.called_computation_ids)
                if item.opcode == b"while":
                    body, condition = called
                    turns = int(json.loads(item.backend_config)["known_trip_count"]["n"])
                    for _ in range(turns):
                        run(condition)
                        run(body)
                    run(condition)
                elif item.opcode in (b"fusion", b"call", b"async-start", b"conditional"):
                    for callee in called:
                        run(callee)

        run(self.proto.entry_computation_id)
        return counts


def loop_text(kind: str, start: int, step: int, direction: str, bound: int, *, swapped: bool = False) -> str:
    """A module of one loop, `for (i = start; i < bound; i += step)`; `swapped` compares bound with i."""
    amount, operation = (step, "add") if step >= 0 else (-step, "subtract")
    sides = "bound, i" if swapped else "i, bound"
    return f"""HloModule counted
body {{
  p = ({kind}[], f32[4]) parameter(0)
  i = {kind}[] get-tuple-element(p), index=0
  x = f32[4] get-tuple-element(p), index=1
  step = {kind}[] constant({amount})
  next = {kind}[] {operation}(i, step)
  y = f32[4] add(x, x)
  ROOT r = ({kind}[], f32[4]) tuple(next, y)
}}
condition {{
  p = ({kind}[], f32[4]) parameter(0)
  i = {kind}[] get-tuple-element(p), index=0
  bound = {kind}[] constant({bound})
  ROOT result = pred[] compare({sides}), direction={direction}
}}
ENTRY e {{
  start = {kind}[] constant({start})
  x = f32[4] parameter(0)
  state = ({kind}[], f32[4]) tuple(start, x)
  ROOT w = ({kind}[], f32[4]) while(state), condition=condition, body=body
}}
"""
