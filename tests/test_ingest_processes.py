"""Several processes at one warehouse, and what a killed one leaves behind."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pytest

import tracewh
from tracewh.ingest.errors import WarehouseError
from tracewh.sql.warehouse import Warehouse

from .ingest_runs import (
    FIXTURES,
    content,
    query,
    write_run,
)
from .xspace_oracle import SpaceBuilder, Unsigned


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "warehouse.duckdb"


HOLD = """
import os, sys
from tracewh.sql.warehouse import Warehouse
with Warehouse.open(sys.argv[1], read_only=False):
    print(os.getpid(), flush=True)
    sys.stdin.readline()
"""
# What is imported on demand comes before the first line, so that a kill falls into the load.
INGEST = """
import sys
import tracewh
from tracewh.ingest import xspace
from tracewh.sql import artifact_loading
print("ready", flush=True)
tracewh.ingest_run(sys.argv[2], warehouse=sys.argv[1])
"""


@contextmanager
def process(script: str, *arguments: Path) -> Iterator[subprocess.Popen[str]]:
    """A Python process that has said its first line."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as started:
        try:
            yield started
        finally:
            started.kill()


@contextmanager
def writer(warehouse: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process that has the warehouse open for writing, and its id."""
    with process(HOLD, warehouse) as holder:
        assert holder.stdout is not None
        yield holder, holder.stdout.readline().strip()


@pytest.mark.parametrize("read_only", [True, False])
def test_another_process_writes(warehouse: Path, read_only: bool) -> None:
    tracewh.ingest_run(FIXTURES / "cpu_train", warehouse=warehouse)
    with writer(warehouse) as (_, pid):
        with pytest.raises(WarehouseError) as caught:
            Warehouse.open(warehouse, read_only=read_only, wait_seconds=0.3)
        assert str(warehouse) in str(caught.value)
        assert pid in str(caught.value)
        assert "\n" not in str(caught.value)
    Warehouse.open(warehouse, read_only=read_only, wait_seconds=0.3).close()


def test_a_second_writer_waits_for_the_first(warehouse: Path) -> None:
    tracewh.ingest_run(FIXTURES / "cpu_train", warehouse=warehouse)
    with writer(warehouse) as (holder, _):
        waiting = subprocess.Popen(
            [sys.executable, "-c", INGEST, str(warehouse), str(FIXTURES / "h200_moe")], stdout=subprocess.PIPE
        )
        assert waiting.stdout is not None
        waiting.stdout.readline()
        time.sleep(1)
        assert waiting.poll() is None
        assert holder.stdin is not None
        holder.stdin.write("\n")
        holder.stdin.flush()
        holder.wait()
        waiting.communicate()
    assert waiting.returncode == 0
    assert query(warehouse, "SELECT run_name FROM runs ORDER BY 1") == [("cpu_train",), ("h200_moe",)]


def test_another_handle_of_this_process_writes(warehouse: Path) -> None:
    with Warehouse.open(warehouse, read_only=False) as handle:
        handle.connection.execute("INSERT INTO main.runs VALUES (1, 'r', '/', NULL, NULL)")
        with pytest.raises(WarehouseError, match="this process"):
            Warehouse.open(warehouse, wait_seconds=0.1)


@pytest.fixture(scope="module")
def large_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose capture takes a second or so to load."""
    space = SpaceBuilder()
    stream = space.gpu().line("Stream #1")
    thread = space.plane("/host:CPU").line("python")
    for number in range(20_000):
        stats = {"correlation_id": Unsigned(number), "program_id": 7, "order": number}
        stream.event(f"kernel_{number % 300}", 1000 * number, 900, stats)
        thread.event("cuLaunchKernel", 1000 * number, 10, {"correlation_id": Unsigned(number), "order": 1})
    return write_run(tmp_path_factory.mktemp("large") / "run", {"a.xplane.pb": space.serialize()})


@pytest.mark.parametrize("tenths", range(1, 13, 2))
def test_a_killed_ingest_leaves_nothing_or_the_whole_capture(
    warehouse: Path, large_run: Path, tenths: int
) -> None:
    tracewh.ingest_run(FIXTURES / "cpu_train", warehouse=warehouse)
    before = content(warehouse)
    with process(INGEST, warehouse, large_run) as started:
        assert started.stdout is not None
        started.stdout.readline()
        # Wherever this falls, a kill leaves one of two states.
        time.sleep(tenths / 10)
        started.send_signal(signal.SIGKILL)
        started.wait()
    found = query(
        warehouse, "SELECT run_name, device_event_count, host_event_count FROM v1.captures ORDER BY 1"
    )
    if len(found) == 1:
        assert content(warehouse) == before
    assert found in (
        [("cpu_train", *found[0][1:])],
        [("cpu_train", *found[0][1:]), ("run", 20_000, 20_000)],
    )
    tracewh.ingest_run(large_run, warehouse=warehouse)
    # Each event has one stat without a column, and the plane of the GPU two.
    assert query(
        warehouse, "SELECT owner, COUNT(*) FROM event_stats WHERE capture_id = 2 GROUP BY 1 ORDER BY 1"
    ) == [("device_event", 20_000), ("host_event", 20_000), ("plane", 2)]


@pytest.mark.parametrize("tenths", range(0, 10, 3))
def test_a_killed_first_ingest_leaves_a_usable_file(warehouse: Path, large_run: Path, tenths: int) -> None:
    with process(INGEST, warehouse, large_run) as started:
        assert started.stdout is not None
        started.stdout.readline()
        time.sleep(tenths / 10)
        started.send_signal(signal.SIGKILL)
        started.wait()
    report = tracewh.ingest_run(large_run, warehouse=warehouse)
    assert report.status in ("loaded", "already there")
    assert query(warehouse, "SELECT COUNT(*) FROM device_events") == [(20_000,)]


@pytest.mark.parametrize("kind", ["no bytes", "no tables"])
def test_a_file_left_by_a_process_that_died_at_once_is_used(warehouse: Path, kind: str) -> None:
    # Between the creation of the file and the commit of its schema a kill leaves one of these.
    if kind == "no bytes":
        warehouse.touch()
    else:
        duckdb.connect(str(warehouse)).close()
    assert tracewh.ingest_run(FIXTURES / "cpu_train", warehouse=warehouse).status == "loaded"
    assert query(warehouse, "SELECT run_name FROM v1.captures") == [("cpu_train",)]


def test_a_database_of_others_is_refused(warehouse: Path) -> None:
    with duckdb.connect(str(warehouse)) as connection:
        connection.execute("CREATE TABLE mine AS SELECT 1 AS x")
    with pytest.raises(WarehouseError, match="not a warehouse"):
        tracewh.ingest_run(FIXTURES / "cpu_train", warehouse=warehouse)
    assert query(warehouse, "SELECT x FROM mine") == [(1,)]
