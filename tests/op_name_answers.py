"""What the views say of op_names, in a warehouse that holds nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import duckdb
import pyarrow as pa

from tracewh.ingest.op_names import split_op_name
from tracewh.sql.schema_files import create_schema
from tracewh.sql.view_install import install_views
from tracewh.views.catalog import load_views


class OpNameClass(NamedTuple):
    phase: str | None
    component: str | None
    group: str | None
    is_mixed: bool


def classes_of(op_names: Iterable[str]) -> dict[str, OpNameClass]:
    """Class of each op_name by the shipped rules."""
    distinct = list(dict.fromkeys(op_names))
    rows = [
        {
            "name_id": name_id,
            "member": segment.member,
            "position": segment.position,
            "segment": segment.segment,
            "scope": segment.scope,
            "transforms": segment.transforms,
            "is_last": segment.is_last,
        }
        for name_id, op_name in enumerate(distinct)
        for segment in split_op_name(op_name)
    ]
    with duckdb.connect() as connection:
        create_schema(connection)
        install_views(connection, load_views())
        segments = pa.Table.from_pylist(rows)  # noqa: F841
        connection.execute("INSERT INTO main.op_name_scopes BY NAME SELECT * FROM segments")
        found = connection.execute(
            "SELECT op_name_id, phase, component, component_group, is_mixed "
            "FROM v1._op_name_classes WHERE rule_scope = 0"
        ).fetchall()
    return {distinct[name_id]: OpNameClass(*answer) for name_id, *answer in found}
