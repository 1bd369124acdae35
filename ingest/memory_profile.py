"""Device memory profiles of JAX: what is live, and which Python stack allocated it.

`jax.profiler.save_device_memory_profile` writes a pprof profile: samples with the values `allocations` and
`space`, the labels `kind` and `device`, and a stack, innermost frame first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from google.protobuf.message import DecodeError

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.protobuf_messages import Declaration, message_classes
from tracewh.ingest.storable_text import storable

READER_VERSION = 1
_MAX_FRAMES = 2_000_000

# Field numbers of pprof's profile.proto. Texts are indexes into string_table.
_DECLARATION: Declaration = {
    "Profile": {
        "sample_type": (1, "repeated ValueType"),
        "sample": (2, "repeated Sample"),
        "mapping": (3, "repeated bytes"),
        "location": (4, "repeated Location"),
        "function": (5, "repeated Function"),
        "string_table": (6, "repeated bytes"),
    },
    "ValueType": {"type": (1, "int64"), "unit": (2, "int64")},
    "Sample": {
        "location_id": (1, "repeated uint64"),
        "value": (2, "repeated int64"),
        "label": (3, "repeated Label"),
    },
    "Label": {"key": (1, "int64"), "str": (2, "int64"), "num": (3, "int64")},
    "Location": {"id": (1, "uint64"), "address": (3, "uint64"), "line": (4, "repeated Line")},
    "Line": {"function_id": (1, "uint64"), "line": (2, "int64")},
    "Function": {
        "id": (1, "uint64"),
        "name": (2, "int64"),
        "filename": (4, "int64"),
        "start_line": (5, "int64"),
    },
}
_MESSAGES = message_classes("tracewh.pprof", _DECLARATION)


@dataclass(frozen=True)
class Sample:
    """What is live of one kind on one device and was allocated by one stack; None where no label tells.

    `stack_id` is an index into the stacks of the profile.
    """

    device_label: str | None
    kind: str | None
    allocation_count: int
    size_bytes: int
    stack_id: int


@dataclass(frozen=True)
class Frame:
    """A line of a function that was being called; `address` where the profile has one, as signed bits."""

    function_name: str | None
    source_file: str | None
    source_line: int | None
    function_line: int | None
    address: int | None


@dataclass
class MemoryProfile:
    """The samples in the order of the file, and each distinct stack once, innermost frame first."""

    samples: list[Sample] = field(default_factory=list)
    stacks: list[list[Frame]] = field(default_factory=list)


def read(data: bytes, place: str, problems: ProblemCounter) -> MemoryProfile:
    """Read a device memory profile.

    Raises UnreadableFile where the bytes are no pprof profile, or refer to what is not there. A pprof profile
    of something else has no samples here, and is a problem.
    """
    try:
        message = _MESSAGES["Profile"].FromString(data)
    except DecodeError as error:
        raise _damaged(place, f"not a pprof profile ({error})") from error
    if not message.string_table:
        raise _damaged(place, "not a pprof profile (it has no texts)")
    return _Reader(message, place, problems).read()


class _Reader:
    def __init__(self, message: Any, place: str, problems: ProblemCounter) -> None:
        self._message, self._place, self._problems = message, place, problems
        self._texts = [storable(text.decode("utf-8", "surrogateescape")) for text in message.string_table]

    def read(self) -> MemoryProfile:
        types = [(self._text(item.type), self._text(item.unit)) for item in self._message.sample_type]
        wanted = (("allocations", "count"), ("space", "bytes"))
        if not set(wanted) <= set(types):
            found = ", ".join(f"{name} in {unit}" for name, unit in types) or "nothing"
            self._problems.add("no_memory_profile", self._place, f"it counts {found}; left out")
            return MemoryProfile()
        if extra := len(types) - len(wanted):
            self._problems.add("unread_values", self._place, "beside allocations and space", extra)
        if self._message.mapping:
            detail = "binaries that addresses lie in are left out"
            self._problems.add("unread_mapping", self._place, detail, len(self._message.mapping))
        profile, stack_ids = MemoryProfile(), dict[tuple[int, ...], int]()
        frames = self._frames_by_location()
        frame_count = 0
        for index, sample in enumerate(self._message.sample):
            if len(sample.value) != len(types):
                raise self._inconsistent(f"sample {index} has {len(sample.value)} values, not {len(types)}")
            locations = tuple(sample.location_id)
            if locations not in stack_ids:
                parts = self._stack(locations, frames, index)
                # A few bytes can spell more frames than fit into memory.
                frame_count += sum(map(len, parts))
                if frame_count > _MAX_FRAMES:
                    raise self._inconsistent(f"its stacks have more than {_MAX_FRAMES:,} frames")
                stack_ids[locations] = len(profile.stacks)
                profile.stacks.append(list(chain.from_iterable(parts)))
            labels = self._labels(sample)
            count, size = (sample.value[types.index(name)] for name in wanted)
            profile.samples.append(
                Sample(labels.get("device"), labels.get("kind"), count, size, stack_ids[locations])
            )
        return profile

    def _labels(self, sample: Any) -> dict[str, str | None]:
        labels = {}
        for label in sample.label:
            key = self._text(label.key)
            if key not in ("device", "kind") or not label.str:
                detail = f"{self._text(label.str) or label.num} is left out"
                self._problems.add("unread_label", f"{self._place}, label {key[:40]}", detail[:100])
            else:
                labels[key] = self._text(label.str) or None
        return labels

    def _stack(
        self, locations: Sequence[int], frames: dict[int, list[Frame]], sample: int
    ) -> list[list[Frame]]:
        missing = next((location for location in locations if location not in frames), None)
        if missing is not None:
            raise self._inconsistent(f"sample {sample} refers to location {missing}, which is not there")
        return [frames[location] for location in locations]

    def _frames_by_location(self) -> dict[int, list[Frame]]:
        functions = {item.id: item for item in self._message.function}
        frames: dict[int, list[Frame]] = {}
        for location in self._message.location:
            address = location.address - (1 << 64) if location.address >= 1 << 63 else location.address
            lines = []
            for line in location.line:
                function = functions.get(line.function_id)
                if function is None:
                    raise self._inconsistent(
                        f"location {location.id} refers to function {line.function_id}, which is not there"
                    )
                lines.append(
                    Frame(
                        self._text(function.name) or None,
                        self._text(function.filename) or None,
                        line.line or None,
                        function.start_line or None,
                        address or None,
                    )
                )
            frames[location.id] = lines or [Frame(None, None, None, None, address or None)]
        return frames

    def _text(self, index: int) -> str:
        if not 0 <= index < len(self._texts):
            raise self._inconsistent(f"it refers to text {index} of {len(self._texts)}")
        return self._texts[index]

    def _inconsistent(self, reason: str) -> UnreadableFile:
        return _damaged(self._place, f"damaged pprof profile: {reason}")


def _damaged(place: str, reason: str) -> UnreadableFile:
    return UnreadableFile(f"{place}: {reason}. Copy the file again, save the profile again, or remove it.")
