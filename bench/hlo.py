"""Costs of reading and loading an HLO module, against XLA's own reading and cost analysis.

python bench/hlo.py MODULE.hlo.pb [--instructions 100000]
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from child_process import Sample, median_cost, run_workload
from cost_table import Row, Section, render

_REPEATER = Path(__file__).with_name("repeat_module.py")
_READERS = {
    "XLA: read, cost of the whole, text": "hlo_xla",
    "protobuf parse": "hlo_parse",
    "tracewh: tables, cost of each instruction": "hlo_tables",
}


def _report(module: Path, title: str, repeat: int, markdown: bool) -> None:
    samples: dict[str, list[Sample]] = {name: [] for name in (*_READERS, "tracewh ingest")}
    for number in range(repeat):
        # In turn, so that a change in the machine's load meets all of them.
        for name, workload in _READERS.items():
            samples[name].append(run_workload(sys.executable, workload, module))
        with tempfile.TemporaryDirectory(prefix="bench-") as folder:
            warehouse = Path(folder) / f"{number}.duckdb"
            samples["tracewh ingest"].append(run_workload(sys.executable, "ingest", module, warehouse))
    inner = [Row(name, median_cost([sample.inner for sample in samples[name]])) for name in _READERS]
    whole = [Row(name, median_cost([sample.cost for sample in found])) for name, found in samples.items()]
    sections = [Section("start-up excluded", inner), Section("whole processes", whole)]
    count = samples["tracewh: tables, cost of each instruction"][0].printed["instructions"]
    print(render(title, module.stat().st_size, count, "instructions", sections, markdown), flush=True)


def main() -> None:
    """Print a table: medians of `--repeat` runs, and their ratios to XLA."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("module", type=Path, help="an HloProto: the .hlo.pb of an XLA dump")
    parser.add_argument("--instructions", type=int, help="measure copies of it, so many instructions in all")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        module = options.module
        if options.instructions:
            # The name of a dump, which ingest recognises.
            module = Path(folder) / "module_0001.jit_large.gpu_after_optimizations.hlo.pb"
            command = [sys.executable, _REPEATER, options.module, module]
            subprocess.run([*command, "--instructions", str(options.instructions)], check=True)
        _report(module, options.module.name, options.repeat, options.markdown)


if __name__ == "__main__":
    main()
