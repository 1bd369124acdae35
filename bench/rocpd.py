"""Costs of loading a rocpd database, against Python's sqlite3 row by row.

python bench/rocpd.py [DATABASE] [--dispatches 500000 2000000] [--arguments 2]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from child_process import Sample, median_cost, run_workload
from cost_table import Row, Section, render

_GENERATOR = Path(__file__).parents[1] / "fixtures" / "rocpd_many.py"
_WORKLOADS = {"sqlite3 row by row, names joined": "sqlite_rows", "tracewh ingest": "ingest"}


def _report(database: Path, repeat: int, markdown: bool) -> None:
    samples: dict[str, list[Sample]] = {name: [] for name in _WORKLOADS}
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        # Compiles what is not yet compiled, and reads the file into the page cache.
        run_workload(sys.executable, "ingest", database, Path(folder) / "warm.duckdb")
    for _ in range(repeat):
        # In turn, so that a change in the machine's load meets all of them.
        for name, workload in _WORKLOADS.items():
            with tempfile.TemporaryDirectory(prefix="bench-") as folder:
                warehouse = Path(folder) / "bench.duckdb"
                samples[name].append(run_workload(sys.executable, workload, database, warehouse))
    rows = [Row(name, median_cost([sample.cost for sample in found])) for name, found in samples.items()]
    count = samples["sqlite3 row by row, names joined"][0].printed["dispatches"]
    sections = [Section("whole processes", rows)]
    print(render(database.name, database.stat().st_size, count, "dispatches", sections, markdown), flush=True)


def main() -> None:
    """Print a table for each database: medians of `--repeat` runs, and their ratios to sqlite3."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("database", type=Path, nargs="?", help="else synthetic ones are written")
    parser.add_argument("--dispatches", type=int, nargs="+", default=[500_000, 2_000_000])
    parser.add_argument("--arguments", type=int, default=2, help="per call, at most 8")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    if options.database is not None:
        _report(options.database, options.repeat, options.markdown)
        return
    for dispatches in options.dispatches:
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            database = Path(folder) / f"{dispatches}_dispatches_results.db"
            sizes = ["--dispatches", str(dispatches), "--arguments", str(options.arguments)]
            subprocess.run([sys.executable, _GENERATOR, database, *sizes], check=True)
            _report(database, options.repeat, options.markdown)


if __name__ == "__main__":
    main()
