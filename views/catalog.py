"""The packaged views, as their headers describe them, in the order in which they depend on each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from tracewh.views.macro_catalog import Macro, load_macros
from tracewh.views.sql_files import (
    Column,
    HeaderKeys,
    columns_of,
    dependency_order,
    fingerprint,
    packaged_texts,
    parse_files,
)

# Queries that are run, not installed: see audit_catalog.
AUDIT_FOLDER = "audits/"
_KEYS = HeaderKeys(
    required=("name", "version", "grain", "summary", "evidence", "columns"),
    optional=("algorithm",),
    tables=("columns",),
)


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

    @property
    def definition(self) -> str:
        """The statement that creates it."""
        return f"CREATE OR REPLACE VIEW {self.name} AS\n{self.sql}"


def load_views() -> list[View]:
    """Every packaged view, parents before children; raises SqlFileError on a malformed file or a cycle."""
    return list(_packaged_views())


def views_from_files(texts: Mapping[str, str], macros: Sequence[Macro] = ()) -> list[View]:
    """The views of `{path: text}`, parents before children; raises SqlFileError as `load_views` does.

    They may call `macros`. What a view is, its fingerprint, includes the views and macros that it builds on.
    """
    sources = parse_files(texts, _KEYS)
    fingerprints = {macro.name: macro.fingerprint for macro in macros}
    views = []
    for name in dependency_order(sources, fingerprints):
        source = sources[name]
        parents = [fingerprints[reference] for reference in source.references]
        fingerprints[name] = fingerprint(source, parents)
        views.append(
            View(
                name=name,
                version=source.version,
                grain=source.header["grain"],
                summary=source.header["summary"],
                evidence=source.header["evidence"],
                columns=columns_of(source),
                algorithm=source.header.get("algorithm"),
                sql=source.sql,
                path=source.path,
                references=source.references,
                fingerprint=fingerprints[name],
            )
        )
    return views


@cache
def _packaged_views() -> tuple[View, ...]:
    texts = packaged_texts(files(__package__))
    views = {path: text for path, text in texts.items() if not path.startswith(AUDIT_FOLDER)}
    return tuple(views_from_files(views, load_macros()))
