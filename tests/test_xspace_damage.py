"""Damaged, hostile and foreign bytes in place of an XSpace: one clear error, or a valid smaller space."""

from __future__ import annotations

import functools
import gzip
import random
import re
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

import tracewh
from tracewh.ingest import batches, xspace, xspace_compiled, xspace_decode
from tracewh.ingest.errors import TracewhError, UnreadableFile
from tracewh.sql.ingestion import IngestOptions, SilentProgress, ingest_path

from .wire_tree import Node, delimited, encode, group, number
from .xspace_oracle import Ref, SpaceBuilder, Unsigned, XSpace, fields, varint
from .xspace_roundtrip import SHARED_ROWS

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared"
BUNDLED = ROOT / "fixtures" / "cpu_train" / "profile" / "cpu.xplane.pb.gz"
PLACE = "place.xplane.pb"
# One sentence that names the file and the place, and one with the next step.
WORDS = re.compile(
    r"place\.xplane\.pb: ([^.]|'[^']*')+\. Copy the file again, or profile again\."
    r"|place\.xplane\.pb: holds no named plane, so it is not an XSpace\. Is it another file renamed\?",
    re.DOTALL,
)
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
    host.event("counted", num_occurrences=6, stats={"context_id": "$$1"})
    space.message.hostnames.append(b"node-7")
    space.message.warnings.append(b"slow")
    return space.serialize()


@dataclass(frozen=True)
class Read:
    """What became of some bytes: the words of the refusal, or rows by table, and problems."""

    refusal: str
    rows: dict[str, pa.Table]
    problems: dict[tuple[str, str], int]

    def count(self, *tables: str) -> int:
        return sum(self.rows[table].num_rows for table in tables if table in self.rows)


def read(data: bytes, compiled: bool) -> Read:
    """Read the bytes to the end with one of the decoders."""
    batches: dict[str, list[pa.Table]] = {}
    try:
        capture = xspace.read(data, PLACE, [], compiled=compiled)
        for table, rows in capture.stream:
            batches.setdefault(table, []).append(rows)
    except UnreadableFile as error:
        return Read(str(error), {}, {})
    tables = {table: pa.concat_tables(found, promote_options="default") for table, found in batches.items()}
    problems = {(item.problem, item.place): item.occurrences for item in capture.problems}
    return Read("", capture.tables | tables, problems)


def check_read(data: bytes) -> bool:
    """Whether the bytes are read, every event of them; else they are refused. The decoders must agree."""
    slow, fast = read(data, compiled=False), read(data, compiled=True)
    assert bool(slow.refusal) == bool(fast.refusal)
    for found in (slow, fast):
        if found.refusal:
            assert WORDS.fullmatch(found.refusal), found.refusal
    if slow.refusal:
        return False
    assert slow == fast
    message = XSpace.FromString(data)
    events = sum(len(line.events) for plane in message.planes for line in plane.lines)
    assert slow.count("device_events", "host_events") == events
    return True


def refusals(data: bytes) -> str:
    """The words in which both decoders refuse the bytes."""
    slow, fast = read(data, compiled=False), read(data, compiled=True)
    assert slow.refusal == fast.refusal
    assert slow.refusal
    return slow.refusal


def test_small_space_is_read() -> None:
    assert check_read(small_space())
    assert read(small_space(), compiled=True).count("device_events", "host_events") == 6


# --- where it breaks ----------------------------------------------------------------------------------------


def test_truncation_at_every_byte() -> None:
    data = small_space()
    readable = [end for end in range(len(data)) if check_read(data[:end])]
    # Only where a top-level field ends is the beginning of an XSpace an XSpace.
    ends, position = [], 0
    for field, value in fields(data):
        assert field in (1, 2, 3, 4)
        position += 1 + len(varint(len(value))) + len(value)
        ends.append(position)
    assert readable == ends[:-1]
    for end in set(range(len(data))) - set(readable):
        words = refusals(data[:end])
        assert f"truncated at byte {end}" in words or end < 2, words


def spaces(*lines: Node, before: bytes = b"") -> bytes:
    """A space of one plane with these lines, and bytes in front of it."""
    return before + encode([delimited(1, [delimited(2, b"/device:GPU:0"), *lines])])


def line(*events: Node, name: bytes = b"Stream #1") -> Node:
    return delimited(3, [number(1, 4), delimited(2, name), number(3, 5), *events])


EVENT = delimited(4, [number(1, 7), number(2, 5), number(3, 2), delimited(4, [number(1, 1), number(4, 2)])])
TOO_LONG = Node(1, 0, 0).encode()[:1] + b"\xff" * 10 + b"\x01"


@pytest.mark.parametrize(
    ("space", "words"),
    [
        # A length that reaches beyond the end of what it is in. The plane has 17 bytes before its first line,
        # the line 15 before its first event, which takes 14.
        (
            spaces(line(EVENT, Node(4, 2, b"\x08\x01", length=500))),
            "plane '/device:GPU:0', line 'Stream #1', event 1: "
            "damaged at byte 48: a field of 500 bytes where 2 are left",
        ),
        (
            spaces(line(EVENT, delimited(4, [number(1, 1), Node(4, 2, b"\x08\x01", length=127)]))),
            "plane '/device:GPU:0', line 'Stream #1', event 1, stat 0: "
            "damaged at byte 52: a field of 127 bytes where 2 are left",
        ),
        # A number of eleven bytes, as the id of an event and of a stat.
        (
            spaces(line(EVENT, delimited(4, TOO_LONG))),
            "plane '/device:GPU:0', line 'Stream #1', event 1: "
            "damaged at byte 51: a number of more than 10 bytes",
        ),
        (
            spaces(line(EVENT, EVENT, delimited(4, [delimited(4, TOO_LONG)]))),
            "plane '/device:GPU:0', line 'Stream #1', event 2, stat 0: "
            "damaged at byte 67: a number of more than 10 bytes",
        ),
        # Wire types and field numbers that do not exist.
        (
            spaces(line(EVENT, delimited(4, b"\x0e\x01"))),
            "plane '/device:GPU:0', line 'Stream #1', event 1: damaged at byte 50: no field begins there",
        ),
        (
            spaces(line(EVENT, delimited(4, b"\x00\x01"))),
            "plane '/device:GPU:0', line 'Stream #1', event 1: damaged at byte 50: no field begins there",
        ),
        (
            spaces(line(EVENT, delimited(4, b"\x08\x01\x0c"))),
            "plane '/device:GPU:0', line 'Stream #1', event 1: damaged at byte 52: no field begins there",
        ),
        # Ends inside a field.
        (
            spaces(line(EVENT, delimited(4, b"\x08\x01\x10\x80"))),
            "plane '/device:GPU:0', line 'Stream #1', event 1: "
            "damaged at byte 53: its bytes end inside a number",
        ),
        (
            spaces(line(EVENT, delimited(4, [delimited(4, b"\x08\x01\x11\x00\x00")]))),
            "plane '/device:GPU:0', line 'Stream #1', event 1, stat 0: "
            "damaged at byte 54: a field of 8 bytes where 2 are left",
        ),
        (
            spaces(line(EVENT, delimited(4, b"\x7b\x08\x01"))),
            "plane '/device:GPU:0', line 'Stream #1', event 1: damaged at byte 50: a group that does not end",
        ),
        # In the line itself, in the plane, and in what belongs to the plane.
        (
            spaces(line(EVENT), delimited(3, [delimited(2, b"python"), EVENT, Node(4, 2, b"", length=9)])),
            "plane '/device:GPU:0', line 'python', event 1: "
            "damaged at byte 72: a field of 9 bytes where 0 are left",
        ),
        (
            spaces(line(EVENT), delimited(3, b"\x0f")),
            "plane '/device:GPU:0', line 1: damaged at byte 50: no field begins there",
        ),
        (
            spaces(line(EVENT), delimited(15, b""), Node(3, 2, b"\x12\x01a\x22\x00", length=77)),
            "plane '/device:GPU:0', line 'a': damaged at byte 50: a field of 77 bytes where 5 are left",
        ),
        (
            spaces(delimited(4, [number(1, 3)]), delimited(4, [number(1, 3), delimited(2, b"\x12\x05ab")])),
            "plane '/device:GPU:0', event metadata 1: damaged at byte 27: a field of 5 bytes "
            "where 2 are left",
        ),
        (
            spaces(delimited(5, b"\x08")),
            "plane '/device:GPU:0', stat metadata 0: damaged at byte 20: its bytes end inside a number",
        ),
        (
            spaces(delimited(6, []), delimited(6, b"\x08\x01\x20")),
            "plane '/device:GPU:0', stat 1: damaged at byte 24: its bytes end inside a number",
        ),
        # Packed ids: protobuf alone knows them.
        (
            spaces(delimited(4, [delimited(2, [delimited(6, b"\x80")])])),
            "plane '/device:GPU:0', event metadata 0: damaged between bytes 21 and 24",
        ),
        # A plane without a name, a name that is no text, a long one.
        (
            spaces() + encode([delimited(1, [delimited(3, [delimited(4, b"\x08")])])]),
            "plane 1, line 0, event 0: damaged at byte 24: its bytes end inside a number",
        ),
        (
            spaces(delimited(3, [delimited(2, b"a\xff"), delimited(4, b"\x08")])),
            "plane '/device:GPU:0', line 'a\ufffd', event 0: "
            "damaged at byte 26: its bytes end inside a number",
        ),
        (
            spaces(delimited(3, [delimited(2, b"a" * 99), delimited(4, b"\x08"), delimited(11, b"b")])),
            "plane '/device:GPU:0', line 'b', event 0: damaged at byte 123: its bytes end inside a number",
        ),
        # Between the planes.
        (
            spaces(line(EVENT)) + b"\x0a" + b"\xff" * 9 + b"\x01",
            "damaged at byte 49: a number of more than 5 bytes",
        ),
        (spaces(line(EVENT)) + b"\x00", "damaged at byte 48: no field begins there"),
        (spaces(line(EVENT)) + b"\x22", "truncated at byte 49"),
        (spaces(line(EVENT)) + b"\x22\x05ab", "truncated at byte 52: 3 bytes are missing"),
        # Cut off: the file has 48 bytes.
        (
            spaces(line(EVENT))[:40],
            "truncated at byte 40, inside plane '/device:GPU:0', line 'Stream #1': 8 bytes are missing",
        ),
        (
            spaces(line(EVENT))[:20],
            "truncated at byte 20, inside plane '/device:GPU:0', line 0: 28 bytes are missing",
        ),
        (spaces(line(EVENT))[:10], "truncated at byte 10, inside plane 0: 38 bytes are missing"),
        # Other files.
        (b"\x00" * 9, "not an XSpace: damaged at byte 0: no field begins there"),
        (b"hello, this is no trace", "not an XSpace: damaged at byte 2: no field begins there"),
    ],
)
def test_an_unreadable_file_tells_where_it_breaks(space: bytes, words: str) -> None:
    assert refusals(space) == f"{PLACE}: {words}. Copy the file again, or profile again."


def test_the_first_damage_after_unusual_but_valid_bytes_is_told() -> None:
    # A group, which only protobuf reads, makes the compiled decoder stop earlier than it must.
    odd = delimited(4, [group(15, number(1, 1))])
    data = spaces(line(EVENT, odd, EVENT, delimited(4, b"\x08"), delimited(4, b"\x08")), line(odd))
    assert "line 'Stream #1', event 3: damaged at byte" in refusals(data)
    # A group between events has protobuf read the whole line, with the events before it.
    data = spaces(line(EVENT), line(EVENT, delimited(4, b"\x08"), group(15), EVENT, name=b"Stream #2"))
    assert "line 'Stream #2', event 1: damaged at byte" in refusals(data)
    data = spaces(line(EVENT), line(EVENT, group(15), EVENT, delimited(4, b"\x08"), name=b"Stream #2"))
    assert "line 'Stream #2', event 2: damaged at byte" in refusals(data)
    data = spaces(line(EVENT), group(15), delimited(6, b"\x08"), line(EVENT))
    assert "plane '/device:GPU:0', stat 0: damaged at byte" in refusals(data)


def test_damage_that_comes_after_many_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xspace_compiled, "_MAX_PART_EVENTS", 3)
    for position in range(0, 100, 7):
        events = [EVENT] * position + [delimited(4, b"\x08")] + [EVENT] * (100 - position)
        assert f"line 'Stream #1', event {position}: damaged" in refusals(spaces(line(), line(*events)))


def test_a_large_file_is_not_copied_to_tell_that_it_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("the whole file went to protobuf")

    monkeypatch.setattr(xspace_decode, "_COMPILED_FROM_BYTES", 10)
    monkeypatch.setattr(xspace_decode, "ProtobufSpace", refuse)
    with pytest.raises(UnreadableFile, match=r"place\.xplane\.pb: truncated at byte 40, inside plane"):
        xspace.read(spaces(line(EVENT))[:40], PLACE)


def test_more_than_protobuf_reads_is_read_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    # As if its limit were this low.
    monkeypatch.setattr(xspace_decode, "MAX_MESSAGE_BYTES", 40)
    data = spaces(line(EVENT, EVENT), before=delimited(2, b"e" * 50).encode())
    assert xspace.read(data, PLACE).names
    with pytest.raises(UnreadableFile, match=r"bytes; protobuf reads at most 40"):
        xspace.read(data, PLACE, compiled=False)
    with pytest.raises(UnreadableFile, match=r"truncated at byte"):
        xspace.read(data[:-3], PLACE)


def test_a_plane_with_more_metadata_than_protobuf_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(xspace_compiled, "MAX_MESSAGE_BYTES", 40)
    assert read(spaces(line(EVENT, EVENT, EVENT)), compiled=True).count("device_events") == 3
    refusal = read(spaces(line(EVENT), delimited(4, b"\x7a\x28" + bytes(40))), compiled=True).refusal
    assert "59 bytes" in refusal
    assert "at most 40" in refusal


# --- random damage ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_bit_flips(seed: int) -> None:
    generator = random.Random(seed)
    for _ in range(60):
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
        for position in range(0, len(small_space()), 11):
            data = bytearray(small_space())
            data[position] ^= 1 << generator.randrange(8)
            path.write_bytes(data)
            try:
                ingest_path(handle, path, IngestOptions(run_name=f"flip {position}"), SilentProgress())
            except TracewhError:
                refused += 1
        stored_captures = handle.connection.execute("SELECT COUNT(*) FROM captures").fetchone()
    tried = len(range(0, len(small_space()), 11))
    assert stored_captures == (tried - refused + 1,)
    assert 0 < refused < tried


@pytest.mark.parametrize("position", range(3))
def test_damage_inside_a_bundled_capture(position: int) -> None:
    data = bytearray(gzip.decompress(BUNDLED.read_bytes()))
    generator = random.Random(position)
    for _ in range(2):
        for _ in range(3):
            data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        check_read(bytes(data))


# --- repaired and counted -----------------------------------------------------------------------------------


@pytest.mark.parametrize("compiled", [False, True])
def test_ids_without_metadata_and_names_without_text_are_counted(compiled: bool) -> None:
    space = SpaceBuilder()
    plane = space.plane(b"/device:GPU:0")
    plane.metadata(b"bad \xff name", key=1)
    made = plane.line(b"Stream #1(\xfe)", 1)
    made.event(1, 0, 5, {b"key \xfd": 1, "note": Ref("fine")})
    made.event(99, 10, 5, [(88, 7)])
    made.message.events[0].stats.add(metadata_id=1).str_value = b"text \xfc"
    made.message.events[1].stats.add(metadata_id=1).ref_value = 77
    found = read(space.serialize(), compiled)
    assert found.count("device_events") == 2
    counted: dict[str, int] = {}
    for (problem, _), occurrences in found.problems.items():
        counted[problem] = counted.get(problem, 0) + occurrences
    assert counted["invalid_text"] >= 4
    assert set(counted) >= {"invalid_text", "missing_metadata"}


@pytest.mark.parametrize("compiled", [False, True])
def test_impossible_times_are_kept_and_counted(compiled: bool) -> None:
    space = SpaceBuilder()
    line_of_space = space.gpu().line("Stream #1(Compute)", 1, 1000)
    line_of_space.event("good", 5, 10)
    line_of_space.event("offset", (1 << 63) - 1, 10).event("offset", -(1 << 63), 10)
    line_of_space.event("duration", 5, (1 << 63) - 1)
    line_of_space.event("negative", 5, -7)
    space.gpu(1).line("Stream #1(Compute)", 1, -(1 << 62)).event("line", 5, 10)
    found = read(space.serialize(), compiled)
    assert found.count("device_events") == 6
    counted = {
        problem: sum(count for (name, _), count in found.problems.items() if name == problem)
        for problem in ("impossible_time", "negative_duration")
    }
    assert counted == {"impossible_time": 4, "negative_duration": 1}


# --- all or nothing -----------------------------------------------------------------------------------------


def stored(warehouse: Path) -> dict[str, list[tuple[object, ...]]]:
    """All rows of all tables."""
    with tracewh.open(warehouse) as handle:
        names = handle.connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE schema_name = 'main' ORDER BY 1"
        ).fetchall()
        return {
            name: handle.connection.execute(f'SELECT * FROM main."{name}" ORDER BY ALL').fetchall()
            for (name,) in names
        }


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows go to the warehouse a few at a time, as those of a large capture do."""
    monkeypatch.setattr(batches, "BATCH_ROWS", 10)
    monkeypatch.setattr(xspace_compiled, "_MAX_PART_EVENTS", 5)
    monkeypatch.setattr(xspace_decode, "_COMPILED_FROM_BYTES", 0)


def breaking_late() -> bytes:
    """A hundred events, the last of them damaged."""
    return spaces(line(*[EVENT] * 50), line(*[EVENT] * 49, delimited(4, b"\x08"), name=b"Stream #2"))


def test_a_capture_that_breaks_in_its_middle_comes_late(small_batches: None) -> None:
    # That the tests below test what they should: most rows are out before the damage is met.
    capture = xspace.read(breaking_late(), PLACE)
    handed_on: list[int] = []

    def drain() -> None:
        for table, rows in capture.stream:
            handed_on.append(rows.num_rows if table == "device_events" else 0)

    with pytest.raises(UnreadableFile, match="line 'Stream #2', event 49: damaged at byte"):
        drain()
    assert sum(handed_on) == 90


def test_a_capture_that_breaks_in_its_middle_leaves_nothing(tmp_path: Path, small_batches: None) -> None:
    warehouse, broken = tmp_path / "w.duckdb", tmp_path / "broken.xplane.pb"
    broken.write_bytes(breaking_late())
    with pytest.raises(UnreadableFile, match=re.escape(str(broken))):
        tracewh.ingest_run(broken, warehouse=warehouse)
    assert not warehouse.exists()
    good = tmp_path / "good.xplane.pb"
    good.write_bytes(small_space())
    tracewh.ingest_run(good, warehouse=warehouse)
    before = stored(warehouse)
    with pytest.raises(UnreadableFile, match=re.escape(str(broken))):
        tracewh.ingest_run(broken, warehouse=warehouse)
    assert stored(warehouse) == before
    assert before["device_events"]


def test_other_captures_of_the_run_load(tmp_path: Path, small_batches: None) -> None:
    run, warehouse = tmp_path / "run", tmp_path / "w.duckdb"
    run.mkdir()
    for name, content in (("a", breaking_late()), ("b", small_space()), ("c", small_space()[:-9])):
        (run / f"{name}.xplane.pb").write_bytes(content)
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert {item.path: item.status for item in report.artifacts} == {
        "a.xplane.pb": "rejected",
        "b.xplane.pb": "loaded",
        "c.xplane.pb": "rejected",
    }
    found = stored(warehouse)
    assert len(found["captures"]) == 1
    assert len(found["device_events"]) + len(found["host_events"]) == 6
    problems = [row for row in found["ingest_problems"] if "unreadable_file" in row]
    assert len(problems) == 2
    # The names, devices and tracks of the broken one are not there.
    assert {row[0] for row in found["tracks"]} == {row[0] for row in found["captures"]}
    alone = tmp_path / "alone.duckdb"
    (tmp_path / "b.xplane.pb").write_bytes(small_space())
    tracewh.ingest_run(tmp_path / "b.xplane.pb", warehouse=alone)
    expected = stored(alone)
    for table in ("names", "devices", "tracks", "device_events", "host_events", "event_stats", *SHARED_ROWS):
        assert found[table], table
        assert len(found[table]) == len(expected[table]), table


# --- other files --------------------------------------------------------------------------------------------


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
        gzip.compress(small_space(), mtime=0)[:-20],
        gzip.compress(small_space(), mtime=0)[:5],
        gzip.compress(small_space(), mtime=0) + b"trailing",
        gzip.compress(b"text", mtime=0),
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
