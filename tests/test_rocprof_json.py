"""JSON files of rocprofv3 as tables: each kind of record, by hand, and a real file against `json.load`."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from tracewh.ingest.rocprof_json import looks_like_json_results, read_processes

from .rocprof_json_files import (
    ALLOCATION,
    COPY,
    CPU,
    GPU,
    GRAPH,
    HIP,
    KINDS,
    MARKER,
    PAGE_FAULT,
    QUEUE,
    REAL_FILE,
    SCRATCH,
    call,
    counted,
    counter,
    dispatch,
    document,
    merged_ns,
    problems,
    process,
    read,
    rows,
)


def test_dispatch() -> None:
    found = read(buffers={"kernel_dispatch": [dispatch(3, 1000, 1800, queue=9, stream=4)]})
    columns = (
        "tid",
        "agent_id",
        "queue_id",
        "stream_id",
        "kernel_id",
        "dispatch_id",
        "start",
        "end",
        "private_segment_size",
        "group_segment_size",
        "workgroup_size_x",
        "workgroup_size_y",
        "workgroup_size_z",
        "grid_size_x",
        "grid_size_y",
        "grid_size_z",
        "event.category_id",
        "event.stack_id",
        "event.parent_stack_id",
        "event.correlation_id",
        "region_name_id",
    )
    # Launch and dispatch share the correlation id: 103 is that of the call, for both.
    expected = (71, GPU, 9, 4, 5, 3, 1000, 1800, 16, 1024, 256, 2, 1, 4096, 8, 3)
    assert rows(found, "kernel_dispatch", *columns) == [(*expected, "KERNEL_DISPATCH", 103, 103, 0, None)]
    # Nothing is left that would be a stat of each dispatch.
    own = {"id", "event_id"}
    assert set(found.reference("kernel_dispatch").table.column_names) == own | set(columns)
    assert rows(found, "info_kernel_symbol", "id", "code_object_id", "kernel_name", "display_name") == [
        (5, 1, "k.kd", "k")
    ]
    assert rows(found, "info_thread", "id", "tid") == [(71, 71)]
    assert problems(found) == []


def test_queues_and_streams_are_numbered_as_they_are_met() -> None:
    found = read(
        buffers={
            "kernel_dispatch": [
                dispatch(1, 10, 20, queue=30, stream=8),
                dispatch(2, 20, 30, queue=12, stream=0),
                dispatch(3, 30, 40, queue=30, stream=2),
            ]
        }
    )
    assert rows(found, "info_queue", "id", "name") == [(0, "Default Queue"), (30, "Queue 0"), (12, "Queue 1")]
    assert rows(found, "info_stream", "id", "name") == [
        (0, "Default Stream"),
        (8, "Stream 0"),
        (2, "Stream 1"),
    ]


def test_calls_and_their_arguments() -> None:
    arguments = [
        {"type": "void**", "name": "ptr", "value": "0x7f00"},
        # The profiler fills places of arguments that it was not told.
        {"type": "", "name": "", "value": ""},
        {"type": "size_t", "name": "size", "value": "64"},
    ]
    launch = call(HIP, 1, 12, 30, 45, ancestor=11, retval={"hipError_t_retval": 0}, args=[])
    found = read(
        buffers={
            "hip_api": [call(HIP, 0, 11, 10, 20, args=arguments), launch],
            "rccl_api": [call(HIP, 1, 13, 50, 60, args={"count": 8, "datatype": "f32"})],
        }
    )
    columns = (
        "event.category_id",
        "name_id",
        "tid",
        "start",
        "end",
        "event.stack_id",
        "event.parent_stack_id",
    )
    category = "HIP_RUNTIME_API_EXT"
    assert rows(found, "region", *columns) == [
        (category, "hipMalloc", 71, 10, 20, 11, 0),
        (category, "hipLaunchKernel", 71, 30, 45, 12, 11),
        (category, "hipLaunchKernel", 71, 50, 60, 13, 0),
    ]
    first, _, third = (event for (event,) in rows(found, "region", "event_id"))
    assert rows(found, "arg", "event_id", "position", "type", "name", "value") == [
        (first, 0, "void**", "ptr", "0x7f00"),
        (first, 2, "size_t", "size", "64"),
        (third, 0, None, "count", "8"),
        (third, 1, None, "datatype", "f32"),
    ]
    # What has no column in rocpd is kept under its own name.
    assert rows(found, "region", "retval.hipError_t_retval") == [(None,), (0,), (None,)]


def test_marker_messages() -> None:
    found = read(
        strings={
            "buffer_records": KINDS,
            "marker_api": [
                {"key": 21, "value": 'step "1"'},
                {"key": 22, "value": "mark"},
                {"key": 99, "value": "x"},
            ],
        },
        buffers={
            "marker_api": [
                call(MARKER, 1, 21, 10, 90),
                call(MARKER, 0, 22, 50, 50),
                call(MARKER, 1, 23, 60, 70),
            ],
            # The ids of messages are of markers only.
            "hip_api": [call(HIP, 0, 21, 10, 20)],
        },
    )
    assert rows(found, "region", "name_id", "start", "end", "event.extdata") == [
        ("hipMalloc", 10, 20, None),
        ("roctxThreadRangeA", 10, 90, '{"message": "step \\"1\\""}'),
        ("roctxMarkA", 50, 50, '{"message": "mark"}'),
        ("roctxThreadRangeA", 60, 70, None),
    ]
    assert problems(found) == [("unused_message", "strings.marker_api", 1)]


def test_kernels_that_the_program_renamed() -> None:
    strings = {"buffer_records": KINDS, "correlation_id": {"external": [{"key": 7, "value": "layer 3"}]}}
    records = [dispatch(1, 10, 20, external=7), dispatch(2, 20, 30, external=8)]
    found = read(strings=strings, buffers={"kernel_dispatch": records})
    assert rows(found, "kernel_dispatch", "event.correlation_id", "region_name_id") == [
        (7, "layer 3"),
        (8, None),
    ]


@pytest.mark.parametrize("external", [{"value": 2**64 - 1}, {"ptr": 2**64 - 1}, 2**64 - 1])
def test_external_ids_are_64_bits(external: Any) -> None:
    record = dispatch(1, 10, 20)
    record["correlation_id"]["external"] = external
    found = read(buffers={"kernel_dispatch": [record]})
    assert rows(found, "kernel_dispatch", "event.correlation_id") == [(-1,)]


@pytest.mark.parametrize(
    ("source", "target"),
    [(16, 2**63 + 5), ({"handle": 16}, {"value": 2**63 + 5}), ("0x10", "0x8000000000000005")],
)
def test_copies(source: Any, target: Any) -> None:
    agents = {"src_agent_id": {"handle": CPU}, "dst_agent_id": {"handle": GPU}}
    place = {"src_address": source, "dst_address": target, "bytes": 4096, "stream_id": {"handle": 6}}
    found = read(
        buffers={
            "memory_copy": [
                call(COPY, 2, 31, 10, 20, **agents, **place),
                call(COPY, 1, 32, 30, 40, **(agents | {"src_agent_id": {"handle": 0}}), bytes=1),
            ]
        }
    )
    columns = ("name_id", "src_agent_id", "dst_agent_id", "src_address", "dst_address", "size", "stream_id")
    assert rows(found, "memory_copy", *columns, "event.stack_id", "event.parent_stack_id") == [
        ("MEMORY_COPY_HOST_TO_DEVICE", CPU, GPU, 16, 5 - 2**63, 4096, 6, 31, 31),
        ("MEMORY_COPY_HOST_TO_HOST", None, GPU, None, None, 1, None, 32, 32),
    ]


def test_allocations_and_scratch() -> None:
    def memory(operation: int, correlation: int, agent: int, address: str, size: int) -> dict[str, Any]:
        where = {"agent_id": {"handle": agent}, "address": address, "allocation_size": size}
        return call(ALLOCATION, operation, correlation, correlation, correlation + 1, ancestor=40, **where)

    def scratch(operation: int, correlation: int) -> dict[str, Any]:
        where = {"agent_id": {"handle": GPU}, "queue_id": {"handle": 9}, "flags": 2, "allocation_size": 512}
        return call(SCRATCH, operation, correlation, correlation, correlation + 1, **where)

    found = read(
        buffers={
            "memory_allocation": [
                memory(1, 41, GPU, "0x00007f0000000000", 1024),
                memory(2, 42, GPU, "0x0000000000001000", 64),
                memory(3, 43, 0, "0x00007f0000000000", 0),
                memory(4, 44, 0, "0x0000000000001000", 0),
            ],
            "scratch_memory": [scratch(1, 45), scratch(2, 46), scratch(3, 47)],
        }
    )
    columns = ("type", "level", "agent_id", "address", "size", "queue_id", "extdata", "event.stack_id")
    assert rows(found, "memory_allocate", *columns, "event.parent_stack_id", "event.category_id") == [
        ("ALLOC", "REAL", GPU, 0x7F0000000000, 1024, None, None, 41, 40, "MEMORY_ALLOCATION"),
        ("ALLOC", "VIRTUAL", GPU, 0x1000, 64, None, None, 42, 40, "MEMORY_ALLOCATION"),
        ("FREE", "REAL", None, 0x7F0000000000, 0, None, None, 43, 40, "MEMORY_ALLOCATION"),
        ("FREE", "VIRTUAL", None, 0x1000, 0, None, None, 44, 40, "MEMORY_ALLOCATION"),
        ("ALLOC", "SCRATCH", GPU, None, 512, 9, '{"flags": 2}', 45, 0, "SCRATCH_MEMORY"),
        ("FREE", "SCRATCH", GPU, None, 512, 9, '{"flags": 2}', 46, 0, "SCRATCH_MEMORY"),
        ("RECLAIM", "SCRATCH", GPU, None, 512, 9, '{"flags": 2}', 47, 0, "SCRATCH_MEMORY"),
    ]


def test_events_of_the_driver() -> None:
    fault = {"size": 48, "kind": PAGE_FAULT, "operation": 1, "timestamp": 15, "pid": 70}
    fault |= {"agent_id": {"handle": GPU}, "address": {"handle": 4096}}
    evicted = {
        "size": 56,
        "kind": QUEUE,
        "operation": 0,
        "start_timestamp": 20,
        "end_timestamp": 25,
        "pid": 70,
    }
    found = read(
        buffers={"kfd": [{"record": {"index": 1, "data": fault}}, {"record": {"index": 7, "data": evicted}}]}
    )
    columns = ("event.category_id", "name_id", "start", "end", "tid", "agent_id", "address")
    assert rows(found, "region", *columns) == [
        ("KFD_EVENT_PAGE_FAULT", "PAGE_FAULT_END", 15, 15, 70, GPU, 4096),
        ("KFD_QUEUE", "QUEUE_EVICT_SVM", 20, 25, 70, None, None),
    ]
    assert not {"pid", "timestamp", "index", "record.index"} & set(
        found.reference("region").table.column_names
    )


def test_graphs() -> None:
    launch = {"agent_id": {"handle": GPU}, "queue_id": {"handle": 9}, "graph_exec_id": {"handle": 2}}
    found = read(
        buffers={
            "hip_graph": [call(GRAPH, 1, 51, 10, 20, **launch, kernel_dispatch_count=3)],
            "kernel_dispatch": [dispatch(1, 12, 15, graph_exec_id=2, graph_node_id=7)],
        }
    )
    columns = (
        "agent_id",
        "queue_id",
        "start",
        "end",
        "graph_exec_id",
        "kernel_dispatch_count",
        "event.stack_id",
    )
    assert rows(found, "graph_launch", *columns) == [(GPU, 9, 10, 20, 2, 3, 51)]
    assert rows(found, "kernel_dispatch", "graph_exec_id", "graph_node_id") == [(2, 7)]


def test_pc_samples() -> None:
    strings = {
        "buffer_records": KINDS,
        "pc_sample_instructions": ["s_nop 0", "v_add_f32 v0, v1, v2"],
        "pc_sample_comments": ["", "kernel.hip:12"],
    }
    trap = {
        "hw_id": {"chiplet": 3, "workgroup_id ": 8},
        "pc": {"code_object_id": 1, "code_object_offset": 640},
        "exec_mask": 2**64 - 1,
        "timestamp": 111,
        "dispatch_id": 1,
        "corr_id": {"internal": 101, "external": 0},
        "wrkgrp_id": {"x": 5, "y": 0, "z": 0},
        "wave_in_grp": 2,
    }
    stochastic = trap | {
        "flags": {"has_mem_cnt": 0},
        "dispatch_id": 0,
        "wave_issued": False,
        "inst_type": "NO_INST",
        "wave_cnt": 4,
        "snapshot": {"stall_reason": "WAITCNT", "dual_issue_valu": 0},
    }
    found = read(
        strings=strings,
        code_objects=[{"code_object_id": 1, "agent_id": {"handle": GPU}, "uri": "file://a", "load_size": 8}],
        buffers={
            "kernel_dispatch": [dispatch(1, 100, 200)],
            "pc_sample_host_trap": [{"record": trap, "inst_index": 1}, {"record": trap, "inst_index": -1}],
            "pc_sample_stochastic": [
                {"record": stochastic, "inst_index": 0},
                {"record": stochastic, "inst_index": 2},
            ],
        },
    )
    columns = ("sampling_method", "timestamp", "dispatch_id", "agent_id", "exec", "code_object_id")
    assert rows(found, "gpu_pc_sample", *columns, "code_object_offset", "wave_in_group") == [
        ("host_trap", 111, 1, GPU, -1, 1, 640, 2),
        ("host_trap", 111, 1, GPU, -1, 1, 640, 2),
        # Without a dispatch, the code object tells the agent.
        ("stochastic", 111, 0, GPU, -1, 1, 640, 2),
        ("stochastic", 111, 0, GPU, -1, 1, 640, 2),
    ]
    texts = (
        "instruction_id",
        "comment_id",
        "correlation_id",
        "wave_issued",
        "instruction_type",
        "stall_reason",
    )
    assert rows(found, "gpu_pc_sample", *texts, "wave_count") == [
        ("v_add_f32 v0, v1, v2", "kernel.hip:12", 101, None, None, None, None),
        (None, None, 101, None, None, None, None),
        ("s_nop 0", None, 101, 0, "NO_INST", "WAITCNT", 4),
        (None, None, 101, 0, "NO_INST", "WAITCNT", 4),
    ]
    assert rows(found, "gpu_pc_sample", "hw_id.chiplet", "hw_id.workgroup_id", "wrkgrp_id.x")[0] == (3, 8, 5)
    assert problems(found) == [("unknown_instruction", "buffer_records.pc_sample_stochastic", 1)]


def test_counters_of_recorded_dispatches() -> None:
    found = read(
        counters=[counter(501, "SQ_WAVES"), counter(502, "GRBM_COUNT", is_derived=1)],
        buffers={"kernel_dispatch": [dispatch(1, 10, 15), dispatch(2, 20, 25), dispatch(2, 30, 35)]},
        callbacks={
            "counter_collection": [
                # A kernel that is replayed has its dispatch id again: the start tells which it was.
                counted(2, 30, [(501, 4.0)]),
                counted(1, 10, [(501, 64.0), (501, 32.5), (502, 7.0)]),
                counted(2, 21, [(999, 1.0)]),
            ]
        },
    )
    events = [event for (event,) in rows(found, "kernel_dispatch", "event_id")]
    assert len(set(events)) == len(events) == 3
    assert rows(found, "pmc_event", "event_id", "pmc_id", "value") == [
        (events[2], 501, 4.0),
        (events[0], 501, 64.0),
        (events[0], 501, 32.5),
        (events[0], 502, 7.0),
        # An id with a start that is not known is of the first; an unknown counter keeps its handle.
        (events[1], 999, 1.0),
    ]
    columns = ("id", "agent_id", "name", "symbol", "description", "block", "expression", "is_derived")
    assert rows(found, "info_pmc", *columns) == [
        (501, GPU, "SQ_WAVES", "SQ_WAVES", "SQ_WAVES?", "SQ", "", 0),
        (502, GPU, "GRBM_COUNT", "GRBM_COUNT", "GRBM_COUNT?", "SQ", "", 1),
    ]


def test_runs_that_only_count_have_dispatches_of_their_counters() -> None:
    found = read(
        counters=[counter(501, "SQ_WAVES")],
        buffers={"kernel_dispatch": []},
        callbacks={
            "counter_collection": [
                counted(1, 10, [(501, 1.0)]),
                counted(1, 10, [(501, 2.0)]),
                counted(2, 20, [(501, 3.0)], kernel_id=6),
            ]
        },
    )
    columns = (
        "tid",
        "dispatch_id",
        "kernel_id",
        "agent_id",
        "queue_id",
        "stream_id",
        "start",
        "end",
        "grid_size_y",
    )
    assert rows(found, "kernel_dispatch", *columns, "event.category_id", "event.stack_id") == [
        (71, 1, 5, GPU, 9, 3, 10, 15, 8, "KERNEL_DISPATCH", 101),
        (71, 2, 6, GPU, 9, 3, 20, 25, 8, "KERNEL_DISPATCH", 102),
    ]
    (first,), (second,) = rows(found, "kernel_dispatch", "event_id")
    assert rows(found, "pmc_event", "event_id", "value") == [(first, 1.0), (first, 2.0), (second, 3.0)]


def test_counters_of_agents_with_the_same_handle() -> None:
    found = read(
        counters=[counter(501, "SQ_WAVES", CPU), counter(501, "SQ_WAVES", GPU), counter(502, "X", CPU)],
        callbacks={
            "counter_collection": [
                counted(1, 10, [(501, 1.0)], agent_id={"handle": GPU}),
                counted(2, 20, [(501, 2.0)], agent_id={"handle": CPU}),
            ]
        },
    )
    assert rows(found, "info_pmc", "id", "agent_id") == [(501, CPU), (1, GPU), (502, CPU)]
    assert rows(found, "pmc_event", "pmc_id", "value") == [(1, 1.0), (501, 2.0)]


def test_streaming_monitors() -> None:
    # Die 2, shader engine 3, array 1, workgroup processor 4, instance 70, below the number of the counter.
    by_bits = 2 | 3 << 12 | 1 << 24 | 4 << 30 | 70 << 36 | 501 << 48
    told = [
        {"dimension_name": "DIMENSION_XCC", "index": 6},
        {"dimension_name": "DIMENSION_INSTANCE", "index": 5},
    ]
    instances = [{"instance_id": 12345, "counter_id": 501, "dimensions": told}]
    values = [(by_bits, 40, 1000), (12345, 41, 1000), (by_bits, 42, 2000)]
    records = [
        {"counter_id": {"handle": 501}, "instance_id": instance, "value": value, "timestamp": time}
        for instance, value, time in values
    ]
    found = read(
        counters=[counter(501, "SQ_WAVES", instances=instances)],
        buffers={"kernel_dispatch": [dispatch(1, 900, 3000)]},
        callbacks={
            "counter_collection": [counted(1, 900, [(501, 123.0)])],
            "spm_counter_collection": [counted(1, 900, []) | {"records": records}],
        },
    )
    ((event,),) = rows(found, "kernel_dispatch", "event_id")
    (first, second), track = (
        [sample for (sample,) in rows(found, "sample", "id")],
        rows(found, "sample", "track_id")[0][0],
    )
    assert rows(found, "sample", "timestamp", "track_id", "event.stack_id") == [
        (1000, track, 101),
        (2000, track, 101),
    ]
    assert rows(found, "track", "id", "tid", "name_id") == [(track, 71, "SPM_COUNTER_COLLECTION")]
    columns = ("event_id", "sample_id", "value", "xcc", "shader_engine", "shader_array", "wgp", "instance")
    assert rows(found, "pmc_event", *columns) == [
        (event, None, 123.0, None, None, None, None, None),
        (event, first, 40.0, 2, 3, 1, 4, 70),
        (event, first, 41.0, 6, None, None, None, 5),
        (event, second, 42.0, 2, 3, 1, 4, 70),
    ]


def test_event_ids_are_of_one_fact_each() -> None:
    found = read(
        buffers={
            "kernel_dispatch": [dispatch(1, 10, 20)],
            "hip_api": [call(HIP, 0, 1, 1, 2)],
            "hip_event": [call(HIP, 0, 2, 3, 4, hip_event_handle=2**64 - 2)],
            "memory_copy": [call(COPY, 2, 3, 5, 6)],
            "scratch_memory": [call(SCRATCH, 1, 4, 7, 8)],
            "hip_graph": [call(GRAPH, 1, 5, 9, 10)],
            "pc_sample_host_trap": [{"record": {"timestamp": 11}, "inst_index": -1}],
        },
        callbacks={"spm_counter_collection": [counted(1, 10, [(501, 1.0)])]},
    )
    bases = ("kernel_dispatch", "region", "hip_event", "memory_copy", "memory_allocate", "graph_launch")
    ids = [
        event for base in (*bases, "gpu_pc_sample", "sample") for (event,) in rows(found, base, "event_id")
    ]
    assert len(ids) == len(set(ids)) == 8
    assert rows(found, "hip_event", "name_id", "hip_event_handle") == [("hipMalloc", -2)]


def test_agents_and_code_objects() -> None:
    agent = {
        "id": {"handle": 2**63 + 1},
        "type": 2,
        "node_id": 4,
        "logical_node_id": 3,
        "logical_node_type_id": 1,
        "name": "gfx950",
        "model_name": "ip discovery",
        "vendor_name": "AMD",
        "product_name": "AMD Instinct MI350X",
        "caches": [{"size": 32}],
    }
    found = read(
        agents=[agent, {"id": {"handle": 1}, "type": 3}],
        strings={"code_object_snapshot_filenames": ["", "a.out"]},
        code_objects=[
            {"size": 0, "code_object_id": 0, "agent_id": {"handle": 0}, "load_size": 0, "storage_type": 0},
            {
                "size": 80,
                "code_object_id": 1,
                "rocp_agent": {"handle": 2**63 + 1},
                "uri": "memory://1",
                "load_base": 4096,
                "load_size": 64,
                "storage_type": 2,
            },
            {"size": 80, "code_object_id": 2, "agent_id": {"handle": 1}, "load_size": 1, "storage_type": 1},
        ],
    )
    columns = (
        "id",
        "type",
        "absolute_index",
        "logical_index",
        "type_index",
        "name",
        "model_name",
        "vendor_name",
    )
    assert rows(found, "info_agent", *columns, "product_name") == [
        (1 - 2**63, "GPU", 4, 3, 1, "gfx950", "ip discovery", "AMD", "AMD Instinct MI350X"),
        (1, None, None, None, None, None, None, None, None),
    ]
    assert json.loads(rows(found, "info_agent", "extdata")[0][0]) == agent
    columns = ("id", "agent_id", "uri", "load_base", "load_size", "storage_type", "snapshot")
    assert rows(found, "info_code_object", *columns) == [
        (1, 1 - 2**63, "memory://1", 4096, 64, "MEMORY", "a.out"),
        (2, 1, None, None, 1, "FILE", None),
    ]


def test_metadata() -> None:
    found = read(
        metadata={
            "node": {
                "id": 7,
                "hash": 2**64 - 3,
                "machine_id": "m",
                "hostname": "n1",
                "release": "6.1",
                "rack": "r5",
            },
            "pid": 70,
            "init_time": 5,
            "fini_time": 9,
            "command": ["python", "train.py"],
            "config": {
                "kernel_rename": True,
                "pmc": ["A", "B"],
                "nested": {"x": 1.5},
                "environment": {"TOKEN": "s"},
            },
            "env": {"TOKEN": "secret"},
        },
        tool_version="1.1",
        strings={"buffer_records": KINDS, "att_filenames": ["a.att"], "callback_records": KINDS},
        summary=[
            {
                "domain": "HIP",
                "stats": {"count": 3, "sum": 9.5, "operations": [{"key": "hipMalloc", "value": {}}]},
            }
        ],
    )
    assert found.source_kind == "rocprof_json"
    assert found.attributes == {
        "node.rack": "r5",
        "config.kernel_rename": "true",
        "config.pmc": '["A","B"]',
        "config.nested.x": "1.5",
        "tool_version": "1.1",
        "strings.att_filenames": '["a.att"]',
        "summary.HIP.count": "3",
        "summary.HIP.sum": "9.5",
    }
    assert rows(found, "info_node", "id", "hash", "machine_id", "hostname", "version") == [
        (7, -3, "m", "n1", None)
    ]
    assert rows(found, "info_process", "id", "pid", "init", "fini", "command") == [
        (70, 70, 5, 9, "python train.py")
    ]
    assert problems(found) == [("unsupported_section", "summary", 1)]


def test_unknown_sections_are_counted_and_unknown_fields_kept() -> None:
    found = read(
        buffers={
            "kernel_dispatch": [dispatch(1, 10, 20, new={"a": 1, "b": ["x", 2]}, id=8)],
            "hipfile_api": [call(HIP, 0, 1, 1, 2)],
            "holograms": [{"a": 1}, {"a": 2}, 3],
            "nothing": [],
        },
        callbacks={"dreams": [1, 2]},
        host_functions=[{"host_function_id": 0}, {"host_function_id": 1}],
        novelty={"a": 1},
    )
    assert problems(found) == [
        ("unsupported_section", "buffer_records.holograms", 3),
        ("unsupported_section", "callback_records.dreams", 2),
        ("unsupported_section", "host_functions", 1),
        ("unsupported_section", "novelty", 1),
    ]
    assert rows(found, "kernel_dispatch", "new.a", "new.b", "record.id") == [(1, '["x",2]', 8)]
    assert rows(found, "region", "name_id") == [("hipMalloc",)]


def test_names_that_the_strings_lack() -> None:
    found = read(
        strings={"buffer_records": [{"kind": "NONE", "operations": []}, None]},
        buffers={
            "hip_api": [call(1, 4, 1, 1, 2), call(77, 5, 2, 1, 2), call(0, -1, 3, 1, 2)],
            "memory_allocation": [call(6, 1, 4, 1, 2)],
        },
    )
    assert rows(found, "region", "event.category_id", "name_id") == [
        ("HIP_API", "hip_api operation 4"),
        ("HIP_API", "hip_api operation 5"),
        ("NONE", "hip_api operation -1"),
    ]
    assert rows(found, "memory_allocate", "type", "level") == [(None, "REAL")]
    assert problems(found) == [
        ("unknown_operation", "buffer_records.hip_api", 3),
        ("unknown_operation", "buffer_records.memory_allocation", 1),
    ]


def test_order_of_the_sections_does_not_matter() -> None:
    whole = process(
        strings={"marker_api": [{"key": 21, "value": "step"}], "buffer_records": KINDS},
        counters=[counter(501, "SQ_WAVES")],
        callbacks={"counter_collection": [counted(1, 10, [(501, 1.0)]), counted(2, 30, [(501, 2.0)])]},
        buffers={
            "hip_api": [call(HIP, 0, 21, 1, 2, args=[{"type": "t", "name": "n", "value": "v"}])],
            "kernel_dispatch": [dispatch(1, 10, 15)],
            "marker_api": [call(MARKER, 1, 21, 10, 90)],
            "memory_copy": [call(COPY, 2, 31, 10, 20)],
        },
    )

    def reversed_keys(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: reversed_keys(value[key]) for key in reversed(value)}
        return [reversed_keys(element) for element in value] if isinstance(value, list) else value

    found, mirrored = (read(text=document(each)) for each in (whole, reversed_keys(whole)))
    assert found._rows.keys() == mirrored._rows.keys()
    for base, table in found._rows.items():
        # The extdata of an agent is its text in the file.
        columns = sorted(set(table.table.column_names) - {"extdata"})
        assert mirrored.reference(base).table.select(columns).equals(table.table.select(columns)), base


def test_several_processes() -> None:
    both = [process(metadata={"pid": 1}), process(metadata={"pid": 2}, buffers={"odd": [1]})]
    first, second = read_processes(document(*both), "x")
    assert [rows(each, "info_process", "pid") for each in (first, second)] == [[(1,)], [(2,)]]
    assert (problems(first), problems(second)) == ([], [("unsupported_section", "buffer_records.odd", 1)])


def test_recognition() -> None:
    text = document(process())
    assert looks_like_json_results(text[:40])
    assert looks_like_json_results(b'\xef\xbb\xbf \n{\n "rocprofiler-sdk-tool" : [')
    assert looks_like_json_results(b'{"version": 1, "rocprofiler-sdk-tool": [{"metadata"')
    for other in (b"", b"{}", b'["rocprofiler-sdk-tool"]', b'{"tool": "rocprofiler-sdk-tool"}', b"\x1f\x8b"):
        assert not looks_like_json_results(other)


@pytest.mark.skipif(not REAL_FILE.exists(), reason="needs TraceLens-908_results.json.gz of the shared data")
def test_real_file() -> None:
    text = gzip.decompress(REAL_FILE.read_bytes())
    assert looks_like_json_results(text[:4096])
    (found,) = read_processes(text, REAL_FILE.name)
    (whole,) = json.loads(text)["rocprofiler-sdk-tool"]
    records = whole["buffer_records"]["kernel_dispatch"]
    columns = ("start", "end", "agent_id", "kernel_id", "tid", "stream_id", "grid_size_x", "event.stack_id")
    loaded = rows(found, "kernel_dispatch", *columns)
    assert loaded == [
        (
            record["start_timestamp"],
            record["end_timestamp"],
            record["dispatch_info"]["agent_id"]["handle"],
            record["dispatch_info"]["kernel_id"],
            record["thread_id"],
            record["stream_id"]["handle"],
            record["dispatch_info"]["grid_size"]["x"],
            record["correlation_id"]["internal"],
        )
        for record in records
    ]
    assert len(loaded) == 43_915
    assert merged_ns((start, end) for start, end, *_ in loaded) == 4_233_112_334
    assert sum(end - start < 10_000 for start, end, *_ in loaded) == 35_968
    symbols = rows(found, "info_kernel_symbol", "id", "display_name", "kernel_name", "arch_vgpr_count")
    fields = ("kernel_id", "formatted_kernel_name", "kernel_name", "arch_vgpr_count")
    assert symbols == [tuple(symbol[field] for field in fields) for symbol in whole["kernel_symbols"][1:]]
    assert [json.loads(text) for (text,) in rows(found, "info_agent", "extdata")] == whole["agents"]
    assert [kind for (kind,) in rows(found, "info_agent", "type")] == ["CPU"] * 2 + ["GPU"] * 8
    assert len(found.reference("info_code_object")) == len(whole["code_objects"]) - 1
    handles = {record["stream_id"]["handle"] for record in records} | {0}
    assert {handle for (handle,) in rows(found, "info_stream", "id")} == handles
    assert problems(found) == []
