"""What events share taken off them: which rows are one, and which event refers to which."""

from __future__ import annotations

import random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tracewh.ingest.shared_details import (
    CALL_DETAILS_TYPES,
    LAUNCH_DETAILS_TYPES,
    OP_TYPES,
    split_shared,
)
from tracewh.sql.schema_files import create_schema


def table(*rows: dict[str, Any]) -> pa.Table:
    return pa.table(
        {
            name: pa.array([row.get(name) for row in rows], kind)
            for name, kind in {"device_event_id": pa.int64(), **LAUNCH_DETAILS_TYPES}.items()
        }
    )


def split(*rows: dict[str, Any]) -> tuple[pa.Table, pa.Table]:
    return split_shared(table(*rows), "launch_details_id", LAUNCH_DETAILS_TYPES)


def without_nulls(rows: pa.Table) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if value is not None} for row in rows.to_pylist()]


def test_equal_launches_share_a_row_and_null_is_a_value_of_its_own() -> None:
    events, details = split(
        {"device_event_id": 7, "grid_x": 8, "occupancy_ratio": 0.5},
        {"device_event_id": 8},
        {"device_event_id": 9, "grid_x": 8},
        {"device_event_id": 10, "copy_kind": "H2D", "copy_bytes": 0},
        {"device_event_id": 11, "grid_x": 8, "occupancy_ratio": 0.5},
        {"device_event_id": 12, "grid_y": 8},
        {"device_event_id": 13, "grid_x": 8},
    )
    assert without_nulls(details) == [
        {"launch_details_id": 0, "grid_x": 8, "occupancy_ratio": 0.5},
        {"launch_details_id": 1, "grid_x": 8},
        {"launch_details_id": 2, "copy_kind": "H2D", "copy_bytes": 0},
        {"launch_details_id": 3, "grid_y": 8},
    ]
    assert events.to_pydict() == {
        "device_event_id": [7, 8, 9, 10, 11, 12, 13],
        "launch_details_id": [0, None, 1, 2, 0, 3, 1],
    }
    assert details.schema.field("launch_details_id").type == pa.int64()


def test_no_events_and_no_details() -> None:
    for rows in ((), ({"device_event_id": 1}, {"device_event_id": 2})):
        events, details = split(*rows)
        assert events.column("launch_details_id").to_pylist() == [None] * len(rows)
        assert len(details) == 0


def test_columns_of_another_table_stay() -> None:
    """A table of events may have its details split off table by table, and lack columns of them."""
    rows = pa.table({"host_event_id": [1, 2, 3], "grid_x": [4, 4, 5], "program_id": [7, None, 7]})
    events, ops = split_shared(rows, "op_id", OP_TYPES)
    assert events.to_pydict() == {"host_event_id": [1, 2, 3], "grid_x": [4, 4, 5], "op_id": [0, None, 0]}
    assert ops.to_pydict() == {"op_id": [0], "program_id": [7]}
    events, details = split_shared(events, "launch_details_id", LAUNCH_DETAILS_TYPES)
    assert events.to_pydict() == {
        "host_event_id": [1, 2, 3],
        "op_id": [0, None, 0],
        "launch_details_id": [0, 0, 1],
    }
    assert details.to_pydict() == {"launch_details_id": [0, 1], "grid_x": [4, 5]}


@pytest.mark.parametrize(
    ("name", "id_column", "types"),
    [
        ("ops", "op_id", OP_TYPES),
        ("launch_details", "launch_details_id", LAUNCH_DETAILS_TYPES),
        ("call_details", "call_details_id", CALL_DETAILS_TYPES),
    ],
)
def test_the_declared_columns_are_those_of_the_schema(
    name: str, id_column: str, types: dict[str, pa.DataType]
) -> None:
    with duckdb.connect() as connection:
        create_schema(connection)
        columns = connection.execute(
            "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = ?", [name]
        ).fetchall()
    sql_types = {pa.int64(): "BIGINT", pa.float64(): "DOUBLE", pa.string(): "VARCHAR"}
    declared = {column: sql_types[kind] for column, kind in types.items()}
    assert dict(columns) == {"capture_id": "BIGINT", id_column: "BIGINT"} | declared


def test_every_event_finds_its_own_values() -> None:
    generator = random.Random(5)
    rows = [
        {
            "device_event_id": number,
            "grid_x": generator.choice([None, 0, 1, 2**40]),
            "copy_kind": generator.choice([None, "", "H2D"]),
            "occupancy_ratio": generator.choice([None, 0.0, 0.25]),
        }
        for number in range(500)
    ]
    events, details = split(*rows)
    by_id = {row.pop("launch_details_id"): row for row in details.to_pylist()}
    assert len(by_id) == len(details) == 4 * 3 * 3 - 1
    found = [
        {"device_event_id": event["device_event_id"], **by_id.get(event["launch_details_id"], {})}
        for event in events.to_pylist()
    ]
    assert found == [
        {
            "device_event_id": row["device_event_id"],
            **(dict.fromkeys(LAUNCH_DETAILS_TYPES) | row if any_known(row) else {}),
        }
        for row in rows
    ]


def any_known(row: dict[str, Any]) -> bool:
    return any(value is not None for name, value in row.items() if name != "device_event_id")
