"""`tracewh steps`: the steps of a run, and what the user calls a step."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracewh.cli.json_text import json_text
from tracewh.cli.options import (
    example,
    json_option,
    spelled_command,
    step_marker_option,
    steps_option,
    warehouse_option,
)
from tracewh.cli.table import Header, print_table, printable

if TYPE_CHECKING:
    from tracewh.sql.step_choices import StepChoice

_NUMBERS = {"capture", "process", "device", "step", "duration_ms"}


@click.command(
    "steps",
    short_help="Show the steps of a run, or choose them.",
    epilog=example(
        "tracewh steps base",
        "tracewh steps base --steps 10-12",
        "tracewh steps base --step-marker 'PjitFunction[(]train_step[)]'",
        "tracewh steps base --reset",
    ),
)
@click.argument("run")
@warehouse_option
@steps_option
@step_marker_option
@click.option("--reset", is_flag=True, help="Forget what was chosen.")
@json_option
@click.pass_context
def steps_command(
    ctx: click.Context,
    run: str,
    warehouse: Path,
    steps: str | None,
    step_marker: str | None,
    reset: bool,
    as_json: bool,
) -> None:
    """Show the steps of RUN on each device, after choosing them anew where an option says so.

    The choice is kept in the warehouse, so that every view and every client sees the same steps. Without one,
    the steps are those that the program annotates, or else the executions of the program with the most device
    time. A number comes from the first group of REGEX that is one, a step annotation or the end of the name;
    without any, the steps are 0, 1, ... in their order.
    """
    if reset and (steps is not None or step_marker is not None):
        raise click.UsageError("--reset forgets the choice; give it alone.")
    from tracewh.sql import step_choices
    from tracewh.sql.warehouse import Warehouse, transaction

    change = step_choices.StepChoice.parse(steps, step_marker)
    is_read_only = change.is_empty and not reset
    warnings: list[str] = []
    with Warehouse.open(warehouse, read_only=is_read_only) as opened:
        run_id = step_choices.run_id_of(opened, run)
        if not is_read_only:
            with transaction(opened.connection):
                if reset:
                    step_choices.clear_choice(opened.connection, run_id)
                else:
                    warnings = step_choices.change_choice(opened.connection, run_id, change)
        choice = step_choices.read_choice(opened.connection, run_id)
        found = step_choices.run_steps(opened, run_id)
    for text in warnings:
        click.echo(f"Warning: {printable(text)}", err=True)
    if as_json:
        chosen = {
            "steps": None if choice.steps is None else str(choice.steps),
            "step_marker": choice.marker,
        }
        click.echo(json_text({"run": run, "choice": chosen, "steps": found}))
        return
    if found:
        headers = [Header(name, name in _NUMBERS) for name in found[0]]
        print_table(headers, [tuple(map(_shown, record.values())) for record in found])
    else:
        click.echo(
            f"No step with device work. Name the events that mark them: "
            f"{spelled_command(ctx, 'steps', run, options=['--step-marker', 'REGEX'])}",
            err=True,
        )
    if not choice.is_empty:
        click.echo(printable(_spelled_choice(choice)), err=True)


def _shown(value: object) -> object:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


def _spelled_choice(choice: StepChoice) -> str:
    parts = []
    if choice.steps is not None:
        parts.append(f"steps {choice.steps}")
    if choice.marker is not None:
        parts.append(f"marked by {choice.marker}")
    return f"Chosen: {', '.join(parts)}"
