"""Small random runs that counted in several passes, and rows of tables for the tests of counters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import duckdb
import pyarrow as pa
from hypothesis import strategies as st

from .live_views import live_warehouse

KERNELS = ("gemm", "copy")
# Spellings of one counter are different counters until a formula asks.
COUNTERS = (
    *("TCC_EA0_RDREQ", "TCC_EA0_RDREQ_sum", "TCC_BUBBLE", "TCC_EA0_RDREQ_32B"),
    *("TCC_EA0_WRREQ", "TCC_EA0_WRREQ_64B_sum", "FETCH_SIZE"),
    *("SQ_VALU_MFMA_BUSY_CYCLES", "GRBM_GUI_ACTIVE", "MfmaUtil", "SQ_WAVES"),
)
EVENT_COLUMNS = (
    *("capture_id", "device_event_id", "device_id", "track_id", "name_id", "start_ps", "end_ps", "kind"),
    *("role", "dispatch_id", "launch_details_id"),
)
VALUE_COLUMNS = ("capture_id", "counter_id", "device_event_id", "instance", "value")
_SHAPE_COLUMNS = (
    *("capture_id", "launch_details_id", "grid_x", "grid_y", "grid_z"),
    *("block_x", "block_y", "block_z"),
)
_TABLES = (
    *("captures", "devices", "device_attributes", "device_events", "launch_details"),
    *("counters", "counter_values"),
)

Row = tuple[Any, ...]


@dataclass(frozen=True)
class Device:
    run: int
    architecture: str | None
    dies: int | None
    simds: int | None


@dataclass(frozen=True)
class Dispatch:
    """A dispatch of a pass; `values` has those of the instances of each counter that was collected for it."""

    device: int
    kernel: int
    blocks: int | None
    dispatch_id: int | None
    values: dict[int, list[float | None]]


@dataclass(frozen=True)
class Pass:
    run: int
    counters: list[str]
    dispatches: list[Dispatch]


@dataclass(frozen=True)
class Runs:
    """Devices and passes; their positions are their ids."""

    devices: list[Device]
    passes: list[Pass]


@st.composite
def runs(draw: st.DrawFn) -> Runs:
    """Two runs, the first with two devices. Most kernels come several times, and as often in each pass."""
    devices = [
        Device(
            run,
            draw(st.sampled_from(["gfx942", "gfx942", "gfx942", "gfx942", "gfx90a", "gfx1151", None])),
            draw(st.sampled_from([1, 2, 2, None])),
            draw(st.sampled_from([4, 4, None])),
        )
        for run in (1, 1, 2)
    ]
    group = st.tuples(st.sampled_from([0, 0, 1, 2]), st.integers(0, 1), st.sampled_from([8, 8, 9, None]))
    kinds = draw(st.lists(group, min_size=1, max_size=3))
    groups = draw(st.lists(st.sampled_from(kinds), min_size=2, max_size=6))
    passes = []
    for run in draw(st.lists(st.sampled_from([1, 1, 1, 2]), min_size=2, max_size=4)):
        counters = draw(st.lists(st.sampled_from(COUNTERS), min_size=4, max_size=9, unique=True))
        chosen = [one for one in groups if devices[one[0]].run == run]
        if draw(st.integers(0, 3)) == 0:
            chosen = chosen[1:]
        is_numbered = draw(st.booleans())
        order = draw(st.permutations(range(len(chosen))))
        dispatches = [
            Dispatch(device, kernel, blocks, number if is_numbered else None, draw(_values(len(counters))))
            for number, (device, kernel, blocks) in zip(order, chosen, strict=True)
        ]
        passes.append(Pass(run, counters, dispatches))
    return Runs(devices, passes)


@st.composite
def _values(draw: st.DrawFn, counter_count: int) -> dict[int, list[float | None]]:
    value = st.sampled_from([None, 0.0, 1.0, 2.0, 5.0, 40.0, 7.5])
    return {
        counter: draw(st.lists(value, min_size=1, max_size=3))
        for counter in range(counter_count)
        if draw(st.integers(0, 11)) > 0
    }


@contextmanager
def counter_warehouse() -> Iterator[duckdb.DuckDBPyConnection]:
    """A warehouse in memory with the names of the kernels, and nothing else."""
    with live_warehouse() as connection:
        insert(connection, "names", ("name_id", "name"), list(enumerate(KERNELS)))
        yield connection


def clear(connection: duckdb.DuckDBPyConnection) -> None:
    """Remove all but the names."""
    for table in _TABLES:
        connection.execute(f"DELETE FROM main.{table}")


def insert(
    connection: duckdb.DuckDBPyConnection, table: str, columns: Sequence[str], rows: Sequence[Row]
) -> None:
    """Add rows to a table of the warehouse."""
    if not rows:
        return
    data = dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True))
    connection.register("new_rows", pa.table(data))
    names = ", ".join(columns)
    connection.execute(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM new_rows")
    connection.unregister("new_rows")


def insert_devices(connection: duckdb.DuckDBPyConnection, devices: Sequence[Device]) -> None:
    """Add devices, numbered from 0, which capture 0 describes."""
    rows = [(number, device.run, "", "GPU", number) for number, device in enumerate(devices)]
    columns = ("device_id", "run_id", "hostname", "device_type", "device_ordinal")
    insert(connection, "devices", columns, rows)
    attributes = [
        (0, number, attribute, str(value))
        for number, device in enumerate(devices)
        for attribute, value in (
            ("name", device.architecture),
            ("num_xcc", device.dies),
            ("simd_count", device.simds),
        )
        if value is not None
    ]
    insert(connection, "device_attributes", ("capture_id", "device_id", "attribute", "value"), attributes)


def fill(connection: duckdb.DuckDBPyConnection, runs: Runs) -> None:
    """Replace the content of the warehouse."""
    clear(connection)
    insert_devices(connection, runs.devices)
    passes = list(enumerate(runs.passes))
    captures = [(capture, one.run, capture, "rocpd") for capture, one in passes]
    insert(connection, "captures", ("capture_id", "run_id", "artifact_id", "source_kind"), captures)
    shapes = [(capture, blocks, blocks, 1, 1, 64, 1, 1) for capture, _ in passes for blocks in (8, 9)]
    insert(connection, "launch_details", _SHAPE_COLUMNS, shapes)
    counters = [(capture, *pair) for capture, one in passes for pair in enumerate(one.counters)]
    insert(connection, "counters", ("capture_id", "counter_id", "counter_name"), counters)
    events: list[Row] = []
    values: list[Row] = []
    for capture, one in passes:
        for event, dispatch in enumerate(one.dispatches):
            place = capture, event, dispatch.device, 0, dispatch.kernel
            event_row = *place, event, event, "kernel", "serialized", dispatch.dispatch_id, dispatch.blocks
            events.append(event_row)
            values += [
                (capture, counter, event, instance, value)
                for counter, instances in dispatch.values.items()
                for instance, value in enumerate(instances)
            ]
    insert(connection, "device_events", EVENT_COLUMNS, events)
    insert(connection, "counter_values", VALUE_COLUMNS, values)
