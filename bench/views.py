"""Costs of the views of where a step goes, on one capture and on one of many, against a sort of its events.

python bench/views.py CAPTURE.xplane.pb
python bench/views.py --events 1000000 --captures 200
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from child_process import Cost, run_workload
from cost_table import Row, Section, render

_REPEAT = Path(__file__).with_name("repeat_capture.py")


def _costs(workload: str, *arguments: object) -> tuple[list[Row], dict[str, int]]:
    printed = run_workload(sys.executable, workload, *arguments).printed
    rows = [Row(name, Cost(cpu_s, wall_s)) for name, cpu_s, wall_s in printed["queries"]]
    views = [row.cost for row in rows[1:]]
    total = Cost(sum(cost.cpu_s for cost in views), sum(cost.wall_s for cost in views))
    return [*rows, Row("all views together", total)], dict(printed["counts"])


def _report(capture: Path, captures: int, markdown: bool) -> None:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        warehouse = Path(folder) / "bench.duckdb"
        run_workload(sys.executable, "ingest", capture, warehouse)
        rows, counts = _costs("views", warehouse)
        sections = [Section("one capture", rows, reads_file=False)]
        if captures > 1:
            run_workload(sys.executable, "copy_captures", warehouse, captures)
            rows, _ = _costs("views", warehouse)
            sections.append(Section(f"one capture of {captures}", rows, reads_file=False))
    print(
        render(
            capture.name, capture.stat().st_size, counts["device_events"], "device events", sections, markdown
        ),
        flush=True,
    )


def main() -> None:
    """Print a table: CPU and wall seconds of each query, the least of three runs, and ratios to the sort."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("capture", type=Path, nargs="?", help="else one is made with --events")
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--captures", type=int, default=1, help="copies of the capture in the second part")
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    if options.capture is not None:
        _report(options.capture, options.captures, options.markdown)
        return
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        capture = Path(folder) / f"{options.events}.xplane.pb"
        subprocess.run([sys.executable, _REPEAT, "--events", str(options.events), capture], check=True)
        _report(capture, options.captures, options.markdown)


if __name__ == "__main__":
    main()
