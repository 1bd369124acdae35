"""`tracewh rules`: by which rules operations get their phase and component, and a user's own ones."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tracewh.cli.json_text import json_text
from tracewh.cli.options import (
    example,
    hand_warehouse_down,
    json_option,
    spelled_command,
    warehouse_option,
)
from tracewh.cli.table import Header, print_table, printable

if TYPE_CHECKING:
    from tracewh.ingest.run_rules import Rule
    from tracewh.sql.rules import AddedRule

_Record = dict[str, Any]
_run_option = click.option("--run", metavar="RUN", help="Only for this run; every run unless given.")


@click.group(
    "rules",
    invoke_without_command=True,
    short_help="Rules for phases and components.",
    epilog=example(
        "tracewh rules",
        "tracewh rules add --component 'wi_[01]' --group 'Expert MLP' --phase forward",
        "tracewh rules add --phase update --segment my_optimizer --run base",
        "tracewh rules add --structural my_wrapper",
        "tracewh rules explain 'jit(step)/transpose(jvp(mlp))/wi_0/dot_general'",
        "tracewh rules rm 1001",
    ),
)
@click.option("--run", metavar="RUN", help="The rules that hold for this run, in one order.")
@warehouse_option
@json_option
@click.pass_context
def rules_command(ctx: click.Context, run: str | None, warehouse: Path, as_json: bool) -> None:
    """List the rules in the order in which they are asked, and how many op_names each decides.

    An op_name is split at its slashes. Structure rules say which segments are no scope, phase rules which
    segment means which phase, component rules which group a scope belongs to. The first rule of a kind that
    matches wins. A `tracewh.toml` in a run's directory has rules of that run, which come first.
    """
    if ctx.invoked_subcommand is not None:
        hand_warehouse_down(ctx, warehouse)
        return
    from tracewh.sql import rule_listing
    from tracewh.sql.warehouse import Warehouse

    with Warehouse.open(warehouse, read_only=True) as opened:
        found = rule_listing.rules(opened, run)
    if as_json:
        click.echo(json_text(found))
        return
    headers = [
        Header("id", True), Header("kind"), Header("vocabulary"), Header("run"), Header("pattern"),
        Header("gives"), Header("op_names", True),
    ]  # fmt: skip
    print_table(headers, [_listed(rule) for rule in found])


@rules_command.command(
    "add",
    short_help="Add a rule.",
    epilog=example(
        "tracewh rules add --component 'wi_[01]' --group 'Expert MLP' --inside moe --phase forward",
        "tracewh rules add --phase update --segment '^my_opt$'",
        "tracewh rules add --structural my_wrapper",
    ),
)
@click.option("--component", metavar="PATTERN", help="A component rule: scopes of this name.")
@click.option("--group", metavar="NAME", help="The group that they belong to.")
@click.option("--inside", metavar="PATTERN", help="Only where a scope of this name is around them.")
@click.option("--direct", is_flag=True, help="Not for ops in scopes below them that no rule knows.")
@click.option(
    "--phase",
    metavar="PHASE",
    help="With --segment: what it means. With --component: forward fills in for ops without a phase, any "
    "other replaces it.",
)
@click.option("--segment", metavar="PATTERN", help="A phase rule: segments as written, as jvp(layers).")
@click.option("--structural", metavar="PATTERN", help="A structure rule: segments that are no scope.")
@click.option("--scope", metavar="PATTERN", help="The contrary: segments that are a scope after all.")
@click.option("--priority", type=int, help="Lower is asked first.  [default: 100, before shipped rules]")
@click.option("--reason", metavar="TEXT", help="Why there is such a rule.")
@_run_option
@warehouse_option
@click.pass_context
def add_command(
    ctx: click.Context, /, run: str | None, warehouse: Path, priority: int | None, **given: Any
) -> None:
    """Add a rule for every run, or for one.

    A PATTERN is a regular expression for a whole name, without backslashes: wi_[01], my_(opt|clip).
    """
    from tracewh.ingest.run_rules import DEFAULT_PRIORITY, BadRule, checked_rule
    from tracewh.sql.rules import add_rule
    from tracewh.sql.warehouse import Warehouse

    try:
        rule = checked_rule(_rule(given, DEFAULT_PRIORITY if priority is None else priority))
    except BadRule as error:
        raise click.UsageError(f"{error}.") from error
    with Warehouse.open(warehouse, read_only=False) as opened:
        added = add_rule(opened, rule, run)
    click.echo(f"Added rule {added.rule_id}: {printable(rule.pattern)}.")
    for text in _remarks(rule, added, run):
        click.echo(printable(text), err=True)
    click.echo(f"Undo: {printable(spelled_command(ctx, 'rules', 'rm', str(added.rule_id)))}", err=True)


@rules_command.command("rm", short_help="Remove a rule.", epilog=example("tracewh rules rm 1001"))
@click.argument("rule_id", metavar="ID", type=int)
@warehouse_option
def rm_command(rule_id: int, warehouse: Path) -> None:
    """Remove the rule of this ID, which `tracewh rules` shows; shipped ones stay."""
    from tracewh.sql.rules import remove_rule
    from tracewh.sql.warehouse import Warehouse

    with Warehouse.open(warehouse, read_only=False) as opened:
        remove_rule(opened, rule_id)
    click.echo(f"Removed rule {rule_id}.")


@rules_command.command(
    "explain",
    short_help="Show which rules decide an op_name.",
    epilog=example("tracewh rules explain 'jit(step)/transpose(jvp(mlp))/wi_0/dot_general'"),
)
@click.argument("op_name", metavar="OP_NAME")
@click.option("--run", metavar="RUN", help="By the rules that hold for this run.")
@warehouse_option
@json_option
def explain_command(op_name: str, run: str | None, warehouse: Path, as_json: bool) -> None:
    """Show the segments of OP_NAME, its phase, component and group, and the rules that decided.

    The OP_NAME need not be in the warehouse.
    """
    from tracewh.sql import rule_listing
    from tracewh.sql.warehouse import Warehouse

    with Warehouse.open(warehouse, read_only=True) as opened:
        found = rule_listing.explain(opened, op_name, run)
    if as_json:
        click.echo(json_text(found))
        return
    operations = found["operations"]
    for operation in operations:
        _show_operation(operation, found["segments"])
        click.echo()
    mixed = "; it joins operations that differ" if found["mixed"] else ""
    click.echo(
        f"phase {found['phase']}, component {printable(found['component'])}, "
        f"group {printable(found['group'])}{mixed}"
    )


def _rule(given: dict[str, Any], priority: int) -> Any:
    """The rule that the options spell. Raises UsageError where they are of no kind, or of several."""
    from tracewh.ingest.run_rules import Rule

    kinds = [name for name in ("component", "segment", "structural", "scope") if given[name] is not None]
    if len(kinds) != 1:
        raise click.UsageError("give one of --component, --segment, --structural and --scope.")
    (kind,) = kinds
    needed = {"component": "group", "segment": "phase"}.get(kind)
    if needed is not None and given[needed] is None:
        raise click.UsageError(f"--{kind} needs --{needed}.")
    allowed = {"component": {"group", "inside", "direct", "phase"}, "segment": {"phase"}}.get(kind, set())
    for name in ("group", "inside", "direct", "phase"):
        if given[name] and name not in allowed:
            raise click.UsageError(f"--{name} does not go with --{kind}.")
    reason = given["reason"] or "a user's rule"
    if kind == "component":
        return Rule(
            "component", given["component"], given["phase"], given["group"], given["inside"], given["direct"],
            priority=priority, reason=reason,
        )  # fmt: skip
    if kind == "segment":
        return Rule("phase", given["segment"], given["phase"], priority=priority, reason=reason)
    is_structural = kind == "structural"
    return Rule("structure", given[kind], is_structural=is_structural, priority=priority, reason=reason)


def _remarks(rule: Rule, added: AddedRule, run: str | None) -> Iterator[str]:
    """What the user may not expect of a rule."""
    text = "scope" if rule.kind == "component" else "segment"
    of = "" if run is None else f" of {run}"
    if added.op_names:
        yield f"It matches a {text} of {added.op_names:,} op_name{'s' if added.op_names > 1 else ''}{of}."
    else:
        yield f"It matches no {text} of any op_name{of}. `tracewh rules explain OP_NAME` shows {text}s."
    other = added.asked_before
    if other is not None:
        yield (
            f"Rule {other.rule_id} of {other.file} has the same pattern and is asked before it. "
            "Change that file, or give a lower --priority."
        )
    if added.known_phases and rule.phase is not None:
        near = difflib.get_close_matches(rule.phase, added.known_phases, 1)
        beside = f"did you mean {near[0]}?" if near else f"beside {', '.join(added.known_phases)}."
        yield f"It makes a new phase, {rule.phase}: {beside}"


def _listed(rule: _Record) -> tuple[str | None, ...]:
    return (
        str(rule["id"]),
        rule["kind"],
        rule["vocabulary"],
        rule["run"] if rule["file"] is None else f"{rule['run']}: {rule['file']}",
        rule["pattern"] if rule["inside"] is None else f"{rule['pattern']}\n  inside {rule['inside']}",
        _gives(rule),
        f"{rule['op_names']:,}",
    )


def _gives(rule: _Record) -> str:
    if rule["kind"] == "structure":
        return "no scope" if rule["structural"] else "a scope"
    if rule["kind"] == "phase":
        return str(rule["phase"])
    phase = f", {rule['phase']}" if rule["phase"] else ""
    return f"{rule['group']}{phase}{', direct only' if rule['direct'] else ''}"


def _show_operation(operation: _Record, segments: Sequence[_Record]) -> None:
    rows = [
        (segment["segment"], _said_of(segment))
        for segment in segments
        if segment["member"] == operation["member"]
    ]
    print_table([Header("segment"), Header("what the rules say")], rows)
    for name, value, rule in (
        ("phase", operation["phase"], operation["phase_rule"]),
        ("component", operation["component"], None),
        ("group", operation["group"], operation["component_rule"]),
    ):
        decided = "" if rule is None else f" by rule {rule}"
        click.echo(f"{name}: {printable(value or 'unattributed')}{decided}")


def _said_of(segment: _Record) -> str:
    if segment["primitive"]:
        said = ["primitive"]
    elif segment["structural"]:
        said = [f"no scope by rule {segment['structure_rule']}"]
    else:
        said = ["scope" if segment["scope"] else "no scope"]
    if segment["phase"] is not None:
        said.append(f"{segment['phase']} by rule {segment['phase_rule']}")
    return ", ".join(said)
