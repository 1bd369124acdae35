"""Aligned text tables: numbers to the right, nothing cut unless a width is given, large results streamed."""

from __future__ import annotations

import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TextIO

import click

GAP = "  "
NULL_TEXT = "NULL"
# Column widths come from this many rows; a wider cell further down pushes only its own row.
ROWS_MEASURED = 5_000
# Text columns are not squeezed below this many characters: rows are then written as records instead.
SMALLEST_CUT_WIDTH = 12
SMALLEST_WRAPPED_WIDTH = 8

Cell = str | None


@dataclass(frozen=True)
class Header:
    """A column of a table: its title, and whether its cells are numbers."""

    title: str
    is_number: bool = False


@dataclass(frozen=True)
class Style:
    """How a table is laid out. `width` is None where nothing may be cut, as in a pipe or a file."""

    width: int | None = None
    color: bool = False
    wrap: bool = False  # break long text into lines instead of shortening it


def style_for(stream: TextIO, *, wrap: bool = False) -> Style:
    """The style that suits a stream: the width and colors of a terminal, or neither."""
    if not stream.isatty():
        return Style()
    color = "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return Style(shutil.get_terminal_size().columns, color, wrap)


def printable(text: str) -> str:
    """`text` with control characters written as escapes, so that a name from a file cannot drive a terminal.

    Line breaks stay.
    """
    if text.isprintable():
        return text
    return "".join(
        char if char == "\n" or char.isprintable() else char.encode("unicode_escape").decode()
        for char in text
    )


def print_table(headers: Sequence[Header], rows: Iterable[Sequence[object]]) -> None:
    """Write a table of plain values to stdout, with long text wrapped; integers get thousands separators."""
    write_table(
        headers, (tuple(map(value_text, row)) for row in rows), sys.stdout, style_for(sys.stdout, wrap=True)
    )


def value_text(value: object) -> str:
    """The text of a plain value: integers with thousands separators, '' for None."""
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else str(value)


def write_table(
    headers: Sequence[Header], rows: Iterable[Sequence[Cell]], stream: TextIO, style: Style
) -> int:
    """Write rows of text under their headers and return how many there were.

    A table that does not fit `style.width` with its text shortened is written as records: a line per value.
    """
    iterator = iter(rows)
    measured = list(islice(iterator, ROWS_MEASURED))
    titles = [printable(header.title) for header in headers]
    natural = _natural_widths(titles, measured)
    every_row = chain(measured, iterator)
    widths = _fit(natural, headers, measured, style)
    if widths is None:
        return _write_records(titles, every_row, stream, style)
    # A column that was not narrowed is not cut either: its wider cells further down stay whole.
    limits = [width if width < size else None for width, size in zip(widths, natural, strict=True)]
    columns = [_Column(*column) for column in zip(headers, widths, limits, strict=True)]
    stream.writelines(_row_lines(titles, columns, style, is_title=True))
    stream.write(GAP.join("-" * width for width in widths) + "\n")
    count = 0
    for row in every_row:
        stream.writelines(_row_lines(row, columns, style))
        count += 1
    return count


@dataclass(frozen=True)
class _Column:
    """A column as laid out: cells are padded to `width`, and cut or wrapped at `limit` where there is one."""

    header: Header
    width: int
    limit: int | None


def is_whole(headers: Sequence[Header], rows: Sequence[Sequence[Cell]], style: Style) -> bool:
    """Whether a table fits the style with its text wrapped between words alone, and nothing cut."""
    if style.width is None:
        return True
    natural = _natural_widths([printable(header.title) for header in headers], rows)
    least = [
        size if header.is_number else word
        for size, header, word in zip(natural, headers, _longest_words(headers, rows), strict=True)
    ]
    return sum(least) <= style.width - len(GAP) * (len(natural) - 1)


def _natural_widths(titles: Sequence[str], rows: Sequence[Sequence[Cell]]) -> list[int]:
    return [
        max(_cell_width(title), *(_cell_width(row[column]) for row in rows), 0)
        for column, title in enumerate(titles)
    ]


def _longest_words(headers: Sequence[Header], rows: Sequence[Sequence[Cell]]) -> list[int]:
    """Widths below which a word of a column's text would be broken."""
    return [
        max(
            _width(word)
            for cell in (header.title, *(row[column] for row in rows))
            for word in [*" ".join(_text_lines(cell)).split(), ""]
        )
        for column, header in enumerate(headers)
    ]


def _fit(
    natural: list[int], headers: Sequence[Header], rows: Sequence[Sequence[Cell]], style: Style
) -> list[int] | None:
    """Column widths that fit the style, narrowing the widest text first; None when that is not enough.

    Words stay whole where that is possible.
    """
    available = None if style.width is None else style.width - len(GAP) * (len(natural) - 1)
    if available is None or sum(natural) <= available:
        return natural
    smallest = SMALLEST_WRAPPED_WIDTH if style.wrap else SMALLEST_CUT_WIDTH
    words = _longest_words(headers, rows) if style.wrap else [0] * len(natural)

    def widths(limit: int, longest_word: int) -> list[int]:
        return [
            size if header.is_number else min(size, max(limit, min(word, longest_word)))
            for size, header, word in zip(natural, headers, words, strict=True)
        ]

    limits = range(available, smallest - 1, -1)
    # The longest words are broken first, and none unless that is needed.
    longest = next((word for word in limits if sum(widths(smallest, word)) <= available), None)
    if longest is None:
        return None
    return next(found for limit in limits if sum(found := widths(limit, longest)) <= available)


def _row_lines(
    row: Sequence[Cell], columns: Sequence[_Column], style: Style, *, is_title: bool = False
) -> Iterator[str]:
    """The lines of one row: one, unless a cell has line breaks or is wrapped."""
    cells = [_cell_lines(cell, column.limit, style.wrap) for cell, column in zip(row, columns, strict=True)]
    for number in range(max(map(len, cells), default=1)):
        line = ""
        for cell, lines, column in zip(row, cells, columns, strict=True):
            text = lines[number] if number < len(lines) else ""
            padding = " " * (column.width - _width(text))
            if style.color and (is_title or cell is None):
                text = click.style(text, bold=True) if is_title else click.style(text, dim=True)
            line += (padding + text if column.header.is_number else text + padding) + GAP
        yield line.rstrip() + "\n"


def _cell_lines(cell: Cell, limit: int | None, wrap: bool) -> list[str]:
    lines = _text_lines(cell)
    if limit is None:
        return lines
    if wrap:
        return [piece for line in lines for piece in _wrapped(line, limit)]
    return [line if _width(line) <= limit else _shortened(line, limit) for line in lines]


def _wrapped(line: str, width: int) -> list[str]:
    indent = line[: len(line) - len(line.lstrip())]
    return textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False) or [""]


def _write_records(titles: list[str], rows: Iterable[Sequence[Cell]], stream: TextIO, style: Style) -> int:
    labels = [title.replace("\n", " ") for title in titles]
    margin = max(map(_width, labels)) + len(GAP)
    count = 0
    for count, row in enumerate(rows, start=1):
        stream.write(_dimmed(f"-- row {count}", style) + "\n")
        for label, cell in zip(labels, row, strict=True):
            text = _dimmed(NULL_TEXT, style) if cell is None else printable(cell)
            padding = " " * (margin - _width(label))
            stream.write(label + padding + text.replace("\n", "\n" + " " * margin) + "\n")
    return count


def _dimmed(text: str, style: Style) -> str:
    return click.style(text, dim=True) if style.color else text


def _text_lines(cell: Cell) -> list[str]:
    if cell is None:
        return [NULL_TEXT]
    text = printable(cell)
    # Blanks that pad the lines of a query plan to one length would widen its column.
    return [line.rstrip() for line in text.split("\n")] if "\n" in text else [text]


def _cell_width(cell: Cell) -> int:
    return max(map(_width, _text_lines(cell)))


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def _shortened(text: str, width: int) -> str:
    from rich.cells import set_cell_size

    return set_cell_size(text, width - 1) + "…"
