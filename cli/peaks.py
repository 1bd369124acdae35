"""`tracewh peaks`: what devices can do at most, and a user's own figures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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

_Record = dict[str, Any]


@click.group(
    "peaks",
    invoke_without_command=True,
    short_help="Peaks of devices: FLOPs and bandwidths.",
    epilog=example(
        "tracewh peaks",
        "tracewh peaks --run base",
        "tracewh peaks add 'AMD Instinct MI300X' --dtype bf16 --tflops 708 --source 'our GEMM benchmark'",
        "tracewh peaks add 'NVIDIA H200' --level HBM --gb-per-s 4210 --source babelstream --run base",
        "tracewh peaks remove 1001",
    ),
)
@click.option("--run", metavar="RUN", help="What holds for the devices of this run, as they are partitioned.")
@warehouse_option
@json_option
@click.pass_context
def peaks_command(ctx: click.Context, run: str | None, warehouse: Path, as_json: bool) -> None:
    """List the peaks that the warehouse knows: specified, achievable, and measured ones.

    With --run, the one that counts of each kind: yours for the run, those measured with it, yours for every
    run, then the shipped ones. Rates are dense ones, without sparsity.
    """
    if ctx.invoked_subcommand is not None:
        hand_warehouse_down(ctx, warehouse)
        return
    from tracewh.sql.peak_listing import peaks
    from tracewh.sql.warehouse import Warehouse

    with Warehouse.open(warehouse, read_only=True) as opened:
        found = peaks(opened, run)
    if as_json:
        click.echo(json_text(found))
    elif run is None:
        headers = [Header("id", True), Header("device"), Header("run"), *_FIGURE_HEADERS, Header("source")]
        rows = [
            (str(peak["id"]), peak["device"], peak["run"], *_figure(peak), peak["source"]) for peak in found
        ]
        print_table(headers, rows)
    elif found:
        headers = [
            Header("id", True), Header("device"), Header("product"), Header("devices", True),
            *_FIGURE_HEADERS, Header("origin"), Header("trace says", True), Header("source"),
        ]  # fmt: skip
        print_table(headers, [_of_run(peak) for peak in found])
    else:
        click.echo(f"No peak is known for the devices of {printable(run)}.", err=True)


@peaks_command.command(
    "add",
    short_help="Add a peak.",
    epilog=example(
        "tracewh peaks add 'AMD Instinct MI300X' --dtype bf16 --tflops 708 --source 'our GEMM benchmark'",
        "tracewh peaks add 'AMD gfx9%' --dtype fp32 --vector --tflops 120 --source 'our FMA loop'",
        "tracewh peaks add 'NVIDIA H200' --level HBM --gb-per-s 4210 --source babelstream --run base",
    ),
)
@click.argument("device", metavar="DEVICE")
@click.option("--dtype", metavar="TYPE", help="A rate: of this type, as bf16.")
@click.option("--tflops", type=float, metavar="N", help="The rate, in 1e12 operations per second.")
@click.option("--vector", is_flag=True, help="The rate is of vector units, not of matrix units.")
@click.option("--level", metavar="LEVEL", help="A bandwidth: of HBM, MALL, L2, L1, L0, LDS or network.")
@click.option("--gb-per-s", type=float, metavar="N", help="The bandwidth, in 1e9 bytes per second.")
@click.option(
    "--kind",
    default="measured",
    show_default=True,
    metavar="KIND",
    help="measured, achievable or spec.",
)
@click.option("--source", required=True, metavar="TEXT", help="Where the figure comes from.")
@click.option("--run", metavar="RUN", help="Only for this run; every run unless given.")
@warehouse_option
@click.pass_context
def add_command(ctx: click.Context, /, device: str, run: str | None, warehouse: Path, **given: Any) -> None:
    """Add a peak of the devices that DEVICE names, for every run or for one.

    DEVICE is the kind of a device, as `tracewh ls` shows it, or its product; % stands for any text in it.
    """
    from tracewh.sql.peak_listing import is_named
    from tracewh.sql.peaks import BadPeak, add_peak
    from tracewh.sql.warehouse import Warehouse

    try:
        peak = _peak(device, **given)
    except BadPeak as error:
        raise click.UsageError(f"{error}.") from error
    with Warehouse.open(warehouse, read_only=False) as opened:
        peak_id = add_peak(opened, peak, run)
        has_device = is_named(opened, device)
    figure = _figure_text(peak.quantity, peak.dtype, peak.value)
    click.echo(f"Added peak {peak_id}: {printable(device)}, {peak.dtype or peak.memory_level}, {figure}.")
    if not has_device:
        click.echo(f"No device of the warehouse is {printable(device)} so far.", err=True)
    click.echo(f"Undo: {printable(spelled_command(ctx, 'peaks', 'remove', str(peak_id)))}", err=True)


@peaks_command.command("remove", short_help="Remove a peak.", epilog=example("tracewh peaks remove 1001"))
@click.argument("peak_id", metavar="ID", type=int)
@warehouse_option
def remove_command(peak_id: int, warehouse: Path) -> None:
    """Remove the peak of this ID, which `tracewh peaks` shows; shipped and captured ones stay."""
    from tracewh.sql.peaks import remove_peak
    from tracewh.sql.warehouse import Warehouse

    with Warehouse.open(warehouse, read_only=False) as opened:
        remove_peak(opened, peak_id)
    click.echo(f"Removed peak {peak_id}.")


def _peak(
    device: str,
    dtype: str | None,
    tflops: float | None,
    vector: bool,
    level: str | None,
    gb_per_s: float | None,
    kind: str,
    source: str,
) -> Any:
    """The peak that the options spell. Raises UsageError where they are of none, or of both sorts."""
    from tracewh.sql.peaks import bandwidth_peak, rate_peak

    is_rate, is_bandwidth = (dtype, tflops) != (None, None) or vector, (level, gb_per_s) != (None, None)
    if is_rate == is_bandwidth:
        raise click.UsageError("give either --dtype and --tflops or --level and --gb-per-s.")
    if is_rate:
        if dtype is None or tflops is None:
            raise click.UsageError("a rate needs --dtype and --tflops.")
        return rate_peak(device, dtype, tflops, kind, source, is_vector=vector)
    if level is None or gb_per_s is None:
        raise click.UsageError("a bandwidth needs --level and --gb-per-s.")
    return bandwidth_peak(device, level, gb_per_s, kind, source)


_FIGURE_HEADERS = (Header("unit"), Header("of"), Header("kind"), Header("peak", True))


def _figure(peak: _Record) -> tuple[str | None, ...]:
    unit = {"matrix_flops_per_s": "matrix", "vector_flops_per_s": "vector"}.get(peak["quantity"], "memory")
    return (
        unit,
        peak["dtype"] or peak["level"],
        peak["kind"],
        _figure_text(peak["quantity"], peak["dtype"], peak["value"]),
    )


def _figure_text(quantity: str, dtype: str | None, value: float) -> str:
    if quantity == "bytes_per_s":
        return f"{value / 1e9:,.0f} GB/s"
    return f"{value / 1e12:,.1f} {'TOP/s' if str(dtype).startswith('int') else 'TFLOP/s'}"


def _of_run(peak: _Record) -> tuple[str | None, ...]:
    stated = peak["trace_value"]
    return (
        str(peak["id"]),
        peak["device"],
        peak["product"],
        str(peak["devices"]),
        *_figure(peak),
        peak["origin"],
        None if stated is None else _figure_text(peak["quantity"], peak["dtype"], stated),
        peak["source"],
    )
