"""What computations of an HLO module compute, as hashes: equal for equal work of different compilations."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from tracewh.ingest.hlo_graph import ModuleGraph
from tracewh.ingest.hlo_proto import HloInstructionProto

_HEX_DIGITS = 16
# Of an instruction: names, numbers and hints. A configuration of the backend tells how the work is done, and
# changes with what the compiler finds when it tries. References and constants count by their content.
_NO_ATTRIBUTES = (
    *("name", "id", "metadata", "channel_id", "control_predecessor_ids", "frontend_attributes"),
    *("backend_config", "backend_config_payload", "async_execution_thread"),
    *("operand_ids", "called_computation_ids", "literal"),
)
_UNKNOWN = bytes(hashlib.sha256().digest_size)


def structure_hashes(graph: ModuleGraph) -> dict[int, str]:
    """The hash of each computation of a module, by its id: 16 hex digits.

    It is that of the root and of the multiset of all instructions. Of an instruction count its opcode, shape
    with layout, attributes, constant, operands in order, and what it calls. An operand that does not come
    before its user, and a computation that calls itself, stand for nothing in particular: no valid module has
    them.
    """
    digests: dict[int, bytes] = {}
    scratch = HloInstructionProto()
    for computation in _called_first(graph):
        digests[computation.id] = _computation_digest(computation, digests, scratch)
    return {computation_id: digest.hex()[:_HEX_DIGITS] for computation_id, digest in digests.items()}


def _called_first(graph: ModuleGraph) -> Iterator[Any]:
    """Each computation once, after those that it calls."""
    seen: set[int] = set()
    for computation in graph.computations.values():
        # XLA stores them in this order; in a file that does not, a chain of calls may be of any length.
        waiting = [(computation, _called_ids(computation))]
        if computation.id in seen:
            continue
        seen.add(computation.id)
        while waiting:
            current, called_ids = waiting[-1]
            for called_id in called_ids:
                called = graph.computations.get(called_id)
                if called is not None and called_id not in seen:
                    seen.add(called_id)
                    waiting.append((called, _called_ids(called)))
                    break
            else:
                yield current
                waiting.pop()


def _called_ids(computation: Any) -> Iterator[int]:
    for instruction in computation.instructions:
        yield from instruction.called_computation_ids


def _computation_digest(computation: Any, digests: Mapping[int, bytes], scratch: Any) -> bytes:
    own: dict[int, bytes] = {}
    for instruction in computation.instructions:
        own[instruction.id] = _instruction_digest(instruction, own, digests, scratch)
    return hashlib.sha256(own.get(computation.root_id, _UNKNOWN) + b"".join(sorted(own.values()))).digest()


def _instruction_digest(
    instruction: Any, operands: Mapping[int, bytes], computations: Mapping[int, bytes], scratch: Any
) -> bytes:
    scratch.CopyFrom(instruction)
    for field in _NO_ATTRIBUTES:
        scratch.ClearField(field)
    scratch.DiscardUnknownFields()
    attributes = scratch.SerializeToString(deterministic=True)
    # The fields that are not read, floats among them, are still in it.
    constant = (
        instruction.literal.SerializeToString(deterministic=True) if instruction.HasField("literal") else b""
    )
    operand_ids, called_ids = instruction.operand_ids, instruction.called_computation_ids
    parts = [b"%d %d %d\n" % (len(attributes), len(constant), len(operand_ids)), attributes, constant]
    parts += [operands.get(operand_id, _UNKNOWN) for operand_id in operand_ids]
    if called_ids:
        parts += [computations.get(called_id, _UNKNOWN) for called_id in called_ids]
    return hashlib.sha256(b"".join(parts)).digest()
