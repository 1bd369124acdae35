"""Read packaged SQL files, each a header in comments and one query, and order them by what they read.

Everything here works on the tokens of the files: no database and no SQL parser is imported, so that a
command which only lists or checks views starts at once.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from importlib.resources.abc import Traversable

from tracewh.ingest.errors import TracewhError

_NAME = re.compile(r"v[0-9]+\.[a-z_][a-z0-9_]*")
_PLAIN_NAME = re.compile(r"[a-z][a-z0-9_]*")
_SCHEMA = re.compile(r"v[0-9]+")
_KEY_LINE = re.compile(r"-- ([a-z]+):(?: (.*))?")
_COLUMN = re.compile(r"([a-z_][a-z0-9_]*) ([A-Z]+)(?: \(([^()]+)\))?: (.+)")
# Texts whose lines mean something; every other text is one paragraph.
_KEYS_OF_LINES = ("algorithm", "example")
# Operators split into characters: no two valid queries differ only in blanks inside an operator.
_TOKEN = re.compile(
    r"""(?:\s+|--[^\n]*|/\*.*?\*/)
      | ( '(?:[^']|'')*' | "(?:[^"]|"")*"
        | [A-Za-z_][A-Za-z0-9_]*
        | (?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?
        | . )""",
    re.VERBOSE | re.DOTALL,
)


class SqlFileError(TracewhError):
    """A packaged SQL file, or the set of them, is not what the loader expects; names file and line."""


@dataclass(frozen=True)
class Column:
    """One output column as the header declares it; `unit` is None for a column without one."""

    name: str
    type: str
    unit: str | None
    description: str


@dataclass(frozen=True)
class HeaderKeys:
    """The keys of a kind of file; those of `tables` hold an entry on each of the following lines.

    A file without a version has a plain name: nothing reads what it defines.
    """

    required: tuple[str, ...]
    optional: tuple[str, ...]
    tables: tuple[str, ...]
    has_version: bool = True


@dataclass(frozen=True)
class SqlFile:
    """A file after parsing, before the files are linked to each other.

    `header` has the texts, `tables` the numbered entries of each key that holds a table.
    """

    path: str
    header: dict[str, str]
    tables: dict[str, list[tuple[int, str]]]
    sql: str
    tokens: tuple[str, ...]
    references: tuple[str, ...]

    @property
    def name(self) -> str:
        """Schema and name, as in v1.steps."""
        return self.header["name"]

    @property
    def version(self) -> int:
        """Version of the meaning, from 1."""
        return int(self.header["version"])


def packaged_texts(folder: Traversable, prefix: str = "") -> dict[str, str]:
    """The .sql files below `folder`: text by path."""
    return dict(_walk(folder, prefix))


def parse_files(texts: Mapping[str, str], keys: HeaderKeys) -> dict[str, SqlFile]:
    """The files of `{path: text}` by the names that they define; raises SqlFileError on a malformed one."""
    sources: dict[str, SqlFile] = {}
    for path in sorted(texts):
        source = _parse_file(path, texts[path], keys)
        if source.name in sources:
            raise SqlFileError(
                f"{path}: {source.name} is also defined in {sources[source.name].path}; rename one of them."
            )
        sources[source.name] = source
    return sources


def dependency_order(sources: Mapping[str, SqlFile], given: Mapping[str, str]) -> list[str]:
    """Names of `sources`, each after those that it reads; what is in `given` exists already.

    Raises SqlFileError on a name that nothing defines, or a cycle.
    """
    for name, source in sources.items():
        for reference in source.references:
            if reference not in sources and reference not in given:
                raise SqlFileError(
                    f"{source.path}: {name} reads {reference}, and no view or macro file defines that name."
                )
    graph = {
        name: [reference for reference in source.references if reference not in given]
        for name, source in sources.items()
    }
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError as error:
        cycle = " -> ".join(error.args[1])
        raise SqlFileError(
            f"{sources[error.args[1][0]].path}: these views read each other: {cycle}."
        ) from None


def fingerprint(source: SqlFile, parents: list[str], signature: tuple[str, ...] = ()) -> str:
    """What tells this file from one with another meaning: its tokens, and the fingerprints it builds on."""
    # Our own tokens, not SQL that a parser generates: its upgrades must not change what a view is.
    identity = json.dumps([source.name, source.version, signature, source.tokens, parents])
    return hashlib.sha256(identity.encode()).hexdigest()


def sql_tokens(sql: str) -> tuple[str, ...]:
    """The tokens of a query, without comments and blanks."""
    return tuple(match[1] for match in _TOKEN.finditer(sql) if match[1] is not None)


def columns_of(source: SqlFile) -> tuple[Column, ...]:
    """The columns that the header declares."""
    rows = table_rows(source, "columns", _COLUMN, "'name TYPE: text' or 'name TYPE (unit): text'")
    return tuple(Column(row[1], row[2], row[3], row[4]) for row in rows)


def table_rows(source: SqlFile, key: str, row: re.Pattern[str], expected: str) -> list[re.Match[str]]:
    """Each entry below `key` as `row` matches it, which begins with a name.

    Raises SqlFileError on an entry of another form, which says what was `expected`, or a name given twice.
    """
    rows: dict[str, re.Match[str]] = {}
    for number, text in source.tables[key]:
        match = row.fullmatch(text)
        if match is None:
            raise SqlFileError(f"{source.path}, line {number}: expected {expected}.")
        if match[1] in rows:
            raise SqlFileError(
                f"{source.path}, line {number}: {key.removesuffix('s')} {match[1]} is declared twice."
            )
        rows[match[1]] = match
    return list(rows.values())


def _walk(folder: Traversable, prefix: str) -> Iterator[tuple[str, str]]:
    for entry in folder.iterdir():
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        elif entry.name.endswith(".sql"):
            yield prefix + entry.name, entry.read_text(encoding="utf-8")


def _parse_file(path: str, text: str, keys: HeaderKeys) -> SqlFile:
    lines = text.splitlines()
    length = next((i for i, line in enumerate(lines) if not line.startswith("--")), len(lines))
    entries = _header_entries(path, lines[:length], keys)
    missing = [key for key in keys.required if key not in entries]
    if missing:
        raise SqlFileError(f"{path}, line {length + 1}: the header ends without {', '.join(missing)}.")
    header = {key: _text(path, key, entry) for key, entry in entries.items() if key not in keys.tables}
    _check_name(path, header["name"], entries["name"][0][0], keys.has_version)
    if keys.has_version and not re.fullmatch(r"[1-9][0-9]*", header["version"]):
        raise SqlFileError(
            f"{path}, line {entries['version'][0][0]}: version {header['version']!r} is not 1, 2, 3, ..."
        )
    tables = {key: _table(path, key, entries[key]) for key in keys.tables}
    sql = "\n".join(lines[length:]).strip()
    tokens = sql_tokens(sql)
    if not tokens:
        raise SqlFileError(f"{path}, line {length + 1}: there is no query after the header.")
    if ";" in tokens:
        raise SqlFileError(f"{path}: the body is one bare query; remove the semicolon.")
    return SqlFile(path, header, tables, sql, tokens, _references(tokens))


def _header_entries(path: str, lines: list[str], keys: HeaderKeys) -> dict[str, list[tuple[int, str]]]:
    """The numbered lines of text of each key; a continuation keeps what it is indented beyond two blanks."""
    known = (*keys.required, *keys.optional)
    entries: dict[str, list[tuple[int, str]]] = {}
    current: list[tuple[int, str]] | None = None
    for number, line in enumerate(lines, start=1):
        if current is not None and (line.rstrip() == "--" or line.startswith("--   ")):
            current.append((number, line[5:].rstrip()))
            continue
        match = _KEY_LINE.fullmatch(line.rstrip())
        if match is None:
            raise SqlFileError(
                f"{path}, line {number}: expected '-- key: text', or '--   ' and the rest of a text."
            )
        key, text = match.groups()
        if key not in known:
            raise SqlFileError(f"{path}, line {number}: unknown key {key!r}; keys are {', '.join(known)}.")
        if key in entries:
            raise SqlFileError(f"{path}, line {number}: {key} is given twice.")
        current = entries[key] = [(number, text or "")]
    return entries


def _text(path: str, key: str, entry: list[tuple[int, str]]) -> str:
    lines = [line for _, line in entry]
    text = "\n".join(lines).strip("\n") if key in _KEYS_OF_LINES else " ".join(" ".join(lines).split())
    if not text:
        raise SqlFileError(f"{path}, line {entry[0][0]}: {key} is empty.")
    return text


def _table(path: str, key: str, entry: list[tuple[int, str]]) -> list[tuple[int, str]]:
    """The entries below a key, each with its continuations and the line on which it begins."""
    first_line, text_after_key = entry[0]
    if text_after_key:
        raise SqlFileError(f"{path}, line {first_line}: the {key} belong on the following lines, one each.")
    rows: list[tuple[int, str]] = []
    for number, text in entry[1:]:
        if text.startswith("  ") and rows:
            rows[-1] = rows[-1][0], f"{rows[-1][1]} {text.strip()}"
        else:
            rows.append((number, text))
    if not rows:
        raise SqlFileError(f"{path}, line {first_line}: the header declares no {key}.")
    return rows


def _check_name(path: str, name: str, line: int, has_version: bool) -> None:
    pattern, sample = (_NAME, "v1.steps") if has_version else (_PLAIN_NAME, "few_steps")
    if not pattern.fullmatch(name):
        raise SqlFileError(f"{path}, line {line}: {name!r} is not a name such as {sample}.")


def _references(tokens: tuple[str, ...]) -> tuple[str, ...]:
    """Names such as v1.steps that the query reads or calls; the lint checks that its tree has the same.

    A macro takes its relations by name, in strings: 'v1.steps' is one between the parentheses of v1.f(...).
    """
    found: set[str] = set()
    is_named_call: list[bool] = []  # of each open parenthesis
    for position, token in enumerate(tokens):
        name = _qualified_name(tokens, position)
        if name is not None:
            found.add(name)
        elif token == "(":
            is_named_call.append(_qualified_name(tokens, position - 1) is not None)
        elif token == ")" and is_named_call:
            is_named_call.pop()
        elif token.startswith("'") and _NAME.fullmatch(token[1:-1]) and any(is_named_call[-1:]):
            found.add(token[1:-1])
    return tuple(sorted(found))


def _qualified_name(tokens: tuple[str, ...], position: int) -> str | None:
    """The name such as v1.steps that ends at `position`."""
    if position < 2 or tokens[position - 1] != "." or (position > 2 and tokens[position - 3] == "."):
        return None
    schema = tokens[position - 2]
    return f"{schema}.{tokens[position]}" if _SCHEMA.fullmatch(schema) else None
