"""An HLO module as Arrow tables, one for each hlo_* table of the schema that modules fill."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from tracewh.ingest.capture import Interner, ProblemCounter, columns_table
from tracewh.ingest.hlo import HloModule
from tracewh.ingest.hlo_buffers import buffer_rows
from tracewh.ingest.hlo_collectives import ModuleCollectives
from tracewh.ingest.hlo_cost import ModuleCosts
from tracewh.ingest.hlo_cost_value import Cost
from tracewh.ingest.hlo_flop_types import FlopTypes
from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_library_calls import library_call_cost
from tracewh.ingest.hlo_loops import ComputationRuns
from tracewh.ingest.hlo_op_names import ModuleOpNames
from tracewh.ingest.hlo_rows import ModuleReader, Row
from tracewh.ingest.hlo_thunks import ThunkSequence

_INT, _TEXT, _BOOL = pa.int64(), pa.string(), pa.bool_()

# The columns of the schema, less module_id, which is the warehouse's.
_COLUMNS: dict[str, dict[str, pa.DataType]] = {
    "hlo_modules": {
        "module_name": _TEXT,
        "sha256": _TEXT,
        "proto_bytes": _INT,
        "entry_computation_id": _INT,
        "has_schedule": _BOOL,
        "has_buffer_assignment": _BOOL,
        "replica_count": _INT,
        "partition_count": _INT,
    },
    "hlo_computations": {
        "computation_id": _INT,
        "computation_name": _TEXT,
        "computation_role": _TEXT,
        "root_instruction_id": _INT,
        "execution_thread": _TEXT,
        "executions": _INT,
        "loop_depth": _INT,
        "trip_count": _INT,
        "structure_hash": _TEXT,
    },
    "hlo_instructions": {
        "instruction_id": _INT,
        "computation_id": _INT,
        "position": _INT,
        "name_id": _INT,
        "opcode": _TEXT,
        "op_name_id": _INT,
        "inferred_op_name_id": _INT,
        "op_name_source": _TEXT,
        "neighbour_op_name_id": _INT,
        "shape": _TEXT,
        "element_type": _TEXT,
        "element_count": _INT,
        "shape_bytes": _INT,
        "is_root": _BOOL,
        "parameter_number": _INT,
        "tuple_index": _INT,
        "fusion_kind": _TEXT,
        "custom_call_target": _TEXT,
        "channel_id": _INT,
        "operand_count": _INT,
        "stack_frame_id": _INT,
        "source_file": _TEXT,
        "source_line": _INT,
        "backend_config": _TEXT,
    },
    "hlo_operands": {"instruction_id": _INT, "operand_index": _INT, "operand_instruction_id": _INT},
    "hlo_control_edges": {"instruction_id": _INT, "predecessor_instruction_id": _INT},
    "hlo_calls": {"instruction_id": _INT, "call_index": _INT, "computation_id": _INT},
    "hlo_thunks": {
        "thunk_index": _INT,
        "thunk_kind": _TEXT,
        "computation_id": _INT,
        "instruction_id": _INT,
        "kernel_name_id": _INT,
        "node_position": _INT,
    },
    "hlo_stack_frames": {
        "stack_frame_id": _INT,
        "parent_frame_id": _INT,
        "source_file": _TEXT,
        "function_name": _TEXT,
        "source_line": _INT,
    },
    "hlo_costs": {
        "instruction_id": _INT,
        "flops": _INT,
        "transcendentals": _INT,
        "bytes_accessed": _INT,
        "cost_evidence": _TEXT,
        "cost_rule": _TEXT,
        "cost_note": _TEXT,
    },
    "hlo_flops": {
        "instruction_id": _INT,
        "unit": _TEXT,
        "element_type": _TEXT,
        "matmul_precision": _TEXT,
        "flops": _INT,
    },
    "hlo_collectives": {
        "instruction_id": _INT,
        "collective_kind": _TEXT,
        "is_done": _BOOL,
        "payload_bytes": _INT,
        "group_size": _INT,
        "group_mode": _TEXT,
        "group_set_id": _INT,
        "unknown_reason": _TEXT,
    },
    "hlo_replica_groups": {
        "group_set_id": _INT,
        "group_index": _INT,
        "member_index": _INT,
        "member_id": _INT,
    },
    "hlo_buffers": {
        "allocation_index": _INT,
        "allocation_kind": _TEXT,
        "bytes": _INT,
        "memory_space": _INT,
        "parameter_number": _INT,
        "parameter_shape_index": _TEXT,
        "is_live_out": _BOOL,
        "is_aliased": _BOOL,
        "is_tuple": _BOOL,
    },
    "hlo_logical_buffers": {
        "buffer_id": _INT,
        "instruction_id": _INT,
        "shape_index": _TEXT,
        "bytes": _INT,
        "memory_space": _INT,
        "allocation_index": _INT,
        "offset_bytes": _INT,
        "live_from": _INT,
        "live_until": _INT,
        "is_live_at_peak": _BOOL,
    },
    "hlo_heap_events": {
        "allocation_index": _INT,
        "event_index": _INT,
        "event_kind": _TEXT,
        "buffer_id": _INT,
        "instruction_id": _INT,
        "canonical_buffer_id": _INT,
        "live_bytes": _INT,
        "is_peak": _BOOL,
    },
}

# Of all groups of a module: 1,000 different sets of 1,000 devices.
_MAX_MEMBERS = 1_000_000
# Of the payloads of a module, each as often as an instruction refers to it.
_MAX_PAYLOAD_BYTES = 1 << 27


def module_tables(
    module: HloModule, names: Interner, problems: ProblemCounter, place: str
) -> dict[str, pa.Table]:
    """The rows of a module. Ids are the module's own; a column that ends in name_id refers to `names`.

    A reference to something that the module does not hold is counted in `problems`, at `place`, and its row
    kept.
    """
    proto, buffer_assignment = module.proto, module.buffer_assignment
    _inline_payloads(proto, problems, place)
    graph = ModuleGraph(proto)
    reader = ModuleReader(proto, graph, names, problems, place)
    runs = ComputationRuns(graph, proto)
    module_costs = ModuleCosts(graph, library_call_cost)
    costs = {instruction.id: module_costs.cost(instruction) for instruction in graph.instructions.values()}
    rows: dict[str, list[Row]] = {
        "hlo_modules": [_module_row(module, reader)],
        **reader.rows(runs, ModuleOpNames(graph, runs, lambda instruction: costs[instruction.id])),
        "hlo_thunks": list(_thunk_rows(graph, proto, names)),
        "hlo_costs": list(_cost_rows(graph, costs)),
        "hlo_flops": list(_flop_rows(graph, costs)),
        **_collective_rows(graph, proto, problems, place),
        **buffer_rows(graph, proto, buffer_assignment, problems, place),
    }
    return {
        table: columns_table(
            {column: [row[index] for row in rows[table]] for index, column in enumerate(types)}, types
        )
        for table, types in _COLUMNS.items()
    }


def _module_row(module: HloModule, reader: ModuleReader) -> Row:
    devices = module.proto.device_assignment if module.proto.HasField("device_assignment") else None
    return (
        reader.text(module.proto.name),
        module.sha256,
        module.proto_bytes,
        reader.entry_computation_id,
        reader.has_schedule,
        module.buffer_assignment is not None,
        None if devices is None else devices.replica_count,
        None if devices is None else devices.computation_count,
    )


def _inline_payloads(proto: Any, problems: ProblemCounter, place: str) -> None:
    """Put what instructions keep in a payload where they used to keep it."""
    inlined = 0
    for computation in proto.computations:
        for instruction in computation.instructions:
            if not instruction.HasField("backend_config_payload"):
                continue
            payload = instruction.backend_config_payload
            if payload.HasField("value"):
                instruction.backend_config = payload.value
            elif 0 <= payload.id < len(proto.payloads):
                shared = proto.payloads[payload.id]
                inlined += len(shared)
                if inlined <= _MAX_PAYLOAD_BYTES:
                    instruction.backend_config = shared
                else:
                    problems.add("too_large_payloads", place, "the payload of this instruction is left out")
            else:
                problems.add("dangling_payload", place, f"the module has no payload {payload.id}")


def _thunk_rows(graph: ModuleGraph, proto: Any, names: Interner) -> Iterator[Row]:
    for thunk in ThunkSequence(graph, proto):
        name_id = None if thunk.kernel_name is None else names.id_of(thunk.kernel_name)
        place = (thunk.computation_id, thunk.instruction.id)
        yield thunk.index, thunk.kind, *place, name_id, thunk.node_position


def _cost_rows(graph: ModuleGraph, costs: Mapping[int, Cost]) -> Iterator[Row]:
    with_library_calls = {
        computation.id
        for computation in graph.computations.values()
        if any(instruction.opcode == b"custom-call" for instruction in computation.instructions)
    }
    for instruction in graph.instructions.values():
        cost = costs[instruction.id]
        numbers = (cost.flops, cost.transcendentals, cost.bytes_accessed)
        is_library_call = instruction.opcode == b"custom-call" or (
            instruction.opcode == b"fusion"
            and not with_library_calls.isdisjoint(instruction.called_computation_ids)
        )
        evidence = "analytical" if is_library_call and cost.rule != "no_work" else "compiler"
        has_cost = any(number is not None for number in numbers)
        yield (instruction.id, *numbers, evidence if has_cost else None, cost.rule, cost.reason)


def _flop_rows(graph: ModuleGraph, costs: Mapping[int, Cost]) -> Iterator[Row]:
    types = FlopTypes(graph, costs)
    for instruction in graph.instructions.values():
        for kind, flops in types.of(instruction).items():
            yield (instruction.id, *kind, flops)


def _collective_rows(
    graph: ModuleGraph, proto: Any, problems: ProblemCounter, place: str
) -> dict[str, list[Row]]:
    """Rows of hlo_collectives, and of the groups that they refer to, each set of groups once."""
    group_sets: dict[tuple[tuple[int, ...], ...], int] = {}
    rows: list[Row] = []
    members = 0
    collectives = ModuleCollectives(graph, proto)
    for instruction in graph.instructions.values():
        found = collectives.of(instruction)
        if found is None:
            continue
        if found.reason is not None:
            problems.add("unknown_collective", place, found.reason)
        # Of a permutation the groups are its pairs of source and target.
        groups = found.source_target_pairs or found.groups
        if groups is not None and groups not in group_sets:
            members += sum(map(len, groups))
            if members > _MAX_MEMBERS:
                problems.add("too_many_replica_groups", place, "the groups of this collective are left out")
                groups = None
        rows.append(
            (
                instruction.id,
                found.kind,
                found.is_done,
                found.payload_bytes,
                found.group_size,
                found.group_mode,
                None if groups is None else group_sets.setdefault(groups, len(group_sets)),
                found.reason,
            )
        )
    return {
        "hlo_collectives": rows,
        "hlo_replica_groups": [
            (set_id, group_index, member_index, member)
            for groups, set_id in group_sets.items()
            for group_index, group in enumerate(groups)
            for member_index, member in enumerate(group)
        ],
    }
