"""`tracewh hlo`: the HLO programs of a run, and their instructions."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from tracewh.cli.json_text import json_text
from tracewh.cli.options import example, json_option, spelled_command, warehouse_option
from tracewh.cli.table import Header, print_table, printable

_Record = dict[str, Any]
_TEXTS = {*("module", "op", "opcode", "op_name", "shape"), *("phase", "component", "computation", "role")}
# A fusion's body is shown as counts of its opcodes from so many instructions on.
_MAX_SHOWN = 12
_INDENT = " " * 15


@click.command(
    "hlo",
    short_help="Show the HLO programs of a run, or one op.",
    epilog=example("tracewh hlo base", "tracewh hlo base --op fusion.12", "tracewh hlo base --top 50 --json"),
)
@click.argument("run")
@warehouse_option
@click.option("--op", metavar="NAME", help="An instruction: operands, users, source, cost and time.")
@click.option("--program", type=int, metavar="ID", help="With --op: only in the program of this id.")
@click.option(
    "--top", type=click.IntRange(min=0), default=20, show_default=True, help="List so many ops, by time."
)
@json_option
@click.pass_context
def hlo_command(
    ctx: click.Context,
    run: str,
    warehouse: Path,
    op: str | None,
    program: int | None,
    top: int,
    as_json: bool,
) -> None:
    """Show the programs of RUN with what they cost, and the ops that took most time; or one op."""
    if program is not None and op is None:
        raise click.UsageError("--program needs --op NAME.")
    from tracewh.sql import hlo_listing, listing
    from tracewh.sql.warehouse import Warehouse

    with Warehouse.open(warehouse, read_only=True) as opened:
        listing.check_run(opened, run)
        if op is not None:
            found = hlo_listing.instructions(opened, run, op, program)
            if as_json:
                click.echo(json_text(found))
                return
            for number, instruction in enumerate(found):
                if number:
                    click.echo()
                _show_instruction(op, instruction)
            return
        programs, ops = hlo_listing.programs(opened, run), hlo_listing.ops(opened, run, top)
    if as_json:
        click.echo(json_text({"run": run, "programs": programs, "ops": ops}))
        return
    if not programs:
        click.echo(
            f"No HLO in {run}. Profile with JAX 0.4 or later, or dump it with --xla_dump_to and ingest "
            "the dump with the run.",
            err=True,
        )
    _print_records(programs)
    if ops:
        click.echo()
        _print_records(ops)
        click.echo(f"\nOne op: {spelled_command(ctx, 'hlo', run, '--op', str(ops[0]['op']))}", err=True)


def _show_instruction(name: str, found: _Record) -> None:
    click.echo(printable(f"{name}  in {found['module']}, program {found['program']}"))
    click.echo()
    kind = found["custom_call_target"] or found["fusion_kind"]
    _show("opcode", f"{found['opcode']} ({kind})" if kind else found["opcode"])
    _show("shape", found["shape"])
    _show("op_name", found["op_name"])
    _show("source", _place(found))
    _show("runs", _runs(found))
    _show("cost", _cost(found))
    if found["collective_kind"]:
        _show("communicates", _communication(found))
    _show("config", found["backend_config"])
    _section("measured", found["measured"])
    _section("operands", found["operands"])
    _section("users", found["users"])
    if len(found["called"]) > _MAX_SHOWN:
        opcodes = Counter(record["opcode"] for record in found["called"])
        counted = ", ".join(f"{count} {opcode}" for opcode, count in opcodes.most_common())
        _show("calls", f"{found['called'][0]['computation']}: {counted}")
    else:
        _section("calls", found["called"])
    if len(found["stack"]) > 1:
        _show("stack", "\n".join(_place(frame) or "" for frame in found["stack"]))


def _show(title: str, text: str | None) -> None:
    if text is None:
        return
    lines = [
        part
        for line in printable(text).split("\n")
        for part in textwrap.wrap(line, 95, break_on_hyphens=False) or [""]
    ]
    click.echo(f"{title:<{len(_INDENT)}}" + f"\n{_INDENT}".join(lines))


def _section(title: str, records: Sequence[_Record]) -> None:
    if records:
        click.echo(f"\n{title}")
        _print_records(records)


def _place(frame: _Record) -> str | None:
    if frame["source_file"] is None:
        return None
    line = "" if frame["source_line"] is None else f":{frame['source_line']}"
    function = f" in {frame['function_name']}" if frame.get("function_name") else ""
    return f"{frame['source_file']}{line}{function}"


def _runs(found: _Record) -> str:
    where = f"in {found['computation']} ({found['role']})"
    if found["executions_per_run"] is None:
        return f"{where}, unknown how often"
    times = "once" if found["executions_per_run"] == 1 else f"{found['executions_per_run']:,} times"
    return f"{where}, {times} in each run of the program"


def _cost(found: _Record) -> str | None:
    if found["cost_rule"] is None:
        return None
    parts = [
        f"{_amount(found[column])} {unit}"
        for column, unit in (("flops", "FLOP"), ("bytes_accessed", "bytes read and written"))
        if found[column] is not None
    ]
    if found["transcendentals"]:
        parts.append(f"{_amount(found['transcendentals'])} transcendentals")
    reason = f"; unknown: {found['unknown_reason']}" if found["unknown_reason"] else ""
    return f"{', '.join(parts) or 'unknown'} per execution ({found['cost_rule']}{reason})"


def _communication(found: _Record) -> str:
    size = "" if found["group_size"] is None else f" among {found['group_size']:,} devices"
    payload = "an unknown number of" if found["payload_bytes"] is None else _amount(found["payload_bytes"])
    return f"{found['collective_kind']}{size}, {payload} bytes of each"


def _amount(number: int) -> str:
    for factor, prefix in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= factor:
            return f"{number / factor:.3f} {prefix}"
    return str(number)


def _print_records(records: Sequence[_Record]) -> None:
    if records:
        headers = [Header(name.replace("_", "\n"), name not in _TEXTS) for name in records[0]]
        print_table(headers, [tuple(map(_cell, record, record.values())) for record in records])


def _cell(name: str, value: object) -> object:
    # An id is no amount: it has no thousands.
    return str(value) if name == "program" else value
