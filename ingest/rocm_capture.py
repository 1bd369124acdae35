"""From the tables of a ROCm process to a capture, in bounded memory.

Two rules about problems. A place that is a table (`rocpd_region`) counts whole rows that were rejected; a
place that is a column (`rocpd_region.tid`) counts values that were dropped from rows that were kept. So rows
loaded plus rows rejected make the rows of the table.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.batches import Batches
from tracewh.ingest.capture import Capture
from tracewh.ingest.event_stats import intern
from tracewh.ingest.rocm_allocations import Allocations
from tracewh.ingest.rocm_arguments import Arguments
from tracewh.ingest.rocm_counters import CounterValues, counters
from tracewh.ingest.rocm_device_events import DeviceEvents, counts_per_dispatch
from tracewh.ingest.rocm_devices import Agents, Tracks
from tracewh.ingest.rocm_facts import Clock, clock_of
from tracewh.ingest.rocm_fingerprint import fingerprint
from tracewh.ingest.rocm_host_events import HostEvents
from tracewh.ingest.rocm_owners import Owners, count_distinct
from tracewh.ingest.rocm_pc_samples import PcSamples
from tracewh.ingest.rocm_process import RocmProcess
from tracewh.ingest.rocm_rows import Rows
from tracewh.ingest.rocm_source import Source, empty_as_null

# Tables about the facts, with the columns that have a place of their own. The rest is kept as stats of the
# capture, named `<table>.<column>`, with the row's id as owner_id.
_DESCRIPTIONS = {
    "info_thread": ("id", "nid", "pid", "tid", "name"),
    "info_queue": ("id", "nid", "pid", "name"),
    "info_stream": ("id", "nid", "pid", "name"),
    "info_code_object": ("id", "nid", "pid"),
    "track": ("id", "nid", "pid", "tid", "name_id"),
    # Of packed structures that other tables hold: what their bytes mean.
    "info_blob_schema": ("id", "nid", "pid"),
    "info_blob_field": ("id",),
}
_SYMBOL_COLUMNS = (
    *("id", "nid", "pid", "code_object_id", "kernel_name", "display_name", "group_segment_size"),
    *("private_segment_size", "sgpr_count", "arch_vgpr_count", "accum_vgpr_count"),
)
_DEVICE_FACTS = ("kernel_dispatch", "memory_copy", "graph_launch", "hip_event")
_HOST_FACTS = ("region", "sample")


def read_capture(process: RocmProcess) -> Capture:
    """Make the capture of a process: what it refers to at once, its facts as a stream.

    Times are ps from the earliest start; `origin_source_ns` is that start on the profiler's clock, which is
    not the wall's. Raises UnreadableFile where a file is damaged.
    """
    source = Source(process)
    process_id, hostname, attributes = _identity(source)
    clock = clock_of(process)
    agents = Agents(source, hostname)
    tables = {"counters": counters(source, agents), "kernel_symbols": _kernel_symbols(source)}
    _describe(source)
    tables["event_stats"] = source.stats.take()
    capture = Capture(
        source_kind=process.source_kind,
        hostname=hostname,
        process_id=process_id,
        platform=_platform(source),
        origin_source_ns=None if clock is None else clock.origin_ns,
        fingerprint=fingerprint(process),
        attributes=attributes,
        names=source.names,
        devices=agents.devices,
        tables=tables,
        streamed_events=sum(process.count(base) for base in (*_DEVICE_FACTS, *_HOST_FACTS)),
    )
    capture.stream = _batched(_facts(source, agents, clock, capture))
    return capture


def _facts(
    source: Source, agents: Agents, clock: Clock | None, capture: Capture
) -> Iterator[tuple[str, pa.Table]]:
    tracks = Tracks(source)
    owners = {name: Owners() for name in ("device_event", "host_event", "memory_allocation", "pc_sample")}
    is_serialized = counts_per_dispatch(source.process)
    calls = HostEvents(source, tracks, owners["host_event"])
    yield from DeviceEvents(source, agents, tracks, owners["device_event"], is_serialized).rows(clock)
    yield from calls.rows(clock)
    yield from Allocations(source, agents, tracks, owners["memory_allocation"]).rows(clock)
    yield from PcSamples(source, agents, owners["pc_sample"]).rows(clock)
    yield from CounterValues(source, owners["device_event"], owners["host_event"], calls.samples).rows()
    yield from Arguments(source, owners, calls).rows()
    yield from _blobs(source, owners)
    _count_orphans(source, owners)
    capture.problems += source.problems.problems()


def _batched(rows: Iterator[tuple[str, pa.Table]]) -> Iterator[tuple[str, pa.Table]]:
    batches = Batches()
    for table, part in rows:
        batches.add(table, part)
        yield from batches.full()
    yield from batches.rest()


def _identity(source: Source) -> tuple[int | None, str, dict[str, str | None]]:
    """Return process id, host name and attributes; of several processes or nodes the first counts."""
    attributes: dict[str, str | None] = dict(source.process.attributes)
    first: dict[str, dict[str, object]] = {}
    for base in ("info_process", "info_node"):
        rows = source.reference(base)
        first[base] = next(iter(rows.table.slice(0, 1).to_pylist()), {})
        label = base.removeprefix("info_")
        for column, value in first[base].items():
            if column not in ("id", "nid", "hostname") and value not in (None, ""):
                attributes["command" if column == "command" else f"{label}.{column}"] = str(value)
        others = Rows(rows.place, rows.table.slice(1), source.problems)
        source.add_remaining("capture", others.integers("id"), others, ("id",), prefix=f"{base}.")
    process_ids = source.reference("info_process").integers("pid")
    hostname = str(first["info_node"].get("hostname") or "")
    return (process_ids[0].as_py() if len(process_ids) else None), hostname, attributes


def _platform(source: Source) -> str:
    """The platform of the agents: RPD traces NVIDIA's devices as well."""
    vendors = source.reference("info_agent").texts("vendor_name").unique().to_pylist()
    return "cuda" if "NVIDIA" in vendors else "rocm"


def _kernel_symbols(source: Source) -> pa.Table:
    """Return the rows of `kernel_symbols`, in the order of the source; the rest of each becomes stats."""
    rows = source.reference("info_kernel_symbol")
    ids = pa.array(np.arange(len(rows)))
    symbols = empty_as_null(rows.texts("kernel_name"))
    names = pc.coalesce(empty_as_null(rows.texts("display_name")), symbols)
    source.add_remaining("kernel_symbol", ids, rows, source.mapped(_SYMBOL_COLUMNS))
    return pa.table(
        {
            "kernel_symbol_id": ids,
            "native_id": rows.integers("id"),
            "name_id": intern(source.names, pc.fill_null(names, "unnamed kernel")),
            "symbol_name_id": intern(source.names, symbols),
            "code_object_id": rows.integers("code_object_id"),
        }
    )


def _describe(source: Source) -> None:
    """Keep what the tables about queues, code objects and so on say beyond the columns used."""
    for base, mapped in _DESCRIPTIONS.items():
        rows = source.reference(base)
        source.add_remaining("capture", rows.integers("id"), rows, source.mapped(mapped), prefix=f"{base}.")


def _blobs(source: Source, owners: dict[str, Owners]) -> Iterator[tuple[str, pa.Table]]:
    """Packed structures that newer writers attach to events: kept as bytes, with the id of their schema."""
    for rows in source.facts("blob_event"):
        events = rows.integers("event_id")
        is_free = pa.array(np.ones(len(rows), bool))
        for owner, of_table in owners.items():
            ids = of_table.rows(events)
            # As an argument, it is kept once where rows of several tables have its event.
            chosen = pc.and_(is_free, ids.is_valid())
            is_free = pc.and_(is_free, ids.is_null())
            mapped = source.mapped(("id", "nid", "pid", "event_id"))
            source.add_remaining(owner, ids.filter(chosen), rows.where(chosen), mapped, prefix="blob_event.")
        orphans = pc.sum(is_free).as_py()
        if orphans:
            source.problems.add(
                "orphan_blob", rows.place, "row rejected: no loaded row has its event", orphans
            )
        yield "event_stats", source.stats.take()


def _count_orphans(source: Source, owners: dict[str, Owners]) -> None:
    """Count the events that no loaded row has: nothing else says when they happened."""
    events = source.process.count("event")
    if not events:
        return
    orphans = events - count_distinct(owners.values())
    if orphans:
        detail = "row rejected: no loaded row refers to the event"
        source.problems.add("orphan_event", "rocpd_event", detail, orphans)
