"""Formulas for counters: as data, and on the counters of a real file of rocprof-compute."""

from __future__ import annotations

import csv
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

from .counted_runs import EVENT_COLUMNS, VALUE_COLUMNS, Device, counter_warehouse, insert, insert_devices

SHARED = Path(__file__).parents[1].parent / "shared"
# On an MI300X: three times the same copy of doubles.
VECTOR_COPY = SHARED / "data/rocprof/rocm-systems-rocprof-compute-dispatch_0-MI300X_A1-pmc_perf.csv"
COPIED_BYTES = 8 * 1_048_576


@dataclass(frozen=True)
class CountedCopy:
    """The dispatches of the file: sums that its tool made, and values of the channels of the L2 cache."""

    totals: list[dict[str, float]]
    channels: list[dict[str, list[float]]]

    def summed(self, dispatch: int, counter: str) -> float:
        return sum(self.channels[dispatch][counter])


def read_copy() -> CountedCopy:
    """The counters of the file: one with [n] behind it is of channel n."""
    copy = CountedCopy([], [])
    with VECTOR_COPY.open(newline="") as file:
        for record in csv.DictReader(file):
            totals = {}
            channels: dict[str, dict[int, float]] = defaultdict(dict)
            for column, text in record.items():
                if match := re.fullmatch(r"([A-Z0-9_]+)\[([0-9]+)\]", column):
                    channels[match[1]][int(match[2])] = float(text)
                elif re.fullmatch(r"(GRBM|SQ|SQC|TA|TD|TCP|TCC|SPI|CPC|CPF)_[A-Za-z0-9_]+", column):
                    totals[column] = float(text)
            copy.totals.append(totals)
            copy.channels.append({name: [by[n] for n in sorted(by)] for name, by in channels.items()})
    return copy


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with counter_warehouse() as connection:
        yield connection


@pytest.fixture(scope="module")
def copy(connection: duckdb.DuckDBPyConnection) -> CountedCopy:
    """The file, and its counters in the warehouse."""
    if not VECTOR_COPY.exists():
        pytest.skip(f"{VECTOR_COPY} is not there")
    copy = read_copy()
    captures = [(0, 1, 0, "rocprof_compute")]
    insert(connection, "captures", ("capture_id", "run_id", "artifact_id", "source_kind"), captures)
    insert_devices(connection, [Device(1, "gfx942", 8, 1216)])
    events = [(0, n, 0, 0, 1, n, n, "kernel", "serialized", n, None) for n in range(len(copy.totals))]
    insert(connection, "device_events", EVENT_COLUMNS, events)
    names = [*copy.totals[0], *copy.channels[0]]
    counters = [(0, *pair) for pair in enumerate(names)]
    insert(connection, "counters", ("capture_id", "counter_id", "counter_name"), counters)
    values = [
        (0, counter, dispatch, instance, value)
        for dispatch, (totals, channels) in enumerate(zip(copy.totals, copy.channels, strict=True))
        for counter, name in enumerate(names)
        for instance, value in enumerate(channels[name] if name in channels else [totals[name]])
    ]
    insert(connection, "counter_values", VALUE_COLUMNS, values)
    return copy


def counted(connection: duckdb.DuckDBPyConnection, counter: str) -> list[float]:
    """Values of a counter, or of what is derived, in the order of the dispatches."""
    rows = connection.execute(
        "SELECT value FROM v1.counters WHERE counter_name = ? ORDER BY occurrence", [counter]
    ).fetchall()
    return [value for (value,) in rows]


def test_channels_of_a_file_add_up(connection: duckdb.DuckDBPyConnection, copy: CountedCopy) -> None:
    for counter in copy.channels[0]:
        assert counted(connection, counter) == [copy.summed(n, counter) for n in range(3)]
    # The tool's own sums come from other passes: what depends on timing differs there.
    for counter in ("TCC_BUBBLE", "TCC_WRITE", "TCC_RW_REQ", "TCC_EA0_WRREQ", "TCC_EA0_WRREQ_64B"):
        assert counted(connection, counter) == counted(connection, f"{counter}_sum")


def test_bytes_of_a_copy(connection: duckdb.DuckDBPyConnection, copy: CountedCopy) -> None:
    assert counted(connection, "memory_write_bytes") == [COPIED_BYTES] * 3
    # Little else is read, such as the kernel's code.
    read = counted(connection, "memory_read_bytes")
    assert all(COPIED_BYTES <= value < 1.002 * COPIED_BYTES for value in read)
    for n, value in enumerate(read):
        bubbles, requests = copy.summed(n, "TCC_BUBBLE"), copy.summed(n, "TCC_EA0_RDREQ")
        assert copy.summed(n, "TCC_EA0_RDREQ_32B") == 0
        assert value == 128 * bubbles + 64 * (requests - bubbles)
    # Between the caches goes both. Lines of the L1 cache are looked up twice as often as would be needed.
    assert counted(connection, "l2_bytes") == [2 * COPIED_BYTES] * 3
    assert counted(connection, "l1_bytes") == [2 * 2 * COPIED_BYTES] * 3
    rows = connection.execute(
        "SELECT occurrences, memory_bytes, flops_per_memory_byte, is_flops_complete FROM v1.kernel_counters"
    ).fetchall()
    # It does no arithmetic on floats; of products of 8-bit floats the file has no counter.
    assert rows == [(3, sum(read) + 3 * COPIED_BYTES, 0, False)]


def test_clocks_of_a_file_are_those_of_one_die(
    connection: duckdb.DuckDBPyConnection, copy: CountedCopy
) -> None:
    expected = [totals["GRBM_GUI_ACTIVE"] / 8 for totals in copy.totals]
    assert counted(connection, "GRBM_GUI_ACTIVE") == expected
    rows = connection.execute(
        "SELECT DISTINCT aggregation FROM v1.counters WHERE counter_name LIKE 'GRBM%'"
    ).fetchall()
    assert rows == [("mean",)]
    # It multiplies no matrices.
    assert counted(connection, "matrix_utilization_ratio") == [0, 0, 0]


def test_formulas_are_whole(connection: duckdb.DuckDBPyConnection) -> None:
    """Each has terms above the line and required ones, none twice, and is named after what it derives."""
    terms = defaultdict(list)
    for formula_id, *term in connection.execute(
        "SELECT formula_id, part, counter_name, is_required FROM main.counter_formula_terms"
    ).fetchall():
        terms[formula_id].append(term)
    formulas = connection.execute(
        "SELECT formula_id, architecture, derived_name, source, caveat FROM main.counter_formulas"
    ).fetchall()
    assert {formula_id for formula_id, *_ in formulas} == terms.keys()
    for formula_id, architecture, derived_name, source, caveat in formulas:
        assert formula_id.split(".")[:2] == [architecture, derived_name]
        assert "" not in (source, caveat)
        parts, names, are_required = zip(*terms[formula_id], strict=True)
        assert {"numerator"} <= set(parts) <= {"numerator", "denominator"}
        assert True in are_required
        assert len(set(names)) == len(names)
        # They are looked up without it.
        assert not any(name.endswith("_sum") for name in names)


def test_rules_match_whole_names(connection: duckdb.DuckDBPyConnection) -> None:
    for pattern, aggregation in connection.execute(
        "SELECT pattern, aggregation FROM main.counter_rules"
    ).fetchall():
        assert re.fullmatch(r"\^[^\\]*\$", pattern)
        assert aggregation in ("sum", "max", "mean")
