"""The bytes of a file that was found: decompressed where it is compressed, in bounded memory.

Compression is told by the first bytes, whatever the name says.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import mmap
import os
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePath
from types import TracebackType
from typing import IO, Protocol, Self

import pyarrow as pa

from tracewh.ingest.errors import UnreadableFile

# Content up to this size is held in memory, where nobody can change it; more of it is mapped.
MEMORY_LIMIT_BYTES = 64 << 20
_CHUNK_BYTES = 4 << 20
_SUFFIXES = (".gz", ".zst")
_GZIP_MAGIC = b"\x1f\x8b"
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
# A zstd stream may begin with a frame to skip, as that of pzstd does; its first byte ends in any digit.
_ZSTD_SKIPPED_MAGIC = b"\x2a\x4d\x18"


class Content:
    """The decompressed bytes of a file, read-only; a context manager.

    The memory goes when the content is closed and the last view that was taken of `buffer` is gone.
    """

    def __init__(self, data: bytes | mmap.mmap):
        self.buffer = memoryview(data)
        self._mapped = data if isinstance(data, mmap.mmap) else None
        self._forgotten = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def forget(self, end: int) -> None:
        """Let the system take back the memory of the bytes before `end`; they can still be read, slower."""
        if self._mapped is None or not hasattr(mmap, "MADV_DONTNEED"):
            return
        end = min(end, len(self._mapped)) // mmap.PAGESIZE * mmap.PAGESIZE
        # A pass over the content gives back each page once; an end that is no further on is of another.
        start = self._forgotten if self._forgotten < end else 0
        if start < end:
            self._mapped.madvise(mmap.MADV_DONTNEED, start, end - start)
        self._forgotten = end

    def close(self) -> None:
        """Let go of the bytes; arrays that were made of them, as those of an error's frames, stay valid."""
        self._mapped = None
        with contextlib.suppress(BufferError):
            self.buffer.release()


class _Readable(Protocol):
    def read(self, size: int, /) -> bytes:
        """Up to `size` bytes, none at the end."""


def uncompressed_name(name: str) -> str:
    """The name without `.gz` or `.zst`."""
    for suffix in _SUFFIXES:
        name = name.removesuffix(suffix)
    return name


def open_content(path: Path, spooled: IO[bytes] | None = None) -> Content:
    """The content of the file at `path`, or of `spooled`, which `path` then only names.

    Up to 64 MiB are held in memory. A larger file is mapped: it must not be cut short while it is read.
    Larger content of a compressed one goes through a temporary file. Raises UnreadableFile.
    """
    with _opened(path, spooled) as file:
        if _codec(file, path) is None:
            return _whole(file, path)
        with spool(_chunks(file, path), path) as decompressed:
            return _whole(decompressed, path)


def digest(path: Path, spooled: IO[bytes] | None = None) -> str:
    """SHA-256 of the content as hexadecimal digits. Raises UnreadableFile."""
    found = hashlib.sha256()
    with _opened(path, spooled) as file:
        for chunk in _chunks(file, path):
            found.update(chunk)
    return found.hexdigest()


def digest_as_is(paths: Iterable[Path]) -> str:
    """SHA-256 of files one after the other, compressed or not. Raises UnreadableFile."""
    found = hashlib.sha256()
    for path in paths:
        with _opened(path, None) as file:
            for piece in pieces(file, path):
                found.update(piece)
    return found.hexdigest()


def head(path: Path, size: int) -> bytes:
    """The first `size` bytes of the content, or all of it. Raises UnreadableFile."""
    with _opened(path, None) as file:
        return next(_chunks(file, path, size), b"")


@contextlib.contextmanager
def spool(chunks: Iterable[bytes], name: PurePath) -> Iterator[IO[bytes]]:
    """Keep `chunks` for the block: in memory up to 64 MiB, else in a temporary file without a name.

    Raises UnreadableFile, with `name`, where there is no room for them.
    """
    file = tempfile.SpooledTemporaryFile(max_size=MEMORY_LIMIT_BYTES)  # noqa: SIM115 (see finally)
    try:
        for chunk in chunks:
            with _temporary_room(name):
                file.write(chunk)
        with _temporary_room(name):
            file.seek(0)
        yield file
    finally:
        # What did not fit would be written once more.
        with contextlib.suppress(OSError):
            file.close()


def pieces(stream: _Readable, name: PurePath, size: int = _CHUNK_BYTES) -> Iterator[bytes]:
    """The bytes of a stream as they are, in pieces of at most `size` bytes. Raises UnreadableFile."""
    try:
        while piece := stream.read(size):
            yield piece
    except OSError as error:
        raise _refused(name, error) from error


@contextlib.contextmanager
def _opened(path: Path, spooled: IO[bytes] | None) -> Iterator[IO[bytes]]:
    if spooled is not None:
        spooled.seek(0)
        yield spooled
        return
    try:
        file = path.open("rb")
    except OSError as error:
        raise _refused(path, error) from error
    with file:
        yield file


def _codec(file: IO[bytes], name: PurePath) -> str | None:
    """How the file is compressed; it is left at its start."""
    start = next(pieces(file, name, len(_ZSTD_MAGIC)), b"")
    file.seek(0)
    if start.startswith(_GZIP_MAGIC):
        return "gzip"
    is_skipped = start[1:] == _ZSTD_SKIPPED_MAGIC and start[0] >> 4 == 5
    return "zstd" if start == _ZSTD_MAGIC or is_skipped else None


def _chunks(file: IO[bytes], name: PurePath, size: int = _CHUNK_BYTES) -> Iterator[bytes]:
    """The content of a file, decompressed, in pieces of at most `size` bytes."""
    codec = _codec(file, name)
    if codec is None:
        yield from pieces(file, name, size)
        return
    stream: _Readable
    if codec == "gzip":
        stream = gzip.GzipFile(fileobj=file, mode="rb")
    else:
        stream = pa.CompressedInputStream(pa.PythonFile(_KeptOpen(file), mode="r"), "zstd")
    try:
        while piece := stream.read(size):
            yield piece
    except (OSError, EOFError, zlib.error) as error:
        raise UnreadableFile(
            f"{name}: damaged {codec} data ({error}). Copy the file again, or profile again."
        ) from error


class _KeptOpen:
    """Reads a file for pyarrow, whose streams close what they read when they are collected."""

    closed = False

    def __init__(self, file: IO[bytes]):
        self.read = file.read

    def close(self) -> None:
        """Leave the file to its owner."""


def _whole(file: IO[bytes], name: PurePath) -> Content:
    """All that is in an open file. A mapping of it outlives the file."""
    try:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        if size <= MEMORY_LIMIT_BYTES:
            return Content(file.read())
        return Content(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except OSError as error:
        raise _refused(name, error) from error


def _refused(name: PurePath, error: OSError) -> UnreadableFile:
    step = (
        "Check its permissions" if isinstance(error, PermissionError) else "Check the file, or copy it again"
    )
    return UnreadableFile(f"{name}: {error.strerror or error}. {step}.")


@contextlib.contextmanager
def _temporary_room(name: PurePath) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        place = tempfile.tempdir or "the temporary directory"
        raise UnreadableFile(
            f"{name}: its content has more than {MEMORY_LIMIT_BYTES >> 20} MiB and does not fit into {place} "
            f"({error.strerror or error}). Set TMPDIR to a directory with more room."
        ) from error
