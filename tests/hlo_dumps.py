"""XLA's dumps beside the captures that lie outside of the repository, and what the reports in them say."""

from __future__ import annotations

import json
import re
import tarfile
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath
from typing import Any

import pytest

_KINDS = {
    "config": r"config\.json",
    "memory_analysis": r"memory_analysis\.json",
    "hlo": r".*after_optimizations\.hlo\.pb",
    "text": r".*after_optimizations\.txt",
    "live_range": r".*-live-range\.txt",
    "assignment": r".*-buffer-assignment\.txt",
    "report": r".*-memory-usage-report\.txt",
}


@dataclass(frozen=True)
class LiveRanges:
    """Times are positions in the schedule; ranges include both ends. Buffers are called `name{index}`.

    `listed_sizes` has the buffers that XLA lists as live at `listed_time`, and their bytes.
    """

    ranges: dict[str, tuple[int, int]]
    listed_time: int
    listed_sizes: dict[str, int]


@dataclass(frozen=True)
class ListedAllocation:
    """An allocation as the buffer assignment lists it; `attributes` are its remarks."""

    size: int
    attributes: str


@dataclass(frozen=True)
class ListedBuffer:
    """A buffer as the buffer assignment lists it."""

    name: str
    allocation: int
    size: int
    offset: int
    shape: str


@dataclass(frozen=True)
class Dump:
    """One compiled program: its HloProto and XLA's reports about it."""

    folder: str
    files: dict[str, bytes]

    @property
    def memory_analysis(self) -> dict[str, int]:
        found: dict[str, int] = json.loads(self.files["memory_analysis"])
        return found

    @property
    def config(self) -> dict[str, Any]:
        """The arguments of the program."""
        found: dict[str, Any] = json.loads(self.files["config"])
        return found

    def report_totals(self) -> dict[int, int]:
        """The total bytes of the memory usage report, by memory space."""
        found = re.findall(
            r"Memory Space: .*\(color=(\d+)\)\nTotal bytes: (\d+) ", self.files["report"].decode()
        )
        return {int(space): int(total) for space, total in found}

    def aliases(self) -> set[tuple[int, str]]:
        """(parameter, shape index) of the parameters that outputs reuse, from the head of the HLO text."""
        head = self.files["text"].split(b"\n", 1)[0].decode()
        found = re.findall(r"\{[\d, ]*\}: \((\d+), \{([\d, ]*)\}, \w+-alias\)", head)
        return {(int(number), "{" + index.replace(" ", "") + "}") for number, index in found}

    def live_ranges(self) -> LiveRanges:
        lines = self.files["live_range"].decode().splitlines()
        ranges, sizes, time = {}, {}, None
        for line in lines:
            if moment := re.fullmatch(r"  Live ranges at (\d+) \(peak\):", line):
                time = int(moment[1])
            elif span := re.fullmatch(r"    (\S+\{[\d,]*\}):(\d+)-(\d+)", line):
                ranges[span[1]] = int(span[2]), int(span[3])
            elif listed := re.fullmatch(r"    (\S+\{[\d,]*\}): (\d+) bytes \(cumulative: \d+ bytes\)", line):
                sizes[listed[1]] = int(listed[2])
        assert time is not None
        return LiveRanges(ranges, time, sizes)

    def buffer_assignment(self) -> tuple[dict[int, ListedAllocation], dict[int, ListedBuffer]]:
        """Allocations and buffers by their ids."""
        allocations: dict[int, ListedAllocation] = {}
        buffers: dict[int, ListedBuffer] = {}
        index = None
        for line in self.files["assignment"].decode().splitlines():
            if head := re.match(r"allocation (\d+): size (\d+), (.*):$", line):
                index = int(head[1])
                allocations[index] = ListedAllocation(int(head[2]), head[3])
            elif value := re.match(
                r" value: <(\d+) ([^ {]+)(\{[\d,]*\})?(?: \(phi\))? @\d+> \(size=(\d+),offset=(\d+)\): (.*)$",
                line,
            ):
                assert index is not None
                buffers[int(value[1])] = ListedBuffer(
                    value[2] + (value[3] or "{}"), index, int(value[4]), int(value[5]), value[6]
                )
        return allocations, buffers


@cache
def read_dumps(archive: Path) -> list[Dump]:
    """The dumps in a capture archive; skips the test where the archive is not at hand."""
    if not archive.exists():
        pytest.skip(f"{archive.name} is not at hand: shared/captures lies outside the repository")
    found: dict[str, dict[str, bytes]] = defaultdict(dict)
    with tarfile.open(archive) as packed:
        for member in packed:
            path = PurePath(member.name)
            for kind, pattern in _KINDS.items():
                if re.fullmatch(pattern, path.name):
                    file = packed.extractfile(member)
                    assert file is not None
                    folder = path.parent if path.suffix == ".json" else path.parent.parent
                    found[str(folder)][kind] = file.read()
    dumps = [Dump(folder, files) for folder, files in sorted(found.items())]
    assert dumps
    assert all(dump.files.keys() == _KINDS.keys() for dump in dumps)
    return dumps
