"""Protobuf message classes from a plain declaration of field names, numbers and types.

Only the fields that tracewh reads are declared; protobuf keeps the rest as unknown fields. Text is declared
as bytes: files from the field hold names that are not UTF-8, and one bad name must not lose a capture.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto
_SCALARS = {
    "int32": _Field.TYPE_INT32,
    "int64": _Field.TYPE_INT64,
    "uint64": _Field.TYPE_UINT64,
    "double": _Field.TYPE_DOUBLE,
    "bool": _Field.TYPE_BOOL,
    "bytes": _Field.TYPE_BYTES,
}

Declaration = dict[str, dict[str, tuple[int, str]]]


def message_classes(package: str, declaration: Declaration) -> dict[str, Any]:
    """Return a message class per entry of `declaration`.

    `declaration[message][field] = (number, type)`, where type is a scalar (`int64`, `bytes`, ...), another
    message of the declaration, or either with `repeated ` in front. Every optional field has presence. Fields
    with `oneof ` in front exclude each other: the last one in the bytes holds.
    """
    file = descriptor_pb2.FileDescriptorProto(name=f"{package}.proto", package=package, syntax="proto2")
    for message_name, fields in declaration.items():
        message = file.message_type.add(name=message_name)
        for field_name, (number, type_name) in fields.items():
            repeated = type_name.startswith("repeated ")
            base = type_name.removeprefix("repeated ").removeprefix("oneof ")
            field = message.field.add(name=field_name, number=number)
            if type_name.startswith("oneof "):
                if not message.oneof_decl:
                    message.oneof_decl.add(name="value")
                field.oneof_index = 0
            field.label = _Field.LABEL_REPEATED if repeated else _Field.LABEL_OPTIONAL
            if base in _SCALARS:
                field.type = _SCALARS[base]
            else:
                field.type = _Field.TYPE_MESSAGE
                field.type_name = f".{package}.{base}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{package}.{name}"))
        for name in declaration
    }
