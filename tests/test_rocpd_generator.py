"""The generator of synthetic rocpd databases holds what the format can hold, and the same at each call."""

from __future__ import annotations

import itertools
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from .generated_rocpd import (
    BRANCHES,
    FIXTURES,
    SCHEMA_VERSIONS,
    SOUND,
    SUFFIX,
    Run,
    Variants,
    ask,
    counters,
    dump,
    layouts,
    write_file,
)
from .rocpd_checklist import CHECKLIST, LINK


@pytest.fixture(scope="module")
def variant(tmp_path_factory: pytest.TempPathFactory) -> Variants:
    return Variants(tmp_path_factory.mktemp("variants"))


@pytest.mark.parametrize("name", SOUND)
def test_every_reference_leads_somewhere(variant: Variants, name: str) -> None:
    path = variant(name)
    assert ask(path, "PRAGMA foreign_key_check") == []
    assert ask(path, "PRAGMA integrity_check") == [("ok",)]


@pytest.mark.parametrize("name", SOUND)
def test_the_same_call_writes_the_same_rows(variant: Variants, tmp_path: Path, name: str) -> None:
    assert dump(SOUND[name](tmp_path / "results.db")) == dump(variant(name))


def test_bundled_databases_are_what_the_generator_writes(variant: Variants, tmp_path: Path) -> None:
    train = FIXTURES / "rocpd_train" / "mi300x_results.db"
    assert dump(train) == dump(write_file(tmp_path / "train.db", counts=False))
    assert train.stat().st_size < 300_000
    folder = FIXTURES / "rocpd_counters"
    written = counters.write_passes(tmp_path / "passes")
    bundled = [folder / path.relative_to(tmp_path / "passes") for path in written]
    assert sorted(folder.rglob("*.db")) == bundled
    assert [dump(path) for path in bundled] == [dump(path) for path in written]
    assert sum(path.stat().st_size for path in bundled) < 300_000


#: Columns of a table by the schema version that added them.
ADDED = {
    "3.0.2": {
        "kernel_dispatch": {"graph_exec_id", "graph_node_id"},
        "memory_copy": {"graph_exec_id", "graph_node_id"},
    },
    "3.0.3": {"pmc_event": {"sample_id", "xcc", "shader_engine", "instance"}, "info_pmc": {"spm_support"}},
    "3.0.5": {"pmc_event": {"shader_array", "wgp"}, "kernel_dispatch": {"replay_pass"}},
}
NEW_TABLES = {"3.0.2": {"graph_launch"}, "3.0.4": {"hip_event"}}
OF_BRANCHES = {
    "blobs": {"info_blob_schema", "info_blob_field", "blob_event", "gpu_pc_sample"},
    "pc_sampling": {"pc_sampling"},
    "event_operation": {"event_operation"},
}


def columns(path: Path) -> dict[str, set[str]]:
    tables = ask(path, f"SELECT name FROM sqlite_master WHERE type = 'table' AND name LIKE 'rocpd%{SUFFIX}'")
    return {
        name.removeprefix("rocpd_").removesuffix(SUFFIX): {
            row[1] for row in ask(path, f'PRAGMA table_info("{name}")')
        }
        for (name,) in tables
    }


def test_columns_of_the_first_schema(variant: Variants) -> None:
    found = columns(variant("3.0.0"))
    assert len(found) == 20
    assert found["event"] == {
        *("id", "guid", "category_id", "stack_id", "parent_stack_id", "correlation_id"),
        *("call_stack", "line_info", "extdata"),
    }
    assert found["pmc_event"] == {"id", "guid", "event_id", "pmc_id", "value", "extdata"}
    assert found["metadata"] == {"id", "tag", "value"}
    assert columns(variant("first release")) == found
    ((version,),) = ask(variant("first release"), "SELECT value FROM rocpd_metadata WHERE id = 1")
    assert version == "3"


@pytest.mark.parametrize(("earlier", "later"), list(itertools.pairwise(SCHEMA_VERSIONS)))
def test_columns_that_later_schemas_add(variant: Variants, earlier: str, later: str) -> None:
    before, after = columns(variant(earlier)), columns(variant(later))
    assert after.keys() - before.keys() == NEW_TABLES.get(later, set())
    assert {base: after[base] - names for base, names in before.items() if after[base] != names} == ADDED.get(
        later, {}
    )
    assert ask(variant(later), "SELECT value FROM rocpd_metadata WHERE tag = 'schema_version'") == [(later,)]


def test_tables_of_branches(variant: Variants) -> None:
    added = columns(variant("complete")).keys() - columns(variant(SCHEMA_VERSIONS[-1])).keys()
    assert added == set.union(*(OF_BRANCHES[branch] for branch in BRANCHES))


def test_only_later_schemas_know_network_adapters() -> None:
    connection = sqlite3.connect(":memory:")
    for version in ("3.0.0", "3.0.1"):
        run = Run(guid=version, schema_version=version)
        for statement in run.statements():
            connection.execute(statement)
        insert = f"INSERT INTO \"{run.table('info_agent')}\" (nid, pid, type) VALUES (1, 1, 'NIC')"
        if version == "3.0.0":
            with pytest.raises(sqlite3.IntegrityError, match="CHECK"):
                connection.execute(insert)
        else:
            connection.execute(insert)
    connection.close()


@pytest.mark.parametrize(("item", "name", "sql", "expected"), CHECKLIST, ids=[item[0] for item in CHECKLIST])
def test_checklist(
    variant: Variants, item: str, name: str, sql: str, expected: list[tuple[Any, ...]]
) -> None:
    assert ask(variant(name), sql) == expected, item


def test_kernels_have_the_same_order_and_shape_in_each_pass(variant: Variants) -> None:
    sql = f"SELECT S.display_name, D.grid_size_x, D.grid_size_y {LINK}ORDER BY D.start"
    first, second, third = (ask(variant(f"pass {number}"), sql) for number in (1, 2, 3))
    assert first == second == third
    assert len(first) == 6
    times = [ask(variant(f"pass {number}"), "SELECT start FROM rocpd_kernel_dispatch") for number in (1, 2)]
    assert times[0] != times[1]
    processes = {
        ask(variant(f"pass {number}"), "SELECT guid, pid FROM rocpd_info_process")[0] for number in (1, 2, 3)
    }
    assert len(processes) == 3


def test_operations_and_bytes_follow_from_the_counters(variant: Variants) -> None:
    """Formulas of MI300X: sums over instances, the largest of the GPU's cycles."""
    totals: dict[tuple[str, str], tuple[float, float, int]] = {}
    for number in (1, 2, 3):
        for kernel, counter, total, largest, instances in ask(
            variant(f"pass {number}"),
            f"SELECT S.display_name, I.name, sum(V.value), max(V.value), count(*) {LINK}"
            "JOIN rocpd_pmc_event V ON V.event_id = D.event_id JOIN rocpd_info_pmc I ON I.id = V.pmc_id "
            "WHERE D.dispatch_id <= 3 GROUP BY 1, 2",
        ):
            totals[kernel, counter] = (total, largest, instances)

    def value(kernel: str, counter: str) -> float:
        return totals[kernel, counter][0]

    work = {}
    for kernel in {kernel for kernel, _ in totals}:
        matrix = sum(value(kernel, f"SQ_INSTS_VALU_MFMA_MOPS_{kind}") for kind in ("BF16", "F16", "F32"))
        vector = sum(
            value(kernel, f"SQ_INSTS_VALU_{kind}_F32") * weight
            for kind, weight in (("ADD", 1), ("MUL", 1), ("TRANS", 1), ("FMA", 2))
        )
        small, large = value(kernel, "TCC_EA0_RDREQ_32B"), value(kernel, "TCC_BUBBLE")
        read = 128 * large + 64 * (value(kernel, "TCC_EA0_RDREQ") - large - small) + 32 * small
        full = value(kernel, "TCC_EA0_WRREQ_64B")
        written = 64 * full + 32 * (value(kernel, "TCC_EA0_WRREQ") - full)
        work[kernel[:4]] = (512 * matrix + 64 * vector, read, written)
        assert value(kernel, "FETCH_SIZE") * 1024 == read
        assert value(kernel, "WRITE_SIZE") * 1024 == written
    assert work == {
        # 2 M N K of the product; its operands read once, its result written once, two bytes each.
        "Cijk": (2 * 4096 * 3584 * 2048, (4096 * 2048 + 2048 * 3584) * 2, 4096 * 3584 * 2),
        "fmha": (512 * 16_777_216 + 64 * (32_768 + 65_536), 12_582_912, 4_194_304),
        # A multiplication and a fused one per element of 2^20; two operands of four bytes, one result.
        "loop": (3 * 2**20, 2 * 4 * 2**20, 4 * 2**20),
    }
    gemm = next(kernel for kernel, _ in totals if kernel.startswith("Cijk"))
    assert totals[gemm, "TCC_BUBBLE"][2] == 16
    assert totals[gemm, "SQ_WAVES"] == (16 * 14 * 256 / 64, 112.0, 8)
    assert totals[gemm, "GRBM_GUI_ACTIVE"][1:] == (180_000 * 2.1 + 300, 4)
    # Half of what 1216 SIMDs could do in the cycles of the slowest XCC.
    assert totals[gemm, "SQ_VALU_MFMA_BUSY_CYCLES"][0] == 0.5 * 1216 * 378_300


def test_rows_that_only_the_log_has(tmp_path: Path) -> None:
    path = layouts.write_with_log(tmp_path / "results.db", steps=1)
    assert {file.name for file in tmp_path.iterdir()} == {"results.db", "results.db-wal"}
    count = "SELECT count(*) FROM rocpd_kernel_dispatch"
    without_log = sqlite3.connect(f"file:{path}?immutable=1", uri=True)
    assert without_log.execute(count).fetchone() == (30,)
    without_log.close()
    assert ask(path, count) == [(19,)]


def test_directories_of_ranks_and_packages(tmp_path: Path) -> None:
    paths = layouts.write_ranks(tmp_path / "ranks", 3, steps=1)
    assert [str(path.relative_to(tmp_path / "ranks")) for path in paths] == [
        "mi300x-0/41337_results.db",
        "mi300x-0/41338_results.db",
        "mi300x-1/41339_results.db",
    ]
    assert len({ask(path, "SELECT value FROM rocpd_metadata WHERE tag = 'guid'")[0] for path in paths}) == 3
    package = layouts.write_package(tmp_path / "run", 2, steps=1)
    assert package.name == "run.rpdb"
    index = (package / "index.yaml").read_text().splitlines()
    assert index[2:5] == ["    files:", "    - rank_0_results.db", "    - rank_1_results.db"]
    assert sorted(file.name for file in package.iterdir()) == [
        "index.yaml",
        "rank_0_results.db",
        "rank_1_results.db",
    ]


def test_many_launches_each_lead_to_their_call(variant: Variants) -> None:
    path = variant("many")
    counts = [ask(path, f"SELECT count(*) FROM rocpd_{base}") for base in ("event", "region", "arg")]
    assert counts == [[(2_000,)], [(1_000,)], [(2_000,)]]
    assert ask(
        path,
        "SELECT count(*), count(DISTINCT D.agent_id), count(DISTINCT S.display_name), sum(R.end <= D.start), "
        "sum(D.grid_size_x = 256 * A.value), sum(C.agent_id = D.agent_id) "
        f"{LINK}JOIN rocpd_event CE ON CE.stack_id = E.stack_id JOIN rocpd_region R ON R.event_id = CE.id "
        "JOIN rocpd_arg A ON A.event_id = CE.id AND A.name = 'gridDimX' "
        "JOIN rocpd_info_code_object C ON C.id = S.code_object_id",
    ) == [(1_000, 3, 300, 1_000, 1_000, 1_000)]
    overlapping = (
        "SELECT count(*) FROM (SELECT start < lag(end) OVER (PARTITION BY {} ORDER BY start) AS is_overlap "
        "FROM rocpd_{}) WHERE is_overlap"
    )
    assert ask(path, overlapping.format("queue_id", "kernel_dispatch")) == [(0,)]
    assert ask(path, overlapping.format("tid", "region")) == [(0,)]
