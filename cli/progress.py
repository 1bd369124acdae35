"""What `tracewh ingest` shows on stderr while it works: the files it found, and a bar on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

import click

from tracewh.cli.table import printable

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID


class FoundArtifact(Protocol):
    """What is shown of an artifact."""

    @property
    def kind(self) -> str:
        """What it is: xspace, rocpd, ..."""

    @property
    def size_bytes(self) -> int:
        """Its size on disk."""

    @property
    def parts(self) -> Sequence[object]:
        """Further files that it consists of."""


class IngestProgress:
    """Reports the loading of one run after another; a context manager, so that an error also ends the bar."""

    def __init__(self) -> None:
        self._bar: RichProgress | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def found(self, artifacts: Sequence[FoundArtifact]) -> None:
        """Print how many artifacts of each kind there are and how large they are together."""
        kinds: dict[str, list[FoundArtifact]] = {}
        for artifact in artifacts:
            kinds.setdefault(artifact.kind, []).append(artifact)
        for kind, of_kind in sorted(kinds.items()):
            count = sum(1 + len(artifact.parts) for artifact in of_kind)
            size = sum(artifact.size_bytes for artifact in of_kind)
            files = f"{count:,} file" + ("" if count == 1 else "s")
            click.echo(f"  found {files:>11}  {byte_text(size):>9}  {printable(kind)}", err=True)

    def begin(self, label: str, total: int) -> None:
        """Start a bar of `total` units; a bar that is still there ends."""
        self.end()
        if not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            TextColumn("  {task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task(printable(label), total=total)
        self._bar.start()

    def advance(self, amount: int) -> None:
        """Move the bar on by `amount` units."""
        if self._bar is not None and self._task is not None:
            self._bar.advance(self._task, amount)

    def end(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.stop()
        self._bar = self._task = None


def byte_text(size: int) -> str:
    """A size for people, in decimal units: 71.2 MB."""
    if size < 1000:
        return f"{size} B"
    amount = float(size)
    for unit in ("kB", "MB", "GB"):
        amount /= 1000
        if amount < 999.95:
            return f"{amount:.1f} {unit}"
    return f"{amount / 1000:.1f} TB"
