"""Dispatches of an RPD trace: their kernels, and the sizes of their launches in work-items."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.rocm_rows import INTEGER, Rows
from tracewh.ingest.rpd_file import RpdFile, Texts, without_nothing
from tracewh.ingest.rpd_places import stream_ids

_NULL = pa.scalar(None, INTEGER)
#: These calls take the size of the grid in work-items, all others in workgroups.
WORK_ITEM_LAUNCHES = ("hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel")
# On rocprofiler-sdk the tracer has the sizes from the dispatches, which count work-items. What tells of it is
# the name of its own callback among the calls; before there was one, the names of the copies.
_SDK_CALL = "RocprofDataSource::"
_SDK_OPERATION = "MEMORY_COPY_"
_LARGEST_SIZE = 2**31 - 1
_USED = {
    "api_ptr_id",
    "stream",
    "groupSegmentSize",
    "privateSegmentSize",
    "kernelName_id",
    *(f"{shape}{axis}" for shape in ("grid", "workgroup") for axis in "XYZ"),
}


def counts_work_items(texts: Texts, call_names: pa.Array, operation_types: pa.Array) -> bool:
    """Whether the file counts the grids of all launches in work-items; the names are positions of texts."""
    return bool(
        texts.test(call_names, lambda name: name.startswith(_SDK_CALL)).any()
        or texts.test(operation_types, lambda name: name.startswith(_SDK_OPERATION)).any()
    )


def dispatch_columns(
    file: RpdFile,
    launches: Rows,
    descriptions: pa.Array,
    types: pa.Array,
    call_names: pa.Array,
    is_sdk: bool,
) -> dict[str, pa.Array]:
    """Return what dispatches have beyond the columns of every operation.

    `launches` has of each dispatch its row of rocpd_kernelapi, or nulls. `descriptions`, `types` and
    `call_names` are positions of texts; `is_sdk` is what `counts_work_items` says of the file.
    """
    texts = file.texts
    launched = texts.positions_of(launches.integers("kernelName_id"))
    takes_work_items = pa.array(texts.test(call_names, lambda name: is_sdk or name in WORK_ITEM_LAUNCHES))
    usual = pa.scalar(texts.position("KERNEL_DISPATCH"), INTEGER)
    is_usual = texts.test(types, lambda name: name == "KernelExecution")
    columns = {
        "event.category_id": pc.if_else(pa.array(is_usual), usual, types),
        # A kernel without a name of its own is called what its launch says, or else by its type.
        "kernel_id": pc.coalesce(texts.named(descriptions), texts.named(launched), types),
        "stream_id": stream_ids(launches),
    }
    for memory in ("group", "private"):
        sizes = launches.integers(f"{memory}SegmentSize")
        # Only the hardware's dispatch tells these; from a call the tracer knows what it asked for beyond.
        columns[f"{memory}_segment_size"] = sizes if is_sdk else without_nothing(sizes)
    for axis in "xyz":
        grid, group = (_sizes(launches, f"{shape}{axis.upper()}") for shape in ("grid", "workgroup"))
        columns[f"workgroup_size_{axis}"] = group
        columns[f"grid_size_{axis}"] = pc.if_else(takes_work_items, grid, pc.multiply(grid, group))
    for name in launches.table.column_names:
        if name not in _USED:
            columns[name] = without_nothing(launches.table.column(name).combine_chunks())
    return columns


def kernel_symbols(texts: Texts, kernel_ids: pa.Array) -> pa.Table:
    """Return the table `info_kernel_symbol` for these kernels, whose ids are positions of their names."""
    distinct = kernel_ids.unique().drop_null()
    return pa.table({"id": distinct, "display_name": texts.at(distinct)})


def _sizes(launches: Rows, column: str) -> pa.Array:
    """Sizes that a launch can have; null for 0, which says that it is not known."""
    sizes = launches.integers(column)
    is_wrong = pc.fill_null(pc.or_(pc.less(sizes, 0), pc.greater(sizes, _LARGEST_SIZE)), False)
    wrong = pc.sum(is_wrong).as_py()
    if wrong:
        detail = "stored as null: a launch has no such size"
        launches.problems.add("size_out_of_range", f"{launches.place}.{column}", detail, wrong)
    return pc.if_else(pc.or_(is_wrong, pc.equal(sizes, 0)), _NULL, sizes)
