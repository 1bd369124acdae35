"""What one execution of an HLO instruction costs."""

from __future__ import annotations

from dataclasses import dataclass


class UnknownCost(Exception):
    """The cost of an instruction cannot be told; the message says why."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What one execution of an instruction costs. None where that is unknown.

    `reason` says why, and where a number is known, in what way it is a bound.

    `rule` names the rule that gave the numbers: dot, convolution, elementwise, reduce, fusion, data_movement,
    collective, control_flow, ...
    """

    flops: int | None
    transcendentals: int | None
    bytes_accessed: int | None
    rule: str
    reason: str | None = None
