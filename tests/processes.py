"""Waiting for what another process does, without guessing how long it takes."""

import os
import time
from pathlib import Path

import pytest

# A query that no machine finishes in a minute, and that returns nothing before its end.
ENDLESS_QUERY = (
    "SELECT sum(a.i * b.i) AS s FROM range(3000000) AS a(i), range(3000000) AS b(i) WHERE a.i * b.i % 7 = 1"
)

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/stat").exists(), reason="reads the CPU time of a process from /proc"
)


def cpu_seconds(pid: int) -> float:
    """CPU time that a running process has used."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    assert fields[0] != "Z", "the process has ended"
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_until_busy(pid: int) -> None:
    """Return when a process has worked for two more seconds: more than any command of ours takes to start."""
    wanted = cpu_seconds(pid) + 2
    while cpu_seconds(pid) < wanted:
        time.sleep(0.05)
