"""RPD traces for tests: written row by row, and read back as plain dictionaries."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tracewh.ingest.rocm_process import TableProcess
from tracewh.ingest.rpd import read_processes
from tracewh.ingest.sqlite_file import SqliteFile

_SCHEMA_2 = """
CREATE TABLE rocpd_metadata (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, tag varchar(4096) NOT NULL,
    value varchar(4096) NOT NULL);
CREATE TABLE rocpd_string (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, string varchar(4096) NOT NULL);
CREATE TABLE rocpd_api (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, pid integer, tid integer,
    start integer, "end" integer, apiName_id integer, args_id integer);
CREATE TABLE rocpd_op (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, gpuId integer, queueId integer,
    sequenceId integer, completionSignal varchar(18), start integer, "end" integer, description_id integer,
    opType_id integer);
CREATE TABLE rocpd_api_ops (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, api_id integer, op_id integer);
CREATE TABLE rocpd_kernelapi (api_ptr_id integer NOT NULL PRIMARY KEY, stream varchar(18), gridX integer,
    gridY integer, gridZ integer, workgroupX integer, workgroupY integer, workgroupZ integer,
    groupSegmentSize integer, privateSegmentSize integer, kernelArgAddress varchar(18),
    aquireFence varchar(8), releaseFence varchar(8), codeObject_id integer, kernelName_id integer);
CREATE TABLE rocpd_copyapi (api_ptr_id integer NOT NULL PRIMARY KEY, stream varchar(18), size integer,
    width integer, height integer, kind integer, dst varchar(18), src varchar(18), dstDevice integer,
    srcDevice integer, sync bool, pinned bool);
CREATE TABLE rocpd_monitor (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, deviceType varchar(16),
    deviceId integer, monitorType varchar(16), start integer, "end" integer, value varchar(255));
"""
_SCHEMA_3 = """
ALTER TABLE rocpd_api ADD COLUMN category_id bigint;
ALTER TABLE rocpd_api ADD COLUMN domain_id bigint;
CREATE TABLE rocpd_ustring (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, string varchar(4096) NOT NULL);
CREATE TABLE rocpd_counter (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, value real, op_id bigint,
    name_id bigint);
CREATE TABLE rocpd_stackframe (id integer NOT NULL PRIMARY KEY AUTOINCREMENT, api_ptr_id bigint,
    depth integer, name_id bigint);
"""


class RpdWriter:
    """Writes a trace; names are given as text and become ids of rocpd_string."""

    def __init__(self, path: Path, schema: int = 2) -> None:
        self.path, self.schema = path, schema
        self.connection = sqlite3.connect(path)
        self.connection.executescript(_SCHEMA_2 + (_SCHEMA_3 if schema == 3 else ""))
        self._ids: dict[str, int] = {}
        self.add("metadata", tag="schema_version", value=str(schema))
        self.name("")
        if schema == 3:
            self.add("ustring", string="")

    def add(self, table: str, **columns: Any) -> int:
        names, marks = ", ".join(f'"{name}"' for name in columns), ", ".join("?" * len(columns))
        statement = f"INSERT INTO rocpd_{table} ({names}) VALUES ({marks})"
        return int(self.connection.execute(statement, list(columns.values())).lastrowid or 0)

    def name(self, text: str) -> int:
        if text not in self._ids:
            self._ids[text] = self.add("string", string=text)
        return self._ids[text]

    def call(self, name: str, args: str = "", start: int = 1000, pid: int | None = 1, **columns: Any) -> int:
        tail = {"category_id": 1, "domain_id": 1} if self.schema == 3 else {}
        args_id = self.name(args)
        if self.schema == 3:
            args_id = self.add("ustring", string=args) if args else 1
        row = {"pid": pid, "tid": 7, "start": start, "end": start + 10, "apiName_id": self.name(name)}
        return self.add("api", **{**row, "args_id": args_id, **tail, **columns})

    def op(
        self,
        op_type: str,
        description: str = "",
        calls: Iterable[int] = (),
        start: int = 2000,
        gpu: int = 0,
        **columns: Any,
    ) -> int:
        row = {"gpuId": gpu, "queueId": 3, "sequenceId": 0, "start": start, "end": start + 50}
        ids = {"description_id": self.name(description), "opType_id": self.name(op_type)}
        op_id = self.add("op", **{**row, **ids, **columns})
        for call in calls:
            self.add("api_ops", api_id=call, op_id=op_id)
        return op_id

    def launch(
        self,
        call: int,
        grid: tuple[int, int, int],
        group: tuple[int, int, int],
        name: str = "k",
        **columns: Any,
    ) -> None:
        sizes = dict(zip(("gridX", "gridY", "gridZ"), grid, strict=True))
        sizes |= dict(zip(("workgroupX", "workgroupY", "workgroupZ"), group, strict=True))
        rest = {"stream": "0x0", "groupSegmentSize": 0, "privateSegmentSize": 0, "codeObject_id": ""}
        self.add(
            "kernelapi", api_ptr_id=call, **{**sizes, **rest, "kernelName_id": self.name(name), **columns}
        )

    def copy(self, call: int, **columns: Any) -> None:
        row = {"stream": "0x0", "size": 64, "width": "", "height": "", "kind": 1, "dst": "", "src": ""}
        rest = {"dstDevice": 0, "srcDevice": 0, "sync": 0, "pinned": 0}
        self.add("copyapi", api_ptr_id=call, **{**row, **rest, **columns})

    def processes(self) -> list[TableProcess]:
        self.connection.commit()
        self.connection.close()
        return processes_of(self.path)

    def process(self) -> TableProcess:
        (process,) = self.processes()
        return process


def processes_of(path: Path) -> list[TableProcess]:
    with SqliteFile(path) as file:
        return read_processes(file)


def rows(process: TableProcess, base: str) -> list[dict[str, Any]]:
    """Rows of a table with texts in place of the ids of strings, and without nulls."""
    strings = dict(
        zip(
            process.reference("string").integers("id").to_pylist(),
            process.reference("string").texts("string").to_pylist(),
            strict=True,
        )
    )
    kernels = {
        row["id"]: row["display_name"] for row in process.reference("info_kernel_symbol").table.to_pylist()
    }
    found = []
    for row in process.reference(base).table.to_pylist():
        for column in ("name_id", "event.category_id"):
            if row.get(column) is not None:
                row[column] = strings[row[column]]
        if row.get("kernel_id") is not None:
            row["kernel_id"] = kernels[row["kernel_id"]]
        found.append({name: value for name, value in row.items() if value is not None})
    return found


def problems(process: TableProcess) -> dict[tuple[str, str], int]:
    """Occurrences by problem and place."""
    return {(one.problem, one.place): one.occurrences for one in process.problems.problems()}
