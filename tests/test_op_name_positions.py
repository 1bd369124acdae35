"""Phases and components of op_names that the installed JAX writes, against where the code was written."""

from __future__ import annotations

from tracewh.ingest.hlo import read_program

from .op_name_answers import classes_of
from .positions_model import module_proto, written_positions


def test_every_operation_is_where_it_was_written() -> None:
    module = read_program(module_proto(), None, "model").module.proto
    written = list(written_positions(module))
    # Six products forward and replayed, eight gradients, the lookup and its gradient, loss and optimizer.
    assert {phase for _, phase, _ in written} == {"forward", "remat", "backward", "update"}
    assert {component for _, _, component in written} == {
        *("embedding", "up", "mix", "down", "head", "loss", "optimizer"),
    }
    classes = classes_of(op_name for op_name, _, _ in written)
    wrong = [
        (op_name, phase, component, classes.get(op_name))
        for op_name, phase, component in written
        if op_name not in classes or classes[op_name][:2] != (phase, component)
    ]
    assert not wrong
