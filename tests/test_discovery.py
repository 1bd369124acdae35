"""Which files of a run directory are artifacts, and of what kind."""

from __future__ import annotations

import gzip
import hashlib
import marshal
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tracewh.ingest.discovery import discover
from tracewh.ingest.errors import NothingToIngest

# HloModuleProto {name: "jit_f", entry_computation_name: "main.3"} and the HloProto that holds it.
MODULE = b"\n\x05jit_f\x12\x06main.3"
PROTO = b"\n" + bytes([len(MODULE)]) + MODULE
ZSTD_PROTO = bytes(pa.Codec("zstd").compress(PROTO, asbytes=True))
TRAINING_LOG = b"completed step: 7, seconds: 20.599, TFLOP/s/device: 385.3\n"


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("profile/plugins/profile/t/host.xplane.pb", b"", "xspace"),
        ("profile/plugins/profile/t/host.xplane.pb.gz", b"", "xspace"),
        ("profile/plugins/profile/t/host.xplane.pb.zst", b"", "xspace"),
        ("h/1_results.db", b"", "rocpd"),
        ("xla_dump/module_0007.jit_f.gfx950_gpu_after_optimizations.hlo.pb", b"", "hlo_proto"),
        ("xla_dump/module_0007.jit_f.gfx950_gpu_after_optimizations.txt", b"HloModule jit_f\n", "hlo_text"),
        ("optimized_hlo_module.pb", MODULE, "hlo_proto"),
        ("optimized_hlo.pb.gz", gzip.compress(PROTO, mtime=0), "hlo_proto"),
        ("optimized_hlo.pb.zst", ZSTD_PROTO, "hlo_proto"),
        ("optimized_hlo_by_its_bytes.pb", ZSTD_PROTO, "hlo_proto"),
        ("optimized_hlo_cut.pb.zst", ZSTD_PROTO[:-1], None),
        ("config.json", b"{}", "config"),
        ("config.json.zst", b"", "config"),
        ("config.yaml.gz", b"", "config"),
        ("config.yaml", b"{}", "config"),
        ("timing.json", b"{}", "timing"),
        ("memory_analysis.json", b"{}", "memory_analysis"),
        ("memory_stats.json", b"{}", "memory_stats"),
        ("device_memory.prof", b"", "memory_profile"),
        ("memory.prof.gz", gzip.compress(b"\n\x04\x08\x01", mtime=0), "memory_profile"),
        ("python.prof", marshal.dumps({}), None),
        ("train.log", TRAINING_LOG, "training_log"),
        ("train.log.gz", gzip.compress(TRAINING_LOG, mtime=0), "training_log"),
        ("stdout.txt", b"warming up\n" + TRAINING_LOG, "training_log"),
        ("xla_dump/module_0007.jit_f.thunk_sequence.txt", b"", "thunk_sequence"),
        ("xla_dump/module_0007.jit_f.before_optimizations.txt", b"HloModule jit_f\n", None),
        ("xla_dump/module_0007.jit_f.before_optimizations.hlo.pb", PROTO, None),
        ("profile/plugins/profile/t/ALL_HOSTS.op_stats_v2.pb", PROTO, None),
        ("profile/plugins/profile/t/host.trace.json.gz", b"", None),
        ("profile/plugins/profile/t/host.trace.json.zst", b"", None),
        ("profile/plugins/profile/t/ALL_HOSTS.op_stats.pb.zst", ZSTD_PROTO, None),
        ("checkpoint.pb", b"\n\x05\xff\xfe\x00\x01\x02", None),
        ("notes.txt", b"completed nothing", None),
        ("weights.npz", b"", None),
    ],
)
def test_kinds(tmp_path: Path, name: str, content: bytes, kind: str | None) -> None:
    # A capture beside it, so that the directory is a run.
    for path, data in (("z.xplane.pb", b""), (name, content)):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    found = {str(a.path.relative_to(tmp_path)): a.kind for a in discover(tmp_path)}
    assert found.pop("z.xplane.pb") == "xspace"
    assert found == ({} if kind is None else {name: kind})


def test_captures_come_first_and_numbered_modules_before_others(tmp_path: Path) -> None:
    for name in ("z.xplane.pb", "a_module.pb", "module_0007.jit_f.gpu_after_optimizations.hlo.pb"):
        (tmp_path / name).write_bytes(PROTO)
    (tmp_path / "config.json").write_bytes(b"{}")
    assert [artifact.path.name for artifact in discover(tmp_path)] == [
        "z.xplane.pb",
        "module_0007.jit_f.gpu_after_optimizations.hlo.pb",
        "a_module.pb",
        "config.json",
    ]


def test_repositories_and_caches_are_not_searched(tmp_path: Path) -> None:
    for folder in (".git", "__pycache__", "run"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.xplane.pb").write_bytes(b"")
    assert [artifact.path.parent.name for artifact in discover(tmp_path)] == ["run"]


@pytest.mark.parametrize("names", [[], ["config.json"], ["README.md"]])
def test_directory_without_evidence(tmp_path: Path, names: list[str]) -> None:
    for name in names:
        (tmp_path / name).write_text("{}")
    with pytest.raises(NothingToIngest, match="xplane"):
        discover(tmp_path)


def test_single_file(tmp_path: Path) -> None:
    path = tmp_path / "x.xplane.pb"
    path.write_bytes(b"")
    assert [artifact.kind for artifact in discover(path)] == ["xspace"]
    other = tmp_path / "x.doc"
    other.write_bytes(b"")
    with pytest.raises(NothingToIngest, match="not a file that tracewh reads"):
        discover(other)


@pytest.mark.parametrize("pack", [bytes, gzip.compress, pa.Codec("zstd").compress])
def test_a_file_and_its_packed_copies_are_one_content(
    tmp_path: Path, pack: Callable[[bytes], bytes | pa.Buffer]
) -> None:
    path = tmp_path / "x.xplane.pb"
    path.write_bytes(pack(PROTO))
    (artifact,) = discover(path)
    assert artifact.size_bytes == len(path.read_bytes())
    assert artifact.read() == PROTO
    assert artifact.sha256() == hashlib.sha256(PROTO).hexdigest()
    with artifact.open() as content:
        assert content.buffer == PROTO


def test_a_database_is_known_by_the_file_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "x.db"
    path.write_bytes(ZSTD_PROTO)
    assert discover(path)[0].sha256() == hashlib.sha256(ZSTD_PROTO).hexdigest()


def test_a_perfetto_trace_says_what_to_give_instead(tmp_path: Path) -> None:
    trace = tmp_path / "run" / "123_results.pftrace"
    trace.parent.mkdir()
    trace.write_bytes(b"\x0a\x10")
    for path in (trace, trace.parent):
        with pytest.raises(NothingToIngest, match=r"Perfetto trace, which is not read.*_results\.db"):
            discover(path)
