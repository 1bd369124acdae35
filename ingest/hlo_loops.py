"""How often the loops and computations of an HLO module run."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_loop_bounds import derived_trip_count

_INT64_MAX = 2**63 - 1
# More than any program repeats an op; times the kernels of a capture it still is a BIGINT.
_MAX_EXECUTIONS = 10**9

# Opcode -> roles of the computations that it calls, the last one of all further ones.
_ROLES: dict[bytes, tuple[str, ...]] = {
    b"fusion": ("fusion",),
    b"while": ("while_body", "while_condition"),
    b"conditional": ("branch",),
    b"call": ("call",),
    b"async-start": ("async",),
    **dict.fromkeys(
        (
            b"all-reduce",
            b"all-reduce-start",
            b"map",
            b"reduce",
            b"reduce-scatter",
            b"reduce-window",
            b"scatter",
            b"select-and-scatter",
            b"sort",
            b"topk",
        ),
        ("reducer",),
    ),
}
# Of several roles the first counts.
_PRECEDENCE = (
    "entry",
    "while_body",
    "while_condition",
    "branch",
    "call",
    "async",
    "fusion",
    "reducer",
    "other",
)
# They repeat the computation that their async-start calls.
_CALL_NOTHING = frozenset({b"async-update", b"async-done"})


@dataclass(frozen=True, slots=True)
class Runs:
    """How often a computation runs.

    role: entry, while_body, while_condition, branch, call, async, fusion, reducer, or other, which nothing
        calls or an instruction of another kind, such as a custom call.
    executions: per run of the program; for a fusion, those of its instruction. None for a reducer, which has
        none of its own, and where a trip count or the choice of a branch on the way is unknown, or they are
        more than a billion.
    loop_depth: the number of loops around it, the most where callers differ.
    trip_count: of the innermost of those loops; None without one, and where unknown or callers differ.
    """

    role: str
    executions: int | None
    loop_depth: int
    trip_count: int | None


@dataclass(frozen=True, slots=True)
class _Call:
    caller_id: int
    callee_id: int
    role: str
    times: int | None  # per execution of the caller
    trip_count: int | None  # of the loop that the call is


class ComputationRuns:
    """How often each computation of an HloModuleProto runs."""

    def __init__(self, graph: ModuleGraph, module: Any) -> None:
        self._runs: dict[int, Runs] = {}
        self._entry_id: int = module.entry_computation_id
        self._has_entry = self._entry_id in graph.computations
        callers: dict[int, list[_Call]] = {computation_id: [] for computation_id in graph.computations}
        callees: dict[int, list[int]] = defaultdict(list)
        for computation in graph.computations.values():
            for instruction in computation.instructions:
                for call in _calls(graph, computation.id, instruction):
                    callers[call.callee_id].append(call)
                    callees[call.caller_id].append(call.callee_id)
        waiting_for = {callee_id: len(calls) for callee_id, calls in callers.items()}
        ready = [callee_id for callee_id, calls in callers.items() if not calls]
        while ready:
            computation_id = ready.pop()
            self._runs[computation_id] = self._summed(computation_id, callers[computation_id])
            for callee_id in callees[computation_id]:
                waiting_for[callee_id] -= 1
                if not waiting_for[callee_id]:
                    ready.append(callee_id)
        # The rest calls itself, or is called by something that does: nothing real.
        for computation_id, calls in callers.items():
            if computation_id not in self._runs:
                self._runs[computation_id] = Runs(self._role(computation_id, calls), None, 0, None)

    def of(self, computation: Any) -> Runs:
        """The runs of a computation of the module."""
        return self._runs[computation.id]

    def _role(self, computation_id: int, calls: list[_Call]) -> str:
        roles = {call.role for call in calls} or {"other"}
        if computation_id == self._entry_id:
            roles.add("entry")
        return min(roles, key=_PRECEDENCE.index)

    def _summed(self, computation_id: int, calls: list[_Call]) -> Runs:
        executions: int | None = 0 if self._has_entry else None
        if computation_id == self._entry_id:
            executions = 1
        depths = [0]
        trip_counts: set[int | None] = set()
        for call in calls:
            caller = self._runs[call.caller_id]
            is_loop = call.role in ("while_body", "while_condition")
            executions = _plus(executions, _times(caller.executions, call.times))
            depths.append(caller.loop_depth + is_loop)
            trip_counts.add(call.trip_count if is_loop else caller.trip_count)
        role = self._role(computation_id, calls)
        return Runs(
            role,
            None if role == "reducer" else executions,
            max(depths),
            trip_counts.pop() if len(trip_counts) == 1 else None,
        )


def trip_count(graph: ModuleGraph, while_instruction: Any) -> int | None:
    """How often the body of a while runs: as the compiler states it, else derived from its counter."""
    stated = _stated_trip_count(while_instruction.backend_config)
    return derived_trip_count(graph, while_instruction) if stated is None else stated


def _stated_trip_count(backend_config: bytes) -> int | None:
    if b"known_trip_count" not in backend_config:
        return None
    try:
        stated = json.loads(backend_config)["known_trip_count"]["n"]
        # A 64-bit number is text in the JSON of a protobuf.
        count = int(stated) if isinstance(stated, str | int) else -1
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return count if 0 <= count <= _INT64_MAX else None


def _calls(graph: ModuleGraph, caller_id: int, instruction: Any) -> list[_Call]:
    """The calls to computations that the module holds."""
    called_ids = instruction.called_computation_ids
    if not called_ids or instruction.opcode in _CALL_NOTHING:
        return []
    roles = _ROLES.get(instruction.opcode, ("other",))
    loop_trips = trip_count(graph, instruction) if instruction.opcode == b"while" else None
    calls = []
    for index, callee_id in enumerate(called_ids):
        role = roles[min(index, len(roles) - 1)]
        times: int | None = 1
        if role == "while_body":
            times = loop_trips
        elif role == "while_condition":
            times = _plus(loop_trips, 1)
        elif role in ("reducer", "other") or (role == "branch" and len(called_ids) > 1):
            times = None
        if callee_id in graph.computations:
            calls.append(_Call(caller_id, callee_id, role, times, loop_trips))
    return calls


def _plus(first: int | None, second: int | None) -> int | None:
    return None if first is None or second is None else _bounded(first + second)


def _times(first: int | None, second: int | None) -> int | None:
    if first == 0 or second == 0:
        return 0
    return None if first is None or second is None else _bounded(first * second)


def _bounded(count: int) -> int | None:
    return count if count <= _MAX_EXECUTIONS else None
