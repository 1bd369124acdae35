"""Reads a serialized HLO module, the program that a compiler made."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

from google.protobuf.message import DecodeError

from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.hlo_proto import HloModuleProto, HloProto

READER_VERSION = 4

# They number the compilations of a process.
_ID_FIELDS = ("id", "pjrt_id")


@dataclass(frozen=True)
class HloModule:
    """What was compiled.

    Modules that differ in their ids only have one `sha256`, as long as READER_VERSION stays.
    `proto` is an HloModuleProto without its ids, `buffer_assignment` a BufferAssignmentProto or None, and
    `proto_bytes` the size of the message that they came in.
    """

    name: str
    sha256: str
    proto_bytes: int
    proto: Any
    buffer_assignment: Any


@dataclass
class HloProgram:
    """A module as a process loaded it, from `place`; without an id where neither name nor module tell one."""

    program_id: int | None
    module: HloModule
    place: str


def read_program(data: bytes, program_id: int | None, place: str) -> HloProgram:
    """Read a serialized HloProto or HloModuleProto; `place` names it in errors.

    Without a `program_id`, the module's own id serves; on TPU that is another number. Raises UnreadableFile
    for bytes that are neither message or are damaged.
    """
    try:
        proto, buffer_assignment = _parse(data)
    except DecodeError as error:
        raise UnreadableFile(
            f"{place}: neither an HloProto nor an HloModuleProto, or damaged: {error}; "
            "copy the .hlo.pb or .xplane.pb again, or dump the module again"
        ) from error
    if program_id is None and proto.HasField("id"):
        program_id = proto.id
    for field in _ID_FIELDS:
        proto.ClearField(field)
    # A later reader may make other rows of the same content.
    digest = hashlib.sha256(b"%d " % READER_VERSION + proto.SerializeToString(deterministic=True))
    if buffer_assignment is not None:
        digest.update(buffer_assignment.SerializeToString(deterministic=True))
    name = proto.name.decode("utf-8", "replace")
    module = HloModule(name, digest.hexdigest(), len(data), proto, buffer_assignment)
    return HloProgram(program_id, module, place)


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
