"""Splits an op_name, the name stack that JAX gives an operation, into its segments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

# Of the operations that one name joins. Compilers join a few; past that only what all share counts.
_MAX_MEMBERS = 64
_MAX_JOINED_SEGMENTS = 4096
_MAX_GROUP_DEPTH = 32

_Span = tuple[int, int]
_Path = tuple[_Span, ...]


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment of an op_name: a row of op_name_scopes, less its name_id.

    `transpose(jvp(layers))` has scope `layers` and transforms `transpose(jvp`. `member` says which operation
    of a joined name it belongs to, 0 for what all of them begin with; None for the name of one operation.
    """

    member: int | None
    position: int
    segment: str
    scope: str
    transforms: str
    is_last: bool


class _TooManyMembers(Exception):
    """A name joins more operations than a compiler joins."""


def split_op_name(op_name: str) -> list[Segment]:
    """Split an op_name at the slashes outside parentheses, outermost segment first.

    A compiler pass that merges operations joins their names as `a/b;c/d`, or as `a/(b/c:d/e)` behind what
    they share: the segments of each are told apart by `member`. Empty segments are left out. Any text is
    accepted; parentheses without a partner are ordinary characters.
    """
    closing, groups = _parentheses(op_name)
    try:
        paths = _paths(op_name, 0, len(op_name), closing, groups, 0)
    except _TooManyMembers:
        shared = _shared_start(op_name, closing, groups)
        return [_segment(op_name, closing, None, span, place, False) for place, span in enumerate(shared, 1)]
    if len(paths) < 2:
        return [segment for path in paths for segment in _segments(op_name, closing, None, path, 0)]
    texts = [[op_name[start:end] for start, end in path] for path in paths]
    shared_count = 0
    # The last segment of each stays its own: it is what the operation does.
    for column in zip(*(text[:-1] for text in texts), strict=False):
        if len(set(column)) > 1:
            break
        shared_count += 1
    found = [
        _segment(op_name, closing, 0, span, place, False)
        for place, span in enumerate(paths[0][:shared_count], 1)
    ]
    for member, path in enumerate(paths, 1):
        found += _segments(op_name, closing, member, path, shared_count)
    return found


def _segments(
    text: str, closing: dict[int, int], member: int | None, path: _Path, skipped: int
) -> list[Segment]:
    return [
        _segment(text, closing, member, span, place, place == len(path))
        for place, span in enumerate(path, 1)
        if place > skipped
    ]


def _segment(
    text: str, closing: dict[int, int], member: int | None, span: _Span, position: int, is_last: bool
) -> Segment:
    start, end = span
    transforms, scope = _unwrap(text, start, end, closing)
    return Segment(member, position, text[start:end], scope, transforms, is_last)


def _parentheses(text: str) -> tuple[dict[int, int], set[int]]:
    """Return the closing position of each opening parenthesis, and the openings of groups.

    A group, `(b/c:d/e)`, is a whole segment, and has a slash or colon that no inner parenthesis encloses.
    """
    closing: dict[int, int] = {}
    groups: set[int] = set()
    open_positions: list[int] = []
    separated: set[int] = set()
    for position, character in enumerate(text):
        if character == "(":
            open_positions.append(position)
        elif character == ")" and open_positions:
            start = open_positions.pop()
            closing[start] = position
            is_whole = (start == 0 or text[start - 1] in "/(:;") and text[
                position + 1 : position + 2
            ] in "/):;"
            if is_whole and start in separated:
                groups.add(start)
        elif character in "/:" and open_positions:
            separated.add(open_positions[-1])
    return closing, groups


def _paths(
    text: str, start: int, end: int, closing: dict[int, int], groups: set[int], depth: int
) -> list[_Path]:
    """Spans of the segments of each operation that `text[start:end]` names. Raises _TooManyMembers."""
    if depth > _MAX_GROUP_DEPTH:
        raise _TooManyMembers
    done: list[_Path] = []
    begun: list[list[_Span]] = [[]]
    position = start
    while True:
        at_end = position >= end
        is_separator = not at_end and (text[position] == ";" or (text[position] == ":" and depth > 0))
        is_group = not at_end and position == start and position in groups
        if not (at_end or is_separator or is_group or text[position] == "/"):
            position = min(closing.get(position, position) + 1, end)
            continue
        if start < position:
            for path in begun:
                path.append((start, position))
        if is_group:
            inner = _paths(text, position + 1, closing[position], closing, groups, depth + 1)
            _check_size(len(begun) * len(inner), max(map(len, begun)) + max(map(len, inner), default=0))
            begun = [[*path, *tail] for path in begun for tail in inner or [()]]
            position = closing[position]
        elif at_end or is_separator:
            done += [tuple(path) for path in begun if path]
            _check_size(len(done), max(map(len, done), default=0))
            begun = [[]]
            if at_end:
                return done
        position += 1
        start = position


def _check_size(members: int, segments: int) -> None:
    if members > 1 and (members > _MAX_MEMBERS or members * segments > _MAX_JOINED_SEGMENTS):
        raise _TooManyMembers


def _shared_start(text: str, closing: dict[int, int], groups: set[int]) -> Sequence[_Span]:
    """Spans of the segments before the first group, where nothing else is joined to the whole."""
    spans: list[_Span] = []
    start = position = 0
    while position < len(text) and not (position == start and position in groups):
        if text[position] == ";":
            return []
        if text[position] == "/":
            if start < position:
                spans.append((start, position))
            start = position + 1
        position = closing.get(position, position) + 1
    while position < len(text):
        if text[position] == ";":
            return []
        position = closing.get(position, position) + 1
    return spans


def _unwrap(text: str, start: int, end: int, closing: dict[int, int]) -> tuple[str, str]:
    """Return the transforms and the scope of the segment `text[start:end]`."""
    transforms: list[str] = []
    while True:
        opening = text.find("(", start, end)
        if opening < 0 or closing.get(opening) != end - 1 or not text[start:opening].isidentifier():
            return "(".join(transforms), text[start:end]
        transforms.append(text[start:opening])
        start, end = opening + 1, end - 1
