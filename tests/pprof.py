"""pprof profiles by protobuf itself, with a description of the format of its own; texts are text here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_Field = descriptor_pb2.FieldDescriptorProto
# The messages of google/pprof's profile.proto; * is repeated.
_MESSAGES = {
    "Profile": (
        "*ValueType sample_type 1, *Sample sample 2, *Mapping mapping 3, *Location location 4, "
        "*Function function 5, *string string_table 6, int64 drop_frames 7, int64 keep_frames 8, "
        "int64 time_nanos 9, int64 duration_nanos 10, ValueType period_type 11, int64 period 12, "
        "*int64 comment 13"
    ),
    "ValueType": "int64 type 1, int64 unit 2",
    "Sample": "*uint64 location_id 1, *int64 value 2, *Label label 3",
    "Label": "int64 key 1, int64 str 2, int64 num 3, int64 num_unit 4",
    "Mapping": "uint64 id 1, int64 filename 5",
    "Location": "uint64 id 1, uint64 mapping_id 2, uint64 address 3, *Line line 4, bool is_folded 5",
    "Line": "uint64 function_id 1, int64 line 2, int64 column 3",
    "Function": "uint64 id 1, int64 name 2, int64 system_name 3, int64 filename 4, int64 start_line 5",
}
_SCALARS = {
    "int64": _Field.TYPE_INT64,
    "uint64": _Field.TYPE_UINT64,
    "bool": _Field.TYPE_BOOL,
    "string": _Field.TYPE_STRING,
}


def _profile_class() -> Any:
    file = descriptor_pb2.FileDescriptorProto(name="oracle.proto", package="oracle", syntax="proto3")
    for name, fields in _MESSAGES.items():
        message = file.message_type.add(name=name)
        for spelled in fields.split(", "):
            kind, field_name, number = spelled.split()
            field = message.field.add(name=field_name, number=int(number))
            field.label = _Field.LABEL_REPEATED if kind.startswith("*") else _Field.LABEL_OPTIONAL
            kind = kind.removeprefix("*")
            field.type = _SCALARS.get(kind, _Field.TYPE_MESSAGE)
            if kind not in _SCALARS:
                field.type_name = f".oracle.{kind}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("oracle.Profile"))


Profile = _profile_class()

Frame = tuple[str, str, int]
"""function, file, line"""


class ProfileBuilder:
    """Writes a profile; each sample is (values, labels, frames from the innermost)."""

    def __init__(
        self, types: Sequence[tuple[str, str]] = (("allocations", "count"), ("space", "bytes"))
    ) -> None:
        self.message = Profile(string_table=[""])
        self._functions: dict[tuple[str, str], int] = {}
        self._locations: dict[Frame, int] = {}
        for kind, unit in types:
            self.message.sample_type.add(type=self.text(kind), unit=self.text(unit))

    def text(self, text: str) -> int:
        """Index of a text."""
        if text not in self.message.string_table:
            self.message.string_table.append(text)
        return list(self.message.string_table).index(text)

    def sample(self, values: Sequence[int], labels: Mapping[str, str | int], frames: Sequence[Frame]) -> None:
        """Add a sample; labels that are numbers are written as such."""
        sample = self.message.sample.add(
            value=values, location_id=[self._location(frame) for frame in frames]
        )
        for key, value in labels.items():
            label = sample.label.add(key=self.text(key))
            if isinstance(value, int):
                label.num = value
            else:
                label.str = self.text(value)

    def serialize(self) -> bytes:
        """The bytes, not compressed."""
        data: bytes = self.message.SerializeToString()
        return data

    def _location(self, frame: Frame) -> int:
        if frame not in self._locations:
            self._locations[frame] = len(self._locations) + 1
            location = self.message.location.add(id=self._locations[frame])
            location.line.add(function_id=self._function(*frame[:2]), line=frame[2])
        return self._locations[frame]

    def _function(self, name: str, file: str) -> int:
        if (name, file) not in self._functions:
            self._functions[name, file] = len(self._functions) + 1
            self.message.function.add(
                id=self._functions[name, file], name=self.text(name), filename=self.text(file), start_line=1
            )
        return self._functions[name, file]


def samples_of(data: bytes) -> Counter[tuple[str | None, str | None, int, int, tuple[Frame, ...]]]:
    """The samples of a memory profile: device, kind, allocations, bytes and stack, each with how often."""
    message = Profile.FromString(data)
    texts = message.string_table
    functions = {item.id: item for item in message.function}
    locations = {
        item.id: [
            (texts[functions[line.function_id].name], texts[functions[line.function_id].filename], line.line)
            for line in item.line
        ]
        for item in message.location
    }
    types = [(texts[item.type], texts[item.unit]) for item in message.sample_type]
    assert types == [("allocations", "count"), ("space", "bytes")]
    found: Counter[tuple[str | None, str | None, int, int, tuple[Frame, ...]]] = Counter()
    for sample in message.sample:
        labels = {texts[label.key]: texts[label.str] for label in sample.label}
        stack = tuple(frame for number in sample.location_id for frame in locations[number])
        found[labels.get("device"), labels.get("kind"), sample.value[0], sample.value[1], stack] += 1
    return found
