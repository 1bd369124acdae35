"""How often verdicts of comparisons are wrong: runs are simulated with the noise that real runs have.

python bench/comparison_power.py WAREHOUSE.duckdb --runs 'hist_0[1-6]'

The runs named must be of one program: what differs between them is noise. The logarithm of a step time is
taken as that of its run and a deviation. Runs differ by a normal distribution; its variance is that of the
medians of the runs, less what steps add to those. Deviations are drawn from those that the steps of all runs
have from the medians of their runs, whatever their distribution. Times of components have no steps: theirs is
the variance between runs alone, and they are also judged as the only change among all components, where
`tracewh diff` adjusts p for their number.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from tracewh.sql.change_statistics import Judgement, Replicate, judge, side_noise
from tracewh.sql.current_metrics import open_with_metrics
from tracewh.sql.rank_sums import rank_sum_p
from tracewh.sql.run_selection import select_runs

LEVEL = 0.05
MIN_EFFECT = 0.02
METRICS = (
    ("step_time", "", "unprofiled"),
    ("device_step_time", "", "profiled"),
    ("busy", "", "profiled"),
    ("component_group_time", "Expert MLP", "profiled"),
)
_MEDIANS_DRAWN = 20_000
_SAMPLES = """
    SELECT list(value ORDER BY sample_index) FROM main.metric_samples
    WHERE metric = $1 AND timing = $2 AND list_contains($3, run_id) GROUP BY run_id ORDER BY run_id
"""
_VALUES = """
    SELECT [value] FROM main.run_metrics
    WHERE metric = $1 AND timing = $2 AND list_contains($3, run_id) AND scope = $4 ORDER BY run_id
"""
_SCOPES = """
    SELECT count(DISTINCT scope) FROM main.run_metrics
    WHERE metric = $1 AND timing = $2 AND list_contains($3, run_id)
"""
_HEADER = (
    "metric", "noise", "runs", "p <= level", "false alarms", "bounds", "change found", "bounds",
    "ratio in interval", "in basic interval",
)  # fmt: skip


@dataclass(frozen=True)
class RunNoise:
    """Noise of a metric: deviations are of logarithms, and so are ratios less 1 where they are small."""

    metric: str
    level_ms: float
    between: float
    deviations: NDArray[np.float64]
    steps: int
    runs: int
    # Of the family that shares false alarms.
    scopes: int = 1

    def sides(
        self, runs: int, factor: float, generator: np.random.Generator
    ) -> tuple[list[Replicate], list[Replicate]]:
        """Two sides of so many runs; the true median of the second is `factor` times that of the first."""
        return self._side(runs, 1, generator), self._side(runs, factor, generator)

    def _side(self, runs: int, factor: float, generator: np.random.Generator) -> list[Replicate]:
        of_runs = generator.normal(0, self.between, (runs, 1))
        of_steps = generator.choice(self.deviations, (runs, self.steps))
        steps = factor * self.level_ms * np.exp(of_runs + of_steps)
        return [
            Replicate(float(median), tuple(row))
            for median, row in zip(np.median(steps, axis=1), steps.tolist(), strict=True)
        ]

    def at_the_most(self) -> RunNoise:
        """With runs as different as they can be by the 95 % interval of the variance of so few."""
        freedom = self.runs - 1
        return replace(self, between=self.between * (freedom / stats.chi2.ppf(0.025, freedom)) ** 0.5)


def estimated_noise(metric: str, runs: Sequence[Sequence[float]], generator: np.random.Generator) -> RunNoise:
    """The noise of runs of one program, from their steps in milliseconds."""
    logs = [np.log(steps) for steps in runs]
    medians = np.array([np.median(log) for log in logs])
    count = int(np.median([len(log) for log in logs]))
    # The median of few steps is nearer to them than the true one.
    grown = [
        (log - median) * (len(log) / max(len(log) - 1, 1)) ** 0.5
        for log, median in zip(logs, medians, strict=True)
    ]
    deviations = np.concatenate(grown)
    drawn = np.median(generator.choice(deviations, (_MEDIANS_DRAWN, count)), axis=1)
    between = max(float(medians.var(ddof=1) - drawn.var()), 0.0) ** 0.5
    return RunNoise(metric, float(np.exp(np.median(medians))), between, deviations, count, len(runs))


@dataclass(frozen=True)
class Rates:
    """Of `comparisons` how many had what a column of the table names; of intervals, which share."""

    comparisons: int
    below_level: int
    false_alarms: int
    found: int
    in_interval: float
    in_basic: float


def rates(
    noise: RunNoise, runs: int, change: float, comparisons: int, generator: np.random.Generator
) -> Rates:
    """Compare so many pairs of sides without a change, and as many with one."""
    same = [_judged(noise, runs, 1, generator) for _ in range(comparisons)]
    changed = [_judged(noise, runs, 1 + change, generator) for _ in range(comparisons)]
    intervals = [
        (found.low / truth, found.high / truth, found.ratio / truth)
        for judgements, truth in ((same, 1), (changed, 1 + change))
        for found in judgements
        if found.low is not None and found.high is not None and found.ratio is not None
    ]
    return Rates(
        comparisons,
        sum(found.p is not None and found.p <= LEVEL for found in same),
        sum(found.verdict in ("regressed", "improved") for found in same),
        sum(found.verdict == "regressed" for found in changed),
        float(np.mean([low <= 1 <= high for low, high, _ in intervals])),
        float(np.mean([ratio**2 / high <= 1 <= ratio**2 / low for low, high, ratio in intervals])),
    )


def _judged(noise: RunNoise, runs: int, factor: float, generator: np.random.Generator) -> Judgement:
    """As `tracewh diff` judges."""
    base, head = noise.sides(runs, factor, generator)
    known = side_noise(*([run.value for run in side] for side in (base, head)))
    adjusted = None
    if noise.scopes > 1:
        own = rank_sum_p([run.value for run in base], [run.value for run in head])
        # The least of a family by Benjamini and Hochberg.
        adjusted = min(1.0, own * noise.scopes)
    return judge(
        base, head, "lower", level=LEVEL, min_effect=MIN_EFFECT, noise=known, p=adjusted, scopes=noise.scopes
    )


def measured_noise(path: Path, selector: str, generator: np.random.Generator) -> list[tuple[RunNoise, int]]:
    """The noise of each of METRICS among the runs that a selector names, and the number of its scopes."""
    found = []
    with open_with_metrics(path, lambda count: None) as warehouse:
        chosen = list(select_runs(warehouse, selector, repository=None).run_ids)
        for metric, scope, timing in METRICS:
            query, values = (_VALUES, [scope]) if scope else (_SAMPLES, [])
            rows = warehouse.connection.execute(query, [metric, timing, chosen, *values]).fetchall()
            name = ", ".join(filter(None, (metric, scope, timing)))
            noise = estimated_noise(name, [list(steps) for (steps,) in rows], generator)
            counts = warehouse.connection.execute(_SCOPES, [metric, timing, chosen]).fetchall()
            found.append((noise, int(counts[0][0])))
    return found


def bounds(count: int, total: int) -> str:
    """The 95 % interval of Clopper and Pearson."""
    low, high = stats.binomtest(count, total).proportion_ci(0.95, "exact")
    return f"{low:.1%} to {high:.1%}"


def _row(name: str, noise: RunNoise, runs: int, found: Rates) -> list[str]:
    total = found.comparisons
    return [
        noise.metric,
        name,
        f"{runs} + {runs}",
        f"{found.below_level / total:.1%}",
        f"{found.false_alarms / total:.1%}",
        bounds(found.false_alarms, total),
        f"{found.found / total:.1%}",
        bounds(found.found, total),
        f"{found.in_interval:.1%}",
        f"{found.in_basic:.1%}",
    ]


def main() -> None:
    """Print the noise of the runs and, as a Markdown table, what comparisons with such noise say."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("warehouse", type=Path)
    parser.add_argument("--runs", required=True, help="of one program, as `tracewh diff` takes them")
    parser.add_argument("--sizes", type=int, nargs="+", default=[3, 4, 6, 10], help="runs a side")
    parser.add_argument("--change", type=float, default=0.05, help="that is to be found, as a ratio")
    parser.add_argument("--comparisons", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    generator = np.random.default_rng(options.seed)
    measured = measured_noise(options.warehouse, options.runs, generator)
    for noise, _ in measured:
        most = noise.at_the_most().between
        print(
            f"{noise.metric}: {noise.runs} runs, {noise.steps} values each, median {noise.level_ms:.3f} ms, "
            f"standard deviation {noise.between:.2%} between runs (at the most {most:.2%}), "
            f"{noise.deviations.std():.2%} within one",
            flush=True,
        )
    print("", "| " + " | ".join(_HEADER) + " |", "|---|---|---|" + "---:|" * (len(_HEADER) - 3), sep="\n")
    for noise, scopes in measured:
        kinds = [("as measured", noise), ("at the most", noise.at_the_most())]
        if scopes > 1:
            kinds.append((f"as measured, of {scopes}", replace(noise, scopes=scopes)))
        for name, used in kinds:
            for runs in options.sizes:
                found = rates(used, runs, options.change, options.comparisons, generator)
                print("| " + " | ".join(_row(name, used, runs, found)) + " |", flush=True)


if __name__ == "__main__":
    main()
