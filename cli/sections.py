"""Texts with titled tables, for the terminal and as Markdown."""

from __future__ import annotations

import html
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TextIO

import click

from tracewh.cli.table import Cell, Header, printable, style_for, write_table

_WIDTH = 100
_EM_SPACE = "\u2003"


@dataclass(frozen=True)
class Section:
    """A table with its title; the note says what its numbers are. Without rows the note stands alone."""

    title: str
    note: str = ""
    headers: tuple[Header, ...] = ()
    rows: tuple[tuple[Cell, ...], ...] = ()


def write_text(title: str, lines: Sequence[str], sections: Iterable[Section], stream: TextIO) -> None:
    """Write a title, lines under it, and the sections as the stream's terminal has room for them."""
    style = style_for(stream, wrap=True)
    width = min(style.width or _WIDTH, _WIDTH)

    def bold(text: str) -> str:
        return click.style(one_line(text), bold=True) if style.color else one_line(text)

    def filled(text: str) -> str:
        return textwrap.fill(printable(" ".join(text.split())), width, break_on_hyphens=False) + "\n"

    stream.write(bold(title) + "\n")
    for line in lines:
        stream.write(filled(line))
    for section in sections:
        stream.write(f"\n{bold(section.title)}\n")
        if section.note:
            stream.write(filled(section.note))
        if section.rows:
            stream.write("\n")
            write_table(section.headers, section.rows, stream, style)


def write_markdown(title: str, lines: Sequence[str], sections: Iterable[Section], stream: TextIO) -> None:
    """Write the same as Markdown, as for a comment on a pull request: sections are folded."""
    from tracewh.cli.output import markdown_cell

    stream.write(f"# {markdown_cell(title)}\n\n")
    stream.writelines(f"{markdown_cell(line)}\n\n" for line in lines)
    for section in sections:
        # GitHub shows what is in it at a click; Markdown within needs the empty lines.
        stream.write(f"\n<details>\n<summary>{html.escape(one_line(section.title))}</summary>\n\n")
        if section.note:
            stream.write(markdown_cell(" ".join(section.note.split())) + "\n\n")
        if section.rows:
            write_markdown_table(section.headers, section.rows, stream)
        stream.write("\n</details>\n")


def write_markdown_table(headers: Sequence[Header], rows: Iterable[Sequence[Cell]], stream: TextIO) -> None:
    """Write one table as Markdown."""
    from tracewh.cli.output import markdown_cell

    stream.write("| " + " | ".join(markdown_cell(header.title) for header in headers) + " |\n")
    stream.write("|" + "|".join("---:" if header.is_number else "---" for header in headers) + "|\n")
    for row in rows:
        stream.write("| " + " | ".join(_indented(markdown_cell(cell)) for cell in row) + " |\n")


def _indented(cell: str) -> str:
    # Markdown drops blanks at the start of a cell, but not wide ones.
    text = cell.lstrip(" ")
    return _EM_SPACE * ((len(cell) - len(text)) // 2) + text


def one_line(text: str) -> str:
    """A name from outside as one line that cannot drive a terminal."""
    return printable(text).replace("\n", " ")
