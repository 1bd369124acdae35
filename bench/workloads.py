"""What the benchmark measures, each run by a process of its own: python workloads.py NAME ARGUMENT...

Prints one JSON object on the last line of stdout. Imports are made where they are needed: the interpreter
that has XProf need not have tracewh, and start-up is to hold what the workload itself loads.
"""

from __future__ import annotations

import json
import mmap
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

Measured = dict[str, Any]


def _timed(work: Callable[[], object]) -> tuple[float, float, object]:
    """CPU seconds of all threads, wall seconds, and the result, which is freed after the clock stops."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return time.process_time() - cpu, time.perf_counter() - wall, result


def _decode(data: bytes | memoryview, threads: int) -> int:
    """Decode every event of the XSpace; return their number."""
    from tracewh.ingest.xspace_decode import open_space

    space = open_space(data, "benchmark", threads=threads)
    lines = [line for plane in space.planes for line in plane.lines]
    return sum(len(chunk) for _, chunk in space.chunks(lines))


def _parse(data: bytes) -> object:
    from tracewh.ingest.xspace_messages import MESSAGES

    return MESSAGES["XSpace"].FromString(data)


def decoders(capture: str, repeat: str) -> Measured:
    """Each decoder on the same bytes in turn, medians, after one untimed call of each."""
    data = Path(capture).read_bytes()
    candidates: dict[str, Callable[[], object]] = {
        "protobuf parse": lambda: _parse(data),
        "tracewh decode, 1 thread": lambda: _decode(data, 1),
        "tracewh decode, 2 threads": lambda: _decode(data, 2),
    }
    measured: Measured = {}
    for name, work in list(candidates.items()):
        try:
            result = work()
        except Exception as error:
            measured[name] = {"failure": f"{type(error).__name__}: {error}"}
            del candidates[name]
            continue
        if isinstance(result, int):
            measured["events"] = result
        del result
    samples: dict[str, list[tuple[float, float]]] = {name: [] for name in candidates}
    for _ in range(int(repeat)):
        for name, work in candidates.items():
            cpu, wall, result = _timed(work)
            samples[name].append((cpu, wall))
            del result
    for name, pairs in samples.items():
        cpu, wall = (statistics.median(column) for column in zip(*pairs, strict=True))
        measured[name] = {"cpu_s": cpu, "wall_s": wall}
    return measured


def parse(capture: str) -> Measured:
    """Protobuf's parse alone, for its memory."""
    _parse(Path(capture).read_bytes())
    return {}


def decode(capture: str, threads: str) -> Measured:
    """The decoder alone over the mapped file, for its memory, of which the mapped pages are a part."""
    with Path(capture).open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return {"events": _decode(memoryview(mapped), int(threads))}


def ingest(capture: str, warehouse: str) -> Measured:
    """`tracewh ingest` as a user runs it."""
    from tracewh.cli import main

    main(["ingest", "-w", warehouse, capture], standalone_mode=False)
    return {}


def kernel_stats(warehouse: str) -> Measured:
    """All rows of v1.kernel_stats of a warehouse, as Python objects."""
    import tracewh

    with tracewh.open(warehouse) as handle:
        connection = handle.connection
        cpu, wall, _ = _timed(lambda: connection.execute("SELECT * FROM v1.kernel_stats").fetchall())
    return {"cpu_s": cpu, "wall_s": wall}


# Tables in which rows of reference data are of no run.
_WITH_REFERENCE = ("phase_rules", "scope_rules", "component_rules", "device_peaks")
# Where the step went.
_STEP_VIEWS = (
    *("device_time", "phase_time", "component_time", "idle_gaps", "collectives", "collective_executions"),
    *("step_spread", "occurrences", "reconciliation"),
)
_SORT = """
    SELECT COUNT(*), SUM(place) FROM (
        SELECT ROW_NUMBER() OVER (PARTITION BY capture_id, device_id ORDER BY start_ps) AS place
        FROM device_events WHERE role = 'work' AND {condition}
    )
"""


def views(warehouse: str) -> Measured:
    """Each view of a step's time in full; of a warehouse with several captures, for the one in the middle."""
    import duckdb

    with duckdb.connect(warehouse, read_only=True) as connection:
        ids = [
            row[0] for row in connection.execute("SELECT capture_id FROM captures ORDER BY ALL").fetchall()
        ]
        capture = ids[len(ids) // 2]
        of_capture = f"capture_id = {capture}"
        of_run = f"run_id = (SELECT run_id FROM captures WHERE {of_capture})"
        queries = {"sort of the events": _SORT.format(condition=of_capture)} | {
            f"v1.{view}": f"SELECT COUNT(*), SUM(HASH(v)) FROM (SELECT * FROM v1.{view} WHERE "
            f"{of_run if view == 'step_spread' else of_capture}) AS v"
            for view in _STEP_VIEWS
        }
        measured = []
        for name, query in queries.items():
            best = min(_timed(lambda query=query: connection.execute(query).fetchall())[:2] for _ in range(3))
            measured.append((name, *best))
        query = f"SELECT COUNT(*) FROM device_events WHERE {of_capture}"
        (count,) = connection.execute(query).fetchall()[0]
    return {"queries": measured, "counts": {"device_events": count}}


def copy_captures(warehouse: str, captures: str) -> Measured:
    """Repeat the rows of a warehouse's one capture until there are so many captures, each of its own run."""
    import duckdb

    with duckdb.connect(warehouse) as connection:
        columns: dict[str, list[str]] = {}
        query = (
            "SELECT table_name, column_name FROM duckdb_columns() WHERE schema_name = 'main' AND NOT internal"
        )
        tables = {row[0] for row in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall()}
        for table, column in connection.execute(query).fetchall():
            if table in tables:
                columns.setdefault(table, []).append(column)
        shifted = ("capture_id", "run_id", "device_id", "artifact_id")
        connection.begin()
        for table, names in columns.items():
            if not {"capture_id", "run_id"} & set(names):
                continue
            texts = {name: f"t.{name} + 1000 * c.copy" for name in shifted} | {
                "run_name": "t.run_name || ' ' || c.copy"
            }
            parts = [texts.get(name, f"t.{name}") for name in names]
            condition = "t.run_id IS NOT NULL" if table in _WITH_REFERENCE else "TRUE"
            connection.execute(f"CREATE TEMP TABLE rows_of_{table} AS SELECT * FROM {table}")
            connection.execute(
                f"INSERT INTO {table} SELECT {', '.join(parts)} FROM range(1, {int(captures)}) AS c (copy), "
                f"rows_of_{table} AS t WHERE {condition} ORDER BY c.copy"
            )
        connection.commit()
    return {}


def hlo_parse(module: str) -> Measured:
    """Protobuf's parse of an HLO module."""
    from tracewh.ingest.hlo_proto import HloProto

    data = Path(module).read_bytes()
    cpu, wall, _ = _timed(lambda: HloProto.FromString(data))
    return {"cpu_s": cpu, "wall_s": wall}


def hlo_tables(module: str) -> Measured:
    """All tables of an HLO module, costs included."""
    from tracewh.ingest.capture import Interner, ProblemCounter
    from tracewh.ingest.hlo import read_program
    from tracewh.ingest.hlo_tables import module_tables

    data = Path(module).read_bytes()

    def read() -> int:
        tables = module_tables(read_program(data, 1, module).module, Interner(), ProblemCounter(), module)
        return int(tables["hlo_instructions"].num_rows)

    cpu, wall, count = _timed(read)
    return {"cpu_s": cpu, "wall_s": wall, "instructions": count}


def hlo_xla(module: str) -> Measured:
    """XLA's reading of an HLO module, its cost analysis of the whole, and its text."""
    from jax.extend.backend import get_backend

    try:
        from jaxlib import _hlo as hlo
    except ImportError:
        from jaxlib import _jax as hlo
    from jaxlib import _jax

    from tracewh.ingest.hlo_proto import HloProto

    proto = HloProto.FromString(Path(module).read_bytes()).hlo_module.SerializeToString()
    client = get_backend("cpu")

    def analyse() -> object:
        read = hlo.HloModule.from_serialized_hlo_module_proto(proto)
        return _jax.hlo_module_cost_analysis(client, read), read.to_string()

    cpu, wall, _ = _timed(analyse)
    return {"cpu_s": cpu, "wall_s": wall}


def sqlite_rows(database: str, warehouse: str) -> Measured:
    """Dispatches with names, calls with names and arguments of a rocpd database, by Python's sqlite3.

    Row by row into columns, and those into DuckDB a row group at a time.
    """
    import sqlite3

    import duckdb
    import pyarrow as pa

    source, target = sqlite3.connect(database), duckdb.connect(warehouse)
    counts = {}
    for table, query in _ROCPD_QUERIES.items():
        cursor = source.execute(query)
        names = [column[0] for column in cursor.description]
        columns: list[list[Any]] = [[] for _ in names]
        is_new, rows = True, 0
        for row in cursor:
            for column, value in zip(columns, row, strict=True):
                column.append(value)
            rows += 1
            if rows % _ROW_GROUP == 0:
                _append(target, table, pa.table(dict(zip(names, columns, strict=True))), is_new)
                is_new, columns = False, [[] for _ in names]
        _append(target, table, pa.table(dict(zip(names, columns, strict=True))), is_new)
        counts[table] = rows
    target.close()
    return {"dispatches": counts["dispatches"]}


_ROW_GROUP = 122_880
_ROCPD_QUERIES = {
    "dispatches": """
        SELECT k.*, s.display_name AS kernel_name, e.stack_id AS stack_id, e.correlation_id AS external_id,
            c.string AS category
        FROM rocpd_kernel_dispatch AS k
        LEFT JOIN rocpd_info_kernel_symbol AS s ON s.id = k.kernel_id AND s.guid = k.guid
        LEFT JOIN rocpd_event AS e ON e.id = k.event_id AND e.guid = k.guid
        LEFT JOIN rocpd_string AS c ON c.id = e.category_id AND c.guid = e.guid""",
    "calls": """
        SELECT r.*, n.string AS name, e.stack_id AS stack_id, e.parent_stack_id AS parent_stack_id,
            e.correlation_id AS external_id, c.string AS category
        FROM rocpd_region AS r
        LEFT JOIN rocpd_string AS n ON n.id = r.name_id AND n.guid = r.guid
        LEFT JOIN rocpd_event AS e ON e.id = r.event_id AND e.guid = r.guid
        LEFT JOIN rocpd_string AS c ON c.id = e.category_id AND c.guid = e.guid""",
    "arguments": "SELECT a.* FROM rocpd_arg AS a",
}


def _append(connection: Any, table: str, rows: Any, is_new: bool) -> None:
    verb = f"CREATE TABLE {table} AS" if is_new else f"INSERT INTO {table}"
    connection.register("row_group", rows)
    connection.execute(f"{verb} SELECT * FROM row_group")
    connection.unregister("row_group")


def xprof(capture: str) -> Measured:
    """XProf's kernel_stats, as the bytes of its table."""
    from xprof.convert import raw_to_tool_data

    cpu, wall, result = _timed(lambda: raw_to_tool_data.xspace_to_tool_data([capture], "kernel_stats", {}))
    # A file that it cannot parse is an error in its log, and no data.
    assert isinstance(result, tuple)
    if not result[0]:
        raise SystemExit(f"no table, after {cpu:.0f} CPU s")
    return {"cpu_s": cpu, "wall_s": wall}


_WORKLOADS: dict[str, Callable[..., Measured]] = {
    work.__name__: work
    for work in (
        *(decoders, parse, decode, ingest, kernel_stats, xprof),
        *(hlo_parse, hlo_tables, hlo_xla, sqlite_rows, views, copy_captures),
    )
}

if __name__ == "__main__":
    outcome = _WORKLOADS[sys.argv[1]](*sys.argv[2:])
    print("\n" + json.dumps(outcome))
