"""Comparisons that are kept under a name, for v1.verdicts."""

from __future__ import annotations

import json

from tracewh.sql.comparison import Comparison, MetricChange
from tracewh.sql.warehouse import Warehouse, transaction


def save_comparison(
    warehouse: Warehouse, name: str, comparison: Comparison, *, level: float, min_effect: float
) -> None:
    """Keep what a comparison says, in place of an earlier one of that name."""
    connection = warehouse.connection
    headline = comparison.headline
    with transaction(connection):
        for table in ("comparison_verdicts", "comparisons"):
            connection.execute(f"DELETE FROM main.{table} WHERE comparison = $1", [name])
        connection.execute(
            # A conflict clause, since DuckDB checks the key against rows deleted in the same transaction.
            f"INSERT OR REPLACE INTO main.comparisons VALUES ({', '.join(10 * '?')})",
            [
                *(name, comparison.base.description, comparison.head.description),
                *(json.dumps(side.run_names) for side in (comparison.base, comparison.head)),
                *(comparison.verdict, headline and headline.metric, json.dumps(comparison.reasons)),
                *(level, min_effect),
            ],
        )
        if comparison.metrics:
            connection.executemany(
                f"INSERT INTO main.comparison_verdicts VALUES ({', '.join(16 * '?')})",
                [_row(name, change) for change in comparison.metrics],
            )


def _row(name: str, change: MetricChange) -> list[object]:
    said = change.judgement
    return [
        *(name, change.metric, change.scope, change.timing, change.evidence, change.unit),
        *(change.base_runs, change.head_runs, said.base_median, said.head_median),
        *(said.ratio, said.low, said.high, said.p, said.verdict, said.reason),
    ]
