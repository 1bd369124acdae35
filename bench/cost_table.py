"""The table of one file's costs, as plain text or Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from child_process import Cost

_COLUMNS = ("", "CPU s", "ratio", "wall s", "ratio", "peak MiB", "ratio", "MB/s")


@dataclass(frozen=True)
class Row:
    """One candidate: its cost, or why there is none."""

    name: str
    cost: Cost | None
    failure: str = ""


@dataclass(frozen=True)
class Section:
    """Candidates that do the same work; the first row is the base of the ratios."""

    title: str
    rows: Sequence[Row]
    # Whether a speed in bytes and things of the file says anything.
    reads_file: bool = True


def _number(value: float | None, digits: int = 2) -> str:
    if value is None:
        return ""
    return f"{value:.{digits}f}" if value >= 0.1 or digits == 0 else f"{value:.2g}"


def _ratio(value: float | None, base: float | None) -> str:
    return _number(value / base, 2) if value is not None and base else ""


def _cells(row: Row, base: Cost | None, section: Section, size_bytes: int, count: int) -> list[str]:
    cost = row.cost
    if cost is None:
        return [f"{row.name}: {row.failure}", *[""] * len(_COLUMNS)]
    speeds = ["", ""]
    if section.reads_file:
        speeds = [_number(size_bytes / 1e6 / cost.wall_s, 0), _number(count / 1e6 / cost.wall_s)]
    return [
        row.name,
        _number(cost.cpu_s),
        _ratio(cost.cpu_s, base.cpu_s if base else None),
        _number(cost.wall_s),
        _ratio(cost.wall_s, base.wall_s if base else None),
        _number(cost.peak_mib, 0),
        _ratio(cost.peak_mib, base.peak_mib if base else None),
        *speeds,
    ]


def render(
    title: str, size_bytes: int, count: int, things: str, sections: Sequence[Section], markdown: bool
) -> str:
    """All sections under one heading; the file holds `count` `things`. Speeds are of wall time."""
    heading = f"{title}: {size_bytes / 1e6:.1f} MB, {count:,} {things}"
    header = (*_COLUMNS, f"M {things}/s")
    lines = [f"### {heading}" if markdown else heading, ""]
    grid: list[list[str]] = []
    for section in sections:
        base = section.rows[0].cost
        grid.append([f"*{section.title}*" if markdown else section.title, *[""] * len(_COLUMNS)])
        grid += [_cells(row, base, section, size_bytes, count) for row in section.rows]
    if markdown:
        lines.append("| " + " | ".join(header) + " |")
        lines.append("|---|" + "---:|" * (len(header) - 1))
        lines += ["| " + " | ".join(cells) + " |" for cells in grid]
    else:
        widths = [max(len(cells[column]) for cells in (header, *grid)) for column in range(len(header))]
        # A failure is long, and has the line to itself.
        widths[0] = max(len(cells[0]) for cells in grid if any(cells[1:]))
        for cells in (list(header), *grid):
            name = cells[0].ljust(widths[0])
            rest = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
            lines.append("  ".join([name, *rest]).rstrip())
    return "\n".join(lines) + "\n"
