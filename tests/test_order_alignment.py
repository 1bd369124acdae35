"""Instructions by order: hidden from the views, found again, and compared with what was hidden.

A capture that tells the instruction of an event, by hlo_op or by the number of a graph's node, is the truth
of one that does not. What is found must never differ from it; how much is found depends on the capture.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import pytest

import tracewh

from .ingest_runs import FIXTURES
from .shared_runs import find_run
from .xspace_files import read_file
from .xspace_oracle import XSpace, text

# The instruction of each event of a graph as the numbers of its nodes tell it.
NUMBERED = """
    CREATE TEMP TABLE truth AS
    SELECT e.capture_id, e.device_event_id, o.program_id, i.name_id AS hlo_op_name_id
    FROM main.device_events AS e
    JOIN main.ops AS o ON o.capture_id = e.capture_id AND o.op_id = e.op_id
    JOIN v1._graph_ops AS g ON g.capture_id = o.capture_id AND g.program_id = o.program_id
        AND g.buffer_name_id = o.hlo_op_name_id AND g.node_index = o.graph_node_index
        AND g.kernel_name_id = o.graph_kernel_name_id
    JOIN main.hlo_instructions AS i ON i.module_id = g.module_id AND i.instruction_id = g.instruction_id
    WHERE e.role = 'work'
"""
WITHOUT_NUMBERS = """
    UPDATE main.ops SET graph_node_index = NULL, graph_kernel_name_id = NULL;
    UPDATE main.device_events SET graph_node_id = NULL
"""
# What HIP's runtime and the code objects of AMD's compiler call the same work.
ROCM_NAMES = """
    UPDATE main.captures SET platform = 'rocm';
    CREATE TEMP TABLE spelled AS
    SELECT DISTINCT n.name_id, n.name, CASE
        WHEN n.name LIKE 'memcpy%' THEN '__amd_rocclr_copyBuffer.kd'
        WHEN n.name LIKE 'Memset%' THEN '__amd_rocclr_fillBufferAligned.kd'
        ELSE n.name || '.kd'
    END AS rocm_name
    FROM main.names AS n JOIN main.device_events AS e ON e.name_id = n.name_id;
    INSERT INTO main.names
    SELECT (SELECT MAX(name_id) FROM main.names) + ROW_NUMBER() OVER (ORDER BY rocm_name), rocm_name
    FROM (SELECT DISTINCT rocm_name FROM spelled);
    UPDATE main.device_events SET name_id = n.name_id
    FROM spelled AS s, main.names AS n
    WHERE s.name_id = device_events.name_id AND n.name = s.rocm_name
"""
NAMED = """
    CREATE TEMP TABLE named AS
    SELECT e.capture_id, e.device_event_id, o.program_id, o.hlo_op_name_id
    FROM main.device_events AS e
    JOIN main.ops AS o ON o.capture_id = e.capture_id AND o.op_id = e.op_id
    WHERE e.role = 'work' AND o.hlo_op_name_id IS NOT NULL AND o.graph_node_index IS NULL
"""
GRAPH_RUNS = ["h200_moe", "h200x1_small", "h200x2_medium_fsdp2", "h200x2_medium_fsdp2_opt", "h200_2proc"]
ROCM_RUNS = ["TraceLens-mi300-jax08_conv", "TraceLens-mi300-jax_conv_legacy", "TraceLens-te_fused_attn"]
DIRECT_RUNS = ["h200_moe_direct", "h200x1_small_nocb", "h200x2_medium_fsdp2_nocb"]


@dataclass(frozen=True)
class Found:
    """How many events were hidden, and how many of them the views place right and wrong."""

    hidden: int
    right: int
    wrong: int


Opened = Callable[[str], duckdb.DuckDBPyConnection]


@pytest.fixture(scope="module")
def warehouses(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def warehouse(name: str) -> Path:
        if name not in made:
            folder = tmp_path_factory.mktemp(name)
            run = FIXTURES / name if (FIXTURES / name).is_dir() else find_run(name, folder)
            tracewh.ingest_run(run, warehouse=folder / "w.duckdb")
            made[name] = folder / "w.duckdb"
        return made[name]

    return warehouse


@pytest.fixture
def opened(warehouses: Callable[[str], Path], tmp_path: Path) -> Iterator[Opened]:
    """Opens a copy of the warehouse of a run, to be changed."""
    connections = []

    def connect(name: str) -> duckdb.DuckDBPyConnection:
        copy = shutil.copy(warehouses(name), tmp_path / f"{len(connections)}.duckdb")
        connections.append(duckdb.connect(str(copy)))
        return connections[-1]

    yield connect
    for connection in connections:
        connection.close()


def found(connection: duckdb.DuckDBPyConnection) -> Found:
    """What the views make of the events of `truth` that are still there; of others they place none."""
    connection.execute("CREATE OR REPLACE TEMP TABLE placed AS SELECT * FROM v1._aligned_events")
    row = connection.execute(
        "SELECT COUNT(*), "
        "COUNT(*) FILTER (p.hlo_op_name_id = t.hlo_op_name_id AND p.program_id = t.program_id), "
        "COUNT(*) FILTER (p.hlo_op_name_id <> t.hlo_op_name_id OR p.program_id <> t.program_id) "
        "FROM truth AS t JOIN main.device_events USING (capture_id, device_event_id) "
        "LEFT JOIN placed AS p USING (capture_id, device_event_id)"
    ).fetchone()
    assert row is not None
    return Found(*row)


def hide(connection: duckdb.DuckDBPyConnection, percent: int) -> None:
    """Take the op from events here and there that name one; `truth` keeps it."""
    connection.execute(NAMED)
    connection.execute(
        "CREATE TEMP TABLE truth AS SELECT * FROM named "
        f"WHERE hash(capture_id * 1000003 + device_event_id) % 100 < {percent}"
    )
    connection.execute(
        "UPDATE main.device_events SET op_id = NULL FROM truth AS t "
        "WHERE t.capture_id = device_events.capture_id AND t.device_event_id = device_events.device_event_id"
    )


@pytest.mark.parametrize("name", GRAPH_RUNS)
def test_graphs_tell_as_much_without_the_numbers_of_their_nodes(opened: Opened, name: str) -> None:
    connection = opened(name)
    connection.execute(NUMBERED)
    assert connection.execute("SELECT COUNT(*) FROM v1._aligned_events").fetchone() == (0,)
    connection.execute(WITHOUT_NUMBERS)
    result = found(connection)
    assert result.hidden > 3000
    assert result == Found(result.hidden, result.hidden, 0)
    sources = connection.execute("SELECT DISTINCT attribution_source FROM placed").fetchall()
    assert sources == [("graph_order",)]


def test_a_file_without_the_numbers_of_nodes(opened: Opened, tmp_path: Path) -> None:
    """Ids of events count alike in both captures, so that they tell which is which."""
    names = (
        "SELECT t.device_event_id, n.name FROM {0} AS t JOIN main.names AS n ON n.name_id = t.hlo_op_name_id "
        "ORDER BY t.device_event_id"
    )
    numbered = opened("h200_moe")
    numbered.execute(NUMBERED)
    space = XSpace.FromString(read_file(FIXTURES / "h200_moe" / "profile" / "vm.xplane.pb.gz"))
    for plane in space.planes:
        for metadata in plane.stat_metadata.values():
            if text(metadata.name) in ("cuda_graph_node_id", "cuda_graph_id"):
                metadata.name = b"unknown_stat"
    file = tmp_path / "cut.xplane.pb"
    file.write_bytes(space.SerializeToString())
    tracewh.ingest_run(file, warehouse=tmp_path / "cut.duckdb")
    with duckdb.connect(str(tmp_path / "cut.duckdb"), read_only=True) as cut:
        placed = cut.execute(names.format("v1._aligned_events")).fetchall()
    assert placed == numbered.execute(names.format("truth")).fetchall()


def test_kernels_as_rocm_spells_them(opened: Opened) -> None:
    connection = opened("h200_moe")
    connection.execute(NUMBERED)
    connection.execute(WITHOUT_NUMBERS)
    connection.execute(ROCM_NAMES)
    result = found(connection)
    assert result == Found(result.hidden, result.hidden, 0)


@pytest.mark.parametrize("percent", [2, 10])
def test_lost_events_of_graphs_mislead_nowhere(opened: Opened, percent: int) -> None:
    connection = opened("h200_moe")
    connection.execute(NUMBERED)
    connection.execute(WITHOUT_NUMBERS)
    connection.execute(f"DELETE FROM main.device_events WHERE hash(device_event_id) % 100 < {percent}")
    result = found(connection)
    assert result.wrong == 0
    assert result.right > 0.5 * result.hidden


def test_branches_that_ran_in_another_order_mislead_nowhere(opened: Opened) -> None:
    """Neighbours of different kernels change places, in every launch of some buffers alike."""
    connection = opened("h200_moe")
    connection.execute(NUMBERED)
    connection.execute(WITHOUT_NUMBERS)
    connection.execute(
        """
        CREATE TEMP TABLE ranked AS
        SELECT e.capture_id, e.device_event_id, e.name_id, e.start_ps, e.end_ps, e.correlation_id,
            ROW_NUMBER() OVER (
                PARTITION BY e.capture_id, e.correlation_id ORDER BY e.start_ps, e.device_event_id
            ) AS place
        FROM main.device_events AS e JOIN truth USING (capture_id, device_event_id);
        CREATE TEMP TABLE pairs AS
        SELECT a.device_event_id AS first_id, b.device_event_id AS second_id
        FROM ranked AS a JOIN ranked AS b
            ON b.capture_id = a.capture_id AND b.correlation_id = a.correlation_id AND b.place = a.place + 1
        WHERE a.name_id <> b.name_id AND a.place % 17 = 5;
        UPDATE main.device_events SET start_ps = r.start_ps, end_ps = r.end_ps
        FROM (
            SELECT first_id AS id, second_id AS other FROM pairs
            UNION ALL SELECT second_id, first_id FROM pairs
        ) AS p JOIN ranked AS r ON r.device_event_id = p.other
        WHERE device_events.device_event_id = p.id
        """
    )
    result = found(connection)
    assert result.wrong == 0
    assert 0 < result.right < result.hidden


def test_of_a_launch_on_several_streams_names_tell_what_they_can(opened: Opened) -> None:
    connection = opened("h200_moe")
    connection.execute(NUMBERED)
    connection.execute(WITHOUT_NUMBERS)
    connection.execute(
        "UPDATE main.device_events SET track_id = track_id + 1000 WHERE device_event_id % 3 = 0"
    )
    result = found(connection)
    assert result.wrong == 0
    assert 0 < result.right < result.hidden
    # A name tells the pair by itself; a library's kernel is named after no thunk.
    unnamed = connection.execute(
        "SELECT COUNT(*) FROM placed JOIN main.device_events AS e USING (capture_id, device_event_id) "
        "WHERE e.name_id NOT IN (SELECT kernel_name_id FROM main.hlo_thunks WHERE kernel_name_id IS NOT NULL)"
    ).fetchone()
    assert unnamed == (0,)


@pytest.mark.parametrize("percent", [1, 20, 60])
@pytest.mark.parametrize("name", [*DIRECT_RUNS, *ROCM_RUNS])
def test_hidden_instructions_are_found_or_left(opened: Opened, name: str, percent: int) -> None:
    connection = opened(name)
    connection.execute("UPDATE main.captures SET platform = 'rocm'")
    hide(connection, percent)
    result = found(connection)
    assert result.wrong == 0
    if percent <= 20 and result.hidden > 30:
        assert result.right > 0.8 * result.hidden


def test_gemms_between_which_programs_change_tell_nothing_wrong(opened: Opened) -> None:
    """Each program runs one kernel, so that neighbours are of other programs."""
    connection = opened("TraceLens-mi300-jax08_gemm")
    hide(connection, 35)
    assert found(connection).wrong == 0


def test_captures_of_other_platforms_stay_as_they_are(opened: Opened) -> None:
    connection = opened("h200_moe_direct")
    hide(connection, 20)
    assert found(connection).right == 0


def test_two_kernels_behind_one_correlation_id(opened: Opened) -> None:
    """They are of the two instructions that the other 39 executions name; the copies are of no program."""
    connection = opened("TraceLens-mi300-jax08_conv")
    rows = connection.execute(
        "SELECT k.name, o.name, a.attribution_source, e.correlation_id FROM v1._aligned_events AS a "
        "JOIN main.device_events AS e USING (capture_id, device_event_id) "
        "JOIN main.names AS k ON k.name_id = e.name_id JOIN main.names AS o ON o.name_id = a.hlo_op_name_id "
        "ORDER BY e.start_ps"
    ).fetchall()
    assert rows == [
        ("input_transpose_fusion_1.kd", "input_transpose_fusion.1", "order", 477),
        ("Im3d2Col.kd", "cudnn-conv.1", "order", 477),
    ]


@pytest.mark.parametrize(
    "name",
    ["TraceLens-mi300-jax08_gemm", "TraceLens-mi300-jax_conv_legacy", "TraceLens-te_fused_attn"],
)
def test_copies_outside_of_programs_stay_unattributed(opened: Opened, name: str) -> None:
    assert opened(name).execute("SELECT COUNT(*) FROM v1._aligned_events").fetchone() == (0,)
