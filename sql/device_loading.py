"""Devices of a run: a row for each, whichever of its captures saw it."""

from __future__ import annotations

from collections.abc import Sequence

import duckdb
import numpy as np
import pyarrow as pa

from tracewh.ingest.capture import Device

_SAME_DEVICE = "hostname, device_type, device_ordinal"


def load_devices(
    connection: duckdb.DuckDBPyConnection, run_id: int, capture_id: int, devices: Sequence[Device]
) -> list[int]:
    """Load the devices of a capture; return their ids. One that another capture saw keeps its id."""
    if not devices:
        return []
    # DuckDB finds the rows by the variables' names.
    tracewh_devices = pa.table(  # noqa: F841
        {
            "position": pa.array(np.arange(len(devices))),
            "hostname": pa.array([device.hostname for device in devices], pa.string()),
            "device_type": pa.array([device.device_type for device in devices], pa.string()),
            "device_ordinal": pa.array([device.ordinal for device in devices], pa.int64()),
            "device_kind": pa.array([device.kind for device in devices], pa.string()),
            "vendor": pa.array([device.vendor for device in devices], pa.string()),
        }
    )
    told = (
        f"SELECT {_SAME_DEVICE}, MIN(position) AS position, "
        "FIRST(device_kind ORDER BY position) FILTER (WHERE device_kind IS NOT NULL) AS device_kind, "
        "FIRST(vendor ORDER BY position) FILTER (WHERE vendor IS NOT NULL) AS vendor "
        "FROM tracewh_devices GROUP BY ALL"
    )
    known = "SELECT * FROM main.devices WHERE run_id = ?"
    connection.execute(
        "INSERT INTO main.devices BY NAME SELECT ROW_NUMBER() OVER (ORDER BY position) "
        "+ (SELECT COALESCE(MAX(device_id), 0) FROM main.devices) AS device_id, ? AS run_id, "
        f"* EXCLUDE (position) FROM ({told}) ANTI JOIN ({known}) USING ({_SAME_DEVICE})",
        [run_id, run_id],
    )
    # An idle plane may say less of a device than the plane of the process that used it.
    connection.execute(
        "UPDATE main.devices AS d SET device_kind = COALESCE(d.device_kind, t.device_kind), "
        f"vendor = COALESCE(d.vendor, t.vendor) FROM ({told}) AS t WHERE d.run_id = ? "
        "AND (d.hostname, d.device_type, d.device_ordinal) = (t.hostname, t.device_type, t.device_ordinal) "
        "AND (d.device_kind IS NULL OR d.vendor IS NULL)",
        [run_id],
    )
    ids = connection.execute(
        f"SELECT d.device_id FROM tracewh_devices JOIN ({known}) AS d USING ({_SAME_DEVICE}) "
        "ORDER BY position",
        [run_id],
    ).fetchall()
    device_ids = [int(row[0]) for row in ids]
    said = [
        (device_id, name, value)
        for device_id, device in zip(device_ids, devices, strict=True)
        for name, value in device.attributes
    ]
    tracewh_attributes = pa.table(  # noqa: F841
        {
            "capture_id": pa.array(np.full(len(said), capture_id)),
            "device_id": pa.array([device_id for device_id, _, _ in said], pa.int64()),
            "attribute": pa.array([name for _, name, _ in said], pa.string()),
            "value": pa.array([value for _, _, value in said], pa.string()),
        }
    )
    connection.execute("INSERT INTO main.device_attributes BY NAME SELECT * FROM tracewh_attributes")
    return device_ids


def delete_unused_devices(connection: duckdb.DuckDBPyConnection) -> None:
    """Delete the devices that no capture or measurement refers to any more.

    Runs in the caller's transaction.
    """
    columns = connection.execute(
        "SELECT c.table_name, c.column_name FROM duckdb_columns() AS c JOIN duckdb_tables() AS t "
        "USING (table_oid) WHERE c.database_name = current_database() AND c.schema_name = 'main' "
        "AND c.column_name IN ('device_id', 'source_device_id', 'target_device_id') "
        "AND c.table_name <> 'devices' ORDER BY ALL"
    ).fetchall()
    used = " UNION ".join(f"SELECT {column} AS device_id FROM main.{table}" for table, column in columns)
    connection.execute(
        "DELETE FROM main.devices WHERE device_id NOT IN "
        f"(SELECT device_id FROM ({used}) WHERE device_id IS NOT NULL)"
    )
