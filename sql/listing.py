"""What a warehouse holds, for listings: records of runs, captures, files and tables."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from typing import Any

from tracewh.ingest.errors import WarehouseError
from tracewh.sql.warehouse import Warehouse

Record = dict[str, Any]

# So many runs are named where one is not there; of more, those with names like it.
_MOST_LISTED_RUNS = 8

_RUNS = """
    SELECT r.run_name AS run,
           count(c.capture_id) AS captures,
           (SELECT count(DISTINCT e.device_id)
            FROM main.device_events AS e JOIN main.devices AS d USING (device_id)
            WHERE d.run_id = r.run_id AND e.role IN ('work', 'serialized')) AS devices,
           (SELECT count(DISTINCT s.step_num)
            FROM v1._event_steps AS s JOIN main.captures AS o USING (capture_id)
            WHERE o.run_id = r.run_id) AS steps,
           r.commit_sha AS "commit",
           string_agg(DISTINCT c.device_kind, ', ' ORDER BY c.device_kind) AS device_kind,
           CAST(sum(c.device_event_count + c.serialized_event_count) AS BIGINT) AS device_events,
           (SELECT CAST(coalesce(sum(p.occurrences), 0) AS BIGINT)
            FROM main.ingest_problems AS p WHERE p.run_id = r.run_id) AS problems
    FROM main.runs AS r LEFT JOIN v1.captures AS c USING (run_id)
    GROUP BY r.run_id, r.run_name, r.commit_sha
    ORDER BY r.run_id
"""
_RUN_NAMES = "SELECT run_id, run_name FROM main.runs ORDER BY run_id"
_LABELS = """
    SELECT l.label, l.value FROM main.run_labels AS l JOIN main.runs AS r USING (run_id)
    WHERE r.run_name = $1 ORDER BY l.label
"""
_CAPTURES = """
    SELECT capture_id AS capture, source_kind AS source, process_index AS process, platform,
           device_kind, device_count AS devices, step_count AS steps,
           device_event_count + serialized_event_count AS device_events,
           serialized_event_count AS serialized, problem_count AS problems
    FROM v1.captures WHERE run_name = $1 ORDER BY capture_id
"""
_ARTIFACTS = """
    SELECT a.kind, a.bytes, a.status, a.capture_id AS capture, a.path, a.detail
    FROM main.artifacts AS a JOIN main.runs AS r USING (run_id) WHERE r.run_name = $1 ORDER BY a.path
"""
_TABLES = "SELECT table_name AS \"table\" FROM duckdb_tables() WHERE schema_name = 'main' ORDER BY 1"


def runs(warehouse: Warehouse) -> list[Record]:
    """The runs, in the order in which they came, with counts over all of their captures."""
    return records(warehouse, _RUNS)


def check_run(warehouse: Warehouse, run: str) -> int:
    """The id of a run; raises WarehouseError, with what runs there are, where there is no such run."""
    ids = {record["run_name"]: int(record["run_id"]) for record in records(warehouse, _RUN_NAMES)}
    if run not in ids:
        raise WarehouseError(f"{warehouse.path} has no run {run}; {_runs_instead(run, list(ids))}")
    return ids[run]


def missing_run(run: str, known: Sequence[str]) -> str:
    """What to say where there is no run of that name among those of a warehouse."""
    return f"There is no run {run}; {_runs_instead(run, known)}"


def _runs_instead(run: str, known: Sequence[str]) -> str:
    if len(known) <= _MOST_LISTED_RUNS:
        return f"its runs: {', '.join(known) or 'none'}."
    return did_you_mean(run, known, "`tracewh ls` lists the runs")


def did_you_mean(name: str, known: Sequence[str], otherwise: str) -> str:
    """The names most like one that is not there, or else where to find them all."""
    near = difflib.get_close_matches(name, known, n=3)
    question = f"did you mean {' or '.join(near)}? " if near else ""
    return f"{question}{otherwise}."


def captures(warehouse: Warehouse, run: str) -> list[Record]:
    """The captures of a run."""
    return records(warehouse, _CAPTURES, run)


def artifacts(warehouse: Warehouse, run: str) -> list[Record]:
    """The files of a run, by path, with what became of each."""
    return records(warehouse, _ARTIFACTS, run)


def labels(warehouse: Warehouse, run: str) -> dict[str, str]:
    """The labels of a run."""
    return {record["label"]: record["value"] for record in records(warehouse, _LABELS, run)}


def tables_query() -> str:
    """The query that lists the tables of facts."""
    return _TABLES


def records(warehouse: Warehouse, query: str, *parameters: object) -> list[Record]:
    """The rows of a query as records; $1, $2 ... in it are the parameters."""
    cursor = warehouse.connection.execute(query, list(parameters))
    names = [column[0] for column in cursor.description or ()]
    return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
