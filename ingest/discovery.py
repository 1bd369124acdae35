"""Finding the artifacts of a run: which files below a path are worth reading, and what each is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO

from tracewh.ingest import content, hlo_files, rocprof_files
from tracewh.ingest.errors import NothingToIngest, UnreadableFile
from tracewh.ingest.step_time_table import is_table

# Kinds in the order in which they are read: a capture before what describes it.
ROCM_KINDS = ("rocpd", "rocprof_json", "rocprof_csv", "rocprof_compute_csv")
CAPTURE_KINDS = ("xspace", *ROCM_KINDS)
HLO_KINDS = ("hlo_proto", "hlo_text")
METADATA_KINDS = (
    "config",
    "record",
    "timing",
    "step_times",
    "memory_analysis",
    "memory_stats",
    "cost_analysis",
    "memory_profile",
    "training_log",
    "flop_ledger",
    "rules",
)
# A directory with none of these is no run: a config alone says nothing of what ran.
_EVIDENCE_KINDS = (*CAPTURE_KINDS, *HLO_KINDS, "timing", "step_times", "training_log")
PACKAGE_KIND = "rocpd_package"
PERFETTO_KIND = "perfetto_trace"
_PERFETTO = (
    "a Perfetto trace, which is not read, as its converter moves kernels that overlap. Give the *_results.db "
    "that it was made from."
)
_PERFETTO_SUFFIXES = (".pftrace", ".perfetto-trace")
RECORDED_KINDS = (
    *("thunk_sequence", "buffer_assignment", "compiler_text"),
    *(PACKAGE_KIND, PERFETTO_KIND),
)
# A directory that cannot be searched: reading it says why, so that nothing in it is missed in silence.
_UNSEARCHED = "directory"
KINDS = (*CAPTURE_KINDS, *HLO_KINDS, *METADATA_KINDS, *RECORDED_KINDS, _UNSEARCHED)

# What tracewh.record notes beside the files of a run, and where it keeps what is not complete yet.
RECORD_FILE = "tracewh_record.json"
STAGING_FOLDER = ".tracewh_part"

_BY_NAME = {
    "config.json": "config",
    "config.yaml": "config",
    "config.yml": "config",
    RECORD_FILE: "record",
    "timing.json": "timing",
    "memory_analysis.json": "memory_analysis",
    "memory_stats.json": "memory_stats",
    "cost_analysis.json": "cost_analysis",
    **dict.fromkeys(("flops.json", "flop_ledger.json", "flops.csv", "flop_ledger.csv"), "flop_ledger"),
    "buffer_assignment.pb": "buffer_assignment",
    "tracewh.toml": "rules",
}
# What profilers and XProf write beside an XSpace: exports and caches of what the XSpace itself holds.
_DERIVED_FILE = re.compile(
    r"(\.trace\.json|\.hlo_proto\.pb|\.SSTABLE|\.op_stats\w*\.pb|\.input_pipeline\.pb)$"
)
_SKIPPED_DIRECTORIES = {".git", "__pycache__", "node_modules", ".venv", STAGING_FOLDER}
_LOG_LINE = re.compile(rb"completed step: \d+, seconds: [\d.]+")
_HLO_TEXT_START = re.compile(rb"^\s*HloModule ")
_LOG_PROBE_BYTES = 1 << 20
_PROTO_PROBE_BYTES = 1 << 12
# Far more than a profile has; parsed, so much of it does not fill the memory.
_MAX_PROFILE_BYTES = 16 << 20
# A profile of Python's cProfile, which tells nothing of devices, is a marshalled dictionary.
_PYTHON_PROFILE_STARTS = (b"{", b"\xfb")
_JSON_PROBE_BYTES = 1 << 12
_CSV_PROBE_BYTES = 1 << 17


@dataclass(frozen=True)
class Artifact:
    """A file to read: where it is, what it is, and its size on disk in bytes.

    `parts` are further files that only together with it make a capture, and their sizes are in that of the
    artifact. Bytes that came by a pipe are `spooled`, and `path` only names them.
    """

    path: Path
    kind: str
    size_bytes: int
    parts: tuple[Path, ...] = ()
    spooled: IO[bytes] | None = field(default=None, repr=False, compare=False)

    def open(self) -> content.Content:
        """The content, decompressed, to be closed after use. Raises UnreadableFile."""
        return content.open_content(self.path, self.spooled)

    def open_parts(self) -> list[content.Content]:
        """The content of each of the parts, as `open`. Raises UnreadableFile."""
        return [content.open_content(part) for part in self.parts]

    def read(self) -> bytes:
        """A copy of the content, for files that are small. Raises UnreadableFile."""
        with self.open() as opened:
            if self.kind == "memory_profile" and len(opened.buffer) > _MAX_PROFILE_BYTES:
                raise UnreadableFile(
                    f"{self.path}: more than {_MAX_PROFILE_BYTES >> 20} MiB decompressed, as no device "
                    "memory profile has. Save the profile again, or remove it."
                )
            return bytes(opened.buffer)

    def sha256(self) -> str:
        """Digest of the content, after decompression: a file and its `.gz` are the same.

        That of a rocpd database, which is read where it lies, is of the file and of its write-ahead log.
        Raises UnreadableFile.
        """
        if self.kind != "rocpd":
            return content.digest(self.path, self.spooled)
        log = rocprof_files.pending_log(self.path)
        files = (self.path,) if log is None else (self.path, log)
        return content.digest_as_is(files)

    def part_digests(self) -> dict[Path, str]:
        """As `sha256`, of each of the parts."""
        return {part: content.digest(part) for part in self.parts}


def discover(path: Path) -> list[Artifact]:
    """Find the artifacts at or below `path`: captures first, then what describes them, each by path.

    Raises NothingToIngest where `path` does not exist or holds no evidence, saying what was looked for.
    """
    if not path.exists():
        raise NothingToIngest(f"{path}: no such file or directory. Check the path.")
    if path.is_file():
        kind = _kind(path)
        if kind is None:
            raise NothingToIngest(
                f"{path}: not a file that tracewh reads. It reads XSpace captures (*.xplane.pb), rocpd "
                "databases (*.db, *.rpd), JSON and CSV files of rocprofv3, optimized HLO (*.pb, *.txt), and "
                "a run's config, timing and memory files."
            )
        if kind == PACKAGE_KIND:
            return discover(path.parent)
        if kind == PERFETTO_KIND:
            raise NothingToIngest(f"{path}: {_PERFETTO}")
        return [Artifact(path, kind, path.stat().st_size)]
    kinds: dict[Path, str] = {}
    for file in _files(path):
        kind = _UNSEARCHED if file.is_dir() else _kind(file)
        if kind is not None:
            kinds[file] = kind
    # A package may list databases that lie elsewhere.
    for index in [file for file, kind in kinds.items() if kind == PACKAGE_KIND]:
        known = {file.resolve() for file in kinds}
        listed = rocprof_files.packaged(index)
        kinds |= {file: "rocpd" for file in listed if file.resolve() not in known}
    found = [
        Artifact(files[0], kind, sum(file.stat().st_size for file in files), tuple(files[1:]))
        for kind, files in _grouped(kinds)
    ]
    if not any(artifact.kind in _EVIDENCE_KINDS for artifact in found):
        trace = next((artifact.path for artifact in found if artifact.kind == PERFETTO_KIND), None)
        if trace is not None:
            raise NothingToIngest(f"{path}: no capture below it. {trace.name}: {_PERFETTO}")
        raise NothingToIngest(
            f"{path}: no capture below it. Expected **/*.xplane.pb from jax.profiler, or *_results.db, "
            "*_results.json or *_kernel_trace.csv from rocprofv3. Pass the directory that the run wrote to."
        )
    return sorted(found, key=_reading_order)


def _grouped(kinds: Mapping[Path, str]) -> Iterator[tuple[str, list[Path]]]:
    """The kind and the files of each artifact: one file, but for the tables of one process."""
    groups: dict[tuple[str, Path, str | None], list[Path]] = {}
    for file, kind in sorted(kinds.items()):
        folder, prefix = rocprof_files.group_of(file, kind) or (file, None)
        groups.setdefault((kind, folder, prefix), []).append(file)
    for (kind, *_), files in groups.items():
        yield kind, sorted(files, key=rocprof_files.is_secondary)


def _reading_order(artifact: Artifact) -> tuple[int, bool, str]:
    # Of two files with the same module, the one that names its program is the better.
    has_no_id = hlo_files.program_id_from_name(artifact.path.name) is None
    return KINDS.index(artifact.kind), has_no_id, str(artifact.path)


def _files(root: Path) -> Iterator[Path]:
    refused: list[Path] = []
    # Links are followed, as a run directory may hold its profile by one; each directory is searched once.
    searched: set[str] = set()
    for directory, subdirectories, names in os.walk(
        root, onerror=lambda error: refused.append(Path(error.filename)), followlinks=True
    ):
        real = os.path.realpath(directory)
        if real in searched:
            subdirectories.clear()
            continue
        searched.add(real)
        subdirectories[:] = sorted(name for name in subdirectories if name not in _SKIPPED_DIRECTORIES)
        for name in sorted(names):
            file = Path(directory, name)
            if file.is_file():
                yield file
    yield from refused


def is_xspace_name(name: str) -> bool:
    """Whether a file of that name is an XSpace."""
    return content.uncompressed_name(name).endswith((".xplane.pb", ".xspace.pb"))


def _kind(path: Path) -> str | None:
    """What the file is, by its name and, where that leaves doubt, its first bytes; None for no artifact."""
    name = content.uncompressed_name(path.name)
    if name in _BY_NAME:
        return _BY_NAME[name]
    if rocprof_files.is_package_index(path):
        return PACKAGE_KIND
    if is_xspace_name(name):
        return "xspace"
    if name.endswith(_PERFETTO_SUFFIXES):
        return PERFETTO_KIND
    if _DERIVED_FILE.search(name):
        return None
    if name.endswith((".db", ".rpd")):
        return "rocpd"
    if name.endswith(".json"):
        return rocprof_files.json_kind(_head(path, _JSON_PROBE_BYTES))
    if name.endswith(".csv"):
        head = _head(path, _CSV_PROBE_BYTES)
        return rocprof_files.csv_kind(name, head) or ("step_times" if is_table(name, head) else None)
    if name.endswith((".jsonl", ".ndjson")):
        return "step_times" if is_table(name, _head(path, _CSV_PROBE_BYTES)) else None
    if name.endswith(".prof"):
        return None if _head(path, 1) in _PYTHON_PROFILE_STARTS else "memory_profile"
    if name.endswith(".pb"):
        return _proto_kind(path, name)
    if name.endswith((".txt", ".hlo")):
        return _text_kind(path, name)
    if name.endswith(".log"):
        return "training_log" if _LOG_LINE.search(_head(path, _LOG_PROBE_BYTES)) else None
    return None


def _proto_kind(path: Path, name: str) -> str | None:
    if name.startswith("module_") and name.endswith(".hlo.pb"):
        return "hlo_proto" if hlo_files.is_optimized_dump(name) else None
    if "memory-usage-report" in name:
        return "compiler_text"
    return "hlo_proto" if hlo_files.looks_like_module(_head(path, _PROTO_PROBE_BYTES)) else None


def _text_kind(path: Path, name: str) -> str | None:
    if "thunk_sequence" in name:
        return "thunk_sequence"
    if "buffer-assignment" in name:
        return "buffer_assignment"
    if "live-range" in name or "memory-usage-report" in name:
        return "compiler_text"
    if name.startswith("module_") and not hlo_files.is_optimized_dump(name):
        return None
    head = _head(path, _LOG_PROBE_BYTES)
    if _HLO_TEXT_START.match(head):
        return "hlo_text"
    return "training_log" if _LOG_LINE.search(head) else None


def _head(path: Path, size: int) -> bytes:
    """First bytes of the content; of a file that cannot be read, nothing (reading it will say why)."""
    try:
        return content.head(path, size)
    except UnreadableFile:
        return b""
