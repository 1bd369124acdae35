"""What events share, apart from them: one row of ops, launch_details or call_details per combination."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

OP_TYPES = {
    "program_id": pa.int64(),
    "hlo_op_name_id": pa.int64(),
    "hlo_module_name_id": pa.int64(),
    "op_name_id": pa.int64(),
    "tf_op_name_id": pa.int64(),
    "annotation_name_id": pa.int64(),
    "nvtx_range_name_id": pa.int64(),
    "unique_hlo_op_id": pa.int64(),
}
LAUNCH_DETAILS_TYPES = {
    "context_id": pa.int64(),
    "stream_id": pa.int64(),
    "queue_id": pa.int64(),
    "graph_id": pa.int64(),
    "details_name_id": pa.int64(),
    "registers_per_thread": pa.int64(),
    "accum_registers_per_thread": pa.int64(),
    "scalar_registers": pa.int64(),
    "static_shared_memory_bytes": pa.int64(),
    "dynamic_shared_memory_bytes": pa.int64(),
    "private_memory_bytes": pa.int64(),
    **{f"{shape}_{axis}": pa.int64() for shape in ("grid", "block") for axis in "xyz"},
    "occupancy_ratio": pa.float64(),
    "occupancy_min_grid_size": pa.int64(),
    "occupancy_suggested_block_size": pa.int64(),
    "copy_kind": pa.string(),
    "copy_bytes": pa.int64(),
}
CALL_DETAILS_TYPES = {
    "category": pa.string(),
    "native_device_id": pa.int64(),
    "context_id": pa.int64(),
    "graph_id": pa.int64(),
    "program_id": pa.int64(),
    "details_name_id": pa.int64(),
    "message_name_id": pa.int64(),
}


def split_shared(
    events: pa.Table, id_column: str, types: Mapping[str, pa.DataType]
) -> tuple[pa.Table, pa.Table]:
    """Return `events` with `id_column` in place of the columns that `types` names, and a table of those.

    Ids count from 0 in the order of first use. An event for which all those columns are null has none.
    """
    columns = [name for name in events.column_names if name in types]
    has_details = reduce(pc.or_, (events.column(name).is_valid() for name in columns))
    # Row numbers go along as a column, because a join back on the values would match no null.
    rows = events.select(columns).append_column("row", pa.array(np.arange(len(events))))
    groups = rows.filter(has_details).group_by(columns, use_threads=False).aggregate([("row", "list")])
    rows_of = groups.column("row_list").combine_chunks()
    details_ids = np.zeros(len(events), np.int64)
    details_ids[rows_of.flatten()] = pc.list_parent_indices(rows_of)
    return (
        events.drop_columns(columns).append_column(
            id_column, pa.array(details_ids, mask=~np.asarray(has_details))
        ),
        groups.select(columns).add_column(0, id_column, pa.array(np.arange(len(groups)))),
    )
