"""A capture on standard input: `tracewh ingest -`."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from tracewh.cli import main
from tracewh.ingest.discovery import Artifact
from tracewh.ingest.errors import UnreadableFile
from tracewh.ingest.piped import piped_capture

from .ingest_runs import CAPTURES, SURROGATES, content, query, small_capture, write_run

FIXTURES = Path(__file__).parents[1] / "fixtures"
BUNDLED = gzip.decompress(CAPTURES["cpu_train"].read_bytes())
# What says where the bytes came from, and that git was asked there.
ORIGIN = {"run_name", "path", "commit_sha", "commit_source", "bytes", "place"}
RUNS = "SELECT run_name, path FROM runs ORDER BY run_id"
CAPTURED = """SELECT r.run_name, a.path, c.process_index FROM captures AS c
    JOIN artifacts AS a USING (artifact_id) JOIN runs AS r ON r.run_id = c.run_id ORDER BY c.capture_id"""


def zstd(data: bytes) -> bytes:
    return bytes(pa.Codec("zstd").compress(data, asbytes=True))


@pytest.fixture
def warehouse(tmp_path: Path) -> Path:
    return tmp_path / "w.duckdb"


def ingest(warehouse: Path, data: bytes | io.BytesIO, *arguments: str | Path) -> Result:
    """`tracewh ingest` with `data` on standard input."""
    command = ["ingest", "-w", str(warehouse), *map(str, arguments)]
    return CliRunner().invoke(main, command, input=data)


def loaded(warehouse: Path, data: bytes, *arguments: str | Path) -> None:
    result = ingest(warehouse, data, *arguments)
    assert result.exit_code == 0, result.output


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd])
def test_the_pipe_loads_what_the_file_does(
    tmp_path: Path, warehouse: Path, pack: Callable[[bytes], bytes]
) -> None:
    file, by_file = tmp_path / "x.xplane.pb", tmp_path / "file.duckdb"
    file.write_bytes(BUNDLED)
    assert CliRunner().invoke(main, ["ingest", "-w", str(by_file), str(file)]).exit_code == 0
    packed = pack(BUNDLED)
    command = [sys.executable, "-m", "tracewh.cli", "ingest", "-", "-w", warehouse]
    piped = subprocess.run(command, input=packed, capture_output=True, check=True)
    assert piped.stdout.decode().splitlines()[2].split()[:2] == ["stdin", "loaded"]
    without = SURROGATES | ORIGIN
    assert content(warehouse, without) == content(by_file, without)
    assert query(warehouse, "SELECT run_name, path, commit_sha, commit_source FROM runs") == [
        ("stdin", "stdin", None, None)
    ]
    assert query(warehouse, "SELECT path, kind, bytes, status FROM artifacts") == [
        ("stdin.xplane.pb", "xspace", len(packed), "loaded")
    ]
    # It is the same capture, whichever way it comes.
    again = CliRunner().invoke(main, ["ingest", "-w", str(warehouse), str(file)])
    assert (again.exit_code, "already there" in again.stdout) == (0, True)


def test_each_pipe_is_a_run_and_the_same_bytes_are_there_already(warehouse: Path) -> None:
    for name, data in (("stdin", small_capture("a")), ("stdin (2)", small_capture("b"))):
        loaded(warehouse, data, "-")
        again = ingest(warehouse, gzip.compress(data, mtime=0), "-", "--json")
        (report,) = json.loads(again.stdout)
        assert (report["run_name"], report["path"], report["status"]) == (name, "stdin", "already there")
    assert query(warehouse, CAPTURED) == [
        ("stdin", "stdin.xplane.pb", 0),
        ("stdin (2)", "stdin.xplane.pb", 0),
    ]
    before = content(warehouse)
    result = ingest(warehouse, small_capture("a"), "-", "-")
    assert (result.exit_code, result.stdout.count("already there")) == (0, 2)
    assert content(warehouse) == before
    loaded(warehouse, small_capture("a"), "-", "--force")
    assert sorted(query(warehouse, CAPTURED)) == [
        ("stdin", "stdin.xplane.pb", 0),
        ("stdin (2)", "stdin.xplane.pb", 0),
    ]


def test_what_the_user_says_of_it(warehouse: Path) -> None:
    said = ("--run", "base", "--commit", "4f2a91c", "--label", "batch=64")
    loaded(warehouse, small_capture(), "-", *said)
    assert query(warehouse, "SELECT run_name, commit_sha, commit_source FROM runs") == [
        ("base", "4f2a91c", "option")
    ]
    assert query(warehouse, "SELECT label, value FROM run_labels") == [("batch", "64")]


def test_among_paths(warehouse: Path, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"h.xplane.pb": small_capture("file")})
    result = ingest(warehouse, small_capture("pipe"), run, "-", tmp_path / "nowhere")
    assert result.exit_code == 1
    assert query(warehouse, CAPTURED) == [
        ("run", "profile/h.xplane.pb", 0),
        ("stdin", "stdin.xplane.pb", 0),
    ]
    # And a pipe that brings nothing does not stop the others.
    other = write_run(tmp_path / "other", {"h.xplane.pb": small_capture("other")})
    result = ingest(warehouse, b"", "-", other)
    assert result.exit_code == 1
    assert result.stderr.splitlines()[-1].startswith("Error: stdin: standard input is empty.")
    assert query(warehouse, CAPTURED)[2:] == [("other", "profile/h.xplane.pb", 0)]


def test_a_known_file_keeps_its_path(warehouse: Path, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"h.xplane.pb": small_capture()})
    loaded(warehouse, b"", run)
    before = content(warehouse)
    result = ingest(warehouse, zstd(small_capture()), "-")
    assert "already there" in result.stdout
    assert content(warehouse) == before
    loaded(warehouse, small_capture(), "-", "--force")
    assert query(warehouse, CAPTURED) == [("run", "profile/h.xplane.pb", 0)]
    assert query(warehouse, RUNS) == [("run", str(run))]


def test_a_pipe_into_a_run_of_files_has_no_rank(warehouse: Path, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", {"h.xplane.pb": small_capture("file")})
    loaded(warehouse, b"", run)
    loaded(warehouse, small_capture("pipe"), "-", "--run", "run")
    assert query(warehouse, CAPTURED) == [
        ("run", "profile/h.xplane.pb", 0),
        ("run", "stdin.xplane.pb", None),
    ]
    assert query(warehouse, RUNS) == [("run", str(run))]
    loaded(warehouse, small_capture("pipe"), "-", "--run", "run", "--force")
    assert query(warehouse, CAPTURED)[1:] == [("run", "stdin.xplane.pb", None)]


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_files_tell_where_a_piped_run_lies(warehouse: Path, tmp_path: Path, force: list[str]) -> None:
    loaded(warehouse, small_capture("1"), "-")
    run = tmp_path / "run"
    for rank in (0, 1):
        write_run(run / f"proc{rank}", {"h.xplane.pb": small_capture(str(rank))}, {"timing.json": {}})
    loaded(warehouse, b"", run, *force)
    assert query(warehouse, RUNS) == [("stdin", str(run))]
    assert sorted(query(warehouse, CAPTURED)) == [
        ("stdin", "proc0/profile/h.xplane.pb", 0),
        ("stdin", "proc1/profile/h.xplane.pb", 1),
    ]


def test_other_files_may_join_a_piped_run(warehouse: Path, tmp_path: Path) -> None:
    loaded(warehouse, small_capture("pipe"), "-", "--run", "base")
    file = tmp_path / "h.xplane.pb"
    file.write_bytes(small_capture("file"))
    loaded(warehouse, b"", file, "--run", "base")
    assert query(warehouse, RUNS) == [("base", str(file))]
    assert [path for _, path, _ in query(warehouse, CAPTURED)] == ["stdin.xplane.pb", "h.xplane.pb"]


@pytest.mark.parametrize(
    ("data", "complaint"),
    [
        (b"", r"stdin: standard input is empty\. Check the command"),
        (gzip.compress(small_capture(), mtime=0)[:-9], r"stdin: damaged gzip data .*again"),
        (zstd(small_capture())[:-9], r"stdin: damaged zstd data .*again"),
        (b"hello, this is no trace\n", r"stdin: "),
        (gzip.compress(b"", mtime=0), r"stdin: "),
        ((FIXTURES / "rocpd_train" / "mi300x_results.db").read_bytes(), r"stdin: "),
    ],
    ids=["empty", "gzip", "zstd", "text", "nothing", "rocpd"],
)
def test_what_is_no_capture_is_refused(warehouse: Path, data: bytes, complaint: str) -> None:
    result = ingest(warehouse, data, "-")
    assert (result.exit_code, result.stdout) == (1, "")
    (line,) = [line for line in result.stderr.splitlines() if line.startswith("Error: ")]
    assert line == result.stderr.splitlines()[-1]
    assert re.match(f"Error: {complaint}", line)
    assert not warehouse.exists()
    (failure,) = json.loads(ingest(warehouse, data, "-", "--json").stdout)
    assert (failure["path"], failure["status"]) == ("-", "failed")


def test_a_terminal_is_not_waited_for(warehouse: Path) -> None:
    controller, terminal = pty.openpty()
    command = [sys.executable, "-m", "tracewh.cli", "ingest", "-", "-w", warehouse]
    ran = subprocess.run(command, stdin=terminal, capture_output=True, text=True, check=False)
    os.close(controller)
    os.close(terminal)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("Error: stdin: standard input is a terminal. Pipe an XSpace to it: ")
    assert not warehouse.exists()


def test_standard_input_is_closed(warehouse: Path) -> None:
    command = f'exec "{sys.executable}" -m tracewh.cli ingest - -w "{warehouse}" <&-'
    ran = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout) == (1, "")
    assert ran.stderr.startswith("Error: stdin: standard input is closed. ")


def test_the_warehouse_is_free_while_the_pipe_is_read(warehouse: Path) -> None:
    class Slow(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            assert not warehouse.exists()
            return super().read(size)

    assert ingest(warehouse, Slow(small_capture()), "-").exit_code == 0
    assert warehouse.exists()


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd])
@pytest.mark.parametrize("limit", [4096, 64 << 20])
def test_the_artifact_can_be_opened_again(
    monkeypatch: pytest.MonkeyPatch, pack: Callable[[bytes], bytes], limit: int
) -> None:
    monkeypatch.setattr("tracewh.ingest.content.MEMORY_LIMIT_BYTES", limit)
    packed = pack(BUNDLED)
    with piped_capture(Trickle(packed)) as capture:
        assert capture == Artifact(Path("stdin"), "xspace", len(packed))
        for _ in range(2):
            assert capture.sha256() == hashlib.sha256(BUNDLED).hexdigest()
            with capture.open() as opened:
                assert opened.buffer == BUNDLED


class Trickle(io.BytesIO):
    """A pipe that brings a few bytes at a time."""

    def read(self, size: int | None = -1, /) -> bytes:
        return super().read(3 if self.tell() < 30 else 10_000)


def test_a_pipe_that_breaks_off(warehouse: Path) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1, /) -> bytes:
            raise OSError(5, "Input/output error")

    with pytest.raises(UnreadableFile, match="stdin: Input/output error"), piped_capture(Broken(b"x")):
        pass


def test_no_room_for_the_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tracewh.ingest.content.MEMORY_LIMIT_BYTES", 4096)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with (
        pytest.raises(UnreadableFile, match=r"stdin: .*Set TMPDIR"),
        piped_capture(io.BytesIO(BUNDLED)),
    ):
        pass
