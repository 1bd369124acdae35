"""The columns of what events share: one row of ops, launch_details or call_details per combination."""

import pyarrow as pa

OP_TYPES = {
    "program_id": pa.int64(),
    "hlo_op_name_id": pa.int64(),
    "hlo_module_name_id": pa.int64(),
    "op_name_id": pa.int64(),
    "tf_op_name_id": pa.int64(),
    "annotation_name_id": pa.int64(),
    "nvtx_range_name_id": pa.int64(),
    "unique_hlo_op_id": pa.int64(),
    "graph_node_index": pa.int64(),
    "graph_kernel_name_id": pa.int64(),
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
    "thread_id": pa.int64(),
    "kernel_symbol_id": pa.int64(),
    "replay_pass": pa.int64(),
    "occupancy_ratio": pa.float64(),
    "occupancy_min_grid_size": pa.int64(),
    "occupancy_suggested_block_size": pa.int64(),
    "copy_kind": pa.string(),
    "copy_bytes": pa.int64(),
    "source_device_index": pa.int64(),
    "target_device_index": pa.int64(),
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
