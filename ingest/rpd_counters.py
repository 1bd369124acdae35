"""Readings of an RPD trace: monitors of the GPUs over time, and counters of single dispatches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tracewh.ingest.rocm_rows import INTEGER, REAL, TEXT, Rows
from tracewh.ingest.rpd_file import Positions, RpdFile

# The tracer's units of what it monitors.
_UNITS = {"sclk": "MHz", "power": "W", "temp": "Celsius"}
_PMC_TYPES = {
    "id": INTEGER,
    "agent_id": INTEGER,
    "name": TEXT,
    "symbol": TEXT,
    "block": TEXT,
    "units": TEXT,
}


@dataclass(frozen=True)
class Readings:
    """Tables in the shape of rocpd's. The event of a monitor's reading is its position, then some."""

    samples: pa.Table
    tracks: pa.Table
    pmcs: pa.Table
    pmc_events: pa.Table


def read_readings(file: RpdFile, ops: Rows, first_op_event: int) -> Readings:
    """Read monitors, whose events follow those of the operations, and counters of operations."""
    monitors = file.read("rocpd_monitor")
    keys = list(
        zip(
            monitors.texts("deviceType").to_pylist(),
            monitors.integers("deviceId").to_pylist(),
            monitors.texts("monitorType").to_pylist(),
            strict=True,
        )
    )
    series = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    of_monitor = pa.array([series[key] for key in keys], INTEGER)
    events = pa.array(np.arange(len(keys)) + first_op_event + len(ops))
    category = pa.scalar(file.texts.position("RPD_MONITOR"), INTEGER)
    samples = {
        "id": monitors.integers("id"),
        "track_id": of_monitor,
        "timestamp": monitors.integers("start"),
        "event_id": events,
        "event.category_id": pa.repeat(category, len(keys)),
        # A reading holds until the next one.
        "until_ns": monitors.integers("end"),
    }
    tracks = {
        "id": list(series.values()),
        "name_id": [
            file.texts.position(" ".join(str(part) for part in key if part is not None)) for key in series
        ],
    }
    pmcs = [
        {
            "id": number,
            "agent_id": device if str(device_type).lower() == "gpu" else None,
            "name": name,
            "symbol": name,
            "block": "monitor",
            "units": _UNITS.get(name or ""),
        }
        for (device_type, device, name), number in series.items()
    ]
    read = pa.table({"event_id": events, "pmc_id": of_monitor, "value": monitors.numbers("value")})
    counters, counted = _counters(file, ops, first_op_event, len(series))
    return Readings(
        pa.table(samples),
        pa.table({name: pa.array(values, INTEGER) for name, values in tracks.items()}),
        pa.concat_tables([pa.Table.from_pylist(pmcs, pa.schema(list(_PMC_TYPES.items()))), counters]),
        pa.concat_tables([read, counted]),
    )


def _counters(file: RpdFile, ops: Rows, first_op_event: int, first_id: int) -> tuple[pa.Table, pa.Table]:
    """Counters by name and GPU; the tracer has made the values of a dispatch one: their sum or mean."""
    rows = file.read("rocpd_counter")
    op_positions = file.find(rows.integers("op_id"), ops, "id", rows.place)
    is_known = np.asarray(op_positions.is_valid())
    of_op: Positions = np.asarray(op_positions.drop_null())
    names = file.name_positions(rows, "name_id").filter(pa.array(is_known))
    gpus = ops.integers("gpuId").take(pa.array(of_op))
    keys = list(zip(names.to_pylist(), gpus.to_pylist(), strict=True))
    ids = {key: first_id + number for number, key in enumerate(dict.fromkeys(keys))}
    texts = file.texts.at(pa.array([name for name, _ in ids], INTEGER))
    pmcs = {
        "id": pa.array(ids.values(), INTEGER),
        "agent_id": pa.array([gpu for _, gpu in ids], INTEGER),
        "name": texts,
        "symbol": texts,
        "block": pa.nulls(len(ids), TEXT),
        "units": pa.nulls(len(ids), TEXT),
    }
    values = {
        "event_id": pa.array(of_op + first_op_event),
        "pmc_id": pa.array([ids[key] for key in keys], INTEGER),
        "value": rows.numbers("value").filter(pa.array(is_known)).cast(REAL),
    }
    return pa.table(pmcs), pa.table(values)
