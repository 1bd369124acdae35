"""The packaged audits: queries that return what is wrong with a run, as their headers describe them."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

from tracewh.views.catalog import AUDIT_FOLDER
from tracewh.views.sql_files import (
    Column,
    HeaderKeys,
    SqlFile,
    SqlFileError,
    columns_of,
    packaged_texts,
    parse_files,
)

# From what makes the numbers of a run wrong to what a reader of them should know.
SEVERITIES = ("error", "warning", "note")
FILTERS = ("run_name", "capture_id")
_KEYS = HeaderKeys(
    required=("name", "severity", "filter", "question", "meaning", "next", "evidence", "columns"),
    optional=("algorithm",),
    tables=("columns",),
    has_version=False,
)


@dataclass(frozen=True)
class Audit:
    """One audit. Each row of `sql`, a bare query that reads installed views and tables, is a fault.

    `question` is what it asks, `meaning` what is wrong where it returns rows, `next_step` what a user does
    then. `filter_column` is the column of the result by which a client picks runs, so that the events of
    others stay unread: capture_id, or run_name where the fault is of a whole run.
    """

    name: str
    severity: str
    filter_column: str
    question: str
    meaning: str
    next_step: str
    evidence: str
    columns: tuple[Column, ...]
    algorithm: str | None
    sql: str
    path: str
    references: tuple[str, ...]


def load_audits() -> list[Audit]:
    """Every packaged audit, errors first, then by name; raises SqlFileError on a malformed file."""
    return list(_packaged_audits())


def audits_from_files(texts: Mapping[str, str]) -> list[Audit]:
    """The audits of `{path: text}`, errors first, then by name; raises SqlFileError on a malformed file."""
    audits = [_audit(source) for source in parse_files(texts, _KEYS).values()]
    return sorted(audits, key=lambda audit: (SEVERITIES.index(audit.severity), audit.name))


@cache
def _packaged_audits() -> tuple[Audit, ...]:
    folder = files(__package__) / AUDIT_FOLDER.rstrip("/")
    return tuple(audits_from_files(packaged_texts(folder, AUDIT_FOLDER)))


def _audit(source: SqlFile) -> Audit:
    header = source.header
    for key, known in (("severity", SEVERITIES), ("filter", FILTERS)):
        if header[key] not in known:
            raise SqlFileError(f"{source.path}: {key} is one of {', '.join(known)}.")
    columns = columns_of(source)
    if tuple(column.name for column in columns[:2]) != FILTERS:
        raise SqlFileError(f"{source.path}: the first columns of an audit are {' and '.join(FILTERS)}.")
    return Audit(
        name=source.name,
        severity=header["severity"],
        filter_column=header["filter"],
        question=header["question"],
        meaning=header["meaning"],
        next_step=header["next"],
        evidence=header["evidence"],
        columns=columns,
        algorithm=header.get("algorithm"),
        sql=source.sql,
        path=source.path,
        references=source.references,
    )
