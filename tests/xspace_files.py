"""The real XSpace files that tests read: bundled ones, and those that lie outside of the repository."""

from __future__ import annotations

import gzip
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SHARED = ROOT.parent / "shared"
BUNDLED = sorted((ROOT / "fixtures").glob("*/profile/*.xplane.pb.gz"))
PUBLIC = [
    SHARED / "data" / "xspace" / f"{name}.xplane.pb"
    for name in (
        "TraceLens-mi300-jax08_conv",
        "TraceLens-mi300-jax08_gemm",
        "TraceLens-mi300-jax_conv_legacy",
        "TraceLens-te_fused_attn",
        "xprof-tpu_inference_2",
    )
]
ARCHIVES = [
    SHARED / "captures" / f"{name}.tar.xz"
    for name in (
        "h200_2proc",
        "h200x1_big_nocb",
        "h200x1_small",
        "h200x1_small_nocb",
        "h200x1_small_pytrace",
        "h200x2_medium_fsdp2",
        "h200x2_medium_fsdp2_nocb",
        "h200x2_medium_fsdp2_opt",
        "hist_01-08",
    )
]


def file_id(path: Path) -> str:
    """How a test of one of these files is called."""
    return path.parents[1].name if path in BUNDLED else path.name.split(".")[0]


def read_file(path: Path) -> bytes:
    """The XSpace in one of BUNDLED or PUBLIC, decompressed; skips the test where it is not at hand."""
    if not path.exists():
        pytest.skip(f"{path.name} is not at hand: shared/data lies outside the repository")
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def read_archive(path: Path) -> Iterator[bytes]:
    """The XSpaces in one of ARCHIVES; skips the test where it is not at hand."""
    if not path.exists():
        pytest.skip(f"{path.name} is not at hand: shared/captures lies outside the repository")
    with tarfile.open(path) as packed:
        for member in packed:
            if member.name.endswith(".xplane.pb"):
                file = packed.extractfile(member)
                assert file is not None
                yield file.read()
