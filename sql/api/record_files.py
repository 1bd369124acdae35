"""Where the files of a recorded run lie, for each of its processes, and that none of them is half written."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tracewh.ingest.discovery import RECORD_FILE, STAGING_FOLDER
from tracewh.ingest.errors import RecordError

TIMING_FILE = "timing.json"
CONFIG_FILE = "config.json"
HLO_PROTO_FILE = "optimized_hlo.pb"
HLO_TEXT_FILE = "optimized_hlo.txt"
MEMORY_ANALYSIS_FILE = "memory_analysis.json"
COST_ANALYSIS_FILE = "cost_analysis.json"
DUMP_FOLDER = "xla_dump"
PROFILE_FOLDER = "profile"
MEMORY_STATS_FILE = "memory_stats.json"
MEMORY_PROFILE_FILE = "device_memory.prof"

# The same in every process of a run: the first one writes them.
_SHARED = (
    *(CONFIG_FILE, HLO_PROTO_FILE, HLO_TEXT_FILE, MEMORY_ANALYSIS_FILE, COST_ANALYSIS_FILE),
    DUMP_FOLDER,
)
_OWN = (PROFILE_FOLDER, MEMORY_STATS_FILE, MEMORY_PROFILE_FILE, RECORD_FILE)
_PROCESS_FOLDER = re.compile(r"process_\d+")


class RunFiles:
    """The files that one process writes to the directory of a run.

    A run of one process keeps all of them in the directory itself. Of several processes each has a folder for
    what it alone saw, `process_0` and so on; what all share lies above, written by process 0.
    """

    def __init__(self, directory: str | os.PathLike[str], process_index: int, process_count: int) -> None:
        self.root = Path(directory)
        self._is_alone = process_count == 1
        self.own = self.root if self._is_alone else self.root / f"process_{process_index}"
        self.writes_shared = process_index == 0

    def claim_record(self, *, exist_ok: bool) -> None:
        """Make the folders for what `tracewh.record` writes. Raises RecordError where other files are there.

        Step times may be there already, and what other processes of the run wrote. With `exist_ok` anything
        may; an earlier record is deleted, and files of its names that are none are refused.
        """
        present = [path for path in self._recorded() if path.exists()]
        if not exist_ok:
            self._refuse(present + self._others({TIMING_FILE}))
        elif present and not (self.own / RECORD_FILE).exists():
            raise RecordError(
                f"{present[0]}: tracewh.record would replace this file, which is not of a complete record. "
                "Move it away, or record into another directory."
            )
        for path in present:
            _delete(path)
        self._make_folder(self.own)

    def withdraw(self) -> None:
        """Delete what was recorded so far, and the folders where that leaves them empty."""
        for path in (*self._recorded(), self.own / STAGING_FOLDER):
            _delete(path)
        for folder in {self.own, self.root}:
            _delete_if_empty(folder)

    def _recorded(self) -> list[Path]:
        """What `tracewh.record` writes in this process, the record itself last."""
        shared = [self.root / name for name in _SHARED] if self.writes_shared else []
        return [*shared, *(self.own / name for name in _OWN)]

    def claim_timing(self, *, exist_ok: bool) -> None:
        """Make the folder for step times. Raises RecordError where there are some, or other files.

        A record may be there already. With `exist_ok` anything may, and earlier step times are replaced.
        """
        if not exist_ok:
            timing = [self.root / TIMING_FILE] if self.writes_shared else []
            recorded = (self.own / RECORD_FILE).exists()
            known = {TIMING_FILE, *_SHARED, *(_OWN if self._is_alone else ())} if recorded else {TIMING_FILE}
            self._refuse([path for path in timing if path.exists()] + self._others(known))
        if self.writes_shared:
            self._make_folder(self.root)

    def _others(self, known: set[str]) -> list[Path]:
        """What lies in the directory beside files of these names and those of other processes."""
        found = []
        if self.root.is_dir():
            for path in sorted(self.root.iterdir()):
                is_of_process = not self._is_alone and (
                    _PROCESS_FOLDER.fullmatch(path.name)
                    # Process 0 may be ahead.
                    or (not self.writes_shared and path.name in (*_SHARED, STAGING_FOLDER))
                )
                if path.name not in known and not is_of_process:
                    found.append(path)
        return found

    def _refuse(self, present: list[Path]) -> None:
        if present:
            raise RecordError(
                f"{self.root}: the directory is not empty, it has {present[0].relative_to(self.root)}. "
                "Record into a new directory, or pass exist_ok=True to replace what was recorded there."
            )

    def _make_folder(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RecordError(f"{folder}: no directory can be made there: {error}.") from error

    def write_own(self, name: str, data: bytes) -> None:
        """Write a file of this process, whole or not at all."""
        with _staged(self.own, name) as staged:
            staged.write_bytes(data)

    def write_shared(self, name: str, data: bytes) -> None:
        """Write a file of the whole run, whole or not at all; process 0 does."""
        if self.writes_shared:
            with _staged(self.root, name) as staged:
                staged.write_bytes(data)

    @contextmanager
    def shared_folder(self, name: str) -> Iterator[Path]:
        """A new folder of the whole run, to be filled; it gets its place at the end."""
        with _staged(self.root, name) as staged:
            staged.mkdir()
            yield staged

    def own_staging(self, name: str) -> Path:
        """Where a folder of this process grows until `place_own`."""
        staged = self.own / STAGING_FOLDER / name
        shutil.rmtree(staged, ignore_errors=True)
        staged.mkdir(parents=True)
        return staged

    def place_own(self, name: str) -> None:
        """Give a folder of this process, now complete, its place."""
        _place(self.own / STAGING_FOLDER / name, self.own / name)


def json_bytes(content: Any) -> bytes:
    """JSON as the recorder writes it."""
    return (json.dumps(content, indent=1, allow_nan=False) + "\n").encode()


@contextmanager
def _staged(folder: Path, name: str) -> Iterator[Path]:
    staged = folder / STAGING_FOLDER / name
    _delete(staged)
    staged.parent.mkdir(parents=True, exist_ok=True)
    try:
        yield staged
        _place(staged, folder / name)
    except BaseException:
        _delete(staged)
        raise


def _place(staged: Path, target: Path) -> None:
    os.replace(staged, target)
    _delete_if_empty(staged.parent)


def _delete_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
