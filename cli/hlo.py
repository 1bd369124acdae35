"""`tracewh hlo`: the HLO programs of a run, and their instructions."""

from __future__ import annotations

import sys
import textwrap
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from tracewh.cli.json_text import json_text
from tracewh.cli.options import example, json_option, spelled_command, warehouse_option
from tracewh.cli.table import Header, print_table, printable, style_for

_Record = dict[str, Any]
# A fusion's body is shown as counts of its opcodes from so many instructions on.
_MAX_SHOWN = 12
_INDENT = " " * 15
_TEXT_WIDTH = 110
_SMALLEST_TEXT_WIDTH = 40
# The configuration of a call can be megabytes of encoded code: nothing to read, and slow to wrap.
_MAX_TEXT = 10_000
_NAMELESS_SHARE = 0.01

# Title of a column -> its text, for a record.
_Columns = dict[str, Callable[[_Record], str | None]]


@click.command(
    "hlo",
    short_help="Show the HLO programs of a run, or one op.",
    epilog=example(
        "tracewh hlo base", "tracewh hlo base --op custom-call.2", "tracewh hlo base --top 50 --json"
    ),
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
    """Show the programs of RUN, what one run of each costs a device, and the ops that took most time.

    Times are those of the device where they are longest, over all runs in the capture. --op shows one op.
    """
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
            else:
                _show_instructions(found)
            return
        programs, ops = hlo_listing.programs(opened, run), hlo_listing.ops(opened, run, top)
        nameless = hlo_listing.nameless_share(opened, run)
    if as_json:
        click.echo(json_text({"run": run, "programs": programs, "ops": ops, "nameless_share": nameless}))
        return
    if not programs:
        click.echo(
            f"No HLO in {printable(run)}. Profile with JAX 0.4 or later, or dump it with --xla_dump_to and "
            "ingest the dump with the run.",
            err=True,
        )
    _print_records(programs, _PROGRAM_COLUMNS)
    if ops:
        click.echo()
        _print_records(ops, _OP_COLUMNS)
    if nameless >= _NAMELESS_SHARE:
        click.echo(
            f"\n{nameless:.0%} of the device time, copies aside, is not in these ops: its events name none, "
            "as those of command buffers (CUDA graphs).",
            err=True,
        )
    if ops:
        command = spelled_command(ctx, "hlo", run, options=["--op", str(ops[0]["op"])])
        click.echo(f"\nOne op: {command}", err=True)


def _scaled(name: str, factor: float, digits: int) -> Callable[[_Record], str | None]:
    def text(record: _Record) -> str | None:
        value = record[name]
        return None if value is None else f"{value / factor:,.{digits}f}"

    return text


def _plain(name: str) -> Callable[[_Record], str | None]:
    def text(record: _Record) -> str | None:
        value = record[name]
        return None if value is None else str(value)

    return text


def _us_per_execution(record: _Record) -> str | None:
    return f"{record['union_ps'] / 1e6 / record['executions']:,.3f}" if record["executions"] else None


_RATES: _Columns = {
    "TFLOP/s": _scaled("flops_per_s", 1e12, 1),
    "GB/s": _scaled("bytes_per_s", 1e9, 1),
}
_PROGRAM_COLUMNS: _Columns = {
    "capture": _plain("capture"),
    "program": _plain("program"),
    "module": _plain("module"),
    "ops": _scaled("instructions", 1, 0),
    "GFLOP": _scaled("flops", 1e9, 3),
    "GB": _scaled("bytes_accessed", 1e9, 3),
    "peak MiB": _scaled("peak_bytes", 2**20, 1),
    "runs": _scaled("runs", 1, 0),
    "ms": _scaled("device_ps", 1e9, 3),
}
_OP_COLUMNS: _Columns = {
    "capture": _plain("capture"),
    "program": _plain("program"),
    "op": _plain("op"),
    "times": _scaled("executions", 1, 0),
    "ms": _scaled("union_ps", 1e9, 3),
    **_RATES,
    "phase, component": lambda record: f"{record['phase']}, {record['component']}",
}
_MEASURED_COLUMNS: _Columns = {
    "capture": _plain("capture"),
    "device": _plain("device"),
    "times": _scaled("executions", 1, 0),
    "kernels": _scaled("kernels", 1, 0),
    "ms": _scaled("union_ps", 1e9, 3),
    "us each": _us_per_execution,
    **_RATES,
}
_NUMBERS = {*_PROGRAM_COLUMNS, *_OP_COLUMNS, *_MEASURED_COLUMNS} - {"module", "op", "phase, component"}
# The same in all rows of most runs, and then left out.
_IF_SEVERAL = ("capture", "program")


def _show_instructions(found: Sequence[_Record]) -> None:
    width = style_for(sys.stdout).width or _TEXT_WIDTH
    for number, instruction in enumerate(found):
        if number:
            click.echo()
        _show_instruction(instruction, max(width - len(_INDENT), _SMALLEST_TEXT_WIDTH))


def _show_instruction(found: _Record, width: int) -> None:
    def show(title: str, text: str | None) -> None:
        if text is None:
            return
        if len(text) > _MAX_TEXT:
            text = f"{text[:_MAX_TEXT]}...\nThe first of {len(text):,} characters; --json has them all."
        lines = [
            part
            for line in printable(text).split("\n")
            for part in textwrap.wrap(line, width, break_on_hyphens=False) or [""]
        ]
        click.echo(f"{title:<{len(_INDENT)}}" + f"\n{_INDENT}".join(lines))

    click.echo(printable(f"{found['op']}  in {found['module']}, program {found['program']}"))
    click.echo()
    kind = found["custom_call_target"] or found["fusion_kind"]
    show("opcode", f"{found['opcode']} ({kind})" if kind else found["opcode"])
    show("shape", found["shape"])
    show("op_name", found["op_name"])
    show("source", _place(found))
    show("runs", _runs(found))
    show("cost", _cost(found))
    if found["collective_kind"]:
        show("communicates", _communication(found))
    if found["measured"]:
        click.echo("\nmeasured")
        _print_records(found["measured"], _MEASURED_COLUMNS)
    sections = ["operands", "users", "callers"]
    if len(found["called"]) <= _MAX_SHOWN:
        sections.append("called")
    for section in sections:
        if found[section]:
            click.echo(f"\n{section}")
            _print_records(found[section], {name: _plain(name) for name in found[section][0]})
    click.echo()
    if len(found["called"]) > _MAX_SHOWN:
        opcodes = Counter(record["opcode"] for record in found["called"])
        counted = ", ".join(f"{count} {opcode}" for opcode, count in opcodes.most_common())
        show("called", f"{found['called'][0]['computation']}: {counted}")
    show("config", found["backend_config"])
    if len(found["stack"]) > 1:
        # Frames that a transformation passes twice are there twice.
        frames = dict.fromkeys(_place(frame) or "" for frame in found["stack"])
        show("stack", "\n".join(frames))


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
        f"{_amount(found[column])}{unit}"
        for column, unit in (("flops", "FLOP"), ("bytes_accessed", "B read and written"))
        if found[column] is not None
    ]
    if found["transcendentals"]:
        parts.append(f"{_amount(found['transcendentals'])}transcendentals")
    note = f"; {found['cost_note']}" if found["cost_note"] else ""
    return f"{', '.join(parts) or 'unknown'} each time ({found['cost_rule']}{note})"


def _communication(found: _Record) -> str:
    size = "" if found["group_size"] is None else f" among {found['group_size']:,} devices"
    payload = "unknown" if found["payload_bytes"] is None else f"{_amount(found['payload_bytes'])}B"
    whose = "of the result" if found["collective_kind"] == "all-gather" else "of the operands"
    return f"{found['collective_kind']}{size}, payload {payload} {whose} on each"


def _amount(number: int) -> str:
    for factor, prefix in ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k")):
        if number >= factor:
            return f"{number / factor:.3f} {prefix}"
    return f"{number} "


def _print_records(records: Sequence[_Record], columns: _Columns) -> None:
    if not records:
        return
    shown = {
        title: text
        for title, text in columns.items()
        if title not in _IF_SEVERAL or len({record[title] for record in records}) > 1
    }
    headers = [Header(title, title in _NUMBERS) for title in shown]
    print_table(headers, [tuple(text(record) for text in shown.values()) for record in records])
