"""What an XSpace decodes to: planes, lines and metadata as objects, events and stats as numpy columns.

Ids are not resolved here: metadata maps may come after the lines that use them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int64Array = npt.NDArray[np.int64]
Int32Array = npt.NDArray[np.int32]
Int8Array = npt.NDArray[np.int8]
Mask = npt.NDArray[np.bool_]

# What an XStat can hold. The numbers are those of its fields, 0 for none; the words are what is stored.
NONE, DOUBLE, UINT64, INT64, STRING, BYTES, REF, COMPRESSED = 0, 2, 3, 4, 5, 6, 7, 8
VALUE_TYPES = {
    NONE: "none",
    DOUBLE: "double",
    UINT64: "uint64",
    INT64: "int64",
    STRING: "string",
    BYTES: "bytes",
    REF: "ref",
    COMPRESSED: "compressed",
}


@dataclass
class Stats:
    """Stats of many owners as columns of one length, in the order of the file.

    `owner` is the position of the owner: of an event in its chunk, of an event metadata in its plane, 0 for a
    plane. `value_type` is one of the constants above. `value` holds the 64 bits of a number (of a double too)
    or of a reference, and for text and bytes the position in `blobs`.
    """

    owner: Int64Array
    stat_id: Int64Array
    value_type: Int8Array
    value: Int64Array
    blobs: pa.LargeBinaryArray

    def __len__(self) -> int:
        return len(self.owner)

    def blob(self, index: int) -> bytes:
        """The text or bytes of stat `index`."""
        value: bytes = self.blobs[int(self.value[index])].as_py()
        return value


@dataclass
class Chunk:
    """Consecutive events of one line as columns of one length.

    An event has either a time or a count: where `is_count`, `num_occurrences` holds it and `offset_ps` is 0.
    """

    metadata_id: Int64Array
    offset_ps: Int64Array
    duration_ps: Int64Array
    is_count: Mask
    num_occurrences: Int64Array
    stats: Stats

    def __len__(self) -> int:
        return len(self.metadata_id)


@dataclass
class Line:
    """One line without its events; `parts` says, to the decoder that made it, where they are."""

    id: int = 0
    display_id: int = 0
    name: bytes = b""
    display_name: bytes = b""
    timestamp_ns: int = 0
    duration_ps: int = 0
    event_count: int = 0
    parts: Sequence[object] = ()


@dataclass
class EventMetadata:
    """The event metadata of a plane, one per id; `stats` has the row of each as its owner."""

    ids: Int64Array
    names: list[bytes]
    display_names: list[bytes]
    stats: Stats
    metadata: dict[int, bytes] = field(default_factory=dict)
    child_ids: dict[int, list[int]] = field(default_factory=dict)


@dataclass
class Plane:
    """One plane without its own stats; `stat_parts` says, to the decoder that made it, where they are.

    `stat_names` and `stat_descriptions` are keyed by the id of the stat metadata.
    """

    id: int
    name: bytes
    lines: list[Line]
    event_metadata: EventMetadata
    stat_names: dict[int, bytes]
    stat_descriptions: dict[int, bytes]
    stat_parts: Sequence[object] = ()


Placed = dict[int, tuple[Int8Array, Int64Array]]
"""By column, those that have any stat: type and value of the stat of each owner, NONE and 0 without one."""


class Space(Protocol):
    """A decoded XSpace; events, and the stats of planes, are decoded when they are asked for."""

    planes: list[Plane]
    errors: list[bytes]
    warnings: list[bytes]
    hostnames: list[bytes]

    def chunks(self, lines: Iterable[Line]) -> Iterator[tuple[Line, Chunk]]:
        """The events of `lines`, in order. Raises UnreadableFile where they are damaged."""
        ...

    def stats(self, plane: Plane) -> Iterator[Stats]:
        """The stats of the plane itself, some at a time. Raises UnreadableFile where they are damaged."""
        ...

    def placed(self, stats: Stats, slot: Int8Array, columns: Sequence[int], count: int) -> Placed:
        """The stats of `count` owners by column; `slot` has that of each stat, 0 or less for none.

        `columns` are those that `slot` may have. Of several stats of one owner for a column, and an owner's
        stats follow each other, the last is taken; `slot` becomes 0 for the others.
        """
        ...


def double_values(value: Int64Array) -> npt.NDArray[np.float64]:
    """The doubles with the bits of `value`."""
    return value.view(np.float64)
