"""Counter values of rocprof-compute's pmc_perf.csv: one column for each counter, or one row for each value.

`TCC_HIT[3]` is the counter TCC_HIT of instance 3, `TCC_HIT_sum` its sum over all instances. A counter and its
sum are often of different runs of the kernel, and need not agree.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.rocm_rows import INTEGER, TEXT
from tracewh.ingest.rocprof_csv_references import matches
from tracewh.ingest.rocprof_csv_tables import CsvTable
from tracewh.ingest.shared_rows import Column, distinct_rows

_INSTANCE = re.compile(r"(.+)\[(\d{1,9})\]")
_REPEATED = re.compile(r"(.+)_\d+")
_SUM = "_sum"
# Sums of whole numbers that a tool kept as floating point.
_TOLERANCE = 1e-9


class CounterValues:
    """Collects values of the dispatches of one workload; `dispatches` are their numbers, from 0 on."""

    def __init__(self) -> None:
        self._counters: dict[str, int] = {}
        self._parts: list[pa.Table] = []

    def add_columns(self, table: CsvTable, columns: Sequence[str], dispatches: pa.Array) -> None:
        """Add counters that have a column each. An empty cell is a value that was not collected.

        A column that the tool renamed, as another run has the counter, too, goes by the counter's own name.
        """
        own = {table.names[column] for column in columns}
        for column in columns:
            name = table.names[column]
            repeated = _REPEATED.fullmatch(name)
            if repeated and repeated[1] in own:
                name = repeated[1]
            code = self._counters.setdefault(name, len(self._counters))
            codes = pa.repeat(pa.scalar(code, INTEGER), len(table))
            self._add(dispatches, codes, table.integers("xccindex"), table.numbers(column))

    def add_rows(self, table: CsvTable, dispatches: pa.Array) -> None:
        """Add counters that have a row for each value."""
        names = table.texts("countername")
        codes = [
            self._counters.setdefault(name, len(self._counters)) for name in names.dictionary.to_pylist()
        ]
        values = table.numbers("countervalue")
        self._add(
            dispatches, pa.array(codes, INTEGER).take(names.indices), table.integers("xccindex"), values
        )

    def tables(self, agents: pa.Array, place: str, problems: ProblemCounter) -> dict[str, pa.Table]:
        """Return pmc_event and info_pmc, given the agent of each dispatch.

        Of a counter that comes twice for one dispatch the first value is kept, and of a counter with values
        of instances those, not its sum. Both are counted at `place`, a sum where it differs.
        """
        if not self._parts:
            return {}
        values = self._without_sums(self._distinct(place, problems), place, problems)
        dispatches, names = (values.column(name).combine_chunks() for name in ("dispatch", "name"))
        agent_ids = agents.take(dispatches)
        codes, first = distinct_rows([Column.of(agent_ids), Column.of(names)])
        labels = pa.array(self._names(), TEXT).take(names.take(pa.array(first)))
        columns = {
            # The events of dispatches come first, from 1 on.
            "event_id": pc.add(dispatches, 1),
            "pmc_id": pa.array(codes),
            "value": values.column("value").combine_chunks(),
            "instance": values.column("instance").combine_chunks().fill_null(0),
        }
        xccs = values.column("xcc").combine_chunks()
        if len(pc.unique(xccs)) > 1:
            # One index alone is that of the whole device.
            columns["xcc"] = xccs
        return {
            "pmc_event": pa.table(columns),
            "info_pmc": pa.table(
                {
                    "id": pa.array(range(len(first)), INTEGER),
                    "agent_id": agent_ids.take(pa.array(first)),
                    "name": labels,
                }
            ),
        }

    def _add(self, dispatches: pa.Array, counters: pa.Array, xccs: pa.Array, values: pa.Array) -> None:
        columns = {"dispatch": dispatches, "counter": counters, "xcc": xccs, "value": values}
        self._parts.append(pa.table(columns).filter(values.is_valid()))

    def _names(self) -> list[str]:
        """The names of counters, without instances, in the order of the codes in the column `name`."""
        return list(dict.fromkeys(_name_and_instance(counter)[0] for counter in self._counters))

    def _distinct(self, place: str, problems: ProblemCounter) -> pa.Table:
        """One value for each dispatch, counter, instance and die; with the code of the name."""
        values = pa.concat_tables(self._parts).combine_chunks()
        counters = values.column("counter").combine_chunks()
        codes = {name: code for code, name in enumerate(self._names())}
        told = [_name_and_instance(counter) for counter in self._counters]
        names = pa.array([codes[name] for name, _ in told], INTEGER)
        instances = pa.array([instance for _, instance in told], INTEGER)
        values = values.append_column("name", names.take(counters))
        values = values.append_column("instance", instances.take(counters))
        keys = [Column.of(values.column(name).combine_chunks()) for name in ("dispatch", "counter", "xcc")]
        _, first = distinct_rows(keys)
        repeated = len(values) - len(first)
        if repeated:
            example = list(self._counters)[np.delete(np.asarray(counters), first)[0]]
            detail = f"value rejected: {example} comes again for its dispatch, the first value is kept"
            problems.add("repeated_counter", place, detail, repeated)
        return values.take(pa.array(first))

    def _without_sums(self, values: pa.Table, place: str, problems: ProblemCounter) -> pa.Table:
        """The values without the sums of those that are there."""
        names = self._names()
        codes = {name: code for code, name in enumerate(names)}
        summed = [codes.get(name.removesuffix(_SUM)) if name.endswith(_SUM) else None for name in names]
        name_codes = values.column("name").combine_chunks()
        of_sums = pa.array(summed, INTEGER).take(name_codes)
        parts = values.filter(values.column("instance").is_valid()).combine_chunks()
        if not len(parts):
            return values
        keys = [parts.column(name).combine_chunks() for name in ("dispatch", "name")]
        groups, first = distinct_rows([Column.of(key) for key in keys])
        totals = np.bincount(groups, np.asarray(parts.column("value")))
        among = [key.take(pa.array(first)) for key in keys]
        group = matches([values.column("dispatch").combine_chunks(), of_sums], among)
        is_told = group.is_valid()
        told = np.asarray(values.column("value").filter(is_told))
        total = totals[np.asarray(group.drop_null())]
        differs = np.flatnonzero(np.abs(told - total) > _TOLERANCE * np.abs(total))
        if len(differs):
            example = names[name_codes.filter(is_told)[differs[0]].as_py()]
            both = f"{told[differs[0]]:.17g}, the sum of its instances {total[differs[0]]:.17g}"
            detail = f"value rejected: {example} is {both}"
            problems.add("counter_sum_differs", place, detail, len(differs))
        return values.filter(pc.invert(is_told)).combine_chunks()


def _name_and_instance(counter: str) -> tuple[str, int | None]:
    found = _INSTANCE.fullmatch(counter)
    return (found[1], int(found[2])) if found else (counter, None)
