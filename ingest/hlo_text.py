"""Reads a module in HLO text form, by way of jaxlib's parser."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.hlo import HloProgram, read_program
from tracewh.ingest.hlo_text_to_proto import NO_PARSER, REJECTED

_CONVERTER = Path(__file__).with_name("hlo_text_to_proto.py")
_TIMEOUT_S = 600
_REMEDY = (
    "give the .hlo.pb of the same dump, or install a jaxlib at least as new as the one that wrote the text"
)


def read_text_program(text: str, program_id: int | None, place: str) -> HloProgram:
    """Read HLO text as read_program reads a proto. Text has no program id: the result has the given one.

    `proto_bytes` is the size of the converted module. Raises UnreadableFile where jaxlib is missing or does
    not accept the text, because a newer jaxlib wrote it or it is damaged.
    """
    return read_program(_to_proto(text, place), program_id, place)


def _to_proto(text: str, place: str) -> bytes:
    try:
        # -P keeps the directory of the script, and so our own modules, off the child's path.
        done = subprocess.run(
            [sys.executable, "-P", str(_CONVERTER)],
            input=text.encode(errors="replace"),
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise UnreadableFile(
            f"{place}: jaxlib took over {_TIMEOUT_S} s for this HLO text; {_REMEDY}"
        ) from error
    if done.returncode == 0:
        return done.stdout
    if done.returncode == NO_PARSER:
        raise UnreadableFile(
            f"{place}: HLO text needs jaxlib 0.8 or later, which is not installed; {_REMEDY}"
        )
    if done.returncode == REJECTED:
        reason = " ".join(done.stderr.decode(errors="replace").split())[:300]
        raise UnreadableFile(f"{place}: jaxlib cannot parse this HLO text ({reason}); {_REMEDY}")
    raise UnreadableFile(
        f"{place}: jaxlib's HLO parser ended with status {done.returncode} on this text, which may be "
        f"damaged; {_REMEDY}"
    )
