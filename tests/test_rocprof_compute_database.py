"""Analysis databases of rocprof-compute: workloads with dispatches, metrics, peaks and attributes."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tracewh.ingest.rocprof_compute_database import Workload, read_workloads
from tracewh.ingest.sqlite_file import SqliteFile

REAL = (
    Path(__file__).parents[1].parent / "shared" / "data" / "rocprof" / "roc-optiq-rocprof_compute_23ed6f36.db"
)
needs_real = pytest.mark.skipif(not REAL.is_file(), reason="the folder of public test files is not here")

SCHEMA = """
CREATE TABLE compute_workload (workload_id INTEGER NOT NULL, name VARCHAR, sub_name VARCHAR,
    sys_info_extdata JSON, roofline_bench_extdata JSON, profiling_config_extdata JSON,
    PRIMARY KEY (workload_id));
CREATE TABLE compute_metadata (id INTEGER NOT NULL, compute_version VARCHAR, schema_version VARCHAR,
    PRIMARY KEY (id));
CREATE TABLE compute_kernel (kernel_uuid INTEGER NOT NULL, workload_id INTEGER, kernel_name VARCHAR,
    PRIMARY KEY (kernel_uuid));
CREATE TABLE compute_dispatch (dispatch_uuid INTEGER NOT NULL, kernel_uuid INTEGER, dispatch_id INTEGER,
    gpu_id INTEGER, start_timestamp INTEGER, end_timestamp INTEGER, PRIMARY KEY (dispatch_uuid));
"""
DEFINITIONS = """
CREATE TABLE compute_metric_definition (metric_uuid INTEGER NOT NULL, workload_id INTEGER, name VARCHAR,
    metric_id VARCHAR, description TEXT, table_name VARCHAR, sub_table_name VARCHAR, unit VARCHAR,
    PRIMARY KEY (metric_uuid));
"""
VALUES = """
CREATE TABLE compute_kernel_metric_value (value_uuid INTEGER NOT NULL, metric_uuid INTEGER,
    kernel_uuid INTEGER, value_name VARCHAR, value FLOAT, PRIMARY KEY (value_uuid));
CREATE TABLE compute_workload_metric_value (value_uuid INTEGER NOT NULL, metric_uuid INTEGER,
    workload_id INTEGER, value_name VARCHAR, value FLOAT, PRIMARY KEY (value_uuid));
"""


@pytest.fixture
def database(tmp_path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(tmp_path / "analysis.db")
    connection.executescript(SCHEMA + DEFINITIONS + VALUES)
    return connection


@pytest.fixture(scope="module")
def workload() -> Workload:
    (workload,) = workloads_of(REAL)
    return workload


def ask(sql: str) -> list[tuple[Any, ...]]:
    """Ask SQLite about the real database."""
    connection = sqlite3.connect(f"{REAL.as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def add(connection: sqlite3.Connection, table: str, **columns: Any) -> None:
    names, marks = ", ".join(columns), ", ".join("?" * len(columns))
    connection.execute(f"INSERT INTO compute_{table} ({names}) VALUES ({marks})", list(columns.values()))


def read(connection: sqlite3.Connection) -> list[Workload]:
    (path,) = (name for _, kind, name in connection.execute("PRAGMA database_list") if kind == "main")
    connection.commit()
    connection.close()
    return workloads_of(Path(path))


def workloads_of(path: Path) -> list[Workload]:
    with SqliteFile(path) as file:
        return read_workloads(file)


def details(workload: Workload) -> list[str]:
    return [one.detail for one in workload.process.problems.problems()]


def problems(workload: Workload) -> dict[tuple[str, str], int]:
    return {(one.problem, one.place): one.occurrences for one in workload.process.problems.problems()}


def metrics(workload: Workload) -> list[tuple[Any, ...]]:
    columns = ("kernel_name", "metric_group", "metric_name", "value_name", "unit", "value")
    assert set(workload.metrics.column_names) == {*columns, "metric_id", "description"}
    return [tuple(row[name] for name in columns) for row in workload.metrics.to_pylist()]


class TestRealDatabase:
    pytestmark = needs_real

    def test_every_value_is_a_metric(self, workload: Workload) -> None:
        """In the real file an infinite ratio is the one value that no DOUBLE of the warehouse holds."""
        group = (
            "CASE WHEN d.table_name = d.sub_table_name THEN d.table_name "
            "ELSE d.table_name || ' / ' || d.sub_table_name END"
        )
        value = "CASE WHEN v.value < 1e308 THEN v.value END"
        of_kernels = ask(
            f"SELECT k.kernel_name, {group}, d.name, v.value_name, d.unit, {value} "
            "FROM compute_kernel_metric_value v JOIN compute_metric_definition d USING (metric_uuid) "
            "JOIN compute_kernel k USING (kernel_uuid)"
        )
        of_workload = ask(
            f"SELECT NULL, {group}, d.name, v.value_name, d.unit, {value} "
            "FROM compute_workload_metric_value v JOIN compute_metric_definition d USING (metric_uuid)"
        )
        assert (len(of_kernels), len(of_workload)) == (48_405, 6_915)
        found = metrics(workload)
        points = [row for row in found if row[1] == "Roofline data"]
        assert Counter(row for row in found if row[1] != "Roofline data") == Counter(of_kernels + of_workload)
        assert len(points) == (7 + 1) * 4
        assert problems(workload) == {("not_a_number", "compute_kernel_metric_value.value"): 1}
        ((infinite,),) = ask(
            "SELECT d.name FROM compute_kernel_metric_value v "
            "JOIN compute_metric_definition d USING (metric_uuid) WHERE v.value > 1e308"
        )
        assert details(workload) == [f"stored as null: 'inf' is no finite number (metric {infinite})"]

    def test_every_metric_has_its_id_and_description(self, workload: Workload) -> None:
        expected = ask(
            "SELECT d.metric_id, d.name, NULLIF(d.description, ''), COUNT(*) FROM ("
            "SELECT metric_uuid FROM compute_kernel_metric_value "
            "UNION ALL SELECT metric_uuid FROM compute_workload_metric_value"
            ") v JOIN compute_metric_definition d USING (metric_uuid) GROUP BY d.metric_uuid"
        )
        rows = [row for row in workload.metrics.to_pylist() if row["metric_group"] != "Roofline data"]
        found = Counter((row["metric_id"], row["metric_name"], row["description"]) for row in rows)
        assert found == {row[:3]: row[3] for row in expected}
        assert sum(description is not None for _, _, description in found) > 500
        points = [row for row in workload.metrics.to_pylist() if row["metric_group"] == "Roofline data"]
        assert {(row["metric_id"], row["description"]) for row in points} == {(None, None)}

    def test_points_of_the_roofline(self, workload: Workload) -> None:
        expected = ask(
            "SELECT k.kernel_name, r.total_flops, r.hbm_cache_data FROM compute_kernel_roofline_data r "
            "JOIN compute_kernel k USING (kernel_uuid) UNION ALL "
            "SELECT NULL, total_flops, hbm_cache_data FROM compute_workload_roofline_data"
        )
        found = {
            (row[0], row[2]): (row[3:5], row[5]) for row in metrics(workload) if row[1] == "Roofline data"
        }
        for name, rate, intensity in expected:
            assert found[name, "total_flops"] == (("Value", "GFLOP/s"), rate)
            assert found[name, "hbm_cache_data"] == (("Value", "FLOP/byte"), intensity)

    @pytest.mark.parametrize("level", ["HBM", "L2", "L1"])
    def test_units_of_the_points(self, workload: Workload, level: str) -> None:
        """Rate by intensity is bandwidth: GFLOP/s by FLOP/byte are the GB/s that a metric tells as well.

        Of kernels with several dispatches the metrics are means of ratios, and so only nearly the same.
        """
        single = ask(
            "SELECT kernel_name FROM compute_kernel JOIN compute_dispatch USING (kernel_uuid) "
            "GROUP BY 1 HAVING count(*) = 1"
        )
        values = {(row[0], row[1], row[2]): row[5] for row in metrics(workload) if row[3] == "Value"}
        bandwidth_name = "HBM Bandwidth" if level == "HBM" else f"{level} Cache Bandwidth"
        compared = 0
        for (kernel,) in single:
            rate = values[kernel, "Roofline data", "total_flops"]
            intensity = values[kernel, "Roofline data", f"{level.lower()}_cache_data"]
            bandwidth = values[kernel, "Roofline / Roofline Performance Rates", bandwidth_name]
            if rate:
                assert rate / intensity == pytest.approx(bandwidth, rel=1e-12)
                compared += 1
        assert compared == 2

    def test_dispatches(self, workload: Workload) -> None:
        expected = ask(
            "SELECT dispatch_uuid, gpu_id, kernel_uuid, dispatch_id, start_timestamp, end_timestamp "
            "FROM compute_dispatch ORDER BY dispatch_uuid"
        )
        found = workload.process.reference("kernel_dispatch").table.to_pylist()
        columns = ("id", "agent_id", "kernel_id", "dispatch_id", "start", "end")
        assert [tuple(row[name] for name in columns) for row in found] == expected
        names = workload.process.reference("info_kernel_symbol").table.to_pylist()
        assert {(row["id"], row["display_name"]) for row in names} == set(
            ask("SELECT kernel_uuid, kernel_name FROM compute_kernel")
        )
        assert workload.process.source_kind == "rocprof_compute"

    def test_the_machine(self, workload: Workload) -> None:
        said = json.loads(ask("SELECT sys_info_extdata FROM compute_workload")[0][0])
        options = json.loads(ask("SELECT profiling_config_extdata FROM compute_workload")[0][0])
        attributes = dict(workload.attributes)
        for key, value in said.items():
            text = value if isinstance(value, str) else json.dumps(value)
            assert attributes.pop(f"sys_info.{key}") == text
        assert (
            attributes.pop("profiling_config.roofline_data_type[0]") == options.pop("roofline_data_type")[0]
        )
        for key, value in options.items():
            text = value if isinstance(value, str) else None if value is None else json.dumps(value)
            assert attributes.pop(f"profiling_config.{key}") == text
        assert attributes == {
            "compute_version": "3.5.0",
            "git_version": "df2ff30051",
            "schema_version": "1.3.0",
            "workload.name": "drchen_pi",
            "workload.sub_name": "MI350",
        }
        (agent,) = workload.process.reference("info_agent").table.to_pylist()
        assert (agent["id"], agent["type"], agent["name"]) == (0, "GPU", "gfx950")
        assert json.loads(agent["extdata"])["cu_count"] == 256
        (node,) = workload.process.reference("info_node").table.to_pylist()
        assert node["hostname"] == "asrock-1w300-h2-1"

    def test_peaks(self, workload: Workload) -> None:
        measured = json.loads(ask("SELECT roofline_bench_extdata FROM compute_workload")[0][0])
        assert len(workload.peaks) == len(measured) == 18
        assert {peak.device for peak in workload.peaks} == {"0"}
        by_name = {peak.source.rpartition(" ")[2]: peak.value for peak in workload.peaks}
        assert by_name == {name: value * 1e9 for name, value in measured.items()}


class TestWorkloads:
    def test_each_has_its_own(self, database: sqlite3.Connection) -> None:
        for number in (1, 2):
            add(database, "workload", workload_id=number, name=f"w{number}")
            add(database, "kernel", kernel_uuid=10 + number, workload_id=number, kernel_name=f"k{number}")
            add(
                database,
                "metric_definition",
                metric_uuid=20 + number,
                workload_id=number,
                name="Rate",
                table_name="A",
                sub_table_name="B",
            )
            add(
                database,
                "kernel_metric_value",
                metric_uuid=20 + number,
                kernel_uuid=10 + number,
                value_name="Avg",
                value=number / 2,
            )
            add(
                database,
                "workload_metric_value",
                metric_uuid=20 + number,
                workload_id=number,
                value_name="Avg",
                value=None,
            )
            add(database, "dispatch", kernel_uuid=10 + number, dispatch_id=number, gpu_id=number)
        workloads = read(database)
        assert [workload.attributes["workload.name"] for workload in workloads] == ["w1", "w2"]
        for number, workload in enumerate(workloads, 1):
            assert metrics(workload) == [
                (f"k{number}", "A / B", "Rate", "Avg", None, number / 2),
                (None, "A / B", "Rate", "Avg", None, None),
            ]
            (dispatch,) = workload.process.reference("kernel_dispatch").table.to_pylist()
            assert (dispatch["kernel_id"], dispatch["agent_id"]) == (10 + number, number)
            (agent,) = workload.process.reference("info_agent").table.to_pylist()
            assert agent["type_index"] == number
            assert problems(workload) == {}

    def test_names_that_are_missing(self, database: sqlite3.Connection) -> None:
        add(database, "workload", workload_id=1)
        add(database, "kernel", kernel_uuid=1, workload_id=1)
        for uuid, columns in enumerate(
            (
                {"name": "a", "table_name": "T", "metric_id": "", "description": "what it is"},
                {"metric_id": "2.1.0", "sub_table_name": "S"},
                {"unit": "GB/s"},
            )
        ):
            add(database, "metric_definition", metric_uuid=uuid, workload_id=1, **columns)
            add(database, "kernel_metric_value", metric_uuid=uuid, kernel_uuid=1, value=1)
        (workload,) = read(database)
        assert metrics(workload) == [
            ("", "T", "a", "", None, 1.0),
            ("", "S", "2.1.0", "", None, 1.0),
            ("", "", "", "", "GB/s", 1.0),
        ]
        found = workload.metrics.select(["metric_id", "description"]).to_pydict()
        assert found == {"metric_id": [None, "2.1.0", None], "description": ["what it is", None, None]}

    def test_rows_that_lead_nowhere(self, database: sqlite3.Connection) -> None:
        add(database, "workload", workload_id=1)
        add(database, "kernel", kernel_uuid=1, workload_id=1, kernel_name="k")
        add(database, "metric_definition", metric_uuid=1, workload_id=1, name="a", table_name="T")
        for metric, kernel in ((1, 1), (9, 1), (1, 9), (None, None)):
            add(database, "kernel_metric_value", metric_uuid=metric, kernel_uuid=kernel, value_name="Avg")
        add(database, "workload_metric_value", metric_uuid=9, workload_id=1)
        add(database, "dispatch", kernel_uuid=9, gpu_id=0)
        (workload,) = read(database)
        assert metrics(workload) == [("k", "T", "a", "Avg", None, None)]
        assert problems(workload) == {
            ("dangling_reference", "compute_kernel_metric_value"): 3,
            ("dangling_reference", "compute_workload_metric_value"): 1,
        }
        assert len(workload.process.reference("kernel_dispatch")) == 1

    def test_workloads_that_are_only_referred_to(self, database: sqlite3.Connection) -> None:
        add(database, "kernel", kernel_uuid=1, workload_id=5, kernel_name="k")
        add(database, "dispatch", kernel_uuid=1, gpu_id=0)
        (workload,) = read(database)
        assert len(workload.process.reference("kernel_dispatch")) == 1
        assert workload.peaks == []

    def test_values_that_are_no_numbers(self, database: sqlite3.Connection) -> None:
        add(database, "workload", workload_id=1)
        add(database, "metric_definition", metric_uuid=1, workload_id=1, name="a", table_name="T")
        add(database, "metric_definition", metric_uuid=2, workload_id=1, name="b", table_name="T")
        # SQLite itself stores NaN as NULL.
        for metric, value in ((1, float("nan")), (1, 3), (2, "n/a"), (1, float("inf"))):
            columns = {"metric_uuid": metric, "workload_id": 1, "value": value}
            add(database, "workload_metric_value", value_name="v", **columns)
        (workload,) = read(database)
        assert [row[5] for row in metrics(workload)] == [None, 3.0, None, None]
        assert details(workload) == ["stored as null: 'n/a' is no finite number (metric b)"]
        assert problems(workload) == {("not_a_number", "compute_workload_metric_value.value"): 2}

    def test_tables_without_a_place_are_counted(self, database: sqlite3.Connection) -> None:
        add(database, "workload", workload_id=1)
        database.executescript(
            "CREATE TABLE compute_pcsampling (pc_sampling_uuid INTEGER, count INTEGER);"
            "INSERT INTO compute_pcsampling VALUES (1, 5), (2, 6);"
            "CREATE TABLE compute_instruction_line (instruction_uuid INTEGER);"
        )
        (workload,) = read(database)
        assert problems(workload) == {("unsupported_table", "compute_pcsampling"): 2}

    def test_process_ids(self, database: sqlite3.Connection) -> None:
        database.execute("ALTER TABLE compute_dispatch ADD COLUMN pid INTEGER")
        for workload, pids in ((1, (40, 40)), (2, (50, 51))):
            add(database, "kernel", kernel_uuid=workload, workload_id=workload)
            for pid in pids:
                add(database, "dispatch", kernel_uuid=workload, pid=pid)
        one, several = read(database)
        assert one.process.reference("info_process").integers("pid").to_pylist() == [40]
        assert "process_id" not in one.process.reference("kernel_dispatch").table.column_names
        assert several.process.reference("info_process").integers("pid").to_pylist() == [None]
        assert several.process.reference("kernel_dispatch").integers("process_id").to_pylist() == [50, 51]


class TestDescriptions:
    def test_json_that_is_none(self, database: sqlite3.Connection) -> None:
        add(
            database,
            "workload",
            workload_id=1,
            sys_info_extdata="{cut",
            profiling_config_extdata="[" * 50_000,
        )
        (workload,) = read(database)
        assert workload.attributes["sys_info"] == "{cut"
        assert problems(workload) == {
            ("invalid_json", "compute_workload.sys_info_extdata"): 1,
            ("invalid_json", "compute_workload.profiling_config_extdata"): 1,
        }

    def test_deep_json(self, database: sqlite3.Connection) -> None:
        deep = '{"a":' * 100_000 + "1" + "}" * 100_000
        add(database, "workload", workload_id=1, sys_info_extdata=deep)
        (workload,) = read(database)
        assert workload.attributes["sys_info"] == deep

    def test_nested_values_have_paths(self, database: sqlite3.Connection) -> None:
        said = {"a": {"b": [1, {"c": None}]}, "empty": {}, "half": "\ud800", "yes": True}
        add(database, "workload", workload_id=1, sys_info_extdata=json.dumps(said))
        (workload,) = read(database)
        assert workload.attributes == {
            "workload.name": None,
            "workload.sub_name": None,
            "sys_info.a.b[0]": "1",
            "sys_info.a.b[1].c": None,
            "sys_info.empty": "{}",
            "sys_info.half": "\\ud800",
            "sys_info.yes": "true",
            "profiling_config": None,
        }

    @pytest.mark.parametrize(("device", "label"), [(3, "3"), (-1, "0"), (None, "0"), (True, "0")])
    def test_peaks_are_of_the_device_of_the_options(
        self, database: sqlite3.Connection, device: object, label: str
    ) -> None:
        add(
            database,
            "workload",
            workload_id=1,
            roofline_bench_extdata=json.dumps({"HBMBw": 2.5, "MFMAF16Flops": 0.0}),
            profiling_config_extdata=json.dumps({"device": device}),
        )
        (workload,) = read(database)
        (peak,) = workload.peaks
        assert (peak.device, peak.quantity, peak.memory_level, peak.value) == (
            label,
            "bytes_per_s",
            "HBM",
            2.5e9,
        )

    def test_peaks_that_are_none(self, database: sqlite3.Connection) -> None:
        add(
            database,
            "workload",
            workload_id=1,
            roofline_bench_extdata=json.dumps({"HBMBw": [1], "L2Bw": "fast", "Colour": 3}),
        )
        add(database, "workload", workload_id=2, roofline_bench_extdata="[1, 2]")
        first, second = read(database)
        assert first.peaks == second.peaks == []
        source = "rocprof-compute, roofline_bench_extdata"
        assert problems(first) == {("unknown_peak", source): 2, ("not_a_number", source): 1}
        assert problems(second) == {("unknown_layout", "compute_workload.roofline_bench_extdata"): 1}


class TestOlderSchemas:
    def test_one_definition_per_kernel(self, tmp_path: Path) -> None:
        connection = sqlite3.connect(tmp_path / "old.db")
        connection.executescript(
            SCHEMA
            + """
            CREATE TABLE compute_metric (metric_uuid INTEGER, kernel_uuid INTEGER, name VARCHAR,
                table_name VARCHAR, sub_table_name VARCHAR, unit VARCHAR);
            CREATE TABLE compute_value (value_uuid INTEGER, metric_uuid INTEGER, value_name VARCHAR,
                value FLOAT);
            CREATE TABLE compute_roofline_data (roofline_uuid INTEGER, workload_id INTEGER,
                kernel_name VARCHAR, total_flops FLOAT);
            INSERT INTO compute_kernel VALUES (1, 7, 'k');
            INSERT INTO compute_metric VALUES (1, 1, 'Rate', 'A', 'A', 'Gbps');
            INSERT INTO compute_value VALUES (1, 1, 'Avg', 4.5);
            INSERT INTO compute_roofline_data VALUES (1, 7, 'k', 6.5);
            """
        )
        (workload,) = read(connection)
        assert metrics(workload) == [
            ("k", "A", "Rate", "Avg", "Gbps", 4.5),
            ("k", "Roofline data", "total_flops", "Value", "GFLOP/s", 6.5),
        ]
        assert problems(workload) == {}

    def test_values_of_kernels_only(self, tmp_path: Path) -> None:
        connection = sqlite3.connect(tmp_path / "old.db")
        connection.executescript(
            SCHEMA
            + DEFINITIONS
            + """
            CREATE TABLE compute_metric_value (value_uuid INTEGER, metric_uuid INTEGER, kernel_uuid INTEGER,
                value_name VARCHAR, value FLOAT);
            CREATE TABLE compute_roofline_data (roofline_uuid INTEGER, kernel_uuid INTEGER,
                l2_cache_data FLOAT, kernel_rank INTEGER);
            INSERT INTO compute_kernel VALUES (1, 7, 'k');
            INSERT INTO compute_metric_definition VALUES (1, 7, 'Rate', '1.1', '', 'A', 'A', 'Gbps');
            INSERT INTO compute_metric_value VALUES (1, 1, 1, 'Avg', 4.5);
            INSERT INTO compute_roofline_data VALUES (1, 1, 0.5, 3), (2, 9, 0.5, 3);
            """
        )
        (workload,) = read(connection)
        assert metrics(workload) == [
            ("k", "A", "Rate", "Avg", "Gbps", 4.5),
            ("k", "Roofline data", "l2_cache_data", "Value", "FLOP/byte", 0.5),
            ("k", "Roofline data", "kernel_rank", "Value", None, 3.0),
        ]
        assert problems(workload) == {("dangling_reference", "compute_roofline_data"): 1}

    def test_nothing_but_the_version(self, tmp_path: Path) -> None:
        connection = sqlite3.connect(tmp_path / "bare.db")
        connection.executescript(
            "CREATE TABLE compute_metadata (id INTEGER, schema_version VARCHAR);"
            "INSERT INTO compute_metadata VALUES (1, '9.9');"
        )
        (workload,) = read(connection)
        assert workload.attributes == {"schema_version": "9.9"}
        assert metrics(workload) == []
        assert problems(workload) == {}
