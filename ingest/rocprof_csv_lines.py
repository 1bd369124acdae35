"""The lines of a damaged or loosely quoted CSV, each kept, mended or rejected.

rocprofv3 puts texts between quotes without doubling the quotes inside them, so a marker with the text
`a "b", c` gives a line that no CSV reader takes apart as it was meant. As only one column holds free text,
the cells before and after it can be cut off, and what is left is the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_PLAIN_CELL = re.compile(rb'"[^"]*+"|[^"\r\n]*+')
# A text with more lines than this is taken for a quote that was never closed.
_MAX_LINES_OF_A_RECORD = 32


@dataclass(frozen=True)
class Shape:
    """What every record looks like: its number of cells, what parts them, and which one holds free text."""

    cells: int
    delimiter: bytes
    free_cell: int | None


@dataclass
class Mended:
    """The records that hold, properly quoted, and the numbers of the lines that were mended and rejected."""

    body: bytes
    mended: list[int] = field(default_factory=list)
    rejected: list[int] = field(default_factory=list)


def mend(body: bytes, shape: Shape, first_line: int) -> Mended:
    """Look at each line of `body`, the first of which is line `first_line` of the file."""
    record, lines = _record_pattern(shape), body.split(b"\n")
    found = Mended(b"")
    kept: list[bytes] = []
    position = 0
    while position < len(lines):
        line, next_position = lines[position].removesuffix(b"\r"), position + 1
        if line:
            whole = line
            if not record.fullmatch(line) and not (mended := _requoted(line, shape)):
                whole, next_position = _joined(lines, position, record)
                mended = _requoted(whole, shape)
            if record.fullmatch(whole):
                kept.append(whole)
            elif mended:
                kept.append(mended)
                found.mended.append(first_line + position)
            else:
                next_position = position + 1
                found.rejected.append(first_line + position)
        position = next_position
    found.body = b"\n".join(kept)
    return found


def _record_pattern(shape: Shape) -> re.Pattern[bytes]:
    delimiter = re.escape(shape.delimiter)
    cell = rb'(?:"[^"]*+(?:""[^"]*+)*+"|[^"\r\n' + delimiter + rb"]*+)"
    return re.compile(cell + rb"(?:" + delimiter + cell + rb"){%d}" % (shape.cells - 1))


def _joined(lines: list[bytes], position: int, record: re.Pattern[bytes]) -> tuple[bytes, int]:
    """The lines from `position` on up to where its open quote closes, and the position after them.

    A line that is a record by itself is none of them.
    """
    end, is_open = position + 1, lines[position].count(b'"') % 2 == 1
    last = min(len(lines), position + _MAX_LINES_OF_A_RECORD)
    while is_open and end < last and not record.fullmatch(lines[end].removesuffix(b"\r")):
        is_open ^= lines[end].count(b'"') % 2 == 1
        end += 1
    return b"\n".join(lines[position:end]).removesuffix(b"\r"), end


def _requoted(text: bytes, shape: Shape) -> bytes | None:
    """The record with the quotes in its free text doubled; None where the rest is not as it should be."""
    if shape.free_cell is None:
        return None
    before, after = shape.free_cell, shape.cells - shape.free_cell - 1
    cells = text.split(shape.delimiter, before)
    if len(cells) <= before:
        return None
    cells[before:] = cells[before].rsplit(shape.delimiter, after)
    if len(cells) != shape.cells:
        return None
    free = cells[before]
    others = (*cells[:before], *cells[before + 1 :])
    is_quoted = len(free) >= 2 and free.startswith(b'"') and free.endswith(b'"')
    if not is_quoted or not all(map(_PLAIN_CELL.fullmatch, others)):
        return None
    cells[before] = b'"' + free[1:-1].replace(b'"', b'""') + b'"'
    return shape.delimiter.join(cells)
