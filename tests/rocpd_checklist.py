"""What the format can hold, and how to see that a synthetic rocpd database holds it."""

from __future__ import annotations

from typing import Any

from .generated_rocpd import GUID, MD5, SUFFIX

LINK = (
    "FROM rocpd_kernel_dispatch D JOIN rocpd_event E ON E.id = D.event_id AND E.guid = D.guid "
    "JOIN rocpd_info_kernel_symbol S ON S.id = D.kernel_id AND S.guid = D.guid "
)
#: Joins the call whose stack id a row has (L), the call around it (P) and the one around that (G).
CALLER = (
    "JOIN rocpd_event LE ON LE.stack_id = E.stack_id AND LE.guid = E.guid "
    "JOIN rocpd_region L ON L.event_id = LE.id AND L.guid = LE.guid "
    "JOIN rocpd_string LN ON LN.id = L.name_id AND LN.guid = L.guid "
    "JOIN rocpd_event PE ON PE.stack_id = LE.parent_stack_id AND PE.guid = E.guid "
    "JOIN rocpd_region P ON P.event_id = PE.id JOIN rocpd_string PN ON PN.id = P.name_id "
)
NAMED = "JOIN rocpd_string N ON N.id = R.name_id "
#: What must be in a file: the item, the variant, a query and its rows.
CHECKLIST: list[tuple[str, str, str, list[tuple[Any, ...]]]] = [
    (
        "three rows of metadata; the suffix is the guid after an underscore",
        "default",
        "SELECT tag, value FROM rocpd_metadata",
        [("schema_version", "3.0.0"), ("uuid", SUFFIX), ("guid", GUID)],
    ),
    (
        "process and thread have their number as id, queue and stream 0 are the default ones",
        "default",
        "SELECT P.id = P.pid, T.id = T.tid, Q.name, S.name, P.start < P.end FROM rocpd_info_process P, "
        "rocpd_info_thread T, rocpd_info_queue Q, rocpd_info_stream S WHERE Q.id = 0 AND S.id = 0",
        [(1, 1, "Default Queue", "Default Stream", 1)],
    ),
    ("an empty string", "default", "SELECT count(*) FROM rocpd_string WHERE string = ''", [(1,)]),
    (
        "events come before their facts: dispatches have stack and parent the same, calls their ancestor",
        "default",
        f"SELECT DISTINCT E.stack_id = E.parent_stack_id, E.correlation_id, C.string {LINK}"
        "JOIN rocpd_string C ON C.id = E.category_id",
        [(1, 0, "KERNEL_DISPATCH")],
    ),
    (
        "grids in work-items",
        "default",
        f"SELECT DISTINCT D.grid_size_x, D.workgroup_size_x {LINK}WHERE S.display_name LIKE 'loop_add%'",
        [(4096 * 256, 256)],
    ),
    (
        "an HSA call in the HIP call has the stack id of the dispatch",
        "default",
        f"SELECT DISTINCT LN.string, PN.string {LINK}{CALLER}",
        [
            ("hsa_signal_store_screlease", "hipModuleLaunchKernel"),
            ("hsa_signal_store_screlease", "hipExtLaunchKernel"),
            ("hsa_signal_store_screlease", "hipGraphLaunch"),
        ],
    ),
    (
        "a call of RCCL around the launch",
        "default",
        f"SELECT DISTINCT S.display_name LIKE 'ncclDevKernel%', GN.string {LINK}{CALLER}"
        "JOIN rocpd_event GE ON GE.stack_id = PE.parent_stack_id JOIN rocpd_region G ON G.event_id = GE.id "
        "JOIN rocpd_string GN ON GN.id = G.name_id WHERE GN.string LIKE 'nccl%'",
        [(1, "ncclAllReduce")],
    ),
    (
        "no HSA calls where they were not traced: the HIP call has the dispatch's stack id",
        "plain",
        f"SELECT DISTINCT LN.string {LINK}JOIN rocpd_event LE ON LE.stack_id = E.stack_id "
        "JOIN rocpd_region L ON L.event_id = LE.id JOIN rocpd_string LN ON LN.id = L.name_id ORDER BY 1",
        [("hipExtLaunchKernel",), ("hipGraphLaunch",), ("hipModuleLaunchKernel",)],
    ),
    (
        "arguments of a collective",
        "default",
        "SELECT DISTINCT A.position, A.type, A.name, A.value FROM rocpd_region R "
        f"{NAMED}JOIN rocpd_arg A ON A.event_id = R.event_id WHERE N.string = 'ncclAllReduce' "
        "AND A.name IN ('count', 'datatype', 'op') ORDER BY 1",
        [
            (2, "size_t", "count", "8388608"),
            (3, "ncclDataType_t", "datatype", "9"),
            (4, "ncclRedOp_t", "op", "0"),
        ],
    ),
    (
        "ranks of the communicators",
        "default",
        "SELECT A.name, A.value FROM rocpd_arg A JOIN rocpd_region R ON R.event_id = A.event_id "
        f"{NAMED}WHERE N.string = 'ncclCommInitRank' AND A.name IN ('nranks', 'myrank') ORDER BY A.id",
        [("nranks", "2"), ("myrank", "0"), ("nranks", "2"), ("myrank", "1")],
    ),
    (
        "ranges with their text in the event",
        "default",
        "SELECT N.string, json_extract(E.extdata, '$.message') FROM rocpd_region R JOIN rocpd_event E "
        f"ON E.id = R.event_id {NAMED}WHERE N.string LIKE 'roctx%' ORDER BY R.start",
        [("roctxThreadRangeA", f"train_step {step}") for step in range(3)],
    ),
    (
        "marks are samples",
        "complete",
        "SELECT json_extract(E.extdata, '$.message'), N.string FROM rocpd_sample R JOIN rocpd_track T "
        "ON T.id = R.track_id JOIN rocpd_event E ON E.id = R.event_id "
        "JOIN rocpd_string N ON N.id = T.name_id WHERE N.string LIKE 'MARKER%'",
        [("loss 2.5", "MARKER_CORE_RANGE_API"), ("checkpoint saved", "MARKER_CORE_RANGE_API")],
    ),
    (
        "ranges in one another, and one of the process",
        "complete",
        "SELECT json_extract(E.extdata, '$.message'), N.string FROM rocpd_region R JOIN rocpd_event E "
        f"ON E.id = R.event_id {NAMED}WHERE N.string LIKE 'roctx%' ORDER BY R.id",
        [
            ("train_step 0", "roctxThreadRangeA"),
            ("evaluate", "roctxThreadRangeA"),
            ("batch 0", "roctxThreadRangeA"),
            ("batch 1", "roctxThreadRangeA"),
            ("late", "roctxProcessRangeA"),
        ],
    ),
    (
        "a call without duration is a sample without a name",
        "complete",
        "SELECT N.string, A.name FROM rocpd_sample R JOIN rocpd_track T ON T.id = R.track_id "
        "JOIN rocpd_string N ON N.id = T.name_id JOIN rocpd_arg A ON A.event_id = R.event_id",
        [("HIP_RUNTIME_API_EXT", "deviceId")],
    ),
    (
        "calls of a second thread",
        "complete",
        f"SELECT N.string, T.name FROM rocpd_region R {NAMED}JOIN rocpd_info_thread T ON T.id = R.tid "
        "WHERE T.tid <> 41337",
        [("hipSetDevice", "loader")],
    ),
    (
        "an external correlation id and the range that renames a kernel",
        "complete",
        f"SELECT E.correlation_id, N.string {LINK}JOIN rocpd_string N ON N.id = D.region_name_id "
        "WHERE N.string <> ''",
        [(77, "attention block")],
    ),
    (
        "one graph launch, several kernels with node ids",
        "complete",
        "SELECT count(DISTINCT E.stack_id), group_concat(D.graph_node_id) "
        f"{LINK}WHERE D.graph_exec_id = 7 GROUP BY D.agent_id",
        [(1, "1,2,3"), (1, "1,2,3")],
    ),
    (
        "graph launches with their counts",
        "complete",
        "SELECT graph_exec_id, kernel_dispatch_count FROM rocpd_graph_launch",
        [(7, 3), (7, 3)],
    ),
    (
        "a copy that is a graph's node",
        "complete",
        "SELECT graph_exec_id, graph_node_id FROM rocpd_memory_copy WHERE graph_exec_id > 0",
        [(8, 1)],
    ),
    (
        "two all-reduces in one kernel per GPU, and a send and a receive in one",
        "complete",
        "SELECT count(*), sum(S.display_name LIKE 'nccl%') "
        f"{LINK}{CALLER}JOIN rocpd_event GE ON GE.stack_id = PE.parent_stack_id "
        "JOIN rocpd_region G ON G.event_id = GE.id JOIN rocpd_string GN ON GN.id = G.name_id "
        "WHERE GN.string = 'ncclGroupEnd'",
        [(3, 3)],
    ),
    (
        "the calls of RCCL",
        "complete",
        f"SELECT N.string, count(*) FROM rocpd_region R {NAMED}WHERE N.string LIKE 'nccl%' GROUP BY 1",
        [
            ("ncclAllGather", 1),
            # Per GPU one for each of three layers and two in the group.
            ("ncclAllReduce", 10),
            ("ncclAllToAll", 1),
            ("ncclBroadcast", 1),
            ("ncclCommInitRank", 2),
            ("ncclGroupEnd", 3),
            ("ncclGroupStart", 3),
            ("ncclRecv", 1),
            ("ncclReduce", 1),
            ("ncclReduceScatter", 1),
            ("ncclSend", 1),
        ],
    ),
    (
        "counts by the names that the calls give them",
        "complete",
        "SELECT N.string, A.name, A.value FROM rocpd_region R JOIN rocpd_arg A ON A.event_id = R.event_id "
        f"{NAMED}WHERE A.name LIKE '%count' AND N.string <> 'ncclAllReduce' ORDER BY R.id",
        [
            ("ncclAllGather", "sendcount", "1048576"),
            ("ncclReduceScatter", "recvcount", "1048576"),
            ("ncclBroadcast", "count", "1048576"),
            ("ncclReduce", "count", "1048576"),
            ("ncclAllToAll", "count", "1048576"),
            ("ncclSend", "count", "1048576"),
            ("ncclRecv", "count", "1048576"),
        ],
    ),
    (
        "kernels of RCCL without correlation",
        "unlinked",
        f"SELECT DISTINCT E.stack_id = 0 {LINK}WHERE S.display_name LIKE 'nccl%'",
        [(1,)],
    ),
    (
        "events of the driver: region and value of a counter without agent, stack 0",
        "complete",
        "SELECT I.name, I.block, I.agent_id, E.stack_id, V.value, R.end - R.start FROM rocpd_region R "
        "JOIN rocpd_event E ON E.id = R.event_id JOIN rocpd_pmc_event V ON V.event_id = E.id "
        "JOIN rocpd_info_pmc I ON I.id = V.pmc_id",
        [
            ("KFD_PAGE_FAULT", "KFD", None, 0, float(0x7F30_0000_0000), 9_000),
            ("KFD_PAGE_MIGRATE", "KFD", None, 0, 2_097_152.0, 7_000),
            ("KFD_QUEUE", "KFD", None, 0, 1.0, 30_000),
            ("KFD_EVENT_DROPPED_EVENTS", "KFD", None, 0, 12.0, 0),
        ],
    ),
    (
        "allocations of each level; a release without and with agent",
        "complete",
        "SELECT type, level, agent_id, size FROM rocpd_memory_allocate",
        [
            ("ALLOC", "REAL", 2, 16_777_216),
            ("FREE", "REAL", None, 0),
            ("FREE", "REAL", 2, 0),
            ("ALLOC", "VIRTUAL", 2, 2_097_152),
            ("FREE", "VIRTUAL", None, 0),
            ("ALLOC", "SCRATCH", 2, 1_048_576),
            ("FREE", "SCRATCH", 2, 0),
            ("RECLAIM", "SCRATCH", 2, 0),
        ],
    ),
    (
        "the allocation has the stack id of the HSA call, and the HIP call as its parent",
        "default",
        "SELECT N.string FROM rocpd_memory_allocate M JOIN rocpd_event E ON E.id = M.event_id "
        "JOIN rocpd_event H ON H.stack_id IN (E.stack_id, E.parent_stack_id) "
        f"JOIN rocpd_region R ON R.event_id = H.id {NAMED}ORDER BY R.id",
        [("hipMalloc",), ("hsa_amd_memory_pool_allocate",)],
    ),
    (
        "copies of each direction, one from GPU to GPU, queue always null",
        "complete",
        "SELECT DISTINCT N.string, R.src_agent_id, R.dst_agent_id, R.queue_id FROM rocpd_memory_copy R "
        f"{NAMED}WHERE R.graph_exec_id = 0",
        [
            ("MEMORY_COPY_HOST_TO_DEVICE", 0, 2, None),
            ("MEMORY_COPY_HOST_TO_DEVICE", 0, 3, None),
            ("MEMORY_COPY_DEVICE_TO_HOST", 2, 0, None),
            ("MEMORY_COPY_DEVICE_TO_DEVICE", 2, 2, None),
            ("MEMORY_COPY_DEVICE_TO_DEVICE", 2, 3, None),
            ("MEMORY_COPY_HOST_TO_HOST", 0, 1, None),
        ],
    ),
    (
        "HIP events: one queue waits for another",
        "complete",
        f"SELECT N.string, R.queue_id, R.source_queue_id FROM rocpd_hip_event R {NAMED}",
        [("HIP_EVENT_RECORD", 1, None), ("HIP_EVENT_WAIT", 2, 1)],
    ),
    (
        "streamed counters by place, apart from those of the dispatch",
        "complete",
        "SELECT V.xcc, V.shader_engine, V.instance, V.shader_array, V.wgp, V.value FROM rocpd_pmc_event V "
        "JOIN rocpd_sample S ON S.id = V.sample_id ORDER BY S.timestamp, V.id LIMIT 4",
        [(0, 0, 0, 1, 3, 1000.0), (0, 1, 0, 1, 3, 1001.0), (1, 0, 0, 1, 3, 1010.0), (1, 1, 0, 1, 3, 1011.0)],
    ),
    (
        "one dispatch replayed: an event, a pass and a counter each",
        "complete",
        "SELECT D.replay_pass, I.name, sum(V.value), count(DISTINCT D.event_id), "
        "D.dispatch_id = min(D.dispatch_id) OVER () FROM rocpd_kernel_dispatch D "
        "JOIN rocpd_pmc_event V ON V.event_id = D.event_id JOIN rocpd_info_pmc I ON I.id = V.pmc_id "
        "WHERE D.replay_pass IS NOT NULL GROUP BY 1",
        [
            (0, "SQ_WAVES", 201.0, 1, 1),
            (1, "GRBM_GUI_ACTIVE", 401.0, 1, 1),
            (2, "TCC_EA0_RDREQ", 601.0, 1, 1),
        ],
    ),
    (
        "samples of the program counter, two with a packed record that fields describe",
        "complete",
        "SELECT S.dispatch_id, S.exec, nullif(hex(B.blob), '') FROM rocpd_gpu_pc_sample S "
        "LEFT JOIN rocpd_blob_event B ON B.event_id = S.event_id",
        [
            (1, -1, None),
            (1, -1, "010200000400000000000000"),
            (1, -1, "000305000600000001000000"),
        ],
    ),
    (
        "the fields of the packed record",
        "complete",
        'SELECT F.name, F."offset", F.size, S.struct_size FROM rocpd_info_blob_field F '
        "JOIN rocpd_info_blob_schema S ON S.id = F.schema_id",
        [
            ("wave_issued", 0, 1, 12),
            ("inst_type", 1, 1, 12),
            ("reason_not_issued", 2, 1, 12),
            ("wave_count", 4, 4, 12),
            ("has_memory_counter", 8, 4, 12),
        ],
    ),
    (
        "decoded samples of the program counter",
        "complete",
        "SELECT exec_mask, dispatch_id, instruction_comment FROM rocpd_pc_sampling",
        [(65_535, 1, ""), (65_535, 1, "gemm.s:9")],
    ),
    ("event operations", "complete", "SELECT type FROM rocpd_event_operation", [("SIGNAL",), ("WAIT",)]),
    (
        "a network adapter",
        "complete",
        "SELECT name FROM rocpd_info_agent WHERE type = 'NIC'",
        [("mlx5_0",)],
    ),
    (
        "views that lose rows: the regions without events of unknown threads, durations in microseconds",
        "complete",
        "SELECT round(total_duration, 3) FROM top_kernels WHERE name LIKE 'loop_add%'",
        # One step on two GPUs, 20 us each.
        [(40.0,)],
    ),
    (
        "a version that metadata claim and tables do not have",
        "claims 4",
        "SELECT value, (SELECT count(*) FROM pragma_table_info('rocpd_region') WHERE name = 'track_id') "
        "FROM rocpd_metadata WHERE tag = 'schema_version'",
        [("4", 0)],
    ),
    (
        "two guids in one file, whose ids count anew",
        "merged",
        "SELECT guid, min(id), count(*) FROM rocpd_kernel_dispatch GROUP BY 1",
        [(GUID[:-2] + "00", 1, 15), (GUID[:-2] + "01", 1, 15)],
    ),
    (
        "a rank of a directory: its own host, process, clock and GPU",
        "rank 3",
        "SELECT N.hostname, P.pid, (SELECT group_concat(DISTINCT agent_id) FROM rocpd_kernel_dispatch), "
        "(SELECT group_concat(value) FROM rocpd_arg WHERE name IN ('nranks', 'myrank')) "
        "FROM rocpd_info_node N, rocpd_info_process P",
        [("mi300x-1", 41_340, "3", "4,3")],
    ),
    (
        "rocprof-sys: an md5 sum for a guid, repeated by a tag",
        "rocprof-sys",
        "SELECT tag, value FROM rocpd_metadata WHERE id > 1",
        [("uuid", f"_{MD5}"), ("guid", MD5), ("upid", MD5)],
    ),
    (
        "rocprof-sys, early builds: the placeholder is declared, rows have the guid",
        "rocprof-sys, early",
        "SELECT M.value, (SELECT group_concat(DISTINCT guid) FROM rocpd_event), "
        f"(SELECT sql LIKE '%{{{{guid}}}}%' FROM sqlite_master WHERE name = 'rocpd_event_{MD5}') "
        "FROM rocpd_metadata M WHERE M.tag = 'guid'",
        [("{{guid}}", MD5, 1)],
    ),
    (
        "rocprof-sys: lower-case categories, no external ids, the ancestor as parent",
        "rocprof-sys",
        "SELECT DISTINCT C.string, E.correlation_id, E.stack_id = 0, E.parent_stack_id FROM rocpd_event E "
        "JOIN rocpd_string C ON C.id = E.category_id ORDER BY E.id",
        [
            ("rocm_hip_api", 0, 0, 0),
            ("rocm_kernel_dispatch", 0, 0, 0),
            ("rocm_memory_copy", 0, 0, 0),
            ("host", 0, 1, 0),
            ("amd_smi", 0, 1, 0),
            ("timer_sampling", 0, 1, 0),
            ("rocm_kfd_page_fault", 0, 1, 0),
            ("RCCL bytes received [0] (S)", 0, 1, 0),
        ],
    ),
    (
        "rocprof-sys: dispatches name their kernel as region",
        "rocprof-sys",
        f"SELECT DISTINCT N.string = S.display_name, D.stream_id {LINK}"
        "JOIN rocpd_string N ON N.id = D.region_name_id",
        [(1, 0)],
    ),
    (
        "rocprof-sys: one event of a metric has several samples and values",
        "rocprof-sys",
        "SELECT count(DISTINCT S.id), count(DISTINCT V.id) FROM rocpd_event E JOIN rocpd_string C "
        "ON C.id = E.category_id JOIN rocpd_sample S ON S.event_id = E.id "
        "JOIN rocpd_pmc_event V ON V.event_id = E.id WHERE C.string = 'amd_smi' GROUP BY E.id LIMIT 1",
        [(4, 4)],
    ),
    (
        "rocprof-sys: a sampled call stack is a region and a sample of one event",
        "rocprof-sys",
        "SELECT N.string, json_extract(E.call_stack, '$.0') FROM rocpd_region R JOIN rocpd_event E "
        f"ON E.id = R.event_id JOIN rocpd_sample S ON S.event_id = E.id {NAMED}"
        "WHERE E.call_stack <> ''",
        [("forward", "main"), ("backward", "main")],
    ),
    (
        "counter runs have dispatches and no calls",
        "pass 1",
        "SELECT (SELECT count(*) FROM rocpd_kernel_dispatch), (SELECT count(*) FROM rocpd_region)",
        [(6, 0)],
    ),
    (
        "a pass that lost its last launch",
        "short pass",
        "SELECT count(*) FROM rocpd_kernel_dispatch",
        [(5,)],
    ),
    (
        "values of XCC and shader engine",
        "with dimensions",
        "SELECT DISTINCT V.xcc, V.shader_engine, V.instance FROM rocpd_pmc_event V JOIN rocpd_info_pmc I "
        "ON I.id = V.pmc_id WHERE I.name = 'SQ_WAVES'",
        [(xcc, engine, None) for xcc in range(4) for engine in range(2)],
    ),
    (
        "schema 4: facts name a track",
        "schema 4",
        f"SELECT name FROM pragma_table_info('rocpd_kernel_dispatch{SUFFIX}') "
        "WHERE name IN ('pid', 'track_id')",
        [("track_id",)],
    ),
]
