"""Device memory profiles of JAX, read against protobuf's own reading, and what damage and mischief do."""

from __future__ import annotations

import gzip
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

import tracewh
from tracewh.ingest import memory_profile
from tracewh.ingest.capture import ProblemCounter
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.memory_profile import Frame, MemoryProfile

from .ingest_runs import query, small_capture, statuses, write_run
from .pprof import ProfileBuilder, samples_of
from .shared_runs import ingested

PACKAGE = ("put", "/venv/lib/python3.12/site-packages/jax/_src/api.py", 11)
INIT = ("init", "/home/me/train.py", 20)
MAIN = ("main", "/home/me/train.py", 90)


def small_profile() -> ProfileBuilder:
    profile = ProfileBuilder()
    profile.sample([2, 600], {"kind": "buffer", "device": "cuda:0"}, [PACKAGE, INIT, MAIN])
    profile.sample([1, 400], {"kind": "buffer", "device": "cuda:0"}, [PACKAGE, MAIN])
    profile.sample([1, 50], {"kind": "executable"}, [PACKAGE, INIT, MAIN])
    return profile


def read(data: bytes) -> tuple[MemoryProfile, dict[str, int]]:
    """The profile, and how often each problem was counted."""
    problems = ProblemCounter()
    profile = memory_profile.read(data, "p.prof", problems)
    counts: Counter[str] = Counter()
    for problem in problems.problems():
        counts[problem.problem] += problem.occurrences
    return profile, dict(counts)


def test_samples_and_stacks() -> None:
    profile, problems = read(small_profile().serialize())
    assert problems == {}
    found = [
        (item.device_label, item.kind, item.allocation_count, item.size_bytes, item.stack_id)
        for item in profile.samples
    ]
    # Two samples share a stack.
    assert found == [
        ("cuda:0", "buffer", 2, 600, 0),
        ("cuda:0", "buffer", 1, 400, 1),
        (None, "executable", 1, 50, 0),
    ]
    assert profile.stacks == [
        [Frame(name, file, line, 1, None) for name, file, line in stack]
        for stack in ([PACKAGE, INIT, MAIN], [PACKAGE, MAIN])
    ]


def test_inlined_functions_and_bare_addresses() -> None:
    builder = small_profile()
    # The caller follows the function that was inlined into it; a location may be of code without lines.
    builder.message.location[0].line.add(function_id=2, line=7)
    bare = builder.message.location.add(id=99, address=(1 << 64) - 2)
    builder.message.sample[1].location_id[:] = [bare.id]
    profile, _ = read(builder.serialize())
    assert [(frame.function_name, frame.source_line) for frame in profile.stacks[0]] == [
        ("put", 11),
        ("init", 7),
        ("init", 20),
        ("main", 90),
    ]
    assert profile.stacks[1] == [Frame(None, None, None, None, -2)]


def test_what_is_left_out_is_counted() -> None:
    builder = ProfileBuilder([("space", "bytes"), ("age", "seconds"), ("allocations", "count")])
    builder.sample([600, 3, 2], {"kind": "buffer", "device": 7, "thread": "main"}, [MAIN])
    builder.message.mapping.add(id=1)
    profile, problems = read(builder.serialize())
    assert [(item.device_label, item.allocation_count, item.size_bytes) for item in profile.samples] == [
        (None, 2, 600)
    ]
    assert problems == {"unread_values": 1, "unread_label": 2, "unread_mapping": 1}


def test_a_profile_of_something_else() -> None:
    builder = ProfileBuilder([("samples", "count"), ("cpu", "nanoseconds")])
    builder.sample([1, 10], {}, [MAIN])
    profile, problems = read(builder.serialize())
    assert profile == MemoryProfile()
    assert problems == {"no_memory_profile": 1}


def test_text_that_is_no_utf8() -> None:
    data = small_profile().serialize().replace(b"/home/me", b"/home/\xff\xfe")
    profile, _ = read(data)
    assert {frame.source_file for frame in profile.stacks[0]} == {PACKAGE[1], r"/home/\xff\xfe/train.py"}


def broken(change: str) -> bytes:
    builder = small_profile()
    message = builder.message
    match change:
        case "text":
            message.function[0].name = len(message.string_table)
        case "negative text":
            message.sample[0].label[0].key = -1
        case "location":
            message.sample[0].location_id.append(77)
        case "function":
            message.location[0].line[0].function_id = 77
        case "values":
            message.sample[0].value.append(1)
        case "no texts":
            message.ClearField("string_table")
        case "frames":
            # 3,000 references to a location of 3,000 lines: 12 KB that spell 9,000,000 frames.
            for _ in range(2999):
                message.location[0].line.add(function_id=1, line=1)
            message.sample[0].location_id.extend([message.location[0].id] * 3000)
    return builder.serialize()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("text", "refers to text"),
        ("negative text", "refers to text -1"),
        ("location", "sample 0 refers to location 77"),
        ("function", "refers to function 77"),
        ("values", "sample 0 has 3 values, not 2"),
        ("no texts", "it has no texts"),
        ("frames", "more than 2,000,000 frames"),
    ],
)
def test_damage_is_named(change: str, reason: str) -> None:
    with pytest.raises(UnreadableFile, match=reason) as error:
        read(broken(change))
    assert str(error.value).startswith("p.prof: ")


@pytest.mark.parametrize("data", [b"", b"no profile", b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"])
def test_no_profile_at_all(data: bytes) -> None:
    with pytest.raises(UnreadableFile, match="not a pprof profile"):
        read(data)


def test_any_cut_or_flipped_bit_reads_or_is_refused() -> None:
    data = small_profile().serialize()
    changed = [data[:end] for end in range(len(data))]
    changed += [
        data[:position] + bytes([data[position] ^ 1 << bit]) + data[position + 1 :]
        for position in range(len(data))
        for bit in range(8)
    ]
    refused = 0
    for attempt in changed:
        try:
            read(attempt)
        except UnreadableFile:
            refused += 1
    assert refused > len(data) // 2


def test_a_run_with_its_profile(tmp_path: Path) -> None:
    warehouse = tmp_path / "w.duckdb"
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()})
    builder = small_profile()
    builder.sample([1, 7], {"kind": "buffer", "device": "cuda:5"}, [])
    (run / "device_memory.prof").write_bytes(gzip.compress(builder.serialize(), mtime=0))
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert statuses(report)["device_memory.prof"] == "loaded"
    found = query(
        warehouse,
        """SELECT device_ordinal, device_label, kind, function_name, source_line, is_user_code,
            allocation_count, bytes, share_ratio
        FROM v1.memory_profile ORDER BY bytes DESC""",
    )
    assert found == [
        (0, "cuda:0", "buffer", "init", 20, True, 2, 600, 0.6),
        (0, "cuda:0", "buffer", "main", 90, True, 1, 400, 0.4),
        (None, None, "executable", "init", 20, True, 1, 50, 1.0),
        (None, "cuda:5", "buffer", None, None, False, 1, 7, 1.0),
    ]
    assert query(warehouse, "SELECT problem, occurrences FROM ingest_problems") == [("unknown_device", 1)]
    totals = query(
        warehouse,
        """SELECT label, kind, bytes, evidence FROM v1.memory
        WHERE source = 'memory_profile' ORDER BY bytes DESC""",
    )
    assert totals == [
        ("device_memory.prof, cuda:0", "buffer", 1000, "measured"),
        ("device_memory.prof", "executable", 50, "measured"),
        ("device_memory.prof, cuda:5", "buffer", 7, "measured"),
    ]
    # Once more with other content: its rows replace those of before.
    (run / "device_memory.prof").write_bytes(gzip.compress(small_profile().serialize(), mtime=0))
    tracewh.ingest_run(run, warehouse=warehouse)
    assert query(warehouse, "SELECT SUM(size_bytes) FROM memory_profile_samples") == [(1050,)]
    assert query(warehouse, "SELECT COUNT(*) FROM memory_profile_frames") == [(5,)]


PACKED = gzip.compress(small_profile().serialize(), mtime=0)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (PACKED[:-20], "damaged gzip data"),
        (gzip.compress(broken("location"), mtime=0), "refers to location 77"),
        (gzip.compress(bytes(17 << 20), mtime=0), "more than 16 MiB decompressed"),
        (b"", "not a pprof profile"),
    ],
)
def test_a_damaged_profile_is_one_error(tmp_path: Path, data: bytes, reason: str) -> None:
    warehouse = tmp_path / "w.duckdb"
    run = write_run(tmp_path / "run", {"a.xplane.pb": small_capture()}, {"timing.json": {"step_s": [1.0]}})
    (run / "device_memory.prof").write_bytes(data)
    report = tracewh.ingest_run(run, warehouse=warehouse)
    assert report.status == "failed"
    outcomes = {item.path: (item.status, item.detail) for item in report.artifacts}
    status, detail = outcomes["device_memory.prof"]
    assert status == "rejected"
    assert detail is not None
    assert reason in detail
    assert outcomes["profile/a.xplane.pb"][0] == outcomes["timing.json"][0] == "loaded"
    assert query(warehouse, "SELECT COUNT(*) FROM memory_profile_samples") == [(0,)]


def profiles_of(path: Path) -> dict[str, Any]:
    return {
        str(file.relative_to(path)): samples_of(gzip.decompress(file.read_bytes()))
        for file in path.rglob("device_memory.prof")
    }


@pytest.mark.parametrize("name", ["h200x2_medium_fsdp2", "h200x1_small", "h200_2proc"])
def test_real_profiles(name: str, tmp_path: Path) -> None:
    with ingested(name, tmp_path) as run:
        expected = profiles_of(run.path)
        assert expected
        found: dict[str, Counter[Any]] = defaultdict(Counter)
        for path, device, kind, count, size, names, files, lines in run.rows(
            """SELECT a.path, s.device_label, s.kind, s.allocation_count, s.size_bytes,
                LIST(f.function_name ORDER BY f.frame_index), LIST(f.source_file ORDER BY f.frame_index),
                LIST(f.source_line ORDER BY f.frame_index)
            FROM memory_profile_samples AS s JOIN artifacts AS a USING (artifact_id)
            JOIN memory_profile_frames AS f USING (artifact_id, stack_id)
            GROUP BY a.path, s.artifact_id, s.sample_index, s.device_label, s.kind, s.allocation_count,
                s.size_bytes"""
        ):
            found[path][device, kind, count, size, tuple(zip(names, files, lines, strict=True))] += 1
        assert dict(found) == expected
        # The model's code is one file outside of all packages; the innermost frame in it is the site.
        sites: Counter[Any] = Counter()
        for samples in expected.values():
            for (device, kind, _, size, stack), times in samples.items():
                site = next(frame for frame in stack if "/site-packages/" not in frame[1])
                sites[device, kind, site[0], site[2]] += size * times
        rows = run.rows(
            """SELECT device_label, kind, function_name, source_line, SUM(bytes)::BIGINT,
                BOOL_AND(is_user_code)
            FROM v1.memory_profile GROUP BY ALL"""
        )
        assert {row[:4]: row[4] for row in rows} == dict(sites)
        assert {row[5] for row in rows} == {True}
