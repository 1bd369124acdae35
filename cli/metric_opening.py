"""Opening the warehouse of a command that compares runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from tracewh.sql.warehouse import Warehouse

# Fewer are done before anyone wonders.
_MANY_RUNS = 5


def open_for_metrics(path: Path) -> Warehouse:
    """The warehouse at `path`, to read, with the metrics of its runs up to date."""
    from tracewh.sql.current_metrics import open_with_metrics

    return open_with_metrics(path, _say)


def _say(runs: int) -> None:
    if runs >= _MANY_RUNS:
        click.echo(f"Computing the metrics of {runs:,} runs, which are kept.", err=True)
