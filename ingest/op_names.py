"""Splits an op_name, the name stack that JAX gives an operation, into its segments."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Segment:
    """One segment of an op_name: a row of op_name_scopes, less its name_id.

    `transpose(jvp(layers))` has scope `layers` and transforms `transpose(jvp`.
    """

    position: int
    segment: str
    scope: str
    transforms: str
    is_last: bool


def split_op_name(op_name: str) -> list[Segment]:
    """Split an op_name at the slashes outside parentheses, outermost segment first.

    A compiler pass that merges operations joins their names as `a/b;c/d`, or as `a/(b/c:d/e)` behind what
    they share: the first operation stands for all. Empty segments are left out. Any text is accepted;
    parentheses without a partner are ordinary characters.
    """
    closing, groups = _parentheses(op_name)
    spans = _segment_spans(op_name, closing, groups)
    segments = []
    for position, (start, end) in enumerate(spans, 1):
        transforms, scope = _unwrap(op_name, start, end, closing)
        segments.append(Segment(position, op_name[start:end], scope, transforms, position == len(spans)))
    return segments


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


def _segment_spans(text: str, closing: dict[int, int], groups: set[int]) -> list[tuple[int, int]]:
    """Start and end of each segment of the first operation that `text` names."""
    spans: list[tuple[int, int]] = []
    ends = [len(text)]  # of the text itself and of the groups around `position`
    start = position = 0
    while ends:
        is_member_end = (
            position == ends[-1] or text[position] == ";" or (text[position] == ":" and len(ends) > 1)
        )
        is_group = position == start and position in groups
        if not (is_member_end or is_group or text[position] == "/"):
            position = closing.get(position, position) + 1
            continue
        if start < position:
            spans.append((start, position))
        if is_group:
            ends.append(closing[position])
        elif is_member_end:
            position = ends.pop()
        position += 1
        start = position
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
