"""A capture's tables into the warehouse: local ids become warehouse ids, rows go in by column name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from tracewh.ingest.capture import Capture, Device, Problem, ProblemCounter
from tracewh.ingest.discovery import Artifact
from tracewh.ingest.errors import TracewhError
from tracewh.ingest.op_names import split_op_name
from tracewh.ingest.run_metadata import RunMetadata
from tracewh.ingest.storable_text import storable
from tracewh.sql.device_loading import load_devices
from tracewh.sql.rows import first_row, next_own_id


@dataclass
class Part:
    """A further file of an artifact; `path` is relative to its run."""

    path: str
    sha256: str
    size_bytes: int


@dataclass
class Source:
    """An artifact with what is known of it before it is loaded; `path` is relative to its run."""

    artifact: Artifact
    path: str
    sha256: str
    parts: list[Part] = field(default_factory=list)
    metadata: RunMetadata | None = None
    problems: ProblemCounter = field(default_factory=ProblemCounter)
    error: TracewhError | None = None

    @property
    def digests(self) -> list[str]:
        """Digests of all of its files."""
        return [self.sha256, *(part.sha256 for part in self.parts)]


@dataclass
class Loaded:
    """What the load of one artifact added; `status` is loaded, merged, recorded, rejected or already there.

    `capture_id` is the capture that the artifact became or was merged into, where that is one. `held_by` are
    the other runs that have its processes, where nothing was loaded for that.
    """

    status: str
    detail: str | None = None
    captures: int = 0
    events: int = 0
    modules: int = 0
    problems: int = 0
    capture_id: int | None = None
    held_by: str | None = None


_NAME_SUFFIX, _DEVICE_SUFFIX = "name_id", "device_index"
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
    # DuckDB finds the rows by the variable's name. Registered, they would stay until the transaction ends.
    tracewh_rows = rows  # noqa: F841
    connection.execute(f"INSERT INTO main.{table} BY NAME SELECT * FROM tracewh_rows")


def load_capture(
    connection: duckdb.DuckDBPyConnection,
    run_id: int,
    artifact_id: int,
    capture: Capture,
) -> tuple[int, dict[str, int]]:
    """Insert a capture with all its rows but its rank, in the caller's transaction.

    Returns its new capture_id and the number of rows by table. Raises UnreadableFile where the rows come from
    a file that turns out to be damaged.
    """
    capture_id = next_id(connection, "captures", "capture_id")
    connection.execute(
        "INSERT INTO main.captures BY NAME SELECT "
        "? AS capture_id, ? AS run_id, ? AS artifact_id, ? AS source_kind, "
        "? AS process_id, ? AS hostname, ? AS platform, ? AS origin_unix_ns, "
        "? AS origin_source_ns, ? AS fingerprint",
        [
            capture_id,
            run_id,
            artifact_id,
            capture.source_kind,
            capture.process_id,
            capture.hostname,
            capture.platform,
            capture.origin_unix_ns,
            capture.origin_source_ns,
            capture.fingerprint,
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
    loader = TableLoader(connection, "capture_id", capture_id, capture.names.strings)
    loader.add_devices(run_id, capture.devices)
    for table, rows in capture.tables.items():
        loader.load(table, rows)
    for table, rows in capture.stream:
        # What was met in the stream first: a CPU device is known by its ops only.
        loader.add_devices(run_id, capture.devices)
        loader.load(table, rows)
    loader.split_op_names()
    return capture_id, loader.row_counts


class TableLoader:
    """Inserts tables of a capture (see `Capture.tables`), or of another owner, in the caller's transaction.

    `owner_column` of each row, as `capture_id`, becomes `owner_id`. `strings` are the texts that name columns
    refer to; it may grow from one table to the next.
    """

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        owner_column: str,
        owner_id: int,
        strings: Sequence[str],
    ) -> None:
        self.row_counts: dict[str, int] = {}
        self._connection, self._strings = connection, strings
        self._owner_column, self._owner_id = owner_column, owner_id
        self._name_ids = np.zeros(0, np.int64)
        self._device_ids: list[int] = []
        self._op_names: set[int] = set()

    def add_devices(self, run_id: int, devices: Sequence[Device]) -> None:
        """Load those of the `devices` of a capture that came since the last call."""
        new = devices[len(self._device_ids) :]
        self._device_ids += load_devices(self._connection, run_id, self._owner_id, new)

    def load(self, table: str, rows: pa.Table) -> None:
        """Insert `rows`, with ids of the warehouse in place of local ones."""
        new_strings = self._strings[len(self._name_ids) :]
        if new_strings:
            self._name_ids = np.concatenate([self._name_ids, _load_names(self._connection, new_strings)])
        name_ids = pa.array(self._name_ids)
        columns: dict[str, pa.Array | pa.ChunkedArray] = {}
        for column in rows.column_names:
            if column.endswith(_DEVICE_SUFFIX):
                indexes = rows[column].cast(pa.int64())
                target = f"{column.removesuffix(_DEVICE_SUFFIX)}device_id"
                columns[target] = pa.array(self._device_ids, pa.int64()).take(indexes)
            elif column.endswith(_NAME_SUFFIX):
                columns[column] = name_ids.take(rows[column].cast(pa.int64()))
            else:
                columns[column] = rows[column]
        for column in _OP_NAME_COLUMNS:
            if column in rows.column_names:
                self._op_names.update(rows[column].unique().drop_null().to_pylist())
        columns[self._owner_column] = pa.array(np.full(rows.num_rows, self._owner_id))
        if table == "device_peaks":
            first = next_own_id(self._connection, "peak_id", [table])
            columns["peak_id"] = pa.array(np.arange(first, first + rows.num_rows))
        insert_rows(self._connection, table, pa.table(columns))
        self.row_counts[table] = self.row_counts.get(table, 0) + rows.num_rows

    def split_op_names(self) -> None:
        """Split the op names that the tables use, where the warehouse has not split them before."""
        wanted = {int(self._name_ids[local]): self._strings[local] for local in self._op_names}
        known = {
            row[0]
            for row in self._connection.execute("SELECT DISTINCT name_id FROM main.op_name_scopes").fetchall()
        }
        segments = [
            (name_id, segment)
            for name_id, op_name in sorted(wanted.items())
            if name_id not in known
            for segment in split_op_name(op_name)
        ]
        insert_rows(
            self._connection,
            "op_name_scopes",
            pa.table(
                {
                    "name_id": pa.array([name_id for name_id, _ in segments], pa.int64()),
                    "member": pa.array([segment.member for _, segment in segments], pa.int32()),
                    "position": pa.array([segment.position for _, segment in segments], pa.int32()),
                    "segment": pa.array([segment.segment for _, segment in segments], pa.string()),
                    "scope": pa.array([segment.scope for _, segment in segments], pa.string()),
                    "transforms": pa.array([segment.transforms for _, segment in segments], pa.string()),
                    "is_last": pa.array([segment.is_last for _, segment in segments], pa.bool_()),
                }
            ),
        )


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
                "place": pa.array([storable(problem.place) for problem in found], pa.string()),
                "occurrences": pa.array([problem.occurrences for problem in found], pa.int64()),
                "detail": pa.array([storable(problem.detail) for problem in found], pa.string()),
            }
        ),
    )
    return sum(problem.occurrences for problem in found)


def _load_names(connection: duckdb.DuckDBPyConnection, strings: Sequence[str]) -> npt.NDArray[np.int64]:
    """Intern `strings`; return their name ids, in the same order."""
    tracewh_strings = pa.table(  # noqa: F841
        {"position": pa.array(np.arange(len(strings))), "name": pa.array(strings, pa.string())}
    )
    connection.execute(
        "INSERT INTO main.names "
        "SELECT row_number() OVER (ORDER BY position) "
        "+ (SELECT COALESCE(MAX(name_id), 0) FROM main.names), name "
        "FROM tracewh_strings AS s ANTI JOIN main.names AS n USING (name)"
    )
    ids = connection.execute(
        "SELECT n.name_id FROM tracewh_strings AS s JOIN main.names AS n USING (name) ORDER BY s.position"
    ).fetchnumpy()["name_id"]
    return np.asarray(ids, np.int64)
