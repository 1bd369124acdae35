"""Machine code is compiled once, kept in the user's cache, and then loaded without the compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tracewh.ingest.compiled_code import INT64S, NUMBER, load

from .xspace_oracle import SpaceBuilder

ROOT = Path(__file__).parents[1]

# Doubles its numbers, or multiplies them by what stands in place of 2.
SOURCE = """
def multiply(numbers, count, result):
    for index in range(count):
        result[index] = numbers[index] * 2
"""
# Prints the result and whether numba was imported for it.
PROGRAM = """
import importlib.util, sys
from pathlib import Path
import numpy as np
from tracewh.ingest.compiled_code import INT64S, NUMBER, load

path = Path(sys.argv[1])

def module():
    specification = importlib.util.spec_from_file_location("loops", path)
    made = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(made)
    return made

code = load([path], {"multiply": (INT64S, NUMBER, INT64S)}, module)
numbers, result = np.arange(5), np.zeros(5, np.int64)
code.function("multiply")(numbers.ctypes.data, 5, result.ctypes.data)
print(result.tolist(), "numba" in sys.modules)
"""
COMPILED, LOADED = "[0, 2, 4, 6, 8] True\n", "[0, 2, 4, 6, 8] False\n"


class Cache:
    """A program with loops, and the environment that says where their code is kept."""

    def __init__(self, folder: Path) -> None:
        self.source = folder / "loops.py"
        self.source.write_text(SOURCE)
        self.home = folder / "home"
        self.home.mkdir()
        self.working_directory = folder / "working"
        self.working_directory.mkdir()
        kept = {key: value for key, value in os.environ.items() if key not in ("HOME", "XDG_CACHE_HOME")}
        self.environment = kept | {"HOME": str(self.home)}

    def start(self, program: str = PROGRAM, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-c", program, str(self.source)],
            env=self.environment | environment,
            cwd=self.working_directory,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, program: str = PROGRAM, **environment: str) -> str:
        """What the program prints."""
        process = self.start(program, **environment)
        output, errors = process.communicate()
        assert process.returncode == 0, errors
        return output

    @property
    def folder(self) -> Path:
        return self.home / ".cache" / "tracewh"

    def files(self) -> list[Path]:
        return sorted(self.folder.iterdir())


@pytest.fixture
def cache(tmp_path: Path) -> Cache:
    return Cache(tmp_path)


def test_the_second_process_does_not_import_the_compiler(cache: Cache) -> None:
    assert cache.run() == COMPILED
    (kept,) = cache.files()
    assert cache.run() == LOADED
    assert cache.files() == [kept]
    assert not list(cache.working_directory.iterdir())


def test_other_loops_have_code_of_their_own(cache: Cache) -> None:
    assert cache.run() == COMPILED
    cache.source.write_text(SOURCE.replace("* 2", "* 3"))
    assert cache.run() == "[0, 3, 6, 9, 12] True\n"
    cache.source.write_text(SOURCE)
    assert cache.run() == LOADED
    assert len(cache.files()) == 2


def test_the_cache_of_the_environment(cache: Cache, tmp_path: Path) -> None:
    chosen = tmp_path / "not" / "there yet"
    assert cache.run(XDG_CACHE_HOME=str(chosen)) == COMPILED
    assert len(list((chosen / "tracewh").iterdir())) == 1
    assert not cache.folder.exists()
    assert cache.run(XDG_CACHE_HOME=str(chosen)) == LOADED


@pytest.mark.parametrize("value", ["", "relative/cache"])
def test_an_environment_that_names_no_absolute_cache_is_ignored(cache: Cache, value: str) -> None:
    assert cache.run(XDG_CACHE_HOME=value) == COMPILED
    assert len(cache.files()) == 1
    assert not list(cache.working_directory.iterdir())


def damaged(content: bytes) -> dict[str, bytes]:
    return {
        "empty": b"",
        "short": content[:20],
        "cut": content[:-1],
        "longer": content + b"\x00",
        "half": content[: len(content) // 2],
        "flipped": content[:100] + bytes([content[100] ^ 1]) + content[101:],
        "digest": b"\x00" * 32 + content[32:],
        "text": b"no machine code\n" * 99,
    }


def test_damaged_code_is_compiled_again(cache: Cache, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache.home / ".cache"))
    compiled = 0

    def module() -> ModuleType:
        nonlocal compiled
        compiled += 1
        made = ModuleType("loops")
        exec(SOURCE, made.__dict__)
        return made

    def multiply() -> list[int]:
        code = load([cache.source], {"multiply": (INT64S, NUMBER, INT64S)}, module)
        numbers, result = np.arange(5), np.zeros(5, np.int64)
        code.function("multiply")(numbers.ctypes.data, 5, result.ctypes.data)
        found: list[int] = result.tolist()
        return found

    assert multiply() == multiply() == [0, 2, 4, 6, 8]
    assert compiled == 1
    (kept,) = cache.files()
    content = kept.read_bytes()
    for count, (name, bad) in enumerate(damaged(content).items(), 2):
        kept.write_bytes(bad)
        assert multiply() == multiply() == [0, 2, 4, 6, 8], name
        assert compiled == count, name
        assert cache.files() == [kept]
    # A folder in its place stays, and there is no cache.
    kept.unlink()
    kept.mkdir()
    assert multiply() == multiply() == [0, 2, 4, 6, 8]
    assert compiled == count + 2
    assert cache.files() == [kept]


@pytest.mark.parametrize("blocked", [".cache", ".cache/tracewh"])
def test_a_cache_that_cannot_be_written(cache: Cache, blocked: str) -> None:
    # A file where a folder should be stops root too.
    path = cache.home / blocked
    path.parent.mkdir(exist_ok=True)
    path.write_text("")
    assert cache.run() == COMPILED
    assert path.read_text() == ""


def test_a_user_without_a_home_has_no_cache(cache: Cache) -> None:
    # As in a container whose user id nobody knows.
    del cache.environment["HOME"]
    unknown = """
import pwd

def getpwuid(uid):
    raise KeyError(uid)

pwd.getpwuid = getpwuid
"""
    assert cache.run(unknown + PROGRAM) == COMPILED
    assert not list(cache.working_directory.iterdir())


def test_processes_that_start_at_once(cache: Cache) -> None:
    processes = [cache.start() for _ in range(3)]
    outputs = [process.communicate()[0] for process in processes]
    assert set(outputs) <= {COMPILED, LOADED}
    assert len(cache.files()) == 1
    assert cache.run() == LOADED


@pytest.mark.parametrize(
    "body",
    [
        "result[0] = len(str(count))",
        "made = np.empty(count, np.int64)\n    result[0] = made[count // 2]",
        "if count > 3:\n        raise ValueError('too many')",
    ],
    ids=["text", "memory", "error"],
)
def test_loops_that_would_need_the_compiler_at_run_time_are_refused(cache: Cache, body: str) -> None:
    cache.source.write_text(f"import numpy as np\n\ndef multiply(numbers, count, result):\n    {body}\n")
    process = cache.start()
    _, errors = process.communicate()
    assert process.returncode == 1
    assert "AssertionError" in errors
    assert not cache.folder.exists()


def test_the_decoder_itself_is_compiled_once(cache: Cache) -> None:
    space = SpaceBuilder()
    space.gpu().line("Stream #1(Compute)", 1).event("k", 5, 10, {"correlation_id": 3})
    cache.source.with_name("a.xplane.pb").write_bytes(space.serialize())
    program = """
import sys
from pathlib import Path
from tracewh.ingest import xspace

path = Path(sys.argv[1]).with_name("a.xplane.pb")
capture = xspace.read(path.read_bytes(), "a.xplane.pb", compiled=True)
events = sum(rows.num_rows for table, rows in capture.stream if table == "device_events")
print(events, "numba" in sys.modules)
"""
    assert cache.run(program) == "1 True\n"
    assert cache.run(program) == "1 False\n"
