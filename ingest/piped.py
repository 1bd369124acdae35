"""A capture that comes by a pipe: bytes without a file."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from tracewh.ingest.content import pieces, spool
from tracewh.ingest.discovery import Artifact
from tracewh.ingest.errors import NothingToIngest

# Where a run of piped bytes lies: the one path of a run that is not absolute.
PIPED_RUN = Path("stdin")
# What stands for the path of piped bytes in their run.
PIPED_CAPTURE = "stdin.xplane.pb"
_EXAMPLE = "Pipe an XSpace to it: cat host.xplane.pb | tracewh ingest -"


@contextlib.contextmanager
def piped_capture(stream: IO[bytes] | None) -> Iterator[Artifact]:
    """Read `stream` to its end; for the block, its bytes are an XSpace artifact named `stdin`.

    They are kept in memory up to 64 MiB, else in a temporary file. Raises NothingToIngest where the stream is
    missing, a terminal or empty, UnreadableFile where it breaks off or there is no room for it.
    """
    if stream is None:
        raise NothingToIngest(f"{PIPED_RUN}: standard input is closed. {_EXAMPLE}")
    if stream.isatty():
        raise NothingToIngest(f"{PIPED_RUN}: standard input is a terminal. {_EXAMPLE}")
    with spool(pieces(stream, PIPED_RUN), PIPED_RUN) as spooled:
        size = spooled.seek(0, os.SEEK_END)
        if not size:
            raise NothingToIngest(
                f"{PIPED_RUN}: standard input is empty. Check the command that should write to it."
            )
        yield Artifact(PIPED_RUN, "xspace", size, spooled=spooled)
