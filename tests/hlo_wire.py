"""HLO modules encoded by hand, with the field numbers of XLA and nothing of tracewh."""

from __future__ import annotations

from .xspace_oracle import varint

F32, TUPLE = 11, 13

Field = tuple[int, int | bytes | str]


def message(*fields: Field) -> bytes:
    """A message of fields in order: a number is a varint, bytes and text have their length in front."""
    out = bytearray()
    for number, value in fields:
        if isinstance(value, int):
            out += varint(number << 3) + varint(value % 2**64)
        else:
            data = value.encode() if isinstance(value, str) else value
            out += varint(number << 3 | 2) + varint(len(data)) + data
    return bytes(out)


def packed(*values: int) -> bytes:
    """The content of a packed repeated field of integers."""
    return b"".join(varint(value % 2**64) for value in values)


def array(*dimensions: int, element_type: int = F32) -> bytes:
    """A ShapeProto of an array."""
    return message((2, element_type), (3, packed(*dimensions)))


def tuple_of(*members: bytes) -> bytes:
    """A ShapeProto of a tuple."""
    return message((2, TUPLE), *((4, member) for member in members))


def instruction(
    number: int,
    opcode: str,
    *fields: Field,
    shape: bytes = b"",
    operands: tuple[int, ...] = (),
    called: tuple[int, ...] = (),
) -> bytes:
    """An HloInstructionProto with the id `number`."""
    return message(
        (1, f"{opcode}.{number}"),
        (2, opcode),
        (3, shape),
        (35, number),
        (36, packed(*operands)),
        (38, packed(*called)),
        *fields,
    )


def computation(number: int, *instructions: bytes, root: int = 0) -> bytes:
    """An HloComputationProto with the id `number`."""
    return message(
        (1, f"computation.{number}"), *((2, encoded) for encoded in instructions), (5, number), (6, root)
    )


def module(*computations: bytes, entry: int, devices: tuple[int, int] | None = None) -> bytes:
    """An HloModuleProto; `devices` are the replicas and partitions of its device assignment."""
    assignment = [] if devices is None else [(15, message((1, devices[0]), (2, devices[1])))]
    return message((1, "hand_made"), *((3, encoded) for encoded in computations), (6, entry), *assignment)


def listed(*groups: tuple[int, ...], number: int = 1) -> bytes:
    """A message with groups in the repeated field `number`."""
    return message(*((number, message((1, packed(*group)))) for group in groups))


def iota(count: int, size: int, dimensions: list[int], order: list[int]) -> bytes:
    """An IotaReplicaGroupListProto."""
    return message((1, count), (2, size), (3, packed(*dimensions)), (4, packed(*order)))


def mesh(sizes: list[int], *fields: Field) -> bytes:
    """A MeshProto of axes of the given sizes."""
    axes = [(1, message((1, f"axis{index}"), (2, size))) for index, size in enumerate(sizes)]
    return message(*axes, *fields)


def axis(index: int, part: tuple[int, int] | None = None) -> bytes:
    """An AxisRefProto; `part` is (product of the sizes before, size)."""
    return message((1, index), *([] if part is None else [(2, message((1, part[0]), (2, part[1])))]))


def mesh_groups(encoded_mesh: bytes, *axes: bytes) -> bytes:
    """A MeshAxesReplicaGroupListProto."""
    return message((1, encoded_mesh), *((2, encoded) for encoded in axes))


def transform(dimensions: list[int], order: list[int]) -> Field:
    """The device order of a MeshProto as a transposed iota."""
    return 3, message((1, packed(*dimensions)), (2, packed(*order)))
