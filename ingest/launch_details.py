"""What launches share, apart from the events: one row of launch_details per distinct combination."""

from __future__ import annotations

from functools import reduce

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

LAUNCH_DETAILS_TYPES = {
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


def split_launch_details(events: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return `events` with launch_details_id in place of columns of launch_details, and launch_details.

    Ids count from 0 in the order of first use. An event for which all those columns are null has none.
    """
    columns = [name for name in events.column_names if name in LAUNCH_DETAILS_TYPES]
    has_details = reduce(pc.or_, (events.column(name).is_valid() for name in columns))
    # Row numbers go along as a column, because a join back on the values would match no null.
    rows = events.select(columns).append_column("row", pa.array(np.arange(len(events))))
    groups = rows.filter(has_details).group_by(columns, use_threads=False).aggregate([("row", "list")])
    rows_of = groups.column("row_list").combine_chunks()
    details_ids = np.zeros(len(events), np.int64)
    details_ids[rows_of.flatten()] = pc.list_parent_indices(rows_of)
    return (
        events.drop_columns(columns).append_column(
            "launch_details_id", pa.array(details_ids, mask=~np.asarray(has_details))
        ),
        groups.select(columns).add_column(0, "launch_details_id", pa.array(np.arange(len(groups)))),
    )
