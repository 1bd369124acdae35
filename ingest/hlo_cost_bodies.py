"""The order in which the computations that an instruction runs are looked at."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from typing import Any

from tracewh.ingest.hlo_graph import ModuleGraph


def callees_first(
    graph: ModuleGraph,
    start_ids: list[int],
    called_ids: Callable[[Any], list[int]],
    known: Container[int],
) -> Iterator[Any]:
    """Yield `start_ids` and what they call, each computation once and after those it calls itself.

    `called_ids` lists the ids that a computation calls. One is left out with all below it where its id is in
    `known`, which may grow meanwhile. Where computations call each other in a circle, one of them comes too
    early. There is no recursion, so the depth of the calls does not matter.
    """
    pending = [computation_id for computation_id in start_ids if computation_id not in known]
    opened: set[int] = set()
    while pending:
        computation_id = pending[-1]
        computation = graph.computations.get(computation_id)
        if computation is None or computation_id in known:
            pending.pop()
        elif computation_id in opened:
            pending.pop()
            yield computation
        else:
            opened.add(computation_id)
            pending += [
                called for called in called_ids(computation) if called not in opened and called not in known
            ]
