"""Operations on the GPUs of an RPD trace as dispatches, copies, and what is neither."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.rocm_rows import Rows
from tracewh.ingest.rpd_copies import copy_columns, is_fill, kinds_of
from tracewh.ingest.rpd_file import Positions, RpdFile, Texts, pointers, without_nothing
from tracewh.ingest.rpd_kernels import WORK_ITEM_LAUNCHES, counts_work_items, dispatch_columns, kernel_symbols
from tracewh.ingest.rpd_links import Details, Links, details
from tracewh.ingest.rpd_places import Strides

# By the type of an operation, which each of the tracer's sources spells in its own way.
_KERNEL = re.compile("kernel|task", re.IGNORECASE)
_COPY = re.compile("copy|memcpy|(host|device)_?to_?(host|device)", re.IGNORECASE)
_NO_WORK = re.compile("barrier|marker|sync|kfd|page|queue", re.IGNORECASE)
_USED = {"id", "gpuId", "queueId", "start", "end", "description_id", "opType_id"}


@dataclass(frozen=True)
class Operations:
    """Fact tables by their base names, each with the positions of its operations, and what they refer to.

    `launches` and `copies` are the details of calls, which an operation has or none does.
    """

    facts: dict[str, tuple[pa.Table, Positions]]
    kernel_symbols: pa.Table
    launches: Details
    copies: Details
    grid_unit: str


def read_operations(
    file: RpdFile, calls: Rows, ops: Rows, links: Links, strides: Strides, first_event: int
) -> Operations:
    """Sort the operations by what they are; each becomes one row of one table, in the file's order.

    The event of an operation is its position, counted from `first_event`.
    """
    texts = file.texts
    types, descriptions = (file.name_positions(ops, f"{column}_id") for column in ("opType", "description"))
    call_names = texts.positions_of(calls.integers("apiName_id"))
    call_names_of_ops = call_names.take(pointers(links.call_of_op))
    is_kernel = texts.test(types, lambda text: _KERNEL.search(text) is not None)
    is_copy = texts.test(types, lambda text: _COPY.search(text) is not None or is_fill(text)) & ~is_kernel
    launches = details(file, "rocpd_kernelapi", calls, links, is_kernel, descriptions)
    copies = details(file, "rocpd_copyapi", calls, links, is_copy)
    is_sdk = counts_work_items(texts, call_names, types)
    facts = {}
    for base, flags in (
        ("kernel_dispatch", is_kernel),
        ("memory_copy", is_copy),
        ("hip_event", ~is_kernel & ~is_copy),
    ):
        where = np.flatnonzero(flags)
        chosen = pa.array(where)
        own = {
            "types": types.take(chosen),
            "descriptions": descriptions.take(chosen),
            "call_names": call_names_of_ops.take(chosen),
        }
        columns = _common_columns(ops, calls, links, where, first_event)
        if base == "kernel_dispatch":
            columns |= dispatch_columns(file, launches.of(where), is_sdk=is_sdk, **own)
        elif base == "memory_copy":
            kinds, gpus = kinds_of(texts, call_names), columns.pop("agent_id")
            columns |= copy_columns(file, copies.of(where), gpus=gpus, kinds=kinds, strides=strides, **own)
        else:
            columns["event.category_id"] = own["types"]
            # The description, if any, says which of its type it is.
            columns["name_id"] = pc.coalesce(texts.named(own["descriptions"]), own["types"])
            _count_unknown(ops, own["types"], texts)
        facts[base] = (pa.table(columns), where)
    symbols = kernel_symbols(texts, facts["kernel_dispatch"][0].column("kernel_id").combine_chunks())
    unit = "work-items" if is_sdk else f"workgroups; work-items of {' and '.join(WORK_ITEM_LAUNCHES)}"
    return Operations(facts, symbols, launches, copies, unit)


def _common_columns(
    ops: Rows, calls: Rows, links: Links, where: Positions, first_event: int
) -> dict[str, pa.Array]:
    own = Rows(ops.place, ops.table.take(pa.array(where)), ops.problems)
    columns = {
        "id": own.integers("id"),
        "agent_id": own.integers("gpuId"),
        "queue_id": own.integers("queueId"),
        "start": own.integers("start"),
        "end": own.integers("end"),
        "event_id": pa.array(where + first_event),
        "event.stack_id": calls.integers("id").take(pointers(links.call_of_op[where])),
    }
    for name in own.table.column_names:
        if name not in _USED:
            columns[name] = without_nothing(own.table.column(name).combine_chunks())
    return columns


def _count_unknown(ops: Rows, types: pa.Array, texts: Texts) -> None:
    """Count the operations that may be work, of which nothing says so."""
    unknown = np.flatnonzero(~texts.test(types, lambda text: _NO_WORK.search(text) is not None))
    if len(unknown):
        example = texts.at(types.take(pa.array(unknown[:1])))[0].as_py()
        detail = f"kept as no work: tracewh does not know the type {example!r}"[:200]
        ops.problems.add("unknown_operation", f"{ops.place}.opType_id", detail, len(unknown))
