"""The twins of a synthetic rocpd database in JSON and CSV hold what it holds, in public files' spelling."""

from __future__ import annotations

import csv
import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from .generated_rocpd import GUID, Variants, ask, twins
from .rocpd_checklist import LINK

SHARED = Path(__file__).parents[1].parent / "shared" / "data" / "rocprof"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="the folder of public test files is not here")


@pytest.fixture(scope="module")
def variant(tmp_path_factory: pytest.TempPathFactory) -> Variants:
    return Variants(tmp_path_factory.mktemp("variants"))


@pytest.fixture(scope="module")
def twin(variant: Variants, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("twins")
    twins.write_json(variant("complete"), directory)
    twins.write_csv(variant("complete"), directory)
    twins.write_converted_csv(variant("complete"), directory)
    twins.write_csv(variant("pass 1"), directory / "counted")
    return directory


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


DISPATCHES = (
    "SELECT D.dispatch_id, S.display_name, E.stack_id, D.start, D.end, A.logical_index, D.grid_size_x "
    f"{LINK}JOIN rocpd_info_agent A ON A.id = D.agent_id "
)


def test_csv_twins_have_the_same_dispatches(variant: Variants, twin: Path) -> None:
    names = ("Dispatch_Id", "Kernel_Name", "Correlation_Id", "Start_Timestamp", "End_Timestamp", "Agent_Id")
    for file, order in (("41337_kernel_trace.csv", "D.id"), ("out_kernel_trace.csv", "D.start, D.end DESC")):
        expected = [
            (str(number), name, str(stack), str(start), str(end), f"Agent {agent}", str(grid))
            for number, name, stack, start, end, agent, grid in ask(
                variant("complete"), f"{DISPATCHES}ORDER BY {order}"
            )
        ]
        found = [tuple(row[name] for name in (*names, "Grid_Size_X")) for row in table(twin / file)]
        assert found == expected
    raw, converted = table(twin / "41337_kernel_trace.csv"), table(twin / "out_kernel_trace.csv")
    attention = [
        next(row for row in rows if row["Kernel_Name"].startswith("fmha")) for rows in (raw, converted)
    ]
    # The raw file has no dynamic shared memory.
    assert (attention[0]["LDS_Block_Size"], attention[1]["Lds_Block_Size"]) == ("16384", "17408")
    assert attention[1]["Guid"] == GUID


def test_csv_twins_spell_calls_memory_and_counters(twin: Path) -> None:
    markers = table(twin / "41337_marker_api_trace.csv")
    assert [row["Function"] for row in markers][:2] == ["train_step 0", "evaluate"]
    assert [row["Function"] for row in markers if row["Start_Timestamp"] == row["End_Timestamp"]] == [
        "loss 2.5",
        "checkpoint saved",
    ]
    regions = table(twin / "out_regions_trace.csv")
    assert sum(row["Function"] == "roctxThreadRangeA" for row in regions) == 4
    operations = [row["Operation"] for row in table(twin / "41337_memory_allocation_trace.csv")]
    assert operations == [
        f"MEMORY_ALLOCATION_{name}" for name in ("ALLOCATE", "FREE", "FREE", "VMEM_ALLOCATE", "VMEM_FREE")
    ]
    freed = [row for row in table(twin / "out_memory_allocation_trace.csv") if "FREE" in row["Operation"]]
    assert {(row["Agent_Id"], row["Address"][:6]) for row in freed} >= {('"', "0x0000")}
    counted = table(twin / "counted" / "51001_counter_collection.csv")
    assert len(counted) == 6 * 13
    assert counted[0]["Counter_Name"] == "SQ_WAVES"
    assert (counted[0]["Counter_Value"], counted[0]["Grid_Size"]) == ("896.000000", str(16 * 256 * 14))
    scratch = table(twin / "41337_scratch_memory_trace.csv")
    assert [(row["Operation"], row["Alloc_Flags"]) for row in scratch] == [
        ("SCRATCH_MEMORY_ALLOC", "1"),
        ("SCRATCH_MEMORY_FREE", "1"),
        ("SCRATCH_MEMORY_ASYNC_RECLAIM", "1"),
    ]


def test_statistics_of_the_csv_twin(variant: Variants, twin: Path) -> None:
    expected = ask(
        variant("complete"),
        "SELECT S.display_name, count(*), sum(D.end - D.start), min(D.end - D.start), max(D.end - D.start) "
        f"{LINK}GROUP BY 1 ORDER BY 3 DESC",
    )
    stats = table(twin / "41337_kernel_stats.csv")
    columns = ("Name", "Calls", "TotalDurationNs", "MinNs", "MaxNs")
    assert [tuple(row[column] for column in columns) for row in stats] == [
        tuple(map(str, row)) for row in expected
    ]
    domains = {row["Name"]: row["TotalDurationNs"] for row in table(twin / "41337_domain_stats.csv")}
    assert domains["KERNEL_DISPATCH"] == str(sum(row[2] for row in expected))


def test_json_twin_has_the_same_dispatches(variant: Variants, twin: Path) -> None:
    (process,) = json.loads((twin / "41337_results.json").read_text())["rocprofiler-sdk-tool"]
    symbols, records = process["kernel_symbols"], process["buffer_records"]
    agents = {agent["id"]["handle"]: agent["logical_node_id"] for agent in process["agents"] if "id" in agent}
    found = [
        (
            record["dispatch_info"]["dispatch_id"],
            symbols[record["dispatch_info"]["kernel_id"]]["formatted_kernel_name"],
            record["correlation_id"]["internal"],
            record["start_timestamp"],
            record["end_timestamp"],
            agents[record["dispatch_info"]["agent_id"]["handle"]],
            record["dispatch_info"]["grid_size"]["x"],
        )
        for record in records["kernel_dispatch"]
    ]
    assert found == ask(variant("complete"), f"{DISPATCHES}ORDER BY D.id")
    assert process["metadata"]["pid"] == 41_337
    kinds = process["strings"]["buffer_records"]
    functions = {
        domain: {kinds[record["kind"]]["operations"][record["operation"]] for record in records[domain]}
        for domain in ("hip_api", "hsa_api", "marker_api", "rccl_api", "memory_copy", "scratch_memory")
    }
    assert {"hipMalloc", "hipGraphLaunch"} <= functions["hip_api"]
    assert functions["marker_api"] == {"roctxMarkA", "roctxThreadRangeA", "roctxProcessRangeA"}
    assert functions["scratch_memory"] == {
        f"SCRATCH_MEMORY_{name}" for name in ("ALLOC", "FREE", "ASYNC_RECLAIM")
    }
    texts = {entry["key"]: entry["value"] for entry in process["strings"]["marker_api"]}
    assert texts[records["marker_api"][0]["correlation_id"]["internal"]] == "train_step 0"
    launch = next(record for record in records["hip_api"] if record["args"])
    assert launch["args"][0] == {"type": "size_t", "name": "size", "value": "16777216"}
    assert {record["bytes"] for record in records["memory_copy"]} == {8_192, 24_576, 65_536}
    counted = process["callback_records"]["counter_collection"]
    # Six GEMMs with two instances of one counter, and three passes of the replayed dispatch.
    assert [len(record["records"]) for record in counted] == [2] * 9


@needs_shared
@pytest.mark.parametrize(
    ("public", "name"),
    [
        ("kernel_trace", "41337_kernel_trace"),
        ("hip_runtime_trace", "41337_hip_api_trace"),
        ("hsa_api_trace", "41337_hsa_api_trace"),
        ("marker_api_trace", "41337_marker_api_trace"),
        ("rccl_trace", "41337_rccl_api_trace"),
        ("memory_copy_trace", "41337_memory_copy_trace"),
        ("memory_allocation_trace", "41337_memory_allocation_trace"),
        ("scratch_memory_trace", "41337_scratch_memory_trace"),
        ("counter_collection", "41337_counter_collection"),
        ("hip_api_stats", "41337_hip_api_stats"),
        ("hip_domain_stats", "41337_domain_stats"),
        ("rocpd-to-csv", "out_regions_trace"),
    ],
)
def test_headers_are_those_of_public_files(twin: Path, public: str, name: str) -> None:
    theirs, ours = SHARED / f"rocm-systems-docs-{public}.csv", twin / f"{name}.csv"
    assert theirs.read_text().splitlines()[0] == ours.read_text().splitlines()[0]


@needs_shared
def test_json_twin_has_the_fields_of_a_public_file(twin: Path) -> None:
    with gzip.open(SHARED / "TraceLens-908_results.json.gz") as file:
        (public,) = json.load(file)["rocprofiler-sdk-tool"]
    (ours,) = json.loads((twin / "41337_results.json").read_text())["rocprofiler-sdk-tool"]
    assert ours.keys() == public.keys()
    assert ours["strings"].keys() == public["strings"].keys()
    assert ours["buffer_records"].keys() == public["buffer_records"].keys()
    assert [kind["kind"] for kind in ours["strings"]["buffer_records"]] == [
        kind["kind"] for kind in public["strings"]["buffer_records"]
    ]

    def shape(value: Any) -> Any:
        return {key: shape(item) for key, item in value.items()} if isinstance(value, dict) else None

    ours_dispatch, theirs = (process["buffer_records"]["kernel_dispatch"][0] for process in (ours, public))
    assert shape(ours_dispatch) == shape(theirs)
    assert ours_dispatch["kind"] == theirs["kind"]
    assert ours["kernel_symbols"][1].keys() <= public["kernel_symbols"][1].keys()
    assert ours["agents"][0].keys() <= public["agents"][0].keys()
