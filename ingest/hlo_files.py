"""What the names of HLO files and modules say."""

from __future__ import annotations

import re
from pathlib import PurePath

_DUMP_NUMBER = re.compile(r"module_(\d{1,20})\.")
_NUMBER_IN_PARENTHESES = re.compile(r"\((\d{1,20})\)$")
# Field 1, length-delimited, and its length; then a name, and the start of field 2.
_LENGTH_DELIMITED_1 = re.compile(rb"\n[\x80-\xff]{0,9}[\x00-\x7f]")
_MODULE_START = re.compile(_LENGTH_DELIMITED_1.pattern + rb"[A-Za-z_][\w.<>()$+-]*\x12")
_TEXT_MODULE_NAME = re.compile(rb"\s*HloModule ([^\s,]+)")
_OPTIMIZED_DUMP = re.compile(r"module_\d+\..*after_optimizations(\.hlo)?\.(pb|txt)")


def program_id_from_name(filename: str) -> int | None:
    """Return the program id in a dump's file name or a module's display name, None if it has none.

    `module_2011.jit_step.gpu_after_optimizations.hlo.pb` gives 2011 and `jit_dot(49)` 49. TPU names hold
    unsigned 64-bit ids: the result is the signed number of the same bits, as everywhere in the warehouse.
    """
    base = PurePath(filename).name
    found = _DUMP_NUMBER.match(base) or _NUMBER_IN_PARENTHESES.search(filename)
    if found is None:
        return None
    number = int(found[1])
    if number >= 2**64:
        return None
    return number - 2**64 if number >= 2**63 else number


def is_optimized_dump(filename: str) -> bool:
    """Whether `filename` is the final module of an XLA dump, as proto or text.

    False for the modules of earlier passes and for the reports beside it (`-buffer-assignment.txt`, ...).
    """
    return _OPTIMIZED_DUMP.fullmatch(PurePath(filename).name) is not None


def looks_like_module(head: bytes) -> bool:
    """Whether the first bytes of a file are those of a serialized HloProto or HloModuleProto.

    A module begins with its name and the name of its entry computation; an HloProto with a module.
    """
    if _MODULE_START.match(head):
        return True
    outer = _LENGTH_DELIMITED_1.match(head)
    return outer is not None and _MODULE_START.match(head[outer.end() :]) is not None


def module_name_of_text(data: bytes) -> str | None:
    """Return the name at the start of an HLO text, `HloModule jit_step, ...`; None without one."""
    found = _TEXT_MODULE_NAME.match(data)
    return None if found is None else found[1].decode("utf-8", "replace")
