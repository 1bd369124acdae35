"""Costs of decoding, loading and querying captures, against protobuf's parse and XProf's kernel_stats.

python bench/ingest.py [CAPTURE.xplane.pb ...] [--events 1000000 5000000] [--xprof-python PYTHON]
"""

from __future__ import annotations

import argparse
import gzip
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from child_process import Cost, Sample, WorkloadFailed, median_cost, run_workload
from cost_table import Row, Section, render

_REPEATER = Path(__file__).with_name("repeat_capture.py")
_XPROF = "xprof kernel_stats"
_INGEST = "tracewh ingest"
_COLD = "tracewh ingest, nothing compiled before"
_QUERY = "tracewh v1.kernel_stats"
# Rows of the first table: the decoder, and the workload that shows its memory.
_DECODERS: dict[str, tuple[object, ...]] = {
    "protobuf parse": ("parse",),
    "tracewh decode, 1 thread": ("decode", 1),
    "tracewh decode, 2 threads": ("decode", 2),
}


@contextmanager
def _own_copy(capture: Path) -> Iterator[Path]:
    """The capture under another name in a new directory: XProf leaves caches beside its input."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        copy = Path(folder) / "capture.xplane.pb"
        try:
            os.link(capture, copy)
        except OSError:
            shutil.copyfile(capture, copy)
        yield copy


class _Samples:
    """What every repetition of every candidate cost, or why a candidate cannot be measured."""

    def __init__(self) -> None:
        self._samples: dict[str, list[Sample]] = {}
        self._failures: dict[str, str] = {}

    def add(self, name: str, python: str, workload: str, *arguments: object, **settings: Any) -> bool:
        """Measure a candidate once more, unless it has failed before; say whether it went well."""
        if name in self._failures:
            return False
        try:
            sample = run_workload(python, workload, *arguments, **settings)
        except WorkloadFailed as failure:
            self._failures[name] = str(failure)
            return False
        self._samples.setdefault(name, []).append(sample)
        return True

    def whole(self, name: str) -> Row:
        """Medians of whole processes."""
        return self._row(name, [sample.cost for sample in self._samples.get(name, [])])

    def inner(self, name: str) -> Row:
        """Medians of what the workloads measured inside."""
        return self._row(name, [sample.inner for sample in self._samples.get(name, [])])

    def _row(self, name: str, costs: list[Cost]) -> Row:
        if name in self._failures or not costs:
            return Row(name, None, self._failures.get(name, "not measured"))
        return Row(name, median_cost(costs))


def _decoding(capture: Path, repeat: int) -> tuple[Section, int]:
    """Costs of the decoders, and the number of events."""
    printed = run_workload(sys.executable, "decoders", capture, repeat).printed
    rows = []
    for name, (workload, *arguments) in _DECODERS.items():
        measured = printed[name]
        if "failure" in measured:
            rows.append(Row(name, None, measured["failure"]))
            continue
        memory = run_workload(sys.executable, str(workload), capture, *arguments).cost.peak_mib
        rows.append(Row(name, Cost(measured["cpu_s"], measured["wall_s"], memory)))
    title = "decode alone, start-up excluded (peak of a process of its own)"
    return Section(title, rows), printed.get("events", 0)


def _loading(capture: Path, repeat: int, xprof_python: str | None, cold: bool) -> list[Section]:
    """Costs of XProf and of tracewh in whole processes, and of the query afterwards."""
    samples = _Samples()
    with _own_copy(capture) as copy, suppress(WorkloadFailed):
        # Compiles what is not yet compiled, and reads the file into the page cache. A failure comes again.
        run_workload(sys.executable, "ingest", copy, copy.with_name("warm.duckdb"))
    for _ in range(repeat):
        # In turn, so that a change in the machine's load meets all of them.
        if xprof_python:
            with _own_copy(capture) as copy:
                samples.add(_XPROF, xprof_python, "xprof", copy)
        with _own_copy(capture) as copy:
            warehouse = copy.with_name("bench.duckdb")
            if samples.add(_INGEST, sys.executable, "ingest", copy, warehouse):
                samples.add(_QUERY, sys.executable, "kernel_stats", warehouse)
        if cold:
            with _own_copy(capture) as copy:
                caches = {"XDG_CACHE_HOME": str(copy.with_name("cache"))}
                warehouse = copy.with_name("cold.duckdb")
                samples.add(_COLD, sys.executable, "ingest", copy, warehouse, environment=caches)
    peer = [_XPROF] if xprof_python else []
    ingests = [_INGEST, _COLD] if cold else [_INGEST]
    return [
        Section("whole processes", [samples.whole(name) for name in [*peer, *ingests]]),
        Section(
            "kernel_stats, whole processes",
            [samples.whole(name) for name in [*peer, _QUERY]],
            reads_file=False,
        ),
        Section(
            "kernel_stats, start-up excluded",
            [samples.inner(name) for name in [*peer, _QUERY]],
            reads_file=False,
        ),
    ]


def _report(capture: Path, title: str, options: argparse.Namespace) -> None:
    decoding, events = _decoding(capture, options.repeat)
    loading = _loading(capture, options.repeat, options.xprof_python, options.cold)
    sections = [decoding, *loading]
    table = render(title, capture.stat().st_size, events, "events", sections, options.markdown)
    print(table, flush=True)


def main() -> None:
    """Print a table per capture: medians of `--repeat` runs, and their ratios to the first of each kind."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("captures", type=Path, nargs="*", help=".xplane.pb files, or .gz of them")
    parser.add_argument(
        "--events", type=int, nargs="+", default=[], help="make and measure captures of so many events too"
    )
    parser.add_argument(
        "--source", type=Path, help="the capture that --events repeats; the fixture if not given"
    )
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument(
        "--xprof-python",
        default=sys.executable if find_spec("xprof") else None,
        help="interpreter of an environment with xprof; this one where it has it",
    )
    parser.add_argument("--cold", action="store_true", help="measure ingest with an empty compiler cache too")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    if not options.captures and not options.events:
        parser.error("name a capture, or a size with --events")
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        for index, capture in enumerate(options.captures):
            if capture.suffix == ".gz":
                plain = Path(folder) / f"{index}.xplane.pb"
                with gzip.open(capture) as packed, plain.open("wb") as file:
                    shutil.copyfileobj(packed, file)
                _report(plain, capture.name, options)
                plain.unlink()
            else:
                _report(capture, capture.name, options)
        for count in options.events:
            made = Path(folder) / f"{count}.xplane.pb"
            # In a process of its own, so that this one stays small.
            source = [options.source] if options.source else []
            subprocess.run([sys.executable, _REPEATER, *source, made, "--events", str(count)], check=True)
            _report(made, "generated", options)
            made.unlink()


if __name__ == "__main__":
    main()
