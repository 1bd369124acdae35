"""The nearest named instructions before and after an HLO instruction, along the data.

XLA inserts instructions that have no name stack: copies, layout changes, slices. Each instruction gets one
answer in each direction: the one label of all nearest labelled instructions there, no label, or that they
disagree. One pass over the instructions in stored order, operands before their users, answers for all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracewh.ingest.hlo_graph import ModuleGraph

# They begin a value, so that there is nobody to ask before them.
_SOURCES = frozenset(
    (
        b"parameter",
        b"constant",
        b"iota",
        b"partition-id",
        b"replica-id",
        b"after-all",
        b"rng-get-and-update-state",
    )
)


@dataclass(frozen=True, slots=True)
class Label:
    """The name stack of an instruction, and in what it must equal others to agree with them."""

    key: str
    op_name: str


class Disagreement:
    """Several labels, or an instruction that has none and changes its data."""


DISAGREEMENT = Disagreement()
Answer = Label | Disagreement | None
Labels = Callable[[Any], Label | None]
Passes = Callable[[Any], bool]


class DataFlow:
    """Which instructions of some computations of a module take data from which."""

    def __init__(self, graph: ModuleGraph, computations: Sequence[Any]) -> None:
        """`computations` in stored order, which lists the called before their callers."""
        self._graph = graph
        # The computation of an async-start takes its data and gives it back as if it stood there itself.
        self._starts: dict[int, Any] = {}
        for computation in computations:
            for instruction in computation.instructions:
                if instruction.opcode == b"async-start":
                    for called_id in instruction.called_computation_ids[:1]:
                        self._starts.setdefault(called_id, instruction)
        bodies = [computation for computation in computations if computation.id in self._starts]
        others = [computation for computation in computations if computation.id not in self._starts]
        # A start is asked before what it starts.
        self._computations = [*reversed(others), *bodies]
        self._users: dict[int, list[Any]] = {}
        for computation in computations:
            for instruction in computation.instructions:
                for operand_id in set(instruction.operand_ids):
                    self._users.setdefault(operand_id, []).append(instruction)

    def before(self, label: Labels, passes: Passes) -> Mapping[int, Answer]:
        """By instruction id, what the nearest labelled instructions are that its data comes from.

        The search goes on behind instructions without a label that it `passes`.
        """
        answers: dict[int, Answer] = {}

        def seen_from_behind(operand_id: int) -> Answer:
            operand = self._graph.instructions.get(operand_id)
            found = None if operand is None else label(operand)
            if operand is None or found is not None:
                return found or DISAGREEMENT
            if operand.opcode == b"parameter" and operand_id in entered:
                return answers.get(operand_id, DISAGREEMENT)
            if operand.opcode in _SOURCES:
                return None
            # Of a circle, or of an operand after its user, nothing is known.
            return answers.get(operand_id, DISAGREEMENT) if passes(operand) else DISAGREEMENT

        entered: set[int] = set()
        for computation in self._computations:
            start = self._starts.get(computation.id)
            for instruction in computation.instructions:
                operand_ids = instruction.operand_ids
                if start is not None and instruction.opcode == b"parameter":
                    operand_ids = start.operand_ids[instruction.parameter_number :][:1]
                    entered.add(instruction.id)
                answers[instruction.id] = _agreed(map(seen_from_behind, operand_ids))
        return answers

    def after(self, label: Labels, passes: Passes) -> Mapping[int, Answer]:
        """By instruction id, what the nearest labelled instructions are that its data goes to.

        Data that leaves its computation goes to somewhere else: that is a disagreement.
        """
        answers: dict[int, Answer] = {}

        def seen_from_before(instruction: Any) -> Answer:
            found = label(instruction)
            if found is not None:
                return found
            return answers.get(instruction.id, DISAGREEMENT) if passes(instruction) else DISAGREEMENT

        for computation in self._computations:
            start = self._starts.get(computation.id)
            for instruction in reversed(computation.instructions):
                users = map(seen_from_before, self._users.get(instruction.id, ()))
                leaving: list[Answer] = []
                if instruction.id == computation.root_id:
                    leaving = [DISAGREEMENT if start is None else answers.get(start.id, DISAGREEMENT)]
                answers[instruction.id] = _agreed([*users, *leaving])
        return answers


def _agreed(answers: Iterable[Answer]) -> Answer:
    found: Answer = None
    for answer in answers:
        if isinstance(answer, Disagreement):
            return answer
        if answer is None:
            continue
        if found is None:
            found = answer
        elif isinstance(found, Label) and found.key != answer.key:
            return DISAGREEMENT
    return found
