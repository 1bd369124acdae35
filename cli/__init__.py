"""The `tracewh` command.

A subcommand is imported when it is asked for, and what it needs when it runs: `--help` answers at once.
"""

from __future__ import annotations

import gc
import importlib
import io
import os
import sys
from typing import Any

import click

from tracewh import __version__
from tracewh.cli.errors import is_interrupt, user_message
from tracewh.cli.options import example

# In the order of a first use, which is the order of the help text.
COMMANDS = {
    "ingest": "tracewh.cli.ingest:ingest_command",
    "ls": "tracewh.cli.ls:ls_command",
    "steps": "tracewh.cli.steps:steps_command",
    "report": "tracewh.cli.report:report_command",
    "metrics": "tracewh.cli.metrics:metrics_command",
    "diff": "tracewh.cli.diff:diff_command",
    "gate": "tracewh.cli.gate:gate_command",
    "history": "tracewh.cli.history:history_command",
    "baseline": "tracewh.cli.baseline:baseline_command",
    "sql": "tracewh.cli.sql:sql_command",
    "check": "tracewh.cli.check:check_command",
    "hlo": "tracewh.cli.hlo:hlo_command",
    "views": "tracewh.cli.views:views_command",
    "rules": "tracewh.cli.rules:rules_command",
    "peaks": "tracewh.cli.peaks:peaks_command",
    "rm": "tracewh.cli.rm:rm_command",
}
# A command lives for seconds and imports much: by default a tenth of its time goes to the search for garbage.
_GARBAGE_THRESHOLD = 50_000
EXIT_INTERRUPTED = 130
EXIT_BROKEN_PIPE = 141


class _LazyGroup(click.Group):
    """A group whose commands are named in COMMANDS, and the edge where errors become messages."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of the commands, in the order of COMMANDS."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now; None when there is none."""
        if cmd_name not in COMMANDS:
            return None
        module_name, attribute = COMMANDS[cmd_name].split(":")
        command = getattr(importlib.import_module(module_name), attribute)
        assert isinstance(command, click.Command)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; an error of the user's ends in one line on stderr and an exit code."""
        try:
            result = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:
            _discard_stdout()
            ctx.exit(EXIT_BROKEN_PIPE)
        except (Exception, KeyboardInterrupt) as error:
            if is_interrupt(error):
                # The line break ends the line on which the terminal shows ^C.
                click.echo("\nInterrupted." if sys.stderr.isatty() else "Interrupted.", err=True)
                ctx.exit(EXIT_INTERRUPTED)
            message = user_message(error) if isinstance(error, Exception) else None
            if message is None:
                raise
            raise click.ClickException(message) from error
        return result


def _discard_stdout() -> None:
    # The interpreter flushes stdout once more when it exits, and would report the closed pipe.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(
    cls=_LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=example("tracewh ingest runs/base", "tracewh ls", 'tracewh sql "SELECT * FROM v1.phase_time"'),
)
@click.version_option(__version__, prog_name="tracewh")
def main() -> None:
    """Load profiled JAX runs into a DuckDB warehouse and ask it where the step went."""
    gc.set_threshold(_GARBAGE_THRESHOLD)
    # No command multiplies matrices, and the threads that numpy would start for it spin.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    if isinstance(sys.stdout, io.TextIOWrapper):
        if sys.stdout.isatty():
            sys.stdout.reconfigure(errors="backslashreplace")
        else:
            # What is piped is data, which a locale must neither change nor refuse.
            sys.stdout.reconfigure(encoding="utf-8")
