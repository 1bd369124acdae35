"""A compiled program's own account: optimized HLO with buffer assignment, memory and cost analysis, dump."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jax

from tracewh.ingest.errors import RecordError
from tracewh.ingest.hlo_proto import HloProto
from tracewh.record_files import (
    COST_ANALYSIS_FILE,
    DUMP_FOLDER,
    HLO_PROTO_FILE,
    HLO_TEXT_FILE,
    MEMORY_ANALYSIS_FILE,
    RunFiles,
    json_bytes,
)

_MAX_REASON = 500
_DUMP_OPTION = "--xla_dump_to="
# Of a dump, what describes the program that runs: what comes after every pass, and no machine code.
_DUMPED = re.compile(r"after_optimizations|thunk_sequence|gpu_target_config")


def check_compiled(compiled: Any) -> None:
    """Raise RecordError for anything but a compiled program, with what to pass instead."""
    if not isinstance(compiled, jax.stages.Compiled):
        raise RecordError(
            f"compiled: a {type(compiled).__name__} is no compiled program. "
            "Pass what jax.jit(step).lower(state, batch).compile() returns."
        )


@contextmanager
def noted(errors: dict[str, str], what: str) -> Iterator[None]:
    """Go on after an error in the block, with its reason in `errors`."""
    try:
        yield
    except Exception as error:  # which ones, differs between releases of JAX and between backends
        errors[what] = reason(error)


def reason(error: BaseException) -> str:
    """The error in words for a record, the middle of long ones left out: XLA puts causes at either end."""
    text, half = f"{type(error).__name__}: {error}", _MAX_REASON // 2
    return text if len(text) <= _MAX_REASON else f"{text[:half]} ... {text[-half:]}"


def write_program(compiled: jax.stages.Compiled, files: RunFiles, errors: dict[str, str]) -> str | None:
    """Write what the program tells of itself; the reason why a part is missing goes to `errors`.

    Returns the name of its module, None where it cannot be told.
    """
    analysis = None
    with noted(errors, "memory_analysis"):
        analysis = compiled.memory_analysis()
        files.write_shared(MEMORY_ANALYSIS_FILE, json_bytes(_sizes(analysis)))
    with noted(errors, "cost_analysis"):
        files.write_shared(COST_ANALYSIS_FILE, json_bytes(_costs(compiled.cost_analysis())))
    proto = None
    with noted(errors, "optimized_hlo"):
        proto = _hlo(compiled, analysis, errors)
        files.write_shared(HLO_PROTO_FILE, proto.SerializeToString())
    if proto is None:
        with noted(errors, "optimized_hlo_text"):
            files.write_shared(HLO_TEXT_FILE, _text(compiled).encode())
        return None
    folder = _dump_folder()
    if folder is not None:
        with noted(errors, "xla_dump"):
            _copy_dump(folder, proto.hlo_module, files)
    name: str = proto.hlo_module.name.decode()
    return name


def _sizes(analysis: Any) -> dict[str, int]:
    names = [name for name in dir(analysis) if not name.startswith("_")]
    sizes = {name: getattr(analysis, name) for name in names}
    found = {name: size for name, size in sizes.items() if type(size) is int}
    if not found:
        raise ValueError("the backend gives no memory analysis")
    return found


def _costs(costs: Any) -> dict[str, float]:
    first = costs[0] if isinstance(costs, list | tuple) and costs else costs
    if not first:
        raise ValueError("the backend gives no cost analysis")
    return {name: float(value) for name, value in first.items()}


def _hlo(compiled: jax.stages.Compiled, analysis: Any, errors: dict[str, str]) -> Any:
    """The optimized module as HloProto, with the buffer assignment where the backend gives it."""
    executable: Any = compiled.runtime_executable()
    modules = executable.hlo_modules()
    if len(modules) != 1:
        errors["hlo_modules"] = f"the program is {len(modules)} modules, of which the first is here"
    proto = HloProto()
    proto.hlo_module.ParseFromString(modules[0].as_serialized_hlo_module_proto())
    assignment = getattr(analysis, "serialized_buffer_assignment_proto", None)
    if assignment:
        proto.buffer_assignment.ParseFromString(assignment)
    else:
        errors["buffer_assignment"] = "the backend gives none with the memory analysis"
    return proto


def _text(compiled: jax.stages.Compiled) -> str:
    text = compiled.as_text()
    if not text:
        raise ValueError("the backend gives no text of the program")
    return text


def _dump_folder() -> Path | None:
    """Where XLA writes its dump, if it does: the last of the flags counts."""
    options = shlex.split(os.environ.get("XLA_FLAGS", ""))
    folders = [option.removeprefix(_DUMP_OPTION) for option in options if option.startswith(_DUMP_OPTION)]
    if not folders or folders[-1] in ("", "-", "sponge"):
        return None
    return Path(folders[-1])


def _copy_dump(folder: Path, module: Any, files: RunFiles) -> None:
    """Copy the dump of the module.

    Its files begin with its name and the id that it was compiled under; that of the program at hand may be
    another. So of several dumps the last one with the same instructions is taken.
    """
    start = re.compile(rf"(module_[0-9]+)\.{re.escape(module.name.decode())}\.")
    dumps: dict[str, list[Path]] = defaultdict(list)
    for path in sorted(folder.iterdir()):
        found = start.match(path.name)
        if found is not None and _DUMPED.search(path.name):
            dumps[found[1]].append(path)
    names = _instruction_names(module)
    same = [paths for paths in dumps.values() if any(_has_instructions(path, names) for path in paths)]
    if not same:
        raise FileNotFoundError(
            f"{folder} has no module of this name with the same instructions as proto: "
            "set --xla_dump_hlo_as_proto, and dump in the process that compiles."
        )
    newest = max(same, key=lambda paths: max(path.stat().st_mtime_ns for path in paths))
    with files.shared_folder(DUMP_FOLDER) as target:
        for path in newest:
            shutil.copyfile(path, target / path.name)


def _has_instructions(path: Path, names: set[bytes]) -> bool:
    if not path.name.endswith("after_optimizations.hlo.pb"):
        return False
    return _instruction_names(HloProto.FromString(path.read_bytes()).hlo_module) == names


def _instruction_names(module: Any) -> set[bytes]:
    return {
        instruction.name for computation in module.computations for instruction in computation.instructions
    }
