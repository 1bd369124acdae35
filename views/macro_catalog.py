"""The packaged macros, as their headers describe them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from tracewh.views.sql_files import (
    Column,
    HeaderKeys,
    SqlFile,
    SqlFileError,
    columns_of,
    fingerprint,
    packaged_texts,
    parse_files,
    table_rows,
)

_KEYS = HeaderKeys(
    required=("name", "version", "grain", "summary", "parameters", "columns", "example"),
    optional=("algorithm",),
    tables=("parameters", "columns"),
)
_PARAMETER = re.compile(r"([a-z_][a-z0-9_]*) (RELATION|EXPRESSION)( = NULL)?: (.+)")


@dataclass(frozen=True)
class Parameter:
    """One parameter: a RELATION is given by its name in a string, an EXPRESSION reads its columns.

    An optional one is NULL where the call does not give it.
    """

    name: str
    kind: str
    is_optional: bool
    description: str


@dataclass(frozen=True)
class Macro:
    """One versioned table macro. `path` is relative to sql/macros, `sql` the bare query of the file."""

    name: str
    version: int
    grain: str
    summary: str
    parameters: tuple[Parameter, ...]
    columns: tuple[Column, ...]
    example: str
    algorithm: str | None
    sql: str
    path: str
    fingerprint: str

    @property
    def signature(self) -> str:
        """How it is called, with the default of each parameter that has one."""
        return f"{self.name}({', '.join(map(_declaration, self.parameters))})"

    @property
    def definition(self) -> str:
        """The statement that creates it."""
        return f"CREATE OR REPLACE MACRO {self.signature} AS TABLE\n{self.sql}"


def load_macros() -> list[Macro]:
    """Every packaged macro by name; raises SqlFileError on a malformed file."""
    return list(_packaged_macros())


def macros_from_files(texts: Mapping[str, str]) -> list[Macro]:
    """The macros of `{path: text}` by name; raises SqlFileError as `load_macros` does."""
    return [_macro(source) for _, source in sorted(parse_files(texts, _KEYS).items())]


@cache
def _packaged_macros() -> tuple[Macro, ...]:
    return tuple(macros_from_files(packaged_texts(files("tracewh.sql") / "macros")))


def _macro(source: SqlFile) -> Macro:
    if source.references:
        # Called in an attached database, a macro finds no other macro or view of its own.
        raise SqlFileError(
            f"{source.path}: {source.name} reads {source.references[0]}; a macro reads its parameters only."
        )
    rows = table_rows(
        source, "parameters", _PARAMETER, "'p_name RELATION: text' or 'p_name EXPRESSION = NULL: text'"
    )
    parameters = tuple(Parameter(row[1], row[2], row[3] is not None, row[4]) for row in rows)
    return Macro(
        name=source.name,
        version=source.version,
        grain=source.header["grain"],
        summary=source.header["summary"],
        parameters=parameters,
        columns=columns_of(source),
        example=source.header["example"],
        algorithm=source.header.get("algorithm"),
        sql=source.sql,
        path=source.path,
        fingerprint=fingerprint(source, [], tuple(map(_declaration, parameters))),
    )


def _declaration(parameter: Parameter) -> str:
    return f"{parameter.name} := NULL" if parameter.is_optional else parameter.name
