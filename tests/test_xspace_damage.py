"""Damaged, hostile and foreign bytes in place of an XSpace: one clear error, or a valid smaller space."""

from __future__ import annotations

import functools
import gzip
import random
import re
from pathlib import Path

import pytest

import tracewh
from tracewh.ingest import xspace
from tracewh.ingest.errors import TracewhError, UnreadableFile
from tracewh.sql.ingestion import IngestOptions, SilentProgress, ingest_path

from .xspace_expected import SPECIAL_PLANES
from .xspace_oracle import Ref, SpaceBuilder, Unsigned, XSpace, fields, varint

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared"
BUNDLED = ROOT / "fixtures" / "cpu_train" / "profile" / "cpu.xplane.pb.gz"
PLACE = "place.xplane.pb"
WALL_NS = 1_700_000_000_000_000_000


@functools.cache
def small_space() -> bytes:
    """A valid XSpace of about 800 bytes with everything that the reader looks at."""
    space = SpaceBuilder()
    space.plane("Task Environment", {"profile_start_time": Unsigned(WALL_NS), "profile_options": b"\x08\x01"})
    metadata = space.plane("/host:metadata", {"process_id": 418})
    metadata.metadata("jit_f(5)", stats={"program_id": 5, "note": "x"})
    plane = space.gpu()
    plane.metadata("inheriting", "shown", {"program_id": Unsigned(5), "hlo_op": Ref("dot.1"), "flops": 9})
    details = "regs:16 static_shared:0 dynamic_shared:0 grid:1,2,3 block:256,1,1 occ_pct:100"
    line = plane.line("Stream #1(Compute)", line_id=1, timestamp_ns=28_560)
    line.event("k", 5, 10, {"correlation_id": Unsigned(3), "kernel_details": details, "context_id": "$$1"})
    line.event("inheriting", 20, 7, {"theoretical_occupancy_pct": 50.0, "flops": 1.5})
    line.event("MemcpyD2H", 30, 2, {"memcpy_details": "kind_src:device kind_dst:host size:64"})
    host = space.plane("/host:CPU").line("python", line_id=-9, timestamp_ns=30_000, display_name="main")
    host.event("train", 0, 90, {"_r": 1, "step_num": 4}).event("k", 1, 2, {"correlation_id": Unsigned(3)})
    host.event("counted", num_occurrences=6)
    space.message.hostnames.append(b"node-7")
    space.message.warnings.append(b"slow")
    return space.serialize()


def event_count(data: bytes) -> int:
    """Events of the planes whose lines become rows."""
    return sum(
        len(line.events)
        for plane in XSpace.FromString(data).planes
        for line in plane.lines
        if plane.name.decode("utf-8", "replace") not in SPECIAL_PLANES
    )


def check_read(data: bytes) -> bool:
    """Whether the bytes are read, with every event a row or a counted problem; else they are refused."""
    try:
        capture = xspace.read(data, PLACE, [])
    except UnreadableFile as error:
        refusal = str(error)
    else:
        rows = sum(capture.row_count(table) for table in ("device_events", "host_events"))
        lost = sum(p.occurrences for p in capture.problems if p.problem == "impossible_time")
        assert rows + lost == event_count(data)
        return True
    assert PLACE in refusal
    return False


def test_small_space_is_read() -> None:
    assert check_read(small_space())
    assert event_count(small_space()) == 6


def test_truncation_at_every_byte() -> None:
    data = small_space()
    readable = [end for end in range(len(data)) if check_read(data[:end])]
    # Only where a top-level field ends is the beginning of an XSpace an XSpace.
    ends, position = [], 0
    for number, value in fields(data):
        assert number in (1, 2, 3, 4)
        position += 1 + len(varint(len(value))) + len(value)
        ends.append(position)
    assert readable == ends[:-1]


def test_an_unreadable_file_tells_where_it_breaks() -> None:
    data = small_space()
    with pytest.raises(UnreadableFile, match=rf"x\.pb.*truncated at byte {len(data) - 3}"):
        xspace.read(data[:-3], "x.pb")


@pytest.mark.parametrize("seed", range(8))
def test_bit_flips(seed: int) -> None:
    generator = random.Random(seed)
    for _ in range(100):
        data = bytearray(small_space())
        for _ in range(generator.choice((1, 1, 2, 5))):
            data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        check_read(bytes(data))


def test_bit_flips_in_every_byte_load_or_are_refused(tmp_path: Path) -> None:
    # One flip in each byte, each loaded into one warehouse: what is read must also be storable.
    generator = random.Random(2026)
    path, warehouse = tmp_path / "flipped.xplane.pb", tmp_path / "w.duckdb"
    path.write_bytes(small_space())
    tracewh.ingest_run(path, warehouse=warehouse)
    refused = 0
    with tracewh.open(warehouse, read_only=False) as handle:
        for position in range(0, len(small_space()), 7):
            data = bytearray(small_space())
            data[position] ^= 1 << generator.randrange(8)
            path.write_bytes(data)
            try:
                ingest_path(handle, path, IngestOptions(run_name=f"flip {position}"), SilentProgress())
            except TracewhError:
                refused += 1
        stored_captures = handle.connection.execute("SELECT COUNT(*) FROM captures").fetchone()
    tried = len(range(0, len(small_space()), 7))
    assert stored_captures == (tried - refused + 1,)
    assert 0 < refused < tried


@pytest.mark.parametrize("position", range(3))
def test_damage_inside_a_bundled_capture(position: int) -> None:
    data = bytearray(gzip.decompress(BUNDLED.read_bytes()))
    generator = random.Random(position)
    for _ in range(4):
        for _ in range(3):
            data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        check_read(bytes(data))


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        b"hello, this is no trace\n",
        b'{"traceEvents": []}',
        b"\x00" * 100,
        b"\xff" * 100,
        b"SQLite format 3\x00" + b"\x00" * 100,
        b"\n\x00\n\x00",
        b"\x1f\x8b",
        gzip.compress(small_space())[:-20],
        gzip.compress(small_space())[:5],
        gzip.compress(small_space()) + b"trailing",
        gzip.compress(b"text"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("name", ["a.xplane.pb", "a.xplane.pb.gz"])
def test_other_files_are_refused(tmp_path: Path, content: bytes, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UnreadableFile) as caught:
        tracewh.ingest_run(path, warehouse=tmp_path / "w.duckdb")
    assert str(path) in str(caught.value)
    assert not (tmp_path / "w.duckdb").exists()


def test_mangled_public_file_is_refused(tmp_path: Path) -> None:
    path = SHARED / "data" / "negative" / "xprof-tpu_inference_2_CORRUPT.xplane.pb"
    if not path.exists():
        pytest.skip("the mangled file is not at hand: shared/data lies outside the repository")
    with pytest.raises(UnreadableFile, match=re.escape(path.name)):
        tracewh.ingest_run(path, warehouse=tmp_path / "w.duckdb")
    assert not (tmp_path / "w.duckdb").exists()
