"""Reads a serialized HLO module, the program that a compiler made, as rows of the hlo_* tables.

Ids in the rows are the module's own; names are ids of the given interner.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from google.protobuf.message import DecodeError

from tracewh.ingest.capture import Interner, ProblemCounter, columns_table
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.hlo_proto import HloModuleProto, HloProto
from tracewh.ingest.hlo_rows import ModuleReader, buffer_rows

READER_VERSION = 1

_INT, _TEXT, _BOOL = pa.int64(), pa.string(), pa.bool_()

# The columns of the schema, less those that are the caller's: capture_id, artifact_id and program_id.
_MODULE_COLUMNS: dict[str, pa.DataType] = {
    "module_name": _TEXT,
    "entry_computation_id": _INT,
    "proto_bytes": _INT,
    "has_schedule": _BOOL,
    "has_buffer_assignment": _BOOL,
    "replica_count": _INT,
    "partition_count": _INT,
}
_COLUMNS: dict[str, dict[str, pa.DataType]] = {
    "hlo_computations": {
        "computation_id": _INT,
        "computation_name": _TEXT,
        "is_entry": _BOOL,
        "is_fusion": _BOOL,
        "root_instruction_id": _INT,
        "execution_thread": _TEXT,
    },
    "hlo_instructions": {
        "instruction_id": _INT,
        "computation_id": _INT,
        "position": _INT,
        "name_id": _INT,
        "opcode": _TEXT,
        "op_name_id": _INT,
        "shape": _TEXT,
        "element_type": _TEXT,
        "element_count": _INT,
        "shape_bytes": _INT,
        "is_root": _BOOL,
        "fusion_kind": _TEXT,
        "custom_call_target": _TEXT,
        "channel_id": _INT,
        "operand_count": _INT,
        "source_file": _TEXT,
        "source_line": _INT,
        "backend_config": _TEXT,
    },
    "hlo_operands": {"instruction_id": _INT, "operand_index": _INT, "operand_instruction_id": _INT},
    "hlo_calls": {"instruction_id": _INT, "call_index": _INT, "computation_id": _INT},
    "hlo_buffers": {
        "allocation_index": _INT,
        "allocation_kind": _TEXT,
        "bytes": _INT,
        "memory_space": _INT,
        "parameter_number": _INT,
        "is_live_out": _BOOL,
    },
}


@dataclass
class HloModule:
    """One module. `tables[table][column]` holds the values of the tables below hlo_modules.

    `program_id` is the caller's, else the id stored in the module (on TPU that is another number), else None.
    `proto_bytes` is the size of the serialized message. `entry_computation_id` is None where the module lacks
    the computation it names, `replica_count` and `partition_count` where it has no device assignment.
    """

    program_id: int | None
    module_name: str
    entry_computation_id: int | None
    proto_bytes: int
    has_schedule: bool
    has_buffer_assignment: bool
    replica_count: int | None
    partition_count: int | None
    tables: dict[str, dict[str, list[Any]]]


def read_module(
    data: bytes, program_id: int | None, names: Interner, problems: ProblemCounter, place: str
) -> HloModule:
    """Read a serialized HloProto or HloModuleProto.

    `place` names the file, and the event in it, for errors and problems. Raises UnreadableFile for bytes that
    are neither message or are damaged. A reference to something that the module does not hold is counted in
    `problems` and its row kept.
    """
    try:
        module, buffer_assignment = _parse(data)
        reader = ModuleReader(module, names, problems, place)
        rows = reader.rows()
    except DecodeError as error:
        raise UnreadableFile(
            f"{place}: neither an HloProto nor an HloModuleProto, or damaged: {error}; "
            "copy the .hlo.pb or .xplane.pb again, or dump the module again"
        ) from error
    if not module.computations:
        raise UnreadableFile(
            f"{place}: a message without computations, so it is no HLO module; "
            "remove it, or give the .hlo.pb of an XLA dump"
        )
    rows["hlo_buffers"] = [] if buffer_assignment is None else buffer_rows(buffer_assignment)
    devices = module.device_assignment if module.HasField("device_assignment") else None
    if program_id is None and module.HasField("id"):
        program_id = module.id
    return HloModule(
        program_id=program_id,
        module_name=reader.text(module.name),
        entry_computation_id=reader.entry_computation_id,
        proto_bytes=len(data),
        has_schedule=reader.has_schedule,
        has_buffer_assignment=buffer_assignment is not None,
        replica_count=devices.replica_count if devices is not None else None,
        partition_count=devices.computation_count if devices is not None else None,
        tables={
            table: {column: [row[index] for row in rows[table]] for index, column in enumerate(columns)}
            for table, columns in _COLUMNS.items()
        },
    )


def module_tables(modules: Iterable[tuple[HloModule, int]]) -> dict[str, pa.Table]:
    """Concatenate modules, each with its program id, into one Arrow table per HLO table of the schema.

    The tables have a `program_id` column; `capture_id`, and `artifact_id` of hlo_modules, are the caller's.
    """
    modules = list(modules)
    module_rows = [
        ({column: [getattr(module, column)] for column in _MODULE_COLUMNS}, program_id)
        for module, program_id in modules
    ]
    tables = {"hlo_modules": _concatenate(_MODULE_COLUMNS, module_rows)}
    for table, columns in _COLUMNS.items():
        tables[table] = _concatenate(
            columns, [(module.tables[table], program_id) for module, program_id in modules]
        )
    return tables


def _concatenate(columns: dict[str, pa.DataType], parts: list[tuple[dict[str, list[Any]], int]]) -> pa.Table:
    """One table of `parts`, each the columns of a module and its program id."""
    types = {"program_id": _INT, **columns}
    first_column = next(iter(columns))
    tables = [
        columns_table({"program_id": [program_id] * len(values[first_column]), **values}, types)
        for values, program_id in parts
    ]
    return pa.concat_tables(tables) if tables else pa.schema(types).empty_table()


def _parse(data: bytes) -> tuple[Any, Any]:
    """Return (HloModuleProto, BufferAssignmentProto or None).

    Field 1 of the one message is a module, of the other a module's name. A name read as a module has no
    name, entry name or computation: the tags of those fields are control characters.
    """
    try:
        proto = HloProto.FromString(data)
    except DecodeError:
        proto = HloProto()
    module = proto.hlo_module
    if module.name or module.entry_computation_name or module.computations:
        buffer_assignment = proto.buffer_assignment if proto.HasField("buffer_assignment") else None
    else:
        module, buffer_assignment = HloModuleProto.FromString(data), None
    if not module.computations:
        raise DecodeError("no computation in it")
    return module, buffer_assignment
