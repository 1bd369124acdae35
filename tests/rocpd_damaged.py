"""A rocpd database with every kind of record, and the same with every kind of fault."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from .generated_rocpd import BRANCHES, SCHEMA_VERSIONS, damage, write_complete
from .rocpd_files import make_rocpd

# After these there would be no rows of some kind, or none could be added; the loops leave a table with a
# computed column to SQLite.
NOT_TOGETHER = ("missing_calls", "empty_facts", "many_tables", "hostile_views", "hostile_column")
FAR_NS = 100 * 86_400 * 10**9


def write_every_record(path: Path) -> Path:
    return write_complete(path)


def spoil(path: Path) -> Path:
    """Give a database that `write_every_record` wrote every kind of fault."""
    connection = sqlite3.connect(path)
    run = make_rocpd.Run(schema_version=SCHEMA_VERSIONS[-1], branches=BRANCHES, steps=1)
    writer = make_rocpd.Writer(connection, run)
    for name, change in damage.DAMAGE.items():
        if name not in NOT_TOGETHER:
            change(writer)
    for base in ("kernel_dispatch", "region", "memory_allocate", "hip_event", "graph_launch"):
        table = run.table(base)
        last = f'(SELECT max(id) FROM "{table}")'
        connection.execute(f'UPDATE "{table}" SET "end" = start + {FAR_NS} WHERE id = {last}')
    for base, values in (("sample", ("-5", "'soon'", "0")), ("gpu_pc_sample", ("'soon'", "-1"))):
        table = run.table(base)
        for position, value in enumerate(values):
            chosen = f'(SELECT id FROM "{table}" ORDER BY id DESC LIMIT 1 OFFSET {position})'
            connection.execute(f'UPDATE "{table}" SET timestamp = {value} WHERE id = {chosen}')
    connection.execute(f'UPDATE "{run.table("kernel_dispatch")}" SET agent_id = 987654 WHERE id = 15')
    # Several rows of one event, an event of nothing, and arguments and values of both.
    dispatches, regions = run.table("kernel_dispatch"), run.table("region")
    shared = connection.execute(f'SELECT event_id FROM "{dispatches}" WHERE id = 20').fetchone()[0]
    connection.execute(f'UPDATE "{regions}" SET event_id = {shared} WHERE id IN (20, 21)')
    lost = writer.event("LOST", 4_321)
    for event in (shared, lost, None):
        for number in range(3):
            writer.insert("pmc_event", event_id=event, pmc_id=100, value=number)
        if event is not None:
            writer.insert("arg", event_id=event, position=0, type="int", name="extra", value="5")
            writer.insert("blob_event", **writer.owner, event_id=event, schema_id=1, blob=b"\0\1")
    writer.insert("pmc_event", event_id=shared, sample_id=987_654, pmc_id=100, value=1.0)
    connection.execute(f'CREATE TABLE "{run.table("novelty")}" (a)')
    connection.execute(f'INSERT INTO "{run.table("novelty")}" VALUES (1), (2), (3)')
    damage.hostile_views(writer)
    connection.commit()
    connection.close()
    return path
