"""`tracewh diff`: what one side of runs differs in from another, and how sure that is."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from tracewh.cli.json_text import json_text
from tracewh.cli.options import example, git_option, warehouse_option

if TYPE_CHECKING:
    from tracewh.sql.comparison import Comparison

FORMATS = ("text", "markdown", "json")
DEFAULT_ROWS = 5


@click.command(
    "diff",
    short_help="Say what runs differ in, and how sure that is.",
    epilog=example(
        "tracewh diff base new",
        "tracewh diff baseline:main HEAD --format markdown > comment.md",
        "tracewh diff 'base_*' 'new_*' --rows 0",
        "tracewh diff main~5..main~1 main --git ~/src/model",
    ),
)
@click.argument("base", metavar="BASE")
@click.argument("head", metavar="HEAD")
@click.option(
    "--format",
    "format_name",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="Format of the result.",
)
@click.option("--output", "-o", type=click.Path(dir_okay=False, path_type=Path), help="Write to this file.")
@click.option(
    "--rows",
    type=click.IntRange(min=0),
    default=DEFAULT_ROWS,
    show_default=True,
    metavar="N",
    help="Rows of each list, 0 for all; JSON has all.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 0.5, min_open=True),
    default=0.05,
    show_default=True,
    metavar="P",
    help="How often a verdict may be a false alarm.",
)
@click.option(
    "--min-effect",
    type=click.FloatRange(0, 1),
    default=0.02,
    show_default=True,
    metavar="RATIO",
    help="The least change that counts.",
)
@click.option("--save", "name", metavar="NAME", help="Keep the verdicts under this name, for v1.verdicts.")
@click.option("--force", is_flag=True, help="Show the numbers of sides that are not comparable, too.")
@warehouse_option
@git_option
def diff_command(
    base: str,
    head: str,
    format_name: str,
    output: Path | None,
    rows: int,
    level: float,
    min_effect: float,
    name: str | None,
    force: bool,
    warehouse: Path,
    repository: Path | None,
) -> None:
    """Say what the runs of HEAD differ in from those of BASE.

    A side is a run, a pattern of names, a commit, LABEL=VALUE, a baseline, or a revision or range of git, or
    several of them with commas between; run:, commit:, label:, baseline: or git: in front says which. The
    unit is the run: with too few of them there is no verdict, but direction and size.
    """
    from tracewh.cli.metric_opening import open_for_metrics
    from tracewh.cli.output import replacing
    from tracewh.sql.comparison import compare
    from tracewh.sql.run_selection import select_runs

    if name == "":
        raise click.BadParameter("Give the comparison a name.", param_hint="--save")
    with open_for_metrics(warehouse) as opened:
        sides = [select_runs(opened, side, repository=repository) for side in (base, head)]
        comparison = compare(opened, *sides, level=level, min_effect=min_effect)
    if output is None:
        _write(comparison, format_name, rows or None, force, sys.stdout)
    else:
        with replacing(output) as target, open(target, "w", encoding="utf-8") as stream:
            _write(comparison, format_name, rows or None, force, stream)
    # Last: the file may be in use by another, which is no reason to show nothing.
    if name is not None:
        _save(warehouse, name, comparison, level, min_effect)


def _save(warehouse: Path, name: str, comparison: Comparison, level: float, min_effect: float) -> None:
    from tracewh.sql.kept_comparisons import save_comparison
    from tracewh.sql.warehouse import Warehouse

    with Warehouse.open(warehouse, read_only=False) as opened:
        save_comparison(opened, name, comparison, level=level, min_effect=min_effect)


def _write(comparison: Comparison, format_name: str, limit: int | None, force: bool, stream: TextIO) -> None:
    from tracewh.cli.comparison_tables import comparison_sections, setting_section, verdict_lines
    from tracewh.cli.sections import write_markdown, write_text

    is_shown = force or comparison.verdict != "not_comparable"
    if format_name == "json":
        stream.write(json_text(_record(comparison, is_shown)) + "\n")
        return
    title = f"{comparison.base.description} against {comparison.head.description}"
    if is_shown:
        sections = list(comparison_sections(comparison, limit))
    else:
        sections = [setting_section(comparison.settings, None)]
    write = write_markdown if format_name == "markdown" else write_text
    write(title, verdict_lines(comparison, is_shown), sections, stream)


def _record(comparison: Comparison, is_shown: bool) -> dict[str, Any]:
    record = asdict(comparison)
    if not is_shown:
        for name in ("headline", "metrics", "parts", "kernels", "hlo"):
            del record[name]
    return record
