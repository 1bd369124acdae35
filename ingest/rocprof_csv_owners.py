"""Which process each row of a run's CSVs is of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocm_rows import INTEGER
from tracewh.ingest.rocprof_csv_tables import CsvTable
from tracewh.ingest.shared_rows import Column, distinct_rows

# An early converter headed the column of guids with Pid.
_GUID_COLUMNS = ("guid", "pid")


@dataclass
class Owner:
    """A process: its guid and its id, None where not told, and its part of each file by the file's number."""

    guid: str | None
    process_id: int | None
    tables: dict[int, CsvTable] = field(default_factory=dict)


def owners_of(tables: Sequence[CsvTable], problems: ProblemCounter) -> list[Owner]:
    """Part the rows of all files by process: by guid where any file has them, else by process id.

    Rows that tell neither belong to the first process, counted where there are several.
    """
    owners = _by_guid(tables) or _by_process_id(tables)
    for number, table in enumerate(tables):
        if len(owners) == 1:
            owners[0].tables[number] = table
            continue
        positions = _positions(table, owners)
        if positions.null_count:
            detail = "taken for rows of the first process: they tell neither guid nor process id"
            problems.add("unknown_process", table.file, detail, positions.null_count)
            positions = positions.fill_null(0)
        for position in pc.unique(positions).to_pylist():
            owners[position].tables[number] = table.where(pc.equal(positions, position))
    return owners


def _by_guid(tables: Sequence[CsvTable]) -> list[Owner]:
    process_ids: dict[str, set[int]] = {}
    for table in tables:
        guids, numbers = _guids(table), table.integers("processid")
        _, first = distinct_rows([Column.of(guids.indices), Column.of(numbers)])
        pairs = zip(*(column.take(pa.array(first)).to_pylist() for column in (guids, numbers)), strict=True)
        for guid, number in pairs:
            if guid is not None:
                process_ids.setdefault(guid, set()).update({number} - {None})
    return [Owner(guid, min(found) if len(found) == 1 else None) for guid, found in process_ids.items()]


def _by_process_id(tables: Sequence[CsvTable]) -> list[Owner]:
    numbers: dict[int, None] = {}
    for table in tables:
        numbers |= dict.fromkeys(pc.unique(table.integers("processid")).drop_null().to_pylist())
    return [Owner(None, number) for number in numbers] or [Owner(None, None)]


def _guids(table: CsvTable) -> pa.DictionaryArray:
    return table.texts(next(filter(table.has, _GUID_COLUMNS), _GUID_COLUMNS[0]))


def _positions(table: CsvTable, owners: Sequence[Owner]) -> pa.Array:
    """Which of the owners each row is of; null for none."""
    guids, numbers = _guids(table), table.integers("processid")
    by_guid = {owner.guid: position for position, owner in enumerate(owners) if owner.guid is not None}
    found = pa.array(map(by_guid.get, guids.dictionary.to_pylist()), INTEGER).take(guids.indices)
    # Processes of several hosts may have one id.
    times = Counter(owner.process_id for owner in owners)
    by_number = [
        (owner.process_id, position)
        for position, owner in enumerate(owners)
        if owner.process_id is not None and times[owner.process_id] == 1
    ]
    matched = pc.index_in(numbers, value_set=pa.array([number for number, _ in by_number], INTEGER))
    return pc.coalesce(found, pa.array([position for _, position in by_number], INTEGER).take(matched))
