"""The bytes of a file: decompressed, in bounded memory, or refused with a reason."""

from __future__ import annotations

import gzip
import hashlib
import mmap
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tracewh.ingest.content import Content, digest, digest_as_is, head, open_content, uncompressed_name
from tracewh.ingest.errors import UnreadableFile

MIB = 1 << 20
# `hello`, as the command-line tools of these names pack it; what pzstd writes begins with a frame to skip.
HELLO = {
    "zstd": "28b52ffd045829000068656c6c6fa36d9f88",
    "pzstd": "502a4d18040000001200000028b52ffd045829000068656c6c6fa36d9f88",
    "gzip": "1f8b0800000000000003cb48cdc9c9070086a6103605000000",
}


def zstd(data: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "zstd": zstd,
    "gzip members": lambda data: (
        gzip.compress(data[:1000], mtime=0)
        + gzip.compress(b"", mtime=0)
        + gzip.compress(data[1000:], mtime=0)
    ),
    "zstd frames": lambda data: zstd(data[:1000]) + zstd(b"") + zstd(data[1000:]),
}
# Words in random order: compressible, and no block of it like another.
DATA = b" ".join(random.Random(7).choices([b"fusion", b"copy", b"all-reduce", b"\x00\xff"], k=200_000))


def use_limit(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr("tracewh.ingest.content.MEMORY_LIMIT_BYTES", size)


def write(path: Path, data: bytes) -> Path:
    path.write_bytes(data)
    return path


@pytest.mark.parametrize("limit", [4096, len(DATA) - 1, len(DATA), 64 * MIB])
@pytest.mark.parametrize("packed", PACKERS)
def test_content_is_what_was_packed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: str, limit: int
) -> None:
    use_limit(monkeypatch, limit)
    # The name promises gzip; the bytes decide.
    path = write(tmp_path / "x.pb.gz", PACKERS[packed](DATA))
    with open_content(path) as content:
        assert content.buffer == DATA
        assert content.buffer.readonly
    assert digest(path) == hashlib.sha256(DATA).hexdigest()
    assert head(path, 17) == DATA[:17]
    assert head(path, len(DATA) + 1) == DATA


@pytest.mark.parametrize("packed", PACKERS)
@pytest.mark.parametrize("data", [b"", b"\x1f", b"(", b"\n\x00"])
def test_content_shorter_than_a_magic_number(tmp_path: Path, packed: str, data: bytes) -> None:
    path = write(tmp_path / "x", PACKERS[packed](data))
    with open_content(path) as content:
        assert content.buffer == data
        content.forget(1)
    assert digest(path) == hashlib.sha256(data).hexdigest()
    assert head(path, 10) == data


@pytest.mark.parametrize("tool", HELLO)
def test_what_other_tools_pack(tmp_path: Path, tool: str) -> None:
    path = write(tmp_path / "x", bytes.fromhex(HELLO[tool]))
    with open_content(path) as content:
        assert content.buffer == b"hello"


def test_digest_of_the_file_itself(tmp_path: Path) -> None:
    packed = gzip.compress(DATA, mtime=0)
    path = write(tmp_path / "x", packed)
    assert digest_as_is([path]) == hashlib.sha256(packed).hexdigest()


@pytest.mark.parametrize(
    ("data", "codec"),
    [
        (gzip.compress(DATA, mtime=0)[:-1], "gzip"),
        (gzip.compress(DATA, mtime=0)[:1000], "gzip"),
        (gzip.compress(DATA, mtime=0)[:2], "gzip"),
        (gzip.compress(DATA, mtime=0) + b"x", "gzip"),
        (gzip.compress(DATA, mtime=0) + gzip.compress(DATA, mtime=0)[:11], "gzip"),
        (gzip.compress(DATA, mtime=0) + zstd(DATA), "gzip"),
        (gzip.compress(DATA, mtime=0)[:-8] + bytes(4) + gzip.compress(DATA, mtime=0)[-4:], "gzip"),
        (b"\x1f\x8b" + bytes(100), "gzip"),
        (zstd(DATA)[:-1], "zstd"),
        (zstd(DATA)[:1000], "zstd"),
        (zstd(DATA)[:4], "zstd"),
        (zstd(DATA) + b"x", "zstd"),
        (zstd(DATA) + bytes(10), "zstd"),
        (zstd(DATA) + zstd(DATA)[:11], "zstd"),
        (zstd(DATA) + gzip.compress(DATA, mtime=0), "zstd"),
        (bytes.fromhex(HELLO["zstd"])[:-1] + b"\x00", "zstd"),
        (b"\x28\xb5\x2f\xfd" + b"\xff" * 100, "zstd"),
    ],
    ids=range(17),
)
@pytest.mark.parametrize("limit", [4096, 64 * MIB])
def test_damage_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, data: bytes, codec: str, limit: int
) -> None:
    use_limit(monkeypatch, limit)
    path = write(tmp_path / "x.xplane.pb", data)
    for read in (open_content, digest):
        with pytest.raises(UnreadableFile, match=rf"^{re.escape(str(path))}: damaged {codec} data .*again"):
            read(path)


def test_a_file_that_cannot_be_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for read in (open_content, digest):
        with pytest.raises(UnreadableFile, match=rf"^{re.escape(str(tmp_path))}: Is a directory"):
            read(tmp_path)

    def deny(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", deny)
    for read in (open_content, digest):
        with pytest.raises(UnreadableFile, match=r"x\.pb: Permission denied\. Check its permissions\.$"):
            read(tmp_path / "x.pb")


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="a file whose first byte cannot be read")
def test_a_file_that_cannot_be_read() -> None:
    for read in (open_content, digest):
        with pytest.raises(UnreadableFile, match=r"^/proc/self/mem: Input/output error\. Check the file"):
            read(Path("/proc/self/mem"))


def test_a_small_file_may_change_after_it_was_opened(tmp_path: Path) -> None:
    path = write(tmp_path / "x", DATA)
    with open_content(path) as content:
        os.truncate(path, 0)
        assert content.buffer == DATA


@pytest.mark.parametrize("packed", ["plain", "gzip", "zstd"])
def test_large_content_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: str) -> None:
    use_limit(monkeypatch, 4096)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    path = write(tmp_path / "x", PACKERS[packed](DATA))
    with open_content(path) as content:
        assert list(temporary.iterdir()) == []
        path.unlink()
        assert content.buffer == DATA
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("limit", [4096, 64 * MIB])
def test_closing_leaves_arrays_of_the_content_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int
) -> None:
    use_limit(monkeypatch, limit)
    path = write(tmp_path / "x", DATA)

    def array_of(content: Content) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        with content:
            return np.frombuffer(content.buffer, np.uint8)

    assert array_of(open_content(path)).tobytes() == DATA
    content = open_content(path)
    content.close()
    content.close()
    content.forget(len(DATA))
    with pytest.raises(ValueError, match="released"):
        content.buffer[0]


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="reads resident memory there")
@pytest.mark.parametrize("packed", ["plain", "zstd"])
def test_forgotten_pages_leave_memory_and_can_be_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: str
) -> None:
    use_limit(monkeypatch, MIB)
    size = 16 * MIB + 1
    data = random.Random(3).randbytes(size)
    with open_content(write(tmp_path / "x", PACKERS[packed](data))) as content:
        pages = np.frombuffer(content.buffer, np.uint8)
        for _ in range(2):
            assert pages.tobytes() == data
            for forgotten in (0, 5 * MIB, 9 * MIB):
                content.forget(forgotten + mmap.PAGESIZE - 1)
                assert resident_bytes(pages.ctypes.data) <= size - forgotten + mmap.PAGESIZE
        for _ in range(2):
            content.forget(2 * size)
            assert resident_bytes(pages.ctypes.data) <= mmap.PAGESIZE
            assert pages.tobytes() == data


def resident_bytes(address: int) -> int:
    """Resident memory of the mapping that begins at an address."""
    lines = Path("/proc/self/smaps").read_text().splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith(f"{address:x}-"))
    return next(int(line.split()[1]) * 1024 for line in lines[first:] if line.startswith("Rss:"))


_PEAK = """
import resource, sys
from pathlib import Path
from tracewh.ingest import content
content.MEMORY_LIMIT_BYTES = 8 << 20
path = Path(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
content.digest(path)
with content.open_content(path) as opened:
    assert len(opened.buffer) == int(sys.argv[2])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is in KiB on Linux")
@pytest.mark.parametrize("packed", ["plain", "gzip", "zstd"])
def test_memory_does_not_grow_with_the_file(tmp_path: Path, packed: str) -> None:
    size = 160 * MIB
    path = write(tmp_path / "x", PACKERS[packed](bytes(size)))
    ran = subprocess.run(
        [sys.executable, "-c", _PEAK, path, str(size)], capture_output=True, text=True, check=True
    )
    # What is held and its copy, and a few pieces of 4 MiB.
    assert int(ran.stdout) << 10 < 48 * MIB


@pytest.mark.parametrize("packed", ["gzip", "zstd"])
def test_no_room_for_a_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: str) -> None:
    use_limit(monkeypatch, MIB)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    path = write(tmp_path / "bomb.xplane.pb", PACKERS[packed](bytes(30 * MIB)))
    allowed = resource.getrlimit(resource.RLIMIT_FSIZE)
    # Past this size a file cannot be written, which Python sees as an error of the write.
    resource.setrlimit(resource.RLIMIT_FSIZE, (10 * MIB + 5, allowed[1]))
    try:
        with pytest.raises(UnreadableFile) as caught:
            open_content(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, allowed)
    assert str(caught.value).startswith(f"{path}: ")
    assert str(temporary) in str(caught.value)
    assert "Set TMPDIR" in str(caught.value)
    assert digest(path) == hashlib.sha256(bytes(30 * MIB)).hexdigest()


def test_no_temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_limit(monkeypatch, 4096)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    path = write(tmp_path / "x", zstd(DATA))
    with pytest.raises(UnreadableFile, match=r"x: .*nowhere.*Set TMPDIR"):
        open_content(path)


@pytest.mark.parametrize(
    ("name", "without"),
    [
        ("x.xplane.pb.gz", "x.xplane.pb"),
        ("config.json.zst", "config.json"),
        ("gz", "gz"),
        ("x.gz.pb", "x.gz.pb"),
        ("run/x.pb.zst", "run/x.pb"),
    ],
)
def test_names_without_their_compression(name: str, without: str) -> None:
    assert uncompressed_name(name) == without
