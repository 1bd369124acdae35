"""Says where an XSpace that protobuf refuses breaks: protobuf itself tells neither place nor reason."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from google.protobuf.message import DecodeError

from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.xspace_fields import MAX_DEPTH, Broken, Field, walk
from tracewh.ingest.xspace_messages import MESSAGES
from tracewh.ingest.xspace_wire import DELIMITED

# Which fields hold messages, and what those are called in errors; the value of a map's entry needs no name.
_CHILDREN = {
    "XSpace": {1: ("XPlane", "plane")},
    "XPlane": {
        3: ("XLine", "line"),
        4: ("EventMetadataEntry", "event metadata"),
        5: ("StatMetadataEntry", "stat metadata"),
        6: ("XStat", "stat"),
    },
    "XLine": {4: ("XEvent", "event")},
    "XEvent": {4: ("XStat", "stat")},
    "EventMetadataEntry": {2: ("XEventMetadata", "")},
    "XEventMetadata": {5: ("XStat", "stat")},
    "StatMetadataEntry": {2: ("XStatMetadata", "")},
}
_TEXT_FIELDS = (2, 3, 4)
_EVENTS = 4
# Protobuf is not asked whether these are whole: they may be larger than it takes.
_LARGE = ("XPlane", "XLine")
# The best last; looked for among the first fields.
_NAME_FIELDS = {"XPlane": (2,), "XLine": (2, 11)}
_NAME_BYTES = 80
_MAX_FIELDS_BEFORE_NAME = 1000


@dataclass(frozen=True)
class Whole:
    """What of an XSpace is known to be whole: its fields before that at byte `end`, and all lines if `lines`.

    `events` of them are before that field in its line, where it is a field of a line.
    """

    end: int = 0
    events: int | None = None
    lines: bool = False


@dataclass(frozen=True)
class _Damage:
    """The `labels` of the messages that hold it, the outermost first, and the words for it.

    `error` is there where it is the XSpace itself that breaks, and not a message inside.
    """

    labels: tuple[str, ...]
    words: str
    error: Broken | None = None


def unreadable(place: str, data: memoryview | bytes, whole: Whole = Whole()) -> UnreadableFile:
    """The error for the serialized XSpace `data`, of which it names the first damage outside of `whole`."""
    return UnreadableFile(f"{place}: {_described(data, whole)}. Copy the file again, or profile again.")


def _described(data: memoryview | bytes, whole: Whole) -> str:
    damage = _Search(data, whole).find("XSpace", 0, len(data), MAX_DEPTH)
    if damage is None:
        return "not an XSpace that protobuf reads"
    labels, error = ", ".join(damage.labels), damage.error
    if error is None:
        return f"{labels}: {damage.words}"
    if not _begins_as_space(data):
        return f"not an XSpace: {damage.words}"
    if not error.missing:
        return damage.words
    inside = f", inside {labels}" if labels else ""
    missing = f": {error.missing:,} bytes are missing" if error.field else ""
    return f"truncated at byte {len(data)}{inside}{missing}"


class _Search:
    """Looks for damage in `data`, outside of what is `whole`."""

    def __init__(self, data: memoryview | bytes, whole: Whole) -> None:
        self._data, self._whole = data, whole

    def find(self, message: str, start: int, end: int, depth: int) -> _Damage | None:
        """The first damage in the message in data[start:end]; None where there is none."""
        seen: Counter[int] = Counter()
        if message == "XLine" and self._whole.events is not None and start < self._whole.end < end:
            # A line may have millions of events.
            start, seen[_EVENTS] = self._whole.end, self._whole.events
        try:
            for field in walk(self._data, start, end, depth):
                child = _child(message, field)
                if child is not None and self._may_break(child[0], field):
                    damage = self.find(child[0], field.start, field.end, depth - 1)
                    if damage is None and child[0] not in _LARGE:
                        damage = _Damage((), f"damaged between bytes {field.start} and {field.end}")
                    if damage is not None:
                        label = _label(self._data, child, field, seen[field.number])
                        return _Damage(label + damage.labels, damage.words)
                seen[field.number] += child is not None
        except Broken as error:
            labels = self._labels_of_cut(message, error, seen, depth)
            return _Damage(labels, f"damaged at byte {error.offset}: {error}", error)
        return None

    def _may_break(self, message: str, field: Field) -> bool:
        if field.end <= self._whole.end or (message == "XLine" and self._whole.lines):
            return False
        if message in _LARGE:
            return True
        try:
            MESSAGES[message].FromString(bytes(self._data[field.start : field.end]))
        except DecodeError:
            return True
        return False

    def _labels_of_cut(self, message: str, error: Broken, seen: Counter[int], depth: int) -> tuple[str, ...]:
        """Labels of the field that goes on after the end of `message`, and of a line in it that does too."""
        field = error.field
        child = None if field is None else _child(message, field)
        if field is None or child is None:
            return ()
        field = replace(field, end=field.end - error.missing)
        label = _label(self._data, child, field, seen[field.number])
        if child[0] == "XPlane":
            inner_seen: Counter[int] = Counter()
            try:
                for inner in walk(self._data, field.start, field.end, depth - 1):
                    inner_seen[inner.number] += _child(child[0], inner) is not None
            except Broken as inner_error:
                return label + self._labels_of_cut(child[0], inner_error, inner_seen, depth - 1)
        return label


def _child(message: str, field: Field) -> tuple[str, str] | None:
    """Type and name in errors of the message that the field holds."""
    return _CHILDREN.get(message, {}).get(field.number) if field.wire_type == DELIMITED else None


def _label(data: memoryview | bytes, child: tuple[str, str], field: Field, position: int) -> tuple[str, ...]:
    """What to call the child in an error: a plane or line by its name, as far as it can be read."""
    message, word = child
    if not word:
        return ()
    found: dict[int, str] = {}
    names = _NAME_FIELDS.get(message, ())
    try:
        for count, inner in enumerate(walk(data, field.start, field.end)):
            if not names or count > _MAX_FIELDS_BEFORE_NAME:
                break
            if inner.wire_type == DELIMITED and inner.number in names and inner.end > inner.start:
                text = bytes(data[inner.start : min(inner.end, inner.start + _NAME_BYTES)])
                found[inner.number] = repr(text.decode("utf-8", "replace"))
    except Broken:
        pass
    return (f"{word} {found[max(found)] if found else position}",)


def _begins_as_space(data: memoryview | bytes) -> bool:
    """Whether the first field, whole or not, is one that an XSpace has."""
    try:
        first = next(walk(data, 0, len(data)), None)
    except Broken as error:
        first = error.field
    return (
        first is not None
        and first.wire_type == DELIMITED
        and first.number in (*_CHILDREN["XSpace"], *_TEXT_FIELDS)
    )
