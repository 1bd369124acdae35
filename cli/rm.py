"""`tracewh rm`: remove runs."""

from __future__ import annotations

from pathlib import Path

import click

from tracewh.cli.options import example, warehouse_option
from tracewh.cli.table import printable


@click.command(
    "rm", short_help="Remove runs.", epilog=example("tracewh rm base", "tracewh rm old-1 old-2 --yes")
)
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@warehouse_option
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_context
def rm_command(ctx: click.Context, runs: tuple[str, ...], warehouse: Path, yes: bool) -> None:
    """Remove every RUN with all of its captures from the warehouse; its files stay where they are."""
    from tracewh.sql import listing
    from tracewh.sql.baselines import baselines_of_run
    from tracewh.sql.warehouse import Warehouse

    names = list(dict.fromkeys(runs))
    with Warehouse.open(warehouse, read_only=False) as opened:
        known = {record["run"] for record in listing.runs(opened)}
        # An unknown name goes first: it is refused before anything is removed.
        names.sort(key=lambda name: name in known)
        if not yes and known.issuperset(names) and not _agreed(names, warehouse):
            click.echo("Nothing was removed.", err=True)
            ctx.exit(1)
        for name in names:
            held_by = baselines_of_run(opened, name)
            removed = opened.remove_run(name)
            captures = f"{removed.captures:,} capture" + ("" if removed.captures == 1 else "s")
            click.echo(f"Removed {printable(removed.run_name)}: {captures}, {removed.rows:,} rows.")
            if held_by:
                click.echo(f"It is gone from baseline {', '.join(map(printable, held_by))} too.", err=True)


def _agreed(names: list[str], warehouse: Path) -> bool:
    question = f"Remove {', '.join(map(printable, names))} from {warehouse}?"
    try:
        return click.confirm(question, err=True)
    except click.Abort as error:
        if isinstance(error.__context__, EOFError):
            raise click.UsageError("there is no terminal to ask at; give --yes.") from error
        raise
