"""What the user calls the steps of a run: the choice is kept with the run, and the views read it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import duckdb

from tracewh.ingest.errors import TracewhError
from tracewh.ingest.rule_patterns import anchored, pattern_fault
from tracewh.sql.kept_metrics import mark_metrics_outdated
from tracewh.sql.kept_views import keep_rows_of_run
from tracewh.sql.listing import check_run, records
from tracewh.sql.rows import first_row
from tracewh.sql.step_markers import mark_texts, texts_with_part
from tracewh.sql.warehouse import Warehouse

_RANGE = re.compile(r"([0-9]{1,18})(?:-([0-9]{1,18}))?")
_SHOWN_NAMES = 3
_STEPS = """
    SELECT c.capture_id AS capture, c.process_index AS process, s.device_ordinal AS device,
           s.step_num AS step, s.duration_ms, s.is_complete AS complete, s.found_by, k.step_class AS class,
           s.step_name AS name
    FROM v1.steps AS s
    JOIN main.captures AS c USING (capture_id)
    JOIN v1.step_classes AS k USING (capture_id, device_id, step_num)
    WHERE c.run_id = $1
    ORDER BY c.process_index, c.capture_id, s.device_ordinal, s.device_id, s.start_ps
"""


class StepChoiceError(TracewhError):
    """A choice of steps is malformed, or fits nothing in the run."""


@dataclass(frozen=True)
class StepRange:
    """Steps from `first` to `last`, both included."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> StepRange:
        """The range that `10-12` or `10` stands for. Raises StepChoiceError."""
        found = _RANGE.fullmatch(text.strip())
        if found is None:
            raise StepChoiceError(f"{text!r} are no steps: write the first and the last, as 10-12, or one.")
        first = int(found[1])
        last = int(found[2] or found[1])
        if last < first:
            raise StepChoiceError(f"{text!r}: the first step is after the last. Write {last}-{first}.")
        return cls(first, last)

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


@dataclass(frozen=True)
class StepChoice:
    """Which host events mark the steps of a run, and which steps count; None leaves it to the views."""

    marker: str | None = None
    steps: StepRange | None = None

    @classmethod
    def parse(cls, steps: str | None, marker: str | None) -> StepChoice:
        """The choice as the user writes it. Raises StepChoiceError where it is malformed."""
        if marker is not None and (fault := pattern_fault(marker)) is not None:
            raise StepChoiceError(
                f"{marker!r} is no pattern of step markers that every database understands: {fault}."
            )
        return cls(
            None if marker is None else anchored(marker), None if steps is None else StepRange.parse(steps)
        )

    @property
    def is_empty(self) -> bool:
        """Whether nothing is chosen."""
        return self.marker is None and self.steps is None


def run_id_of(warehouse: Warehouse, run: str) -> int:
    """The id of a run. Raises WarehouseError, with the runs that there are, where there is no such run."""
    check_run(warehouse, run)
    row = first_row(warehouse.connection, "SELECT run_id FROM main.runs WHERE run_name = ?", [run])
    assert row is not None
    return int(row[0])


def read_choice(connection: duckdb.DuckDBPyConnection, run_id: int) -> StepChoice:
    """The choice that holds for a run."""
    row = first_row(
        connection,
        "SELECT marker_pattern, first_step, last_step FROM main.step_choices WHERE run_id = ?",
        [run_id],
    )
    if row is None:
        return StepChoice()
    marker, first, last = row
    return StepChoice(marker, None if first is None or last is None else StepRange(first, last))


def clear_choice(connection: duckdb.DuckDBPyConnection, run_id: int) -> None:
    """Leave the steps of a run to the views; in the caller's transaction."""
    connection.execute("DELETE FROM main.step_choices WHERE run_id = ?", [run_id])
    apply_marker(connection, run_id)


def change_choice(connection: duckdb.DuckDBPyConnection, run_id: int, change: StepChoice) -> list[str]:
    """Change what is not None in `change`; returns warnings. In a transaction that an error rolls back.

    Raises StepChoiceError where the marker matches nothing, or nothing that launches device work, or none of
    the steps is there.
    """
    before = read_choice(connection, run_id)
    choice = StepChoice(change.marker or before.marker, change.steps or before.steps)
    connection.execute(
        "INSERT OR REPLACE INTO main.step_choices (run_id, marker_pattern, first_step, last_step) "
        "VALUES (?, ?, ?, ?)",
        [run_id, choice.marker, choice.steps and choice.steps.first, choice.steps and choice.steps.last],
    )
    matches = apply_marker(connection, run_id)
    if matches == 0:
        raise StepChoiceError(_no_match(connection, run_id, choice.marker or ""))
    if change.marker is not None and not _has_steps(connection, run_id):
        raise StepChoiceError(_no_work(matches or 0, choice.marker or ""))
    return _check_steps(connection, run_id, choice)


def apply_marker(connection: duckdb.DuckDBPyConnection, run_id: int) -> int | None:
    """Mark the steps of a run anew; returns how many texts its marker matches.

    None where the run has no marker. Runs in the caller's transaction.
    """
    matches = mark_texts(connection, run_id)
    keep_rows_of_run(connection, run_id, ["numbered_marks", "event_links", "missing_launches"])
    mark_metrics_outdated(connection, run_id)
    return matches


def run_steps(warehouse: Warehouse, run_id: int) -> list[dict[str, Any]]:
    """The steps of a run as the views have them: one record per device and step."""
    return records(warehouse, _STEPS, run_id)


def _has_steps(connection: duckdb.DuckDBPyConnection, run_id: int) -> bool:
    query = "SELECT 1 FROM main.event_links JOIN main.captures USING (capture_id) WHERE run_id = ? LIMIT 1"
    return first_row(connection, query, [run_id]) is not None


def _check_steps(connection: duckdb.DuckDBPyConnection, run_id: int, choice: StepChoice) -> list[str]:
    if choice.steps is None:
        return []
    rows = connection.execute(
        "SELECT DISTINCT a.step_num FROM v1._step_names AS a JOIN main.captures AS c USING (capture_id) "
        "WHERE c.run_id = ? ORDER BY 1",
        [run_id],
    ).fetchall()
    known = [int(row[0]) for row in rows]
    chosen = [number for number in known if choice.steps.first <= number <= choice.steps.last]
    if not known:
        raise StepChoiceError(
            "no step is known: nothing in the run marks one. Name the events that do with --step-marker."
        )
    if not chosen:
        raise StepChoiceError(f"none of steps {choice.steps} is there; the run has {_spelled(known)}.")
    if len(chosen) <= choice.steps.last - choice.steps.first:
        return [f"of steps {choice.steps} only {_spelled(chosen)} is there; the run has {_spelled(known)}."]
    return []


def _spelled(numbers: Sequence[int]) -> str:
    """`0-3, 7` for ascending numbers; the middle of a long list is left out."""
    ranges: list[StepRange] = []
    for number in numbers:
        if ranges and ranges[-1].last == number - 1:
            ranges[-1] = StepRange(ranges[-1].first, number)
        else:
            ranges.append(StepRange(number, number))
    texts = [str(item) for item in ranges]
    return ", ".join(texts if len(texts) <= 6 else [*texts[:5], "...", texts[-1]])


def _no_match(connection: duckdb.DuckDBPyConnection, run_id: int, marker: str) -> str:
    inner = _inner(marker)
    near = texts_with_part(connection, run_id, inner, _SHOWN_NAMES)
    text = f"no host event or marker of the run is called {inner}, as a whole."
    if near:
        return f"{text} It is a part of: {', '.join(near)}. Write more of the name, or .* for the rest of it."
    query = "SELECT DISTINCT name FROM names JOIN host_events USING (name_id)"
    return f"{text} The names that there are: tracewh sql '{query}'"


def _no_work(matches: int, marker: str) -> str:
    texts = "1 text" if matches == 1 else f"{matches:,} texts"
    return (
        f"{_inner(marker)} matches {texts} of host events, but no device work was launched in them. "
        "Name events around the launches."
    )


def _inner(marker: str) -> str:
    return marker.removeprefix("^").removesuffix("$")
