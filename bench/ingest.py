"""CPU seconds and peak memory of `tracewh ingest`, against protobuf's parse and XProf's kernel_stats.

python bench/ingest.py CAPTURE.xplane.pb [--repeat 3]
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

_PARSE = """
import sys
from tracewh.ingest.xspace_decode import MESSAGES
MESSAGES["XSpace"].FromString(open(sys.argv[1], "rb").read())
"""
_XPROF = """
import sys
from xprof.convert import raw_to_tool_data
raw_to_tool_data.xspace_to_tool_data([sys.argv[1]], "kernel_stats", {})
"""
_INGEST = """
import sys
from tracewh.cli import main
main(["ingest", "-w", sys.argv[2], sys.argv[1]])
"""


def measure(script: str, arguments: list[str]) -> tuple[float, float]:
    """CPU seconds and peak resident MiB of one Python process."""
    process = subprocess.Popen(
        [sys.executable, "-c", script, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"exit status {os.waitstatus_to_exitcode(status)} of:{script}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    """Measure each candidate in turn, `--repeat` times, and print medians and ratios to the ingest."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("capture", type=Path)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    scripts = {"tracewh ingest": _INGEST, "protobuf parse": _PARSE}
    if find_spec("xprof"):
        scripts["xprof kernel_stats"] = _XPROF
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in scripts}
    for _ in range(options.repeat):
        # In turn, so that a change in the machine's load meets all of them.
        for name, script in scripts.items():
            with tempfile.TemporaryDirectory() as folder:
                warehouse = str(Path(folder) / "bench.duckdb")
                samples[name].append(measure(script, [str(options.capture), warehouse]))
    medians = {
        name: [statistics.median(column) for column in zip(*rows, strict=True)]
        for name, rows in samples.items()
    }
    base = medians["tracewh ingest"]
    print(f"{'':20}{'CPU s':>10}{'ratio':>8}{'peak MiB':>10}{'ratio':>8}")
    for name, (seconds, memory) in medians.items():
        print(f"{name:20}{seconds:>10.2f}{seconds / base[0]:>8.2f}{memory:>10.0f}{memory / base[1]:>8.2f}")


if __name__ == "__main__":
    main()
