"""Costs of comparing runs in a warehouse of many, against opening it.

python bench/comparison.py --runs 1000
python bench/comparison.py RUN --runs 1000
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import duckdb
from child_process import Cost
from cost_table import Row, Section, render

_FIXTURE = Path(__file__).parents[1] / "fixtures" / "h200_moe"
_TRACEWH = [sys.executable, "-m", "tracewh.cli"]
# Tables of which comparisons read rows of a run, and those that belong to its captures.
_OF_RUNS = (
    *("runs", "captures", "devices", "run_params", "run_flags", "timing_samples"),
    *("run_metrics", "metric_samples", "step_parts", "run_modules", "kept_metrics"),
)
_OF_CAPTURES = (
    "capture_attributes",
    "device_attributes",
    "hlo_programs",
    "device_events",
    "event_links",
    "ops",
)
# Ids of copies are so far apart.
_STRIDE = 1000
# Measured values of a copy are up to so much off.
_SPREAD = 0.02
_REPEATS = 3


def main() -> None:
    """Print a table: CPU and wall seconds of each command, the least of three runs, and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path, nargs="?", default=_FIXTURE)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--markdown", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        warehouse = Path(folder) / "bench.duckdb"
        _command("ingest", options.run, "-w", warehouse)
        first = Row("tracewh metrics, the first time", _command("metrics", "-w", warehouse))
        _copy_runs(warehouse, options.runs)
        half = options.runs // 2
        with duckdb.connect(str(warehouse)) as connection:
            connection.execute(
                "INSERT INTO baselines SELECT 'first', run_id FROM runs WHERE run_name LIKE 'copy_%' "
                f"AND run_id < {_STRIDE * (half + 1)} UNION ALL "
                "SELECT 'second', run_id FROM runs WHERE run_name LIKE 'copy_%' "
                f"AND run_id >= {_STRIDE * (half + 1)}"
            )
        metric = ("--max", "device_step_time=2%")
        few, others = "copy_0000[0-9]", "copy_0001[0-9]"
        rows = [
            Row("tracewh baseline (opens the warehouse)", _least("baseline", "-w", warehouse)),
            Row("diff of 10 against 10", _least("diff", few, others, "-w", warehouse)),
            Row("gate of 10 against 10", _least("gate", few, others, *metric, "-w", warehouse)),
            Row(f"diff of {half} against {half}", _least("diff", "first", "second", "-w", warehouse)),
            Row(f"history of {options.runs}", _least("history", "busy", "copy_*", "-w", warehouse)),
        ]
        size = warehouse.stat().st_size
    sections = [Section("one run", [first], reads_file=False)]
    sections.append(Section(f"{options.runs} runs", rows, reads_file=False))
    print(render(options.run.name, size, options.runs, "runs", sections, options.markdown))


def _copy_runs(warehouse: Path, count: int) -> None:
    with duckdb.connect(str(warehouse)) as connection:
        connection.execute(f"CREATE TEMP TABLE copies AS SELECT unnest(range(1, {count} + 1)) AS number")
        for table in (*_OF_RUNS, *_OF_CAPTURES):
            columns = connection.execute(f"SELECT name FROM pragma_table_info('{table}')").fetchall()
            values = ", ".join(_copied(table, column) for (column,) in columns)
            connection.execute(
                f"INSERT INTO {table} SELECT {values} FROM (SELECT * FROM {table}) AS t, copies AS c"
            )


def _copied(table: str, column: str) -> str:
    if column in ("run_id", "capture_id", "device_id"):
        return f"t.{column} + {_STRIDE} * c.number"
    if column == "run_name":
        return "printf('copy_%05d', c.number - 1)"
    if column == "commit_sha":
        return "md5(CAST(c.number AS VARCHAR)) || '00000000'"
    if column == "value" and table in ("run_metrics", "metric_samples"):
        is_measured = "t.timing IS NOT NULL"
        return f"CASE WHEN {is_measured} THEN t.value * (1 + {_SPREAD} * (random() - 0.5)) ELSE t.value END"
    return f"t.{column}"


def _least(*arguments: object) -> Cost:
    costs = [_command(*arguments) for _ in range(_REPEATS)]
    return min(costs, key=lambda cost: cost.cpu_s)


def _command(*arguments: object) -> Cost:
    begin = time.perf_counter()
    process = subprocess.Popen([*_TRACEWH, *map(str, arguments)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status):
        raise SystemExit(f"tracewh {' '.join(map(str, arguments))} failed.")
    return Cost(usage.ru_utime + usage.ru_stime, time.perf_counter() - begin, usage.ru_maxrss / 1024)


if __name__ == "__main__":
    main()
