"""A capture's tables into the warehouse: local ids become warehouse ids, rows go in by column name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import duckdb
import numpy as np
import pyarrow as pa

from tracewh.ingest.capture import Capture, Device, Problem, ProblemCounter
from tracewh.ingest.discovery import Artifact
from tracewh.ingest.errors import TracewhError
from tracewh.ingest.op_names import split_op_name
from tracewh.ingest.run_metadata import RunMetadata
from tracewh.sql.rows import first_row


@dataclass
class Source:
    """An artifact with what is known of it before it is loaded; `path` is relative to its run."""

    artifact: Artifact
    path: str
    sha256: str
    metadata: RunMetadata | None = None
    problems: ProblemCounter = field(default_factory=ProblemCounter)
    error: TracewhError | None = None


@dataclass
class Loaded:
    """What the load of one artifact added; `status` is loaded, merged, recorded or rejected.

    `capture_id` is the capture that the artifact became or was merged into, where that is one.
    """

    status: str
    detail: str | None = None
    captures: int = 0
    events: int = 0
    modules: int = 0
    problems: int = 0
    capture_id: int | None = None


_NAME_SUFFIX = "name_id"
# Columns that can hold a JAX name stack; on TPU it comes as tf_op.
_OP_NAME_COLUMNS = ("op_name_id", "tf_op_name_id")


def next_id(connection: duckdb.DuckDBPyConnection, table: str, column: str) -> int:
    """The first id above all that `table` holds."""
    row = first_row(connection, f"SELECT COALESCE(MAX({column}), 0) + 1 FROM main.{table}")
    assert row is not None
    return int(row[0])


def insert_rows(connection: duckdb.DuckDBPyConnection, table: str, rows: pa.Table) -> None:
    """Append `rows` to `table`; columns are matched by name and those absent become NULL."""
    if not rows.num_rows:
        return
    connection.register("_tracewh_batch", rows)
    try:
        connection.execute(f"INSERT INTO main.{table} BY NAME SELECT * FROM _tracewh_batch")
    finally:
        connection.unregister("_tracewh_batch")


def load_capture(
    connection: duckdb.DuckDBPyConnection,
    run_id: int,
    artifact_id: int,
    process_index: int | None,
    capture: Capture,
) -> int:
    """Insert a capture with all its rows, in the caller's transaction; return its new capture_id."""
    capture_id = next_id(connection, "captures", "capture_id")
    connection.execute(
        "INSERT INTO main.captures BY NAME SELECT "
        "? AS capture_id, ? AS run_id, ? AS artifact_id, ? AS source_kind, "
        "? AS process_index, ? AS process_id, ? AS hostname, ? AS platform, ? AS origin_unix_ns, "
        "? AS origin_source_ns",
        [
            capture_id,
            run_id,
            artifact_id,
            capture.source_kind,
            process_index,
            capture.process_id,
            capture.hostname,
            capture.platform,
            capture.origin_unix_ns,
            capture.origin_source_ns,
        ],
    )
    insert_rows(
        connection,
        "capture_attributes",
        pa.table(
            {
                "capture_id": pa.array([capture_id] * len(capture.attributes), pa.int64()),
                "attribute": pa.array(list(capture.attributes), pa.string()),
                "value": pa.array(list(capture.attributes.values()), pa.string()),
            }
        ),
    )
    device_ids = _load_devices(connection, run_id, capture_id, capture.devices)
    load_tables(connection, capture_id, capture.tables, capture.names.strings, device_ids)
    return capture_id


def load_tables(
    connection: duckdb.DuckDBPyConnection,
    capture_id: int,
    tables: Mapping[str, pa.Table],
    strings: Sequence[str],
    device_ids: Sequence[int] = (),
) -> None:
    """Insert tables of a capture (see `Capture.tables`) under `capture_id`, in the caller's transaction.

    `strings` are the texts that name columns refer to, `device_ids` what `device_index` refers to.
    """
    name_ids = _load_names(connection, strings)
    _load_op_name_scopes(connection, tables, strings, name_ids)
    for table, rows in tables.items():
        columns: dict[str, pa.Array | pa.ChunkedArray] = {}
        for column in rows.column_names:
            if column == "device_index":
                columns["device_id"] = pa.array(device_ids, pa.int64()).take(rows[column].cast(pa.int64()))
            elif column.endswith(_NAME_SUFFIX):
                columns[column] = name_ids.take(rows[column].cast(pa.int64()))
            else:
                columns[column] = rows[column]
        columns["capture_id"] = pa.array(np.full(rows.num_rows, capture_id))
        insert_rows(connection, table, pa.table(columns))


def load_problems(
    connection: duckdb.DuckDBPyConnection,
    run_id: int,
    capture_id: int | None,
    artifact_id: int | None,
    problems: Iterable[Problem],
) -> int:
    """Insert problems; return how many rows they were about."""
    found = list(problems)
    count = len(found)
    insert_rows(
        connection,
        "ingest_problems",
        pa.table(
            {
                "run_id": pa.array([run_id] * count, pa.int64()),
                "capture_id": pa.array([capture_id] * count, pa.int64()),
                "artifact_id": pa.array([artifact_id] * count, pa.int64()),
                "problem": pa.array([problem.problem for problem in found], pa.string()),
                "place": pa.array([problem.place for problem in found], pa.string()),
                "occurrences": pa.array([problem.occurrences for problem in found], pa.int64()),
                "detail": pa.array([problem.detail for problem in found], pa.string()),
            }
        ),
    )
    return sum(problem.occurrences for problem in found)


def _load_devices(
    connection: duckdb.DuckDBPyConnection, run_id: int, capture_id: int, devices: Sequence[Device]
) -> list[int]:
    """Ids of the capture's devices in the run; a device that another capture saw keeps its id."""
    device_ids = []
    for device in devices:
        known = first_row(
            connection,
            "SELECT device_id FROM main.devices "
            "WHERE run_id = ? AND hostname = ? AND device_type = ? AND device_ordinal = ?",
            [run_id, device.hostname, device.device_type, device.ordinal],
        )
        if known is None:
            device_id = next_id(connection, "devices", "device_id")
            connection.execute(
                "INSERT INTO main.devices VALUES (?, ?, ?, ?, ?, ?, ?)",
                [
                    device_id,
                    run_id,
                    device.hostname,
                    device.device_type,
                    device.ordinal,
                    device.kind,
                    device.vendor,
                ],
            )
        else:
            device_id = known[0]
            # An idle plane may say less of a device than the plane of the process that used it.
            connection.execute(
                "UPDATE main.devices "
                "SET device_kind = COALESCE(device_kind, ?), vendor = COALESCE(vendor, ?) "
                "WHERE device_id = ?",
                [device.kind, device.vendor, device_id],
            )
        device_ids.append(device_id)
        if device.attributes:
            connection.executemany(
                "INSERT INTO main.device_attributes VALUES (?, ?, ?, ?)",
                [[capture_id, device_id, name, value] for name, value in device.attributes],
            )
    return device_ids


def _load_names(connection: duckdb.DuckDBPyConnection, strings: Sequence[str]) -> pa.Array:
    """Intern `strings`; return their name ids, in the same order."""
    connection.register(
        "_tracewh_strings",
        pa.table({"position": pa.array(np.arange(len(strings))), "name": pa.array(strings, pa.string())}),
    )
    try:
        connection.execute(
            "INSERT INTO main.names "
            "SELECT row_number() OVER (ORDER BY position) "
            "+ (SELECT COALESCE(MAX(name_id), 0) FROM main.names), name "
            "FROM _tracewh_strings AS s ANTI JOIN main.names AS n USING (name)"
        )
        ids = connection.execute(
            "SELECT n.name_id FROM _tracewh_strings AS s JOIN main.names AS n USING (name) "
            "ORDER BY s.position"
        ).fetchnumpy()["name_id"]
    finally:
        connection.unregister("_tracewh_strings")
    return pa.array(np.asarray(ids, np.int64))


def _load_op_name_scopes(
    connection: duckdb.DuckDBPyConnection,
    tables: Mapping[str, pa.Table],
    strings: Sequence[str],
    name_ids: pa.Array,
) -> None:
    """Split the op names that the tables use, where the warehouse has not split them before."""
    used: set[int] = set()
    for rows in tables.values():
        for column in _OP_NAME_COLUMNS:
            if column in rows.column_names:
                used.update(rows[column].unique().drop_null().to_pylist())
    wanted = {name_ids[local].as_py(): strings[local] for local in used}
    known = {
        row[0] for row in connection.execute("SELECT DISTINCT name_id FROM main.op_name_scopes").fetchall()
    }
    segments = [
        (name_id, segment)
        for name_id, op_name in sorted(wanted.items())
        if name_id not in known
        for segment in split_op_name(op_name)
    ]
    insert_rows(
        connection,
        "op_name_scopes",
        pa.table(
            {
                "name_id": pa.array([name_id for name_id, _ in segments], pa.int64()),
                "position": pa.array([segment.position for _, segment in segments], pa.int32()),
                "segment": pa.array([segment.segment for _, segment in segments], pa.string()),
                "scope": pa.array([segment.scope for _, segment in segments], pa.string()),
                "transforms": pa.array([segment.transforms for _, segment in segments], pa.string()),
                "is_last": pa.array([segment.is_last for _, segment in segments], pa.bool_()),
            }
        ),
    )
