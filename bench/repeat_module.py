"""An HLO module of any size, made of copies of the computations of a real one.

python bench/repeat_module.py MODULE.hlo.pb OUT.hlo.pb --instructions 100000

The copies have ids and names of their own, and nothing calls them; the entry computation stays one.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tracewh.ingest.hlo_proto import HloProto


def repeat(proto: Any, instructions: int) -> Any:
    """The HloProto with copies of its computations, until it has at least so many instructions."""
    result = HloProto()
    result.CopyFrom(proto)
    module = result.hlo_module
    sources = [each for each in proto.hlo_module.computations if each.id != module.entry_computation_id]
    sequences = {entry.key: entry.value for entry in proto.hlo_module.schedule.sequences}
    step = max(each.id for each in proto.hlo_module.computations) + 1
    count = sum(len(computation.instructions) for computation in module.computations)
    copy = 0
    while count < instructions:
        copy += 1
        for source in sources:
            computation = module.computations.add()
            computation.CopyFrom(source)
            _renumber(computation, copy * step, b".r%d" % copy)
            if source.id in sequences:
                entry = module.schedule.sequences.add(key=computation.id)
                shifted = _shifted(sequences[source.id].instruction_ids, copy * step)
                entry.value.instruction_ids.extend(shifted)
            count += len(computation.instructions)
    return result


def _renumber(computation: Any, shift: int, suffix: bytes) -> None:
    computation.id += shift
    computation.name += suffix
    (computation.root_id,) = _shifted([computation.root_id], shift)
    for instruction in computation.instructions:
        instruction.name += suffix
        (instruction.id,) = _shifted([instruction.id], shift)
        for ids in (instruction.operand_ids, instruction.control_predecessor_ids):
            ids[:] = _shifted(ids, shift)
        called = instruction.called_computation_ids
        called[:] = [each + shift for each in called]


def _shifted(instruction_ids: Iterable[int], shift: int) -> list[int]:
    # XLA puts the id of its computation in the upper half of an instruction's id.
    return [each + (shift << 32) for each in instruction_ids]


def main() -> None:
    """Write the module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("module", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--instructions", type=int, required=True)
    options = parser.parse_args()
    proto = HloProto.FromString(options.module.read_bytes())
    options.out.write_bytes(repeat(proto, options.instructions).SerializeToString())


if __name__ == "__main__":
    main()
