"""How often a history has changes that are noise, and how often a real one is placed where it is.

python bench/change_point_rates.py WAREHOUSE.duckdb --runs 'hist_0[1-6]'

Noise is that of comparison_power.py, with one run for each point of a series. A real change is a step in the
middle, after which all values are by so much larger.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from comparison_power import RunNoise, bounds, measured_noise

from tracewh.sql.change_points import change_points

_HEADER = (
    "metric",
    "points",
    "any in noise",
    "bounds",
    "step placed exactly",
    "bounds",
    "within 1",
    "no change",
)


def _series(noise: RunNoise, points: int, factor: float, generator: np.random.Generator) -> list[float]:
    before, _ = noise.sides(points // 2, 1, generator)
    _, after = noise.sides(points - points // 2, factor, generator)
    return [run.value for run in (*before, *after)]


def _row(
    noise: RunNoise, points: int, change: float, series: int, generator: np.random.Generator
) -> list[str]:
    same = [change_points(_series(noise, points, 1, generator)) for _ in range(series)]
    changed = [change_points(_series(noise, points, 1 + change, generator)) for _ in range(series)]
    alarms = sum(bool(found) for found in same)
    exactly = sum(found == [points // 2] for found in changed)
    near = sum(len(found) == 1 and abs(found[0] - points // 2) <= 1 for found in changed)
    return [
        noise.metric,
        str(points),
        f"{alarms / series:.1%}",
        bounds(alarms, series),
        f"{exactly / series:.1%}",
        bounds(exactly, series),
        f"{near / series:.1%}",
        f"{sum(not found for found in changed) / series:.1%}",
    ]


def main() -> None:
    """Print, as a Markdown table, the rates of each metric and length of series."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("warehouse", type=Path)
    parser.add_argument("--runs", required=True, help="of one program, as `tracewh diff` takes them")
    parser.add_argument("--points", type=int, nargs="+", default=[10, 20, 50])
    parser.add_argument("--change", type=float, default=0.05, help="that is to be placed, as a ratio")
    parser.add_argument("--series", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    generator = np.random.default_rng(options.seed)
    measured = measured_noise(options.warehouse, options.runs, generator)
    print("| " + " | ".join(_HEADER) + " |", "|---|" + "---:|" * (len(_HEADER) - 1), sep="\n")
    for noise, _ in measured:
        for points in options.points:
            cells = _row(noise, points, options.change, options.series, generator)
            print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
