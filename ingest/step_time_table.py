"""Tables of step times: CSV and JSON lines of a training loop, MaxText, TensorBoard or Weights & Biases."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import PurePath
from typing import Any

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.content import uncompressed_name
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.timing import TimingSample, add_sample, metric_name, metric_of

_STEP_COLUMNS = ("step", "global_step", "step_num", "iteration", "update", "train_step")
_FLAGS = {
    "profiled": "is_profiled",
    "is_profiled": "is_profiled",
    "warmup": "is_warmup",
    "is_warmup": "is_warmup",
}
_TRUTH = {"true": True, "1": True, "yes": True, "false": False, "0": False, "no": False}
# Weights & Biases exports the extremes of a column beside it, under the name of the run.
_EXTREME = re.compile(r"__(?:MIN|MAX)$")
_DELIMITERS = ",;\t"
_KEPT_METRICS = ("loss", "total_weights")


def is_table(name: str, head: bytes) -> bool:
    """Whether a CSV or a file of JSON lines has step times, by its first row."""
    first = head.decode("utf-8-sig", "replace").splitlines()[:1]
    if not first:
        return False
    if _is_csv(name):
        columns = next(csv.reader(first, delimiter=_delimiter(first[0])), [])
    else:
        try:
            content = json.loads(first[0])
        except (ValueError, RecursionError):
            return False
        columns = list(content) if isinstance(content, dict) else []
    return "step_time_s" in {metric for metric, _ in _metrics(columns, name).values()}


def read_table(data: bytes, place: str, problems: ProblemCounter) -> list[TimingSample]:
    """The samples of a table, row by row. Raises UnreadableFile for a table without step times."""
    samples: list[TimingSample] = []
    text = data.decode("utf-8-sig", "replace")
    rows = _csv_rows(text, place) if _is_csv(place) else _json_rows(text, place, problems)
    known: dict[tuple[str, ...], dict[str, tuple[str, float]]] = {}
    for row in rows:
        columns = tuple(row)
        if columns not in known:
            known[columns] = _metrics(list(columns), place)
        flags = {_FLAGS[metric_name(column)]: _flag(row[column]) for column in columns if _is_flag(column)}
        step = next((_step(row[column]) for column in columns if metric_name(column) in _STEP_COLUMNS), None)
        for column, (metric, scale) in known[columns].items():
            if row[column] is None or row[column] == "":
                continue
            value = _number(row[column])
            if value is None:
                problems.add("not_a_number", f"{place}, {column}", f"{str(row[column])[:80]} is left out")
            else:
                add_sample(samples, TimingSample(step, metric, value * scale, **flags), place, problems)
    if not any(sample.metric == "step_time_s" for sample in samples):
        raise UnreadableFile(
            f"{place}: no step time in it. Name a column step_time_s or step_time_ms, or remove the file."
        )
    return samples


def _is_csv(name: str) -> bool:
    return uncompressed_name(PurePath(name).name).lower().endswith(".csv")


def _delimiter(header: str) -> str:
    return max(_DELIMITERS, key=header.count)


def _metrics(columns: list[str], name: str) -> dict[str, tuple[str, float]]:
    """What each column holds; of columns with the same metric, the first."""
    plain = [metric_name(column) for column in columns]
    has_step = any(column in _STEP_COLUMNS for column in plain)
    found: dict[str, tuple[str, float]] = {}
    # TensorBoard exports one tag a file, and only the name of the file says which.
    tag = PurePath(name).name.rpartition("tag-")[2].split(".")[0]
    for column in columns:
        named = tag if metric_name(column) == "value" else column
        known = None if _EXTREME.search(column) else metric_of(named.rpartition(" - ")[2], has_step)
        if known is None and (own := metric_name(named).rpartition("learning_")[2]) in _KEPT_METRICS:
            known = own, 1.0
        if known is not None and known[0] not in {metric for metric, _ in found.values()}:
            found[column] = known
    return found


def _csv_rows(text: str, place: str) -> Iterator[dict[str, Any]]:
    header = text.split("\n", 1)[0]
    reader = csv.DictReader(io.StringIO(text), delimiter=_delimiter(header))
    try:
        for row in reader:
            yield {name: value for name, value in row.items() if isinstance(name, str)}
    except csv.Error as error:
        raise UnreadableFile(
            f"{place}: not valid CSV at line {reader.line_num}: {error}. Correct the file or remove it."
        ) from error


def _json_rows(text: str, place: str, problems: ProblemCounter) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            row = None
        if isinstance(row, dict):
            yield row
        else:
            problems.add("unread_line", place, f"line {number} is no JSON object and is left out")


def _is_flag(column: str) -> bool:
    return metric_name(column) in _FLAGS


def _flag(value: Any) -> bool | None:
    return _TRUTH.get(str(value).strip().lower())


def _step(value: Any) -> int | None:
    number = _number(value)
    return int(number) if number is not None and number.is_integer() and abs(number) < 2**53 else None


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except (ValueError, OverflowError):
        return None
