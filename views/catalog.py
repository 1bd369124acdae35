"""Find the packaged views, read their headers, and put them in the order in which they depend on each other.

Everything here works on the tokens of the files: no database and no SQL parser is imported, so that a
command which only lists or checks views starts at once.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib.resources import files
from importlib.resources.abc import Traversable

from tracewh.ingest.errors import TracewhError

REQUIRED_KEYS = ("name", "version", "grain", "summary", "evidence", "columns")
HEADER_KEYS = (*REQUIRED_KEYS, "algorithm")

_NAME = re.compile(r"v[0-9]+\.[a-z_][a-z0-9_]*")
_SCHEMA = re.compile(r"v[0-9]+")
_KEY_LINE = re.compile(r"-- ([a-z]+):(?: (.*))?")
_COLUMN = re.compile(r"([a-z_][a-z0-9_]*) ([A-Z]+)(?: \(([^()]+)\))?: (.+)")
# Operators split into characters: no two valid queries differ only in blanks inside an operator.
_TOKEN = re.compile(
    r"""(?:\s+|--[^\n]*|/\*.*?\*/)
      | ( '(?:[^']|'')*' | "(?:[^"]|"")*"
        | [A-Za-z_][A-Za-z0-9_]*
        | (?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?
        | . )""",
    re.VERBOSE | re.DOTALL,
)


class ViewError(TracewhError):
    """A view file, or the set of them, is not what the loader expects; the text names file and line."""


@dataclass(frozen=True)
class Column:
    """One output column as the header declares it; `unit` is None for a column without one."""

    name: str
    type: str
    unit: str | None
    description: str


@dataclass(frozen=True)
class View:
    """One versioned view. `path` is relative to the views package, `sql` the bare query of the file."""

    name: str
    version: int
    grain: str
    summary: str
    evidence: str
    columns: tuple[Column, ...]
    algorithm: str | None
    sql: str
    path: str
    references: tuple[str, ...]
    fingerprint: str

    @property
    def is_private(self) -> bool:
        """Whether only other views should read it."""
        return self.name.split(".")[1].startswith("_")


@dataclass(frozen=True)
class _Source:
    """A view file after parsing, before the files are linked to each other."""

    path: str
    header: dict[str, str]
    columns: tuple[Column, ...]
    sql: str
    tokens: tuple[str, ...]
    references: tuple[str, ...]


def load_views() -> list[View]:
    """Every packaged view, parents before children; raises ViewError on a malformed file or a cycle."""
    return list(_packaged_views())


def views_from_files(texts: Mapping[str, str]) -> list[View]:
    """The views of `{path: text}`, parents before children; raises ViewError as `load_views` does."""
    sources: dict[str, _Source] = {}
    for path in sorted(texts):
        source = _parse_file(path, texts[path])
        name = source.header["name"]
        if name in sources:
            raise ViewError(f"{path}: {name} is also defined in {sources[name].path}; rename one of them.")
        sources[name] = source
    views: dict[str, View] = {}
    for name in _dependency_order(sources):
        source = sources[name]
        parents = [views[reference].fingerprint for reference in source.references]
        views[name] = View(
            name=name,
            version=int(source.header["version"]),
            grain=source.header["grain"],
            summary=source.header["summary"],
            evidence=source.header["evidence"],
            columns=source.columns,
            algorithm=source.header.get("algorithm"),
            sql=source.sql,
            path=source.path,
            references=source.references,
            fingerprint=_fingerprint(name, source.header["version"], source.tokens, parents),
        )
    return list(views.values())


def sql_tokens(sql: str) -> tuple[str, ...]:
    """The tokens of a query, without comments and blanks."""
    return tuple(match[1] for match in _TOKEN.finditer(sql) if match[1] is not None)


@cache
def _packaged_views() -> tuple[View, ...]:
    return tuple(views_from_files(dict(_sql_files(files(__package__), ""))))


def _sql_files(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _sql_files(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".sql"):
            yield prefix + entry.name, entry.read_text(encoding="utf-8")


def _fingerprint(name: str, version: str, tokens: tuple[str, ...], parents: list[str]) -> str:
    # Our own tokens, not SQL that a parser generates: its upgrades must not change what a view is.
    identity = json.dumps([name, int(version), tokens, parents])
    return hashlib.sha256(identity.encode()).hexdigest()


def _dependency_order(sources: dict[str, _Source]) -> list[str]:
    for name, source in sources.items():
        for reference in source.references:
            if reference not in sources:
                raise ViewError(
                    f"{source.path}: {name} reads {reference}, and no view file defines that name."
                )
    try:
        order = TopologicalSorter(
            {name: source.references for name, source in sources.items()}
        ).static_order()
        return list(order)
    except CycleError as error:
        cycle = " -> ".join(error.args[1])
        raise ViewError(f"{sources[error.args[1][0]].path}: these views read each other: {cycle}.") from None


def _parse_file(path: str, text: str) -> _Source:
    lines = text.splitlines()
    length = next((i for i, line in enumerate(lines) if not line.startswith("--")), len(lines))
    entries = _header_entries(path, lines[:length])
    missing = [key for key in REQUIRED_KEYS if key not in entries]
    if missing:
        raise ViewError(f"{path}, line {length + 1}: the header ends without {', '.join(missing)}.")
    header = {key: _paragraph(entry, key) for key, entry in entries.items() if key != "columns"}
    _check_header(path, header, entries)
    sql = "\n".join(lines[length:]).strip()
    tokens = sql_tokens(sql)
    if not tokens:
        raise ViewError(f"{path}, line {length + 1}: there is no query after the header.")
    if ";" in tokens:
        raise ViewError(f"{path}: the body is one bare query; remove the semicolon.")
    columns = _parse_columns(path, entries["columns"])
    return _Source(path, header, columns, sql, tokens, _references(tokens))


def _header_entries(path: str, lines: list[str]) -> dict[str, list[tuple[int, str]]]:
    """The numbered lines of text of each key; a continuation keeps what it is indented beyond two blanks."""
    entries: dict[str, list[tuple[int, str]]] = {}
    current: list[tuple[int, str]] | None = None
    for number, line in enumerate(lines, start=1):
        if current is not None and (line.rstrip() == "--" or line.startswith("--   ")):
            current.append((number, line[5:].rstrip()))
            continue
        match = _KEY_LINE.fullmatch(line.rstrip())
        if match is None:
            raise ViewError(
                f"{path}, line {number}: expected '-- key: text', or '--   ' and the rest of a text."
            )
        key, text = match.groups()
        if key not in HEADER_KEYS:
            raise ViewError(f"{path}, line {number}: unknown key {key!r}; keys are {', '.join(HEADER_KEYS)}.")
        if key in entries:
            raise ViewError(f"{path}, line {number}: {key} is given twice.")
        current = entries[key] = [(number, text or "")]
    return entries


def _paragraph(entry: list[tuple[int, str]], key: str) -> str:
    texts = [text for _, text in entry]
    # An algorithm may hold a sketch, so its lines stay; every other text is one paragraph.
    return "\n".join(texts).strip("\n") if key == "algorithm" else " ".join(" ".join(texts).split())


def _check_header(path: str, header: dict[str, str], entries: dict[str, list[tuple[int, str]]]) -> None:
    for key, text in header.items():
        if not text:
            raise ViewError(f"{path}, line {entries[key][0][0]}: {key} is empty.")
    if not _NAME.fullmatch(header["name"]):
        raise ViewError(
            f"{path}, line {entries['name'][0][0]}: {header['name']!r} is not a name such as v1.steps."
        )
    if not re.fullmatch(r"[1-9][0-9]*", header["version"]):
        raise ViewError(
            f"{path}, line {entries['version'][0][0]}: version {header['version']!r} is not 1, 2, 3, ..."
        )


def _parse_columns(path: str, entry: list[tuple[int, str]]) -> tuple[Column, ...]:
    first_line, text_after_key = entry[0]
    if text_after_key:
        raise ViewError(f"{path}, line {first_line}: the columns belong on the following lines, one each.")
    columns: dict[str, Column] = {}
    name = ""
    for number, text in entry[1:]:
        if text.startswith("  ") and columns:
            column = columns[name]
            description = f"{column.description} {text.strip()}"
            columns[name] = Column(column.name, column.type, column.unit, description)
            continue
        match = _COLUMN.fullmatch(text)
        if match is None:
            raise ViewError(f"{path}, line {number}: expected 'name TYPE: text' or 'name TYPE (unit): text'.")
        name = match[1]
        if name in columns:
            raise ViewError(f"{path}, line {number}: column {name} is declared twice.")
        columns[name] = Column(name, match[2], match[3], match[4])
    if not columns:
        raise ViewError(f"{path}, line {first_line}: the header declares no columns.")
    return tuple(columns.values())


def _references(tokens: tuple[str, ...]) -> tuple[str, ...]:
    """Names such as v1.steps that the query reads; the lint checks that these are the tables of its tree."""
    found = {
        f"{schema}.{name}"
        for before, schema, dot, name in zip(("", *tokens), tokens, tokens[1:], tokens[2:], strict=False)
        if dot == "." and before != "." and _SCHEMA.fullmatch(schema)
    }
    return tuple(sorted(found))
