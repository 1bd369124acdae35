"""`tracewh metrics`: what is known of runs as single numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from tracewh.cli.json_text import json_text
from tracewh.cli.metric_opening import open_for_metrics
from tracewh.cli.metric_values import metric_text
from tracewh.cli.options import example, json_option, warehouse_option
from tracewh.cli.table import Header, print_table


@click.command(
    "metrics",
    short_help="List metrics, or the values of a run.",
    epilog=example("tracewh metrics", "tracewh metrics base", "tracewh metrics base kernel_time --json"),
)
@click.argument("run", required=False)
@click.argument("metric", required=False)
@warehouse_option
@json_option
def metrics_command(run: str | None, metric: str | None, warehouse: Path, as_json: bool) -> None:
    """List the metrics of v1.metrics, or the values that RUN has, of all metrics or of one METRIC.

    They are what `tracewh diff`, `gate` and `history` compare. They are computed when one of these commands
    first needs them, and kept.
    """
    from tracewh.ingest.errors import WarehouseError
    from tracewh.sql import metric_listing
    from tracewh.sql.listing import did_you_mean

    with open_for_metrics(warehouse) as opened:
        known = metric_listing.metrics(opened)
        if metric is not None and metric not in (names := [record["metric"] for record in known]):
            raise WarehouseError(
                f"There is no metric {metric}; {did_you_mean(metric, names, '`tracewh metrics` lists them')}"
            )
        found = known if run is None else metric_listing.metrics_of_run(opened, run, metric)
    if as_json:
        click.echo(json_text(found))
        return
    if run is not None:
        # Of many kernels nobody wants to see each without having asked.
        shown = [record for record in found if metric is not None or not record["scope"]]
        found = [_without_unit(record) for record in shown]
    if run is not None and metric is None:
        click.echo("Metrics with scopes are left out: name one, or ask for --json.", err=True)
    if found:
        numbers = {"scopes", "runs", "value", "samples"}
        print_table(
            [Header(name, name in numbers) for name in found[0]], [tuple(row.values()) for row in found]
        )


def _without_unit(record: dict[str, Any]) -> dict[str, Any]:
    text = metric_text(record["value"], record["unit"])
    return {name: text if name == "value" else value for name, value in record.items() if name != "unit"}
