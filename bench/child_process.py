"""One workload in a process of its own, with what it cost."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

_WORKLOADS = Path(__file__).with_name("workloads.py")


@dataclass(frozen=True)
class Cost:
    """Seconds, and peak resident MiB where that is known."""

    cpu_s: float
    wall_s: float
    peak_mib: float | None = None


@dataclass(frozen=True)
class Sample:
    """A process that ended well: its cost, start-up included, and what it printed of itself."""

    cost: Cost
    printed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def inner(self) -> Cost:
        """What the workload measured inside, start-up excluded."""
        return Cost(self.printed["cpu_s"], self.printed["wall_s"])


class WorkloadFailed(Exception):
    """The process failed; the message is the last line that it wrote, or how it ended."""


def run_workload(
    python: str, workload: str, *arguments: object, environment: Mapping[str, str] | None = None
) -> Sample:
    """Run one workload of workloads.py; raises WorkloadFailed where it does not end well."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        begin = time.perf_counter()
        process = subprocess.Popen(
            [python, str(_WORKLOADS), workload, *map(str, arguments)],
            stdout=out,
            stderr=errors,
            env={**os.environ, **(environment or {})},
        )
        # The usage of this child alone. Its peak begins at this process's own size, which is why the driver
        # loads nothing large.
        _, status, usage = os.wait4(process.pid, 0)
        wall_s = time.perf_counter() - begin
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            errors.seek(0)
            raise WorkloadFailed(_reason(process.returncode, errors.read().decode(errors="replace")))
        out.seek(0)
        printed = json.loads(out.read().splitlines()[-1])
    return Sample(Cost(usage.ru_utime + usage.ru_stime, wall_s, usage.ru_maxrss / 1024), printed)


def median_cost(costs: Sequence[Cost]) -> Cost:
    """The median of each column."""
    peaks = [cost.peak_mib for cost in costs if cost.peak_mib is not None]
    return Cost(
        statistics.median(cost.cpu_s for cost in costs),
        statistics.median(cost.wall_s for cost in costs),
        statistics.median(peaks) if peaks else None,
    )


def _reason(exit_code: int, errors: str) -> str:
    if exit_code < 0:
        return f"killed by {signal.Signals(-exit_code).name}"
    lines = [line for line in errors.splitlines() if line.strip()]
    return lines[-1].strip() if lines else f"exit status {exit_code}"
