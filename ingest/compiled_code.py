"""Machine code of our loops: numba compiles it once, after that it is loaded without numba.

Numba's own cache would need numba to be imported, which takes half a second and 100 MB in each process.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import llvmlite
import llvmlite.binding as llvm

# An argument is an address, of bytes or of numbers of 8 or 64 bits, or it is a number.
BYTES, INT8S, INT64S, NUMBER = "bytes", "int8s", "int64s", "number"
_NUMBA_TYPES = {
    BYTES: "CPointer(uint8)",
    INT8S: "CPointer(int8)",
    INT64S: "CPointer(int64)",
    NUMBER: "int64",
}

Signatures = Mapping[str, Sequence[str]]
Function = Callable[..., None]

_OPTIMIZATION_LEVEL = 3
_DIGEST_BYTES = hashlib.sha256().digest_size
# What code without the Python runtime may call: intrinsics of the compiler.
_INTRINSIC = "llvm."


class CompiledCode:
    """Functions by name; their code stays loaded as long as this object lives."""

    def __init__(self, code: bytes, signatures: Signatures) -> None:
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target_machine())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(code))
        self._engine.finalize_object()
        self._functions: dict[str, Any] = {}
        for name, arguments in signatures.items():
            types = [ctypes.c_int64 if kind == NUMBER else ctypes.c_void_p for kind in arguments]
            address = self._engine.get_function_address(name)
            self._functions[name] = ctypes.CFUNCTYPE(None, *types)(address)

    def function(self, name: str) -> Function:
        """The function of that name: it takes addresses and numbers, and runs without Python's lock."""
        function: Function = self._functions[name]
        return function


def load(sources: Sequence[Path], signatures: Signatures, module: Callable[[], ModuleType]) -> CompiledCode:
    """The functions that `signatures` names, of the Python module that `module` imports.

    As long as the `sources`, the processor and the compiler stay the same, the machine code of the last time
    is used and nothing is imported. It is kept in the user's cache directory, where that can be written.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    described = hashlib.sha256(repr((_machine(), llvmlite.__version__, dict(signatures))).encode())
    for source in (Path(__file__), *sources):
        described.update(source.read_bytes())
    folder = _cache_folder()
    path = None if folder is None else folder / f"{described.hexdigest()}.o"
    code = None if path is None else _stored(path)
    if code is None:
        code = _compile(module(), signatures)
        # Without a cache the next process compiles again.
        if path is not None:
            with contextlib.suppress(OSError):
                _store(path, code)
    return CompiledCode(code, signatures)


def _compile(module: ModuleType, signatures: Signatures) -> bytes:
    from numba import cfunc

    joined = llvm.parse_assembly("")
    for name, arguments in signatures.items():
        signature = f"void({', '.join(_NUMBA_TYPES[kind] for kind in arguments)})"
        function = cfunc(signature, error_model="numpy")(getattr(module, name))
        text = re.sub(rf'@"?{re.escape(function.native_name)}"?', f"@{name}", function.inspect_llvm())
        joined.link_in(llvm.parse_assembly(text))
    _optimize(joined, signatures)
    outside = [
        function.name
        for function in joined.functions
        if function.is_declaration and not function.name.startswith(_INTRINSIC)
    ]
    # Such code could not be loaded without numba: what it raises or allocates must be written otherwise.
    assert not outside, outside
    code: bytes = _target_machine().emit_object(joined)
    return code


def _optimize(module: llvm.ModuleRef, exported: Iterable[str]) -> None:
    """Fold the functions of `module` into those `exported`; their calls of Python to report errors go.

    While other modules might call a function, the compiler may not conclude that it reports none.
    """
    for function in module.functions:
        if not function.is_declaration and function.name not in exported:
            function.linkage = "internal"
    tuning = llvm.create_pipeline_tuning_options(speed_level=_OPTIMIZATION_LEVEL)
    builder = llvm.create_pass_builder(_target_machine(), tuning)
    builder.getModulePassManager().run(module, builder)


def _machine() -> tuple[str, str, str]:
    features: str = llvm.get_host_cpu_features().flatten()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features


def _target_machine() -> Any:
    triple, name, features = _machine()
    return llvm.Target.from_triple(triple).create_target_machine(
        name, features, opt=_OPTIMIZATION_LEVEL, jit=True, codemodel="jitdefault"
    )


def _cache_folder() -> Path | None:
    """Where the XDG specification has it; None for a user without a home."""
    chosen = os.environ.get("XDG_CACHE_HOME", "")
    folder = chosen if os.path.isabs(chosen) else os.path.join(os.path.expanduser("~"), ".cache")
    return Path(folder) / "tracewh" if os.path.isabs(folder) else None


def _stored(path: Path) -> bytes | None:
    """The code kept at `path`; None where there is none, or not all of it."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    code = content[_DIGEST_BYTES:]
    return code if hashlib.sha256(code).digest() == content[:_DIGEST_BYTES] else None


def _store(path: Path, code: bytes) -> None:
    """Put the code there at once, for processes that start meanwhile."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(code).digest() + code)
        os.replace(name, path)
    except BaseException:
        os.unlink(name)
        raise
