"""Rows that events share: which are one, which event refers to which, and that each is handed over once."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from tracewh.ingest.shared_details import CALL_DETAILS_TYPES, LAUNCH_DETAILS_TYPES, OP_TYPES
from tracewh.ingest.shared_rows import SharedRows
from tracewh.sql.schema_files import create_schema


def launches() -> SharedRows:
    return SharedRows("launch_details_id", LAUNCH_DETAILS_TYPES)


def columns(types: Mapping[str, pa.DataType], *rows: dict[str, Any]) -> dict[str, pa.Array]:
    """The rows by column, of the columns that any of them has."""
    names = {name for row in rows for name in row}
    return {name: pa.array([row.get(name) for row in rows], types[name]) for name in types if name in names}


def ids_of(shared: SharedRows, *rows: dict[str, Any]) -> list[int | None]:
    return list(shared.ids_of_arrays(columns(LAUNCH_DETAILS_TYPES, *rows), len(rows)).to_pylist())


def without_nulls(rows: pa.Table) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if value is not None} for row in rows.to_pylist()]


def test_equal_launches_share_a_row_and_null_is_a_value_of_its_own() -> None:
    shared = launches()
    assert ids_of(
        shared,
        {"grid_x": 8, "stream_id": 0},
        {},
        {"grid_x": 8},
        {"copy_kind": "H2D", "copy_bytes": 0},
        {"grid_x": 8, "stream_id": 0},
        {"grid_y": 8},
        {"grid_x": 8},
        {"copy_kind": ""},
    ) == [0, None, 1, 2, 0, 3, 1, 4]
    rows = shared.new_rows()
    assert without_nulls(rows) == [
        {"launch_details_id": 0, "grid_x": 8, "stream_id": 0},
        {"launch_details_id": 1, "grid_x": 8},
        {"launch_details_id": 2, "copy_kind": "H2D", "copy_bytes": 0},
        {"launch_details_id": 3, "grid_y": 8},
        {"launch_details_id": 4, "copy_kind": ""},
    ]
    expected = {"launch_details_id": pa.int64(), **LAUNCH_DETAILS_TYPES}
    assert dict(zip(rows.column_names, rows.schema.types, strict=True)) == expected


def test_rows_met_before_are_known_and_not_handed_over_again() -> None:
    shared = launches()
    assert ids_of(shared, {"grid_x": 8}, {"grid_x": 9}) == [0, 1]
    assert len(shared.new_rows()) == 2
    assert ids_of(shared, {"grid_x": 9}, {"grid_x": 10}, {"grid_x": 8}) == [1, 2, 0]
    assert without_nulls(shared.new_rows()) == [{"launch_details_id": 2, "grid_x": 10}]
    assert len(shared.new_rows()) == 0


def test_an_absent_column_is_null() -> None:
    shared = launches()
    assert ids_of(shared, {"grid_x": 8}) == [0]
    # Elsewhere the table has the column, and rows without a value in it are the same as those before.
    assert ids_of(shared, {"grid_x": 8, "copy_kind": None}, {"grid_x": 8, "copy_kind": "D2H"}) == [0, 1]


@pytest.mark.parametrize("count", [0, 3])
def test_no_events_and_events_without_any_value(count: int) -> None:
    shared = launches()
    for arrays in ({}, {"grid_x": pa.nulls(count, pa.int64()), "copy_kind": pa.nulls(count, pa.string())}):
        found = shared.ids_of_arrays(arrays, count)
        assert (found.type, found.to_pylist()) == (pa.int64(), [None] * count)
    assert len(shared.new_rows()) == 0


def test_columns_of_other_tables_are_left_alone() -> None:
    arrays = {
        "host_event_id": pa.array([1, 2, 3]),
        "grid_x": pa.array([4, 4, 5]),
        "program_id": pa.array([7, None, 7]),
    }
    ops = SharedRows("op_id", OP_TYPES)
    assert ops.ids_of_arrays(arrays, 3).to_pylist() == [0, None, 0]
    assert without_nulls(ops.new_rows()) == [{"op_id": 0, "program_id": 7}]
    assert launches().ids_of_arrays(arrays, 3).to_pylist() == [0, 0, 1]


def test_texts_of_both_arrow_types() -> None:
    texts = ["H2D", None, "D2H", "H2D"]
    shared = launches()
    for kind in (pa.string(), pa.large_string()):
        assert shared.ids_of_arrays({"copy_kind": pa.array(texts, kind)}, 4).to_pylist() == [0, None, 1, 0]
    sliced = pa.array(["P2P", *texts])[1:]
    assert shared.ids_of_arrays({"copy_kind": sliced}, 4).to_pylist() == [0, None, 1, 0]
    assert len(shared.new_rows()) == 2


def test_numbers_of_any_size() -> None:
    edges = [-(2**63), 2**63 - 1, 0, 1, -1, None, 2**40, -(2**63)]
    shared = launches()
    rows = [{"grid_x": x, "grid_y": y, "stream_id": x} for x in edges for y in edges]
    found = ids_of(shared, *rows)
    assert_each_finds_its_own(rows, found, shared.new_rows())


@pytest.mark.parametrize("parts", [1, 7])
def test_every_event_finds_its_own_values(parts: int) -> None:
    generator = random.Random(5)
    rows = [
        {
            "grid_x": generator.choice([None, 0, 1, 2**40]),
            "copy_kind": generator.choice([None, "", "H2D"]),
            "kernel_symbol_id": generator.choice([None, 0, 5]),
        }
        for _ in range(700)
    ]
    shared, found, tables = launches(), [], []
    size = len(rows) // parts
    for part in range(parts):
        found += ids_of(shared, *rows[part * size : (part + 1) * size])
        tables.append(shared.new_rows())
    details = pa.concat_tables(tables)
    assert len(details) == 4 * 3 * 3 - 1
    assert details["launch_details_id"].to_pylist() == list(range(len(details)))
    assert_each_finds_its_own(rows, found, details)


def assert_each_finds_its_own(rows: list[dict[str, Any]], found: list[int | None], details: pa.Table) -> None:
    by_id = {row.pop("launch_details_id"): row for row in details.to_pylist()}
    for row, details_id in zip(rows, found, strict=True):
        is_known = any(value is not None for value in row.values())
        assert (details_id is not None) == is_known
        if is_known:
            assert by_id[details_id] == dict.fromkeys(LAUNCH_DETAILS_TYPES) | row


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
    # What is an index of a device here is its id there.
    declared = {
        column.replace("device_index", "device_id"): sql_types[kind] for column, kind in types.items()
    }
    assert dict(columns) == {"capture_id": "BIGINT", id_column: "BIGINT"} | declared
