"""`tracewh gate`: an exit code for continuous integration."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tracewh.cli.errors import user_message
from tracewh.cli.metric_values import change_text, interval_text, metric_text
from tracewh.cli.options import example, git_option, spelled_command, warehouse_option
from tracewh.cli.table import Header

if TYPE_CHECKING:
    from tracewh.cli.sections import Section
    from tracewh.sql.comparison import Comparison
    from tracewh.sql.gate import GateResult

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_CANNOT_TELL = 3
# What fits one screen.
_MOST_RESULTS = 10
_MOST_CAUSES = 5
_WORDS = {"failed": "worse", "cannot_tell": "cannot tell", "passed": "holds"}
_COUNTED = {"failed": "broken", "cannot_tell": "cannot be told", "passed": "hold"}


@click.command(
    "gate",
    short_help="Fail where metrics got worse, for CI.",
    epilog=example(
        "tracewh gate baseline:main HEAD --max step_time=2% --max exposed_communication=5%",
        "tracewh gate base new --max 'phase_time:remat=1.5ms' --max memory_peak=512MiB",
    ),
)
@click.argument("base", metavar="BASE")
@click.argument("head", metavar="HEAD")
@click.option(
    "--max",
    "limits",
    metavar="METRIC[:SCOPE]=LIMIT",
    multiple=True,
    required=True,
    help="The metric may get worse by so much: 2%, 1.5ms (us, ms, s), 512MiB (B, KiB, MiB, GiB), or a count. "
    "May be repeated.",
)
@click.option(
    "--level",
    type=click.FloatRange(0, 0.5, min_open=True),
    default=0.05,
    show_default=True,
    metavar="P",
    help="How often a failure may be a false alarm.",
)
@click.option("--verbose", "-v", is_flag=True, help="Show what became of every limit, also where all hold.")
@click.option("--allow-too-few", is_flag=True, help="Pass where there are too few runs to tell.")
@click.option("--force", is_flag=True, help="Compare sides that are not comparable.")
@warehouse_option
@git_option
@click.pass_context
def gate_command(
    ctx: click.Context,
    base: str,
    head: str,
    limits: tuple[str, ...],
    level: float,
    verbose: bool,
    allow_too_few: bool,
    force: bool,
    warehouse: Path,
    repository: Path | None,
) -> None:
    """Fail where the runs of HEAD are worse than those of BASE by more than a limit.

    A limit holds unless a change is one beyond chance and worse than it: what passes is not proven worse.
    Nothing is printed where all limits hold. The exit code is 1 where one does not, 3 where nobody can tell
    (too few runs, a metric that one side lacks, sides that are not comparable), and 2 for a wrong question.
    """
    try:
        comparison, results = _checked(base, head, limits, level, warehouse, repository)
    except Exception as error:
        message = user_message(error)
        if message is None:
            raise
        raise _NoQuestion(message) from error
    from tracewh.sql.gate import CANNOT_TELL, FAILED, PASSED

    is_refused = bool(comparison.reasons) and not force
    allowed = [
        result
        for result in results
        if allow_too_few
        and result.status == CANNOT_TELL
        and result.change.judgement.verdict == "too_few_runs"
    ]
    statuses = {
        CANNOT_TELL if is_refused else PASSED if result in allowed else result.status for result in results
    }
    if statuses <= {PASSED} and not verbose:
        return
    shown = [result for result in results if verbose or (result.status != PASSED and result not in allowed)]
    options = ["--git", str(repository)] * (repository is not None) + ["--force"] * force
    _show(
        comparison,
        [] if is_refused else shown,
        is_refused,
        spelled_command(ctx, "diff", base, head, options=options),
    )
    if FAILED in statuses:
        ctx.exit(EXIT_FAILED)
    ctx.exit(EXIT_CANNOT_TELL if CANNOT_TELL in statuses else 0)


class _NoQuestion(click.ClickException):
    """Not to be taken for a metric that got worse."""

    exit_code = EXIT_USAGE


def _checked(
    base: str, head: str, limits: Sequence[str], level: float, warehouse: Path, repository: Path | None
) -> tuple[Comparison, list[GateResult]]:
    from tracewh.cli.metric_opening import open_for_metrics
    from tracewh.sql.comparison import compare
    from tracewh.sql.gate import check_limits, parse_limit
    from tracewh.sql.run_selection import select_runs

    parsed = [parse_limit(limit) for limit in limits]
    named = {(limit.metric, limit.scope) for limit in parsed if limit.scope is not None}
    with open_for_metrics(warehouse) as opened:
        sides = [select_runs(opened, side, repository=repository) for side in (base, head)]
        # The limits say which change counts.
        comparison = compare(opened, *sides, level=level, min_effect=0, alone=named)
    return comparison, check_limits(comparison, parsed, level)


def _show(comparison: Comparison, results: list[GateResult], is_refused: bool, next_command: str) -> None:
    from tracewh.cli.comparison_tables import metric_label, not_comparable
    from tracewh.cli.sections import Section, write_text

    title = f"{comparison.base.description} against {comparison.head.description}"
    lines = [not_comparable(comparison)] if is_refused else []
    rows = tuple(
        (
            _WORDS[result.status],
            result.limit.text,
            metric_label(result.change),
            *_values(result),
        )
        for result in sorted(results, key=_place)[:_MOST_RESULTS]
    )
    headers = (
        *(Header(""), Header("limit"), Header("metric")),
        *(Header("base", True), Header("head", True), Header("change", True), Header("interval", True)),
    )
    counts = [
        f"{count} {words}"
        for status, words in _COUNTED.items()
        if (count := sum(result.status == status for result in results))
    ]
    sections = [Section(f"Limits: {', '.join(counts)}", "", headers, rows)] if rows else []
    write_text(title, [*lines, *_reasons(results)], [*sections, *_causes(comparison)], sys.stdout)
    click.echo(f"\nWhere it comes from:\n  {next_command}")


def _place(result: GateResult) -> tuple[int, float]:
    """Limits that are broken first, then those that cannot be told, and the largest changes."""
    ratio = result.change.judgement.ratio
    return list(_COUNTED).index(result.status), -abs(1 - ratio) if ratio is not None else float("-inf")


def _values(result: GateResult) -> tuple[str, str, str, str]:
    judgement, unit = result.change.judgement, result.change.unit
    return (
        metric_text(judgement.base_median, unit),
        metric_text(judgement.head_median, unit),
        change_text(judgement.ratio),
        interval_text(judgement.low, judgement.high),
    )


def _reasons(results: list[GateResult]) -> list[str]:
    """Why nobody can tell, each reason once."""
    told = (result.change for result in results if result.status == "cannot_tell")
    # What an interval is of follows the first sentence.
    reasons = (
        change.judgement.reason.partition(". ")[0].rstrip(".") or "A metric is known of one side alone"
        for change in told
    )
    return [f"{reason}." for reason in dict.fromkeys(reasons)]


def _causes(comparison: Comparison) -> list[Section]:
    from tracewh.cli.comparison_tables import setting_section

    causes = [row for row in comparison.settings if row["effect"] != "information"]
    return [setting_section(causes, _MOST_CAUSES)] if causes else []
