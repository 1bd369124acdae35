"""The messages of an HLO file, as far as tracewh reads them, with the field numbers of XLA.

`shape` stays bytes: a module has few distinct shapes and many instructions, so each distinct one is decoded
once. Payload fields stay bytes because only their presence is looked at.
"""

from __future__ import annotations

from tracewh.ingest.protobuf_messages import Declaration, message_classes

_DECLARATION: Declaration = {
    "HloProto": {
        "hlo_module": (1, "HloModuleProto"),
        "buffer_assignment": (3, "BufferAssignmentProto"),
    },
    "HloModuleProto": {
        "name": (1, "bytes"),
        "entry_computation_name": (2, "bytes"),
        "computations": (3, "repeated HloComputationProto"),
        "id": (5, "int64"),
        "entry_computation_id": (6, "int64"),
        "schedule": (7, "HloScheduleProto"),
        "device_assignment": (15, "DeviceAssignmentProto"),
        "stack_frame_index": (17, "StackFrameIndexProto"),
        "payloads": (22, "repeated bytes"),
    },
    "HloScheduleProto": {"sequences": (1, "repeated SequenceEntry")},
    "SequenceEntry": {"key": (1, "int64"), "value": (2, "InstructionSequence")},
    "InstructionSequence": {"instruction_ids": (1, "repeated int64")},
    "DeviceAssignmentProto": {"replica_count": (1, "int32"), "computation_count": (2, "int32")},
    "StackFrameIndexProto": {
        "file_names": (1, "repeated bytes"),
        "file_locations": (3, "repeated FileLocation"),
        "stack_frames": (4, "repeated StackFrame"),
    },
    "FileLocation": {"file_name_id": (1, "int32"), "line": (3, "int32")},
    "StackFrame": {"file_location_id": (1, "int32")},
    "HloComputationProto": {
        "name": (1, "bytes"),
        "instructions": (2, "repeated HloInstructionProto"),
        "id": (5, "int64"),
        "root_id": (6, "int64"),
        "is_fusion_computation": (7, "bool"),
        "execution_thread": (8, "bytes"),
    },
    "HloInstructionProto": {
        "name": (1, "bytes"),
        "opcode": (2, "bytes"),
        "shape": (3, "bytes"),
        "metadata": (7, "OpMetadata"),
        "fusion_kind": (11, "bytes"),
        "channel_id": (26, "int64"),
        "custom_call_target": (28, "bytes"),
        "id": (35, "int64"),
        "operand_ids": (36, "repeated int64"),
        "called_computation_ids": (38, "repeated int64"),
        "backend_config": (43, "bytes"),
        "backend_config_payload": (99, "bytes"),
    },
    "OpMetadata": {
        "op_name": (2, "bytes"),
        "source_file": (3, "bytes"),
        "source_line": (4, "int32"),
        "stack_frame_id": (15, "int32"),
        "payload": (20, "bytes"),
    },
    "ShapeProto": {
        "element_type": (2, "int32"),
        "dimensions": (3, "repeated int64"),
        "tuple_shapes": (4, "repeated ShapeProto"),
        "layout": (5, "LayoutProto"),
        "is_dynamic_dimension": (6, "repeated bool"),
    },
    "LayoutProto": {
        "minor_to_major": (1, "repeated int64"),
        "tiles": (6, "repeated TileProto"),
        "element_size_in_bits": (7, "int64"),
        "memory_space": (8, "int64"),
    },
    "TileProto": {"dimensions": (1, "repeated int64")},
    "BufferAssignmentProto": {"buffer_allocations": (3, "repeated BufferAllocationProto")},
    "BufferAllocationProto": {
        "index": (1, "int64"),
        "size": (2, "int64"),
        "is_thread_local": (3, "bool"),
        "is_entry_computation_parameter": (5, "bool"),
        "parameter_number": (6, "int64"),
        "maybe_live_out": (7, "bool"),
        "color": (8, "int64"),
        "is_constant": (12, "bool"),
    },
}

_CLASSES = message_classes("tracewh.hlo", _DECLARATION)
HloProto = _CLASSES["HloProto"]
HloModuleProto = _CLASSES["HloModuleProto"]
ShapeProto = _CLASSES["ShapeProto"]
