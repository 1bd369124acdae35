"""Rows of one HLO module: computations, instructions and their references, buffer allocations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tracewh.ingest.capture import Interner, ProblemCounter
from tracewh.ingest.hlo_proto import ShapeProto
from tracewh.ingest.hlo_shape import Shape, describe_shape

Row = tuple[Any, ...]


class ModuleReader:
    """Turns a HloModuleProto into rows and counts what does not fit together in it."""

    def __init__(self, module: Any, names: Interner, problems: ProblemCounter, place: str) -> None:
        self._module = module
        self._names = names
        self._problems = problems
        self._place = place
        self._shapes: dict[bytes, Shape] = {}
        self._frames = list(self._source_lines(module.stack_frame_index))
        self._sequences = {entry.key: entry.value.instruction_ids for entry in module.schedule.sequences}
        self._computation_ids = {computation.id for computation in module.computations}
        self.has_schedule = bool(self._sequences)
        self.entry_computation_id: int | None = module.entry_computation_id
        if self.entry_computation_id not in self._computation_ids:
            self._problem(
                "dangling_entry_computation", f"there is no computation {module.entry_computation_id}"
            )
            self.entry_computation_id = None

    def text(self, value: bytes) -> str:
        """Decode a text field; bytes that are not UTF-8 are replaced and counted."""
        try:
            return value.decode()
        except UnicodeDecodeError:
            text = value.decode(errors="replace")
            self._problem("invalid_utf8", f"replaced bytes that are not UTF-8: {text[:80]!r}")
            return text

    def rows(self) -> dict[str, list[Row]]:
        """Rows of hlo_computations, hlo_instructions, hlo_operands and hlo_calls, in stored order."""
        instructions: list[Row] = []
        operands: list[Row] = []
        calls: list[Row] = []
        fusion_bodies: set[int] = set()
        for computation in self._module.computations:
            for instruction, position in zip(
                computation.instructions, self._positions(computation), strict=True
            ):
                instructions.append(self._instruction_row(instruction, position, computation))
                called_ids = instruction.called_computation_ids
                if instruction.opcode == b"fusion":
                    fusion_bodies.update(called_ids)
                operands += [(instruction.id, *item) for item in enumerate(instruction.operand_ids)]
                calls += [(instruction.id, *item) for item in enumerate(called_ids)]
        self._check_references(instructions, operands, calls)
        if self._module.payloads:
            self._problem("unread_payload", "HloModuleProto.payloads is not read", len(self._module.payloads))
        return {
            "hlo_computations": [
                self._computation_row(computation, computation.id in fusion_bodies)
                for computation in self._module.computations
            ],
            "hlo_instructions": instructions,
            "hlo_operands": operands,
            "hlo_calls": calls,
        }

    def _computation_row(self, computation: Any, is_fusion_body: bool) -> Row:
        return (
            computation.id,
            self.text(computation.name),
            computation.id == self.entry_computation_id,
            computation.is_fusion_computation or is_fusion_body,
            computation.root_id,
            self._optional_text(computation.execution_thread),
        )

    def _instruction_row(self, instruction: Any, position: int, computation: Any) -> Row:
        metadata = instruction.metadata
        shape = self._shape(instruction.shape)
        if shape.size_bytes is None:
            self._problem("unknown_shape_size", f"{shape.text} has no fixed size")
        if instruction.backend_config_payload:
            self._problem("unread_payload", "HloInstructionProto.backend_config_payload is not read")
        if metadata.payload:
            self._problem("unread_payload", "OpMetadata.payload is not read")
        source_file, source_line = self._source(metadata)
        return (
            instruction.id,
            computation.id,
            position,
            self._names.id_of(self.text(instruction.name)),
            self.text(instruction.opcode),
            self._names.id_of(self.text(metadata.op_name)) if metadata.op_name else None,
            shape.text,
            shape.element_type,
            shape.element_count,
            shape.size_bytes,
            instruction.id == computation.root_id,
            self._optional_text(instruction.fusion_kind),
            self._optional_text(instruction.custom_call_target),
            instruction.channel_id or None,  # XLA's ids begin at 1, 0 stands for no channel
            len(instruction.operand_ids),
            source_file,
            source_line,
            self._optional_text(instruction.backend_config),
        )

    def _positions(self, computation: Any) -> Iterator[int]:
        """Yield the schedule position of each instruction; unscheduled ones follow in stored order."""
        sequence = self._sequences.get(computation.id)
        if sequence is None:
            yield from range(len(computation.instructions))
            return
        scheduled = {instruction_id: position for position, instruction_id in enumerate(sequence)}
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

    def _check_references(self, instructions: list[Row], operands: list[Row], calls: list[Row]) -> None:
        known = {row[0] for row in instructions}
        self._count_missing("dangling_operand", "instruction", known, [row[2] for row in operands])
        self._count_missing(
            "dangling_called_computation", "computation", self._computation_ids, [row[2] for row in calls]
        )
        self._count_missing(
            "dangling_schedule_id", "computation", self._computation_ids, list(self._sequences)
        )
        roots = [computation.root_id for computation in self._module.computations]
        self._count_missing("dangling_root", "instruction", known, roots)
        self._count_repeated("duplicate_instruction_id", "instructions", len(instructions) - len(known))
        self._count_repeated(
            "duplicate_computation_id", "computations", len(roots) - len(self._computation_ids)
        )

    def _count_missing(self, problem: str, what: str, known: set[int], ids: list[int]) -> None:
        missing = [wanted for wanted in ids if wanted not in known]
        if missing:
            self._problem(problem, f"there is no {what} {missing[0]}", len(missing))

    def _count_repeated(self, problem: str, what: str, repeated: int) -> None:
        if repeated:
            self._problem(problem, f"{what} share an id with another of the module", repeated)

    def _source_lines(self, index: Any) -> Iterator[tuple[str, int] | None]:
        """Yield file and line of each stack frame, None for a frame that points outside the index."""
        files = [self.text(name) for name in index.file_names]
        locations = index.file_locations
        for frame in index.stack_frames:
            location_id = frame.file_location_id
            if not 1 <= location_id <= len(locations):
                yield None
                continue
            location = locations[location_id - 1]
            file_id = location.file_name_id
            yield (files[file_id - 1], location.line) if 1 <= file_id <= len(files) else None

    def _source(self, metadata: Any) -> tuple[str | None, int | None]:
        if metadata.source_file:
            return self.text(metadata.source_file), metadata.source_line or None
        frame_id = metadata.stack_frame_id
        if frame_id == 0:
            return None, None
        source: tuple[str, int] | None = (
            self._frames[frame_id - 1] if 1 <= frame_id <= len(self._frames) else None
        )
        if source is None:
            self._problem("dangling_stack_frame", f"stack frame {frame_id} is not in the frame index")
            return None, None
        return source

    def _shape(self, data: bytes) -> Shape:
        shape = self._shapes.get(data)
        if shape is None:
            shape = self._shapes[data] = describe_shape(ShapeProto.FromString(data))
        return shape

    def _optional_text(self, value: bytes) -> str | None:
        return self.text(value) if value else None

    def _problem(self, problem: str, detail: str, occurrences: int = 1) -> None:
        self._problems.add(problem, self._place, detail, occurrences)


def buffer_rows(buffer_assignment: Any) -> list[Row]:
    """Rows of hlo_buffers. An output that reuses a parameter's memory stays a parameter, live out."""
    return [
        (
            allocation.index,
            _allocation_kind(allocation),
            allocation.size,
            allocation.color,
            allocation.parameter_number if allocation.is_entry_computation_parameter else None,
            allocation.maybe_live_out,
        )
        for allocation in buffer_assignment.buffer_allocations
    ]


def _allocation_kind(allocation: Any) -> str:
    if allocation.is_entry_computation_parameter:
        return "parameter"
    if allocation.is_constant:
        return "constant"
    if allocation.is_thread_local:
        return "thread_local"
    return "output" if allocation.maybe_live_out else "temporary"
