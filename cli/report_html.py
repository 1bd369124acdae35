"""A report as one HTML page: no script, nothing loaded, and every text escaped."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from tracewh.cli.report_values import ValueFormat, table_formats
from tracewh.cli.table import printable

if TYPE_CHECKING:
    from tracewh.sql.run_report import ReportTable

_STYLE = """
:root { color-scheme: light dark; --ink: #1d2430; --soft: #5b6675; --line: #d8dee6; --bar: #cfe0f5;
        --page: #fff }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e3e8ef; --soft: #9aa5b4; --line: #333c48; --bar: #274566; --page: #12161c }
}
body { font: 15px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--page);
       margin: 2rem auto; max-width: 62rem; padding: 0 1rem }
h1 { font-size: 1.5rem; overflow-wrap: anywhere } h2 { font-size: 1.1rem; margin: 2.2rem 0 .2rem }
nav a { color: inherit; margin-right: 1rem; white-space: nowrap }
p { color: var(--soft); margin: .2rem 0 .6rem; max-width: 48rem }
.wide { overflow-x: auto }
table { border-collapse: collapse; min-width: 60%; font-variant-numeric: tabular-nums }
th, td { border-bottom: 1px solid var(--line); padding: .25rem .8rem; text-align: left; vertical-align: top;
         min-width: 7rem; overflow-wrap: anywhere }
th { font-weight: 600; border-bottom-width: 2px; vertical-align: bottom }
th:first-child, td:first-child { padding-left: 0 }
.number { text-align: right; min-width: 4rem; overflow-wrap: normal } td.number { white-space: nowrap }
.share { background: linear-gradient(var(--bar), var(--bar)) 0 .4rem / var(--share) 1.1rem no-repeat;
         print-color-adjust: exact; -webkit-print-color-adjust: exact }
tr:last-child td { border-bottom-width: 2px }
@media print {
  body { margin: 0; max-width: none; font-size: 10pt }
  nav { display: none } h2, p { break-after: avoid } tr { break-inside: avoid } .wide { overflow: visible }
}
"""


def html_report(tables: Sequence[ReportTable], run: str, closing: str) -> str:
    """The page of a run's report; `closing` is its last paragraph."""
    return "".join(_page(tables, _text(run), _text(closing)))


def _page(tables: Sequence[ReportTable], run: str, closing: str) -> Iterator[str]:
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
    yield f"<title>{run} - tracewh</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{run}</h1>\n<nav>\n"
    for number, table in enumerate(tables):
        yield f'<a href="#table-{number}">{_text(table.title)}</a>\n'
    yield "</nav>\n"
    for number, table in enumerate(tables):
        yield f'<section id="table-{number}">\n<h2>{_text(table.title)}</h2>\n'
        if table.note:
            yield f"<p>{_text(' '.join(table.note.split()))}</p>\n"
        formats = table_formats(table)
        yield '<div class="wide"><table>\n<thead><tr>'
        for column, form in zip(table.columns, formats, strict=True):
            yield f"<th{_class(form)}>{_text(form.heading(column.heading))}</th>"
        yield "</tr></thead>\n<tbody>\n"
        for row in table.rows:
            cells = (_cell(value, form) for value, form in zip(row, formats, strict=True))
            yield f"<tr>{''.join(cells)}</tr>\n"
        yield "</tbody>\n</table></div>\n</section>\n"
    yield f"<p>{closing}</p>\n</body>\n</html>\n"


def _cell(value: Any, form: ValueFormat) -> str:
    text = form.text(value)
    if form.unit == "kernel" and value is not None and text != value:
        return f'<td title="{_text(str(value))}">{_text(text)}</td>'
    if form.unit != "ratio" or value is None:
        return f"<td{_class(form)}>{_text(text)}</td>"
    # A share is seen before it is read.
    width = 100 * min(max(float(value), 0.0), 1.0)
    return f'<td class="number share" style="--share: {width:.2f}%">{_text(text)}</td>'


def _class(form: ValueFormat) -> str:
    return ' class="number"' if form.is_number else ""


def _text(text: str) -> str:
    return escape(printable(text))
