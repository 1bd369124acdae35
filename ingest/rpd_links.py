"""Which call of an RPD trace started which operation, and which operation a call's details describe."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.rocm_rows import INTEGER, Rows
from tracewh.ingest.rpd_file import Flags, Positions, RpdFile, pointers
from tracewh.ingest.sqlite_tables import positions_in

# Ids of the tracers that wrote one file differ in their upper half.
_IDS_PER_TRACER = 2**32


@dataclass(frozen=True)
class Links:
    """Of each operation the one call that started it, -1 for none, and of each row its process.

    A process is a position in `processes`, the process ids of the file in order; where rows name none, the
    last of them is None.
    """

    processes: list[int | None]
    process_of_call: Positions
    process_of_op: Positions
    call_of_op: Positions


@dataclass(frozen=True)
class Details:
    """Rows that describe calls (`rocpd_kernelapi`, `rocpd_copyapi`), and of which operation each tells.

    `row_of_op` is a position in `rows`, `call_of_row` one of a call, -1 for none: each row is of one
    operation at most.
    """

    rows: Rows
    call_of_row: Positions
    row_of_op: Positions

    @property
    def of_no_op(self) -> Positions:
        """The rows that are of a call and of none of its operations."""
        is_used = np.zeros(len(self.rows), np.bool_)
        is_used[self.row_of_op[self.row_of_op >= 0]] = True
        return np.flatnonzero(~is_used & (self.call_of_row >= 0))

    def of(self, ops: Positions) -> Rows:
        """The rows of these operations; nulls for those without one."""
        return Rows(self.rows.place, self.rows.table.take(pointers(self.row_of_op[ops])), self.rows.problems)


def link(file: RpdFile, calls: Rows, ops: Rows) -> Links:
    """Tie operations to calls.

    Counted: links that lead nowhere, operations that several calls claim (`ambiguous_link`), which get no
    call, and operations that may be of any of several processes (`missing_process`).
    """
    process_ids = calls.integers("pid")
    distinct: list[int | None] = sorted(process_ids.drop_null().unique().to_pylist())
    unknown = len(distinct)
    found = pc.index_in(process_ids, value_set=pa.array(distinct, INTEGER))
    found = pc.if_else(process_ids.is_valid(), found, pa.scalar(unknown, found.type))
    process_of_call = np.asarray(found.cast(INTEGER))
    linked_calls, linked_ops = _pairs(file, calls, ops)
    links_of_op = np.bincount(linked_ops, minlength=len(ops))
    call_of_op = np.full(len(ops), -1, np.int64)
    call_of_op[linked_ops] = linked_calls
    is_ambiguous = links_of_op > 1
    call_of_op[is_ambiguous] = -1
    _count(file, ops, is_ambiguous, "ambiguous_link", "kept without a call: several claim it")
    process_of_op = np.full(len(ops), unknown, np.int64)
    if unknown == 1 and not (process_of_call == unknown).any():
        process_of_op[:] = 0
    process_of_op[linked_ops] = process_of_call[linked_calls]
    is_torn = np.zeros(len(ops), np.bool_)
    is_torn[linked_ops[process_of_call[linked_calls] != process_of_op[linked_ops]]] = True
    process_of_op[is_torn] = unknown
    is_homeless = process_of_op == unknown
    if unknown:
        _count(file, ops, is_homeless, "missing_process", "kept in a process of its own: no call tells which")
    if is_homeless.any() or (process_of_call == unknown).any() or not distinct:
        distinct.append(None)
    return Links(distinct, process_of_call, process_of_op, call_of_op)


def details(
    file: RpdFile, table: str, calls: Rows, links: Links, is_kind: Flags, name_of_op: pa.Array | None = None
) -> Details:
    """Read the details of calls, and find which of the operations of a kind each describes.

    A call's details describe its one operation of the kind. Of several they describe the one with the name
    that they tell (`kernelName_id`, where `name_of_op` is given): told of each, sizes would add up to too
    much. Details of no call are rejected and counted.
    """
    rows = file.read(table)
    found = file.find(rows.integers("api_ptr_id"), calls, "id", rows.place)
    call_of_row = np.asarray(pc.fill_null(found, -1))
    row_of_call = np.full(len(calls), -1, np.int64)
    row_of_call[call_of_row[call_of_row >= 0]] = np.flatnonzero(call_of_row >= 0)
    row_of_op = np.full(len(is_kind), -1, np.int64)
    candidates = np.flatnonzero(is_kind & (links.call_of_op >= 0))
    rows_of = row_of_call[links.call_of_op[candidates]]
    candidates, rows_of = candidates[rows_of >= 0], rows_of[rows_of >= 0]
    is_only = np.bincount(rows_of, minlength=len(rows))[rows_of] == 1
    if name_of_op is not None:
        named = file.name_positions(rows, "kernelName_id").take(pa.array(rows_of))
        has_name = pc.fill_null(pc.equal(named, name_of_op.take(pa.array(candidates))), False)
        is_named = np.asarray(has_name)
        is_only |= is_named & (np.bincount(rows_of[is_named], minlength=len(rows))[rows_of] == 1)
    row_of_op[candidates[is_only]] = rows_of[is_only]
    return Details(rows, call_of_row, row_of_op)


def _pairs(file: RpdFile, calls: Rows, ops: Rows) -> tuple[Positions, Positions]:
    """The links as positions of calls and operations, each pair once."""
    rows = file.read("rocpd_api_ops")
    call_ids, op_ids = rows.integers("api_id"), rows.integers("op_id")
    # Operations that no call starts are linked to call 0 of their tracer, which there is not.
    is_none = pc.equal(pc.bit_wise_and(call_ids, _IDS_PER_TRACER - 1), 0)
    is_none = pc.and_not(pc.fill_null(is_none, False), pc.is_in(call_ids, value_set=calls.integers("id")))
    call_ids, op_ids = (ids.filter(pc.invert(is_none)) for ids in (call_ids, op_ids))
    found = [positions_in(ids, among.integers("id")) for ids, among in ((call_ids, calls), (op_ids, ops))]
    is_whole = pc.and_(found[0].is_valid(), found[1].is_valid())
    dangling = len(is_whole) - pc.sum(is_whole.cast(INTEGER)).as_py() if len(is_whole) else 0
    if dangling:
        is_first = pc.index(is_whole, False).as_py()
        pair = f"call {call_ids[is_first]} and operation {op_ids[is_first]}"
        detail = f"row rejected: the file lacks an end of the link (first: {pair})"
        file.problems.add("dangling_reference", rows.place, detail, dangling)
    ends = [np.asarray(positions.filter(is_whole)) for positions in found]
    pairs = np.unique(np.stack(ends), axis=1)
    return pairs[0], pairs[1]


def _count(file: RpdFile, ops: Rows, flags: Flags, problem: str, detail: str) -> None:
    if flags.any():
        example = ops.integers("id").take(pointers(np.flatnonzero(flags)[:1]))[0]
        file.problems.add(problem, f"{ops.place}.id", f"{detail} (first: id {example})", int(flags.sum()))
