"""Rows of one HLO module: its computations and instructions, and what refers to what."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tracewh.ingest.capture import Interner, ProblemCounter
from tracewh.ingest.hlo_graph import UNREADABLE_SHAPE, ModuleGraph
from tracewh.ingest.hlo_loops import ComputationRuns
from tracewh.ingest.hlo_op_names import FoundNames, ModuleOpNames
from tracewh.ingest.hlo_shape import Shape
from tracewh.ingest.hlo_structure import structure_hashes

Row = tuple[Any, ...]

# As long as a path can be. A name is stored once and frames and instructions repeat it: few bytes of a file
# must not fill the memory.
_MAX_FRAME_NAME = 4096


class ModuleReader:
    """Turns a HloModuleProto into rows and counts what does not fit together in it."""

    def __init__(
        self, module: Any, graph: ModuleGraph, names: Interner, problems: ProblemCounter, place: str
    ) -> None:
        self._module, self._graph = module, graph
        self._names, self._problems, self._place = names, problems, place
        self._sequences = {entry.key: entry.value.instruction_ids for entry in module.schedule.sequences}
        self.has_schedule = bool(self._sequences)
        repeated = len(module.schedule.sequences) - len(self._sequences)
        if repeated:
            self._problem(
                "repeated_schedule", "a computation has several schedules: the last one counts", repeated
            )
        self.entry_computation_id: int | None = module.entry_computation_id
        if self.entry_computation_id not in graph.computations:
            self._problem(
                "dangling_entry_computation", f"there is no computation {module.entry_computation_id}"
            )
            self.entry_computation_id = None
        self._frames = self._read_frames()
        self._configs: dict[bytes, str] = {}

    def text(self, value: bytes) -> str:
        """Decode a text field; bytes that are not UTF-8 are replaced and counted."""
        try:
            return value.decode()
        except UnicodeDecodeError:
            text = value.decode(errors="replace")
            self._problem("invalid_utf8", f"replaced bytes that are not UTF-8: {text[:80]!r}")
            return text

    def rows(self, runs: ComputationRuns, op_names: ModuleOpNames) -> dict[str, list[Row]]:
        """Rows by table, in stored order."""
        instructions: dict[int, Row] = {}
        operands: list[Row] = []
        edges: list[Row] = []
        calls: list[Row] = []
        for computation in self._module.computations:
            for instruction, position in zip(
                computation.instructions, self._positions(computation), strict=True
            ):
                if instruction.id in instructions:
                    self._problem("duplicate_instruction_id", "an id of another instruction; left out")
                    continue
                instructions[instruction.id] = self._instruction_row(
                    instruction, position, computation, op_names.of(instruction)
                )
                operands += [(instruction.id, *item) for item in enumerate(instruction.operand_ids)]
                edges += [(instruction.id, before) for before in instruction.control_predecessor_ids]
                calls += [(instruction.id, *item) for item in enumerate(instruction.called_computation_ids)]
        self._check_references(operands, edges, calls)
        repeated = len(self._module.computations) - len(self._graph.computations)
        if repeated:
            self._problem("duplicate_computation_id", "an id of another computation; left out", repeated)
        hashes = structure_hashes(self._graph)
        return {
            "hlo_computations": [
                (*self._computation_row(computation, runs), hashes[computation.id])
                for computation in self._graph.computations.values()
            ],
            "hlo_instructions": list(instructions.values()),
            "hlo_operands": operands,
            "hlo_control_edges": edges,
            "hlo_calls": calls,
            "hlo_stack_frames": [(frame_id, *frame) for frame_id, frame in self._frames.items()],
        }

    def _computation_row(self, computation: Any, runs: ComputationRuns) -> Row:
        found = runs.of(computation)
        return (
            computation.id,
            self.text(computation.name),
            found.role,
            computation.root_id,
            self._optional_text(computation.execution_thread),
            found.executions,
            found.loop_depth,
            found.trip_count,
        )

    def _instruction_row(self, instruction: Any, position: int, computation: Any, found: FoundNames) -> Row:
        metadata = instruction.metadata
        shape = self._shape(instruction)
        if metadata.payload:
            self._problem("unread_payload", "OpMetadata.payload is not read")
        return (
            instruction.id,
            computation.id,
            position,
            self._names.id_of(self.text(instruction.name)),
            self.text(instruction.opcode),
            self._names.id_of(self.text(metadata.op_name)) if metadata.op_name else None,
            None if found.inferred is None else self._names.id_of(found.inferred),
            found.source,
            None if found.neighbour is None else self._names.id_of(found.neighbour),
            shape.text,
            shape.element_type,
            shape.element_count,
            shape.size_bytes,
            instruction.id == computation.root_id,
            instruction.parameter_number if instruction.opcode == b"parameter" else None,
            instruction.tuple_index if instruction.opcode == b"get-tuple-element" else None,
            self._optional_text(instruction.fusion_kind),
            self._optional_text(instruction.custom_call_target),
            instruction.channel_id or None,  # XLA's ids begin at 1, 0 stands for no channel
            len(instruction.operand_ids),
            metadata.stack_frame_id or None,
            *self._source(metadata),
            self._config(instruction.backend_config),
        )

    def _positions(self, computation: Any) -> Iterator[int]:
        """Yield the schedule position of each instruction; unscheduled ones follow in stored order."""
        # Of several computations with one id the first has the schedule.
        sequence = self._sequences.pop(computation.id, None)
        if sequence is None:
            yield from range(len(computation.instructions))
            return
        scheduled = {instruction_id: position for position, instruction_id in enumerate(sequence)}
        repeated = len(sequence) - len(scheduled)
        if repeated:
            self._problem(
                "repeated_schedule_id",
                f"{self.text(computation.name)} has instructions twice in its schedule; the last counts",
                repeated,
            )
        missing = scheduled.keys() - {instruction.id for instruction in computation.instructions}
        if missing:
            self._problem(
                "dangling_schedule_id",
                f"{self.text(computation.name)} has no instruction {min(missing)}",
                len(missing),
            )
        following = len(sequence)
        for instruction in computation.instructions:
            position = scheduled.get(instruction.id)
            if position is None:
                self._problem(
                    "unscheduled_instruction", f"{self.text(instruction.name)} is not in the schedule"
                )
                position, following = following, following + 1
            yield position

    def _check_references(self, operands: list[Row], edges: list[Row], calls: list[Row]) -> None:
        known, computations = self._graph.instructions, self._graph.computations
        self._count_missing("dangling_operand", "instruction", known, [row[2] for row in operands])
        self._count_missing("dangling_control_edge", "instruction", known, [row[1] for row in edges])
        self._count_missing(
            "dangling_called_computation", "computation", computations, [row[2] for row in calls]
        )
        self._count_missing("dangling_schedule_id", "computation", computations, list(self._sequences))
        roots = [computation.root_id for computation in self._module.computations]
        self._count_missing("dangling_root", "instruction", known, roots)

    def _count_missing(self, problem: str, what: str, known: Mapping[int, Any], ids: list[int]) -> None:
        missing = [wanted for wanted in ids if wanted not in known]
        if missing:
            self._problem(problem, f"there is no {what} {missing[0]}", len(missing))

    def _read_frames(self) -> dict[int, tuple[int | None, str | None, str | None, int | None]]:
        """Parent, file, function and line of each stack frame, by its id; None where the index has none."""
        index = self._module.stack_frame_index
        files = [self._frame_name(name) for name in index.file_names]
        functions = [self._frame_name(name) for name in index.function_names]
        frames = {}
        for frame_id, frame in enumerate(index.stack_frames, start=1):
            location = _at(index.file_locations, frame.file_location_id)
            file = None if location is None else _at(files, location.file_name_id)
            if file is None:
                self._problem("dangling_stack_frame", f"stack frame {frame_id} has no file")
            frames[frame_id] = (
                frame.parent_frame_id or None,
                file,
                None if location is None else _at(functions, location.function_name_id),
                None if file is None else location.line or None,
            )
        return frames

    def _frame_name(self, value: bytes) -> str:
        text = self.text(value)
        if len(text) > _MAX_FRAME_NAME:
            self._problem("long_frame_name", f"{text[:80]!r}... is cut after {_MAX_FRAME_NAME} characters")
        return text[:_MAX_FRAME_NAME]

    def _source(self, metadata: Any) -> tuple[str | None, int | None]:
        if metadata.source_file:
            return self.text(metadata.source_file), metadata.source_line or None
        frame_id = metadata.stack_frame_id
        if frame_id == 0:
            return None, None
        if frame_id not in self._frames:
            self._problem("dangling_stack_frame", f"stack frame {frame_id} is not in the frame index")
            return None, None
        _, file, _, line = self._frames[frame_id]
        return file, line

    def _shape(self, instruction: Any) -> Shape:
        shape = self._graph.shape(instruction)
        if shape is UNREADABLE_SHAPE:
            self._problem("unreadable_shape", f"the shape of {self.text(instruction.name)} is damaged")
        elif shape.size_bytes is None:
            self._problem("unknown_shape_size", f"{shape.text} has no fixed size")
        return shape

    def _config(self, value: bytes) -> str | None:
        """The configuration; what is no JSON, as an MLIR dictionary, as a JSON string."""
        if not value:
            return None
        found = self._configs.get(value)
        if found is None:
            found = self.text(value)
            try:
                # Half of a surrogate pair passes in Python, and for no other reader of JSON.
                json.dumps(json.loads(found), ensure_ascii=False).encode()
            except (ValueError, RecursionError):
                found = json.dumps(found)
            self._configs[value] = found
        return found

    def _optional_text(self, value: bytes) -> str | None:
        return self.text(value) if value else None

    def _problem(self, problem: str, detail: str, occurrences: int = 1) -> None:
        self._problems.add(problem, self._place, detail, occurrences)


def _at(items: Any, number: int) -> Any:
    """The item of that number, counted from 1; None where there is none."""
    return items[number - 1] if 1 <= number <= len(items) else None
