"""Counters and what is derived from them against the same in Python, on small random runs in passes."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import duckdb
import pytest
from hypothesis import given, settings

from .counted_runs import KERNELS, Row, Runs, counter_warehouse, fill, runs
from .test_view_plans import PAIRWISE_JOINS, operators_below, scanned_table

# What each formula takes: weights above the line, and the counter below it, times the number of SIMDs.
Formula = tuple[dict[str, float], str | None]
_UTILIZATION: Formula = ({"SQ_VALU_MFMA_BUSY_CYCLES": 1}, "GRBM_GUI_ACTIVE")
FORMULAS: dict[str, dict[str, Formula]] = {
    "gfx942": {
        "gfx942.memory_read_bytes": (
            {"TCC_EA0_RDREQ": 64, "TCC_BUBBLE": 128 - 64, "TCC_EA0_RDREQ_32B": 32 - 64},
            None,
        ),
        "gfx942.memory_read_bytes.fetch_size": ({"FETCH_SIZE": 1024}, None),
        "gfx942.memory_write_bytes": ({"TCC_EA0_WRREQ": 32, "TCC_EA0_WRREQ_64B": 64 - 32}, None),
        "gfx942.matrix_utilization_ratio": _UTILIZATION,
        "gfx942.matrix_utilization_ratio.mfma_util": ({"MfmaUtil": 0.01}, None),
    },
    "gfx90a": {
        "gfx90a.memory_read_bytes.fetch_size": ({"FETCH_SIZE": 1024}, None),
        "gfx90a.matrix_utilization_ratio": _UTILIZATION,
        "gfx90a.matrix_utilization_ratio.mfma_util": ({"MfmaUtil": 0.01}, None),
    },
    "any": {"any.memory_read_bytes.fetch_size": ({"FETCH_SIZE": 1024}, None)},
}
# What runs need for bytes; none of them collects what FLOPs need.
BYTE_COUNTERS = {
    "gfx942": (
        {"TCC_EA0_RDREQ", "TCC_BUBBLE", "TCC_EA0_RDREQ_32B"},
        {"TCC_EA0_WRREQ", "TCC_EA0_WRREQ_64B"},
    ),
    "gfx90a": ({"TCC_EA_RDREQ", "TCC_EA_RDREQ_32B"}, {"TCC_EA_WRREQ", "TCC_EA_WRREQ_64B"}),
    "any": ({"FETCH_SIZE"}, {"WRITE_SIZE"}),
}
Group = tuple[int, int, int | None]  # device, kernel, blocks
Usable = tuple[float | None, bool]  # a value, and whether formulas may use it


@dataclass(frozen=True)
class Numbered:
    """A dispatch with its capture, its number there, its occurrence, and what its counters come to."""

    capture: int
    event: int
    occurrence: int
    values: dict[str, Usable]

    def value(self, name: str) -> Usable:
        return self.values.get(name, (None, False))


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """A warehouse whose runs each example replaces."""
    with counter_warehouse() as connection:
        yield connection


def made_one(name: str, values: list[float | None], dies: int | None) -> Usable:
    known = [value for value in values if value is not None]
    if not known:
        return None, False
    if name.startswith("GRBM"):
        # One value is the sum over the dies.
        return (max(known), True) if len(known) > 1 else (known[0] / (dies or 1), dies is not None)
    return (sum(known) / len(known) if name == "MfmaUtil" else sum(known)), True


def numbered(given: Runs) -> dict[Group, dict[int, list[Numbered]]]:
    """The dispatches of each group by capture, those of a capture in their order."""
    found: dict[Group, dict[int, list[Numbered]]] = defaultdict(dict)
    for capture, one in enumerate(given.passes):
        for event, dispatch in sorted(
            enumerate(one.dispatches),
            key=lambda pair: pair if pair[1].dispatch_id is None else (pair[1].dispatch_id, pair[1]),
        ):
            dies = given.devices[dispatch.device].dies
            values = {
                one.counters[counter]: made_one(one.counters[counter], instances, dies)
                for counter, instances in dispatch.values.items()
            }
            group = dispatch.device, dispatch.kernel, dispatch.blocks
            members = found[group].setdefault(capture, [])
            members.append(Numbered(capture, event, len(members) + 1, values))
    return found


def first_source(name: str, by_capture: dict[int, list[Numbered]]) -> tuple[int, str] | None:
    """The first capture with a usable value of the counter for any dispatch, and its spelling there."""
    for capture in sorted(by_capture):
        for spelling in (name, f"{name}_sum"):
            if any(member.value(spelling)[1] for member in by_capture[capture]):
                return capture, spelling
    return None


def derived(
    formula: Formula, by_capture: dict[int, list[Numbered]], simds: int | None
) -> list[tuple[Numbered, float | None]] | None:
    """What the formula gives for each dispatch that has all its counters; None where it cannot be used."""
    above, below = formula
    sources = {}
    for name in [*above, *([below] if below else [])]:
        source = first_source(name, by_capture)
        if source is None:
            return None
        sources[name] = source
    counts = {len(by_capture[capture]) for capture, _ in sources.values()}
    if len(counts) > 1 or (below and simds is None):
        return None
    shown = next(by_capture[capture] for capture in sorted(by_capture) if len(by_capture[capture]) in counts)
    results = []
    for position, dispatch in enumerate(shown):
        inputs = {
            name: by_capture[capture][position].value(spelling)
            for name, (capture, spelling) in sources.items()
        }
        if all(is_usable for _, is_usable in inputs.values()):
            value: float | None = sum(weight * (inputs[name][0] or 0) for name, weight in above.items())
            if below:
                cycles = (inputs[below][0] or 0) * (simds or 0)
                value = (value or 0) / cycles if cycles else None
            results.append((dispatch, value))
    return results


def expected_counters(given: Runs) -> dict[Row, tuple[float | None, int]]:
    """Value and occurrence by capture, event, counter and formula."""
    rows: dict[Row, tuple[float | None, int]] = {}
    for group, by_capture in numbered(given).items():
        for members in by_capture.values():
            for member in members:
                for name, (value, _) in member.values.items():
                    rows[member.capture, member.event, name, None] = value, member.occurrence
        device = given.devices[group[0]]
        names_used = set()
        for formula_id, formula in sorted(FORMULAS.get(device.architecture or "", FORMULAS["any"]).items()):
            name = formula_id.split(".")[1]
            results = None if name in names_used else derived(formula, by_capture, device.simds)
            if results is not None:
                names_used.add(name)
                for dispatch, value in results:
                    rows[dispatch.capture, dispatch.event, name, formula_id] = value, dispatch.occurrence
    return rows


def expected_mismatches(given: Runs) -> set[Row]:
    """Device, kernel, blocks, capture, and how often the device's first capture and this one have it."""
    found = numbered(given)
    rows = set()
    for group, by_capture in found.items():
        captures = sorted({capture for other in found if other[0] == group[0] for capture in found[other]})
        counts = [len(by_capture.get(capture, [])) for capture in captures]
        for capture, count in zip(captures, counts, strict=True):
            if count != counts[0]:
                rows.add((group[0], KERNELS[group[1]], group[2], capture, counts[0], count))
    return rows


@given(given_runs=runs())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_counters_of_random_passes(connection: duckdb.DuckDBPyConnection, given_runs: Runs) -> None:
    fill(connection, given_runs)
    found = connection.execute(
        """SELECT capture_id, device_event_id, counter_name, formula_id, value, occurrence, run_id, device_id
        FROM v1.counters"""
    ).fetchall()
    expected = expected_counters(given_runs)
    assert {row[:4] for row in found} == expected.keys()
    assert len(found) == len(expected)
    for *key, value, occurrence, run_id, device_id in found:
        expected_value, expected_occurrence = expected[tuple(key)]
        assert occurrence == expected_occurrence
        assert run_id == given_runs.devices[device_id].run
        if value is None or expected_value is None:
            assert value is expected_value
        else:
            assert math.isclose(value, expected_value, rel_tol=1e-12, abs_tol=1e-12)
    mismatches = connection.execute(
        """SELECT device_id, kernel_name, CAST(SPLIT_PART(grid, ',', 1) AS BIGINT), capture_id,
            first_dispatch_count, dispatch_count
        FROM v1._counter_pass_mismatches"""
    ).fetchall()
    assert set(mismatches) == expected_mismatches(given_runs)
    assert len(mismatches) == len(set(mismatches))


def collected(given: Runs, run: int) -> set[str]:
    """The counters that any dispatch of the run has a value of, as formulas name them."""
    return {
        one.counters[counter].removesuffix("_sum")
        for one in given.passes
        if one.run == run
        for dispatch in one.dispatches
        for counter, instances in dispatch.values.items()
        if any(value is not None for value in instances)
    }


@given(given_runs=runs())
@settings(max_examples=40, deadline=None, derandomize=True)
def test_each_unknown_has_its_reason(connection: duckdb.DuckDBPyConnection, given_runs: Runs) -> None:
    fill(connection, given_runs)
    mismatches = {row[:3] for row in expected_mismatches(given_runs)}
    found = connection.execute(
        """SELECT device_id, kernel_name, CAST(SPLIT_PART(grid, ',', 1) AS BIGINT), flops, memory_read_bytes,
            memory_write_bytes, memory_read_formula_id, memory_write_formula_id, unknown_reason
        FROM v1.kernel_counters"""
    ).fetchall()
    assert len(found) == len(numbered(given_runs))
    for device_id, kernel, blocks, flops, *by_direction, reason in found:
        device = given_runs.devices[device_id]
        architecture = device.architecture
        other = "passes differ" if (device_id, kernel, blocks) in mismatches else "not each dispatch"
        assert flops is None
        if architecture is None:
            flops_reason = "architecture unknown"
        else:
            flops_reason = (
                "counters missing" if architecture in FORMULAS else f"no formulas for {architecture}"
            )
        memory_reason = None
        if None in by_direction[:2]:
            needed = BYTE_COUNTERS.get(architecture or "", BYTE_COUNTERS["any"])
            gaps = [
                sorted(names - collected(given_runs, device.run)) if formula is None else []
                for names, formula in zip(needed, by_direction[2:], strict=True)
            ]
            lost = gaps[0] or gaps[1]
            if lost and architecture is None:
                memory_reason = "architecture unknown"
            elif lost:
                memory_reason = f"counter{'s' if len(lost) > 1 else ''} missing: collect {lost[0]}"
            else:
                memory_reason = other
        if memory_reason in (None, flops_reason):
            assert reason.removeprefix("flops: ").startswith(flops_reason)
            assert reason.startswith("flops: ") == (memory_reason is None)
        else:
            first, second = reason.split("; ")
            assert first.startswith(f"flops: {flops_reason}")
            assert second.startswith(f"memory_bytes: {memory_reason}")


@pytest.mark.parametrize("view", ["v1.counters", "v1.kernel_counters", "v1._counter_pass_mismatches"])
def test_only_rules_are_compared_with_each_row(connection: duckdb.DuckDBPyConnection, view: str) -> None:
    rows = connection.execute(f"EXPLAIN (FORMAT JSON) SELECT * FROM {view} WHERE run_id = 1").fetchall()
    operators = list(operators_below(json.loads(rows[0][1])))
    assert any(scanned_table(operator) == "device_events" for operator in operators)
    for operator in operators:
        if operator["name"] in PAIRWISE_JOINS:
            inputs = {scanned_table(child) for child in operators_below(operator["children"])}
            assert {"counter_rules"} <= inputs <= {"counter_rules", "counters", None}
